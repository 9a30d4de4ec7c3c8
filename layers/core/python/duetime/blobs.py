"""Where what is too large for a table goes."""

from typing import Protocol


class Blobs(Protocol):
    def put(self, key: str, content: bytes, content_type: str) -> None: ...

    def url(self, key: str) -> str:
        """Where whoever gets it can read the content for an hour."""


class MemoryBlobs:
    """For tests."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def put(self, key: str, content: bytes, content_type: str) -> None:  # noqa: ARG002
        self.contents[key] = content

    def url(self, key: str) -> str:
        return f"memory:{key}"

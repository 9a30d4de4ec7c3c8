from __future__ import annotations

_ECHO_LIMIT = 80


class InvalidSchedule(ValueError):
    """A schedule that Duetime will not keep. `field` is the API field at fault, `message` says what to do."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def quote(text: str) -> str:
    """The caller's own words in a message: escaped, and never longer than a line."""
    shown = text if len(text) <= _ECHO_LIMIT else f"{text[:_ECHO_LIMIT]}…"
    return repr(shown)

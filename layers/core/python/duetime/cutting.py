"""Texts that are kept have bounds, because what keeps them has: a DynamoDB item takes 400 KB.

Cut after secrets were struck out, never before: the piece of a secret that is left at a cut is not recognised.
"""

from typing import Final

CUT: Final = " … (cut)"


def cut(text: str, most_bytes: int) -> str:
    """At most so many bytes of UTF-8, the mark of the cut included."""
    content = text.encode("utf-8", "replace")
    if len(content) <= most_bytes:
        return text
    kept = content[: most_bytes - len(CUT.encode())]
    # A character that the cut went through is left out.
    return kept.decode("utf-8", "ignore") + CUT

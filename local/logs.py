"""The one line of a long log that says why a program failed."""

import re
from pathlib import Path

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# The CDK CLI ends with remarks about the failure of a program whose own last words come before them.
_REMARK = re.compile(r"Subprocess exited with error|^AggregateError|feature flags are not configured")
_CAUSE = re.compile(
    r"error|fail|exception|denied|cannot|could not|no such|invalid|unknown|missing", re.IGNORECASE
)
_LONGEST = 400


def last_words(text: str) -> str:
    """The last line that sounds like a cause, else the last line at all."""
    lines = [_COLOUR.sub("", line).strip(" \t‣") for line in text.splitlines()]
    told = [line for line in lines if line and not _REMARK.search(line)]
    causes = [line for line in told if _CAUSE.search(line)]
    chosen = (causes or told or ["it said nothing"])[-1]
    return chosen if len(chosen) <= _LONGEST else chosen[:_LONGEST] + "…"


def last_words_of(log: Path) -> str:
    try:
        return last_words(log.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return "it left no log"

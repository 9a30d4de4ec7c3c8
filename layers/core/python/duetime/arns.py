"""Amazon resource names, and patterns of them that mean what they mean in an IAM policy."""

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Arn:
    text: str
    partition: str
    service: str
    region: str
    account: str
    resource: str

    @classmethod
    def parse(cls, text: str) -> "Arn | None":
        if len(text) > 512 or not re.fullmatch(r"[\x21-\x7e]+", text):
            return None
        parts = text.split(":", 5)
        if len(parts) != 6 or parts[0] != "arn" or not parts[2] or not parts[5]:
            return None
        return cls(text, *parts[1:])


def matches(text: str, pattern: str) -> bool:
    """`*` stands for any characters, colons and slashes too, and `?` for one. Nothing else is special: not fnmatch's
    brackets, which IAM does not know, so that what is allowed here is what is granted there."""
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)

"""How deeply JSON is nested. What is nested too deeply could be stored, and never be shown again: it would break every
list that it is in."""

from typing import Any, Final

DEEPEST: Final = 64
"""Pydantic can write down some 255 levels, and what it writes has some of its own."""


def is_too_deep(value: Any) -> bool:
    """Level by level, and not by recursion."""
    level = [value]
    for _ in range(DEEPEST):
        inner = [each for each in level if isinstance(each, dict | list | tuple)]
        level = [x for each in inner for x in (each.values() if isinstance(each, dict) else each)]
        if not level:
            return False
    return True

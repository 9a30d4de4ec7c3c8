"""Keeping what a task was trusted with out of everything that is kept about it: logs, results, errors."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, quote_plus

from duetime.errors import PermanentFailure

HIDDEN: Final = "[secret]"
SHORTEST_SECRET: Final = 6
"""A shorter one would be struck out of ordinary words, and is no secret anyway."""


class Redactor:
    def __init__(self) -> None:
        self._forms: list[str] = []

    def keep_secret(self, value: str) -> None:
        """From now on neither the value nor the forms in which an echo would show it appear anywhere."""
        if len(value) < SHORTEST_SECRET:
            raise PermanentFailure(
                f"a secret of less than {SHORTEST_SECRET} characters cannot be kept secret"
            )
        forms = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        forms |= {quote(value), quote(value, safe=""), quote_plus(value)}
        # The longest first: a form may contain another.
        self._forms = sorted({*self._forms, *forms}, key=len, reverse=True)

    def clean(self, text: str, *, is_cut: bool = False) -> str:
        """Of a text that was cut before, the end may be a piece of a secret, and is left out."""
        if is_cut and self._forms:
            text = text[: max(0, len(text) - len(self._forms[0]))]
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text

    def clean_json(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, Mapping):
            return {self.clean(str(name)): self.clean_json(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.clean_json(inner) for inner in value]
        return value

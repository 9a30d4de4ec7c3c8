"""Templates in a task's settings: `{{due_at}}`, `{{run_id}}`, `{{payload.account.id}}`.

A text that is one placeholder and nothing else becomes the value itself, a number or an object too; inside a longer
text a value is written as JSON would, without the quotes of a string. Names of settings are never templates.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from duetime.errors import InvalidField
from duetime.instants import format_instant

_PLACEHOLDER: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)\s*\}\}")
_OPENING: Final = re.compile(r"\{\{")


def values_of(
    *, job_id: str, run_id: str, attempt: int, due_at: datetime, fence: int, payload: Any
) -> dict[str, Any]:
    """What a template can name."""
    return {
        "job_id": job_id,
        "run_id": run_id,
        "attempt": attempt,
        "due_at": format_instant(due_at),
        "due_date": format_instant(due_at)[:10],
        "fence": fence,
        "payload": payload,
    }


def has_templates(value: Any) -> bool:
    if isinstance(value, str):
        return _OPENING.search(value) is not None
    if isinstance(value, Mapping):
        return any(has_templates(inner) for inner in value.values())
    return isinstance(value, list) and any(has_templates(inner) for inner in value)


def fill(value: Any, values: Mapping[str, Any], field: str = "task") -> Any:
    """Raises InvalidField for a name that leads nowhere."""
    if isinstance(value, str):
        return _fill_text(value, values, field)
    if isinstance(value, Mapping):
        return {name: fill(inner, values, f"{field}.{name}") for name, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, values, f"{field}.{number}") for number, inner in enumerate(value)]
    return value


def _fill_text(text: str, values: Mapping[str, Any], field: str) -> Any:
    if len(_OPENING.findall(text)) != len(_PLACEHOLDER.findall(text)):
        raise InvalidField(
            field, "has a template that is not understood: write {{due_at}} or {{payload.name}}"
        )
    if whole := _PLACEHOLDER.fullmatch(text):
        return _look_up(whole[1], values, field)
    return _PLACEHOLDER.sub(lambda found: _as_text(_look_up(found[1], values, field)), text)


def _look_up(path: str, values: Mapping[str, Any], field: str) -> Any:
    value: Any = values
    for name in path.split("."):
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            known = ", ".join(values)
            raise InvalidField(field, f"names {{{{{path}}}}}, which leads nowhere: there are {known}")
    return value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)

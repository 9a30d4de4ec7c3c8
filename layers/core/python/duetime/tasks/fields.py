"""Reading a task's settings: each is refused by its name."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from duetime.arns import Arn
from duetime.errors import InvalidField


def parse_heartbeat(settings: Mapping[str, Any]) -> timedelta:
    seconds = settings.get("heartbeat_seconds", 300)
    if type(seconds) is not int or not 15 <= seconds <= 86_400:
        raise InvalidField("task.heartbeat_seconds", "must be a whole number from 15 to 86400")
    return timedelta(seconds=seconds)


def refuse_unknown(settings: Mapping[str, Any], known: Collection[str]) -> None:
    for name in settings:
        if name not in known:
            raise InvalidField(
                f"task.{name}", f"is not a setting of this task: it has {', '.join(sorted(known))}"
            )


def parse_arn(settings: Mapping[str, Any], name: str, service: str, resource_prefix: str = "") -> Arn:
    text = settings.get(name)
    arn = Arn.parse(text) if isinstance(text, str) else None
    if arn is None or arn.service != service or not arn.resource.startswith(resource_prefix):
        what = f"{service}:…:{resource_prefix}…" if resource_prefix else f"{service}:…"
        raise InvalidField(f"task.{name}", f"must be an ARN such as arn:aws:{what}")
    return arn


def parse_text(
    settings: Mapping[str, Any], name: str, *, default: str | None = None, longest: int = 256
) -> str | None:
    text = settings.get(name, default)
    if text is None:
        return None
    if not isinstance(text, str) or not 1 <= len(text) <= longest or not text.isprintable():
        raise InvalidField(f"task.{name}", f"must be printable text of 1 to {longest} characters")
    return text


def parse_choice(settings: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str:
    """The first one is the default."""
    choice = settings.get(name, choices[0])
    if choice not in choices:
        raise InvalidField(f"task.{name}", f"must be one of {', '.join(choices)}")
    return str(choice)


def content_of(settings_input: Any, payload: Any) -> Any:
    """What a target is sent: the task's own `input`, else the job's payload."""
    return payload if settings_input is None else settings_input

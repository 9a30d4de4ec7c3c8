"""What the deployment tells a function, read once from the environment and validated before anything runs."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, TypedDict, cast

from duetime.errors import ConfigurationError
from duetime.job import Priority
from duetime.targets import AllowedTargets


class WakeUpSettings(TypedDict):
    """What a schedule in EventBridge is made of, beside its time."""

    group: str
    role_arn: str
    queue_arn: str
    dead_letter_queue_arn: str


@dataclass(frozen=True)
class Settings:
    """Each function reads only what it was given, and a missing or malformed one names itself."""

    variables: Mapping[str, str]

    @classmethod
    def from_environment(cls) -> "Settings":
        return cls(dict(os.environ))

    @cached_property
    def jobs_table(self) -> str:
        return self._required("DUETIME_JOBS_TABLE")

    @cached_property
    def runs_table(self) -> str:
        return self._required("DUETIME_RUNS_TABLE")

    @cached_property
    def run_queue_urls(self) -> Mapping[Priority, str]:
        return self._per_priority("DUETIME_RUN_QUEUE_URLS")

    @cached_property
    def dead_letter_queue_urls(self) -> Mapping[Priority, str]:
        return self._per_priority("DUETIME_DEAD_LETTER_QUEUE_URLS")

    @cached_property
    def due_queue_url(self) -> str:
        return self._required("DUETIME_DUE_QUEUE_URL")

    @cached_property
    def hint_lead(self) -> timedelta:
        text = self._required("DUETIME_HINT_LEAD_MS")
        if not text.isdecimal():
            raise ConfigurationError(f"DUETIME_HINT_LEAD_MS must be whole milliseconds, not {text!r}")
        return timedelta(milliseconds=int(text))

    @cached_property
    def wakeups(self) -> WakeUpSettings:
        values = self._json("DUETIME_WAKEUPS")
        if not isinstance(values, dict) or set(values) != WakeUpSettings.__required_keys__:
            names = ", ".join(sorted(WakeUpSettings.__required_keys__))
            raise ConfigurationError(f"DUETIME_WAKEUPS must be a JSON object with {names}")
        return cast(WakeUpSettings, values)

    @cached_property
    def admins(self) -> frozenset[str]:
        admins = self._json("DUETIME_ADMINS")
        if not isinstance(admins, list) or not all(isinstance(admin, str) for admin in admins):
            raise ConfigurationError("DUETIME_ADMINS must be a JSON list of principals' ARNs")
        return frozenset(admins)

    @cached_property
    def allowed_targets(self) -> AllowedTargets:
        try:
            return AllowedTargets.from_block(self._json("DUETIME_ALLOWED_TARGETS"))
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(f"DUETIME_ALLOWED_TARGETS is malformed: {error}") from error

    def _per_priority(self, name: str) -> Mapping[Priority, str]:
        urls = self._json(name)
        if not isinstance(urls, dict) or set(urls) != {str(priority) for priority in Priority}:
            raise ConfigurationError(f"{name} must be a JSON object with the keys high, medium and low")
        return {Priority(priority): str(url) for priority, url in urls.items()}

    def _json(self, name: str) -> Any:
        try:
            return json.loads(self._required(name))
        except ValueError as error:
            raise ConfigurationError(f"{name} is not JSON: {error}") from error

    def _required(self, name: str) -> str:
        if not (value := self.variables.get(name, "")):
            raise ConfigurationError(f"the environment variable {name} is not set")
        return value

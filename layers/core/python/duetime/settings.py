"""What the deployment tells a function, read once from the environment and validated before anything runs."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, cast

from duetime.errors import ConfigurationError
from duetime.job import Priority
from duetime.targets import AllowedTargets

if TYPE_CHECKING:
    from duetime.admission import Quota


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
    def environment(self) -> str:
        return self._required("DUETIME_ENVIRONMENT")

    @cached_property
    def jobs_table(self) -> str:
        return self._required("DUETIME_JOBS_TABLE")

    @cached_property
    def runs_table(self) -> str:
        return self._required("DUETIME_RUNS_TABLE")

    @cached_property
    def records_table(self) -> str:
        return self._required("DUETIME_RECORDS_TABLE")

    @cached_property
    def spill_bucket(self) -> str:
        return self._required("DUETIME_SPILL_BUCKET")

    @cached_property
    def signing_secret_arn(self) -> str:
        return self._required("DUETIME_SIGNING_SECRET_ARN")

    @cached_property
    def runs_kept_for(self) -> timedelta:
        return timedelta(days=self._whole_number("DUETIME_RUN_DAYS"))

    @cached_property
    def logs_kept_for(self) -> timedelta:
        return timedelta(days=self._whole_number("DUETIME_RUN_LOG_DAYS"))

    @cached_property
    def events_kept_for(self) -> timedelta:
        return timedelta(days=self._whole_number("DUETIME_EVENT_DAYS"))

    @cached_property
    def quotas(self) -> "Sequence[Quota]":
        # Only what writes jobs needs it.
        from duetime.admission import Quota

        blocks = self._json("DUETIME_QUOTAS")
        try:
            return [Quota(tuple(block["principals"]), int(block["waiting_jobs"])) for block in blocks]
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(f"DUETIME_QUOTAS is malformed: {error!r}") from error

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
        return timedelta(milliseconds=self._whole_number("DUETIME_HINT_LEAD_MS"))

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
        blocks = self._json("DUETIME_ALLOWED_TARGETS")
        if not isinstance(blocks, list):
            raise ConfigurationError("DUETIME_ALLOWED_TARGETS must be a JSON list of rules")
        try:
            return AllowedTargets.from_blocks(blocks, own_prefix=f"duetime-{self.environment}-")
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(f"DUETIME_ALLOWED_TARGETS is malformed: {error}") from error

    def _per_priority(self, name: str) -> Mapping[Priority, str]:
        urls = self._json(name)
        if not isinstance(urls, dict) or set(urls) != {str(priority) for priority in Priority}:
            raise ConfigurationError(f"{name} must be a JSON object with the keys high, medium and low")
        return {Priority(priority): str(url) for priority, url in urls.items()}

    def _whole_number(self, name: str) -> int:
        text = self._required(name)
        if not text.isdecimal():
            raise ConfigurationError(f"{name} must be a whole number, not {text!r}")
        return int(text)

    def _json(self, name: str) -> Any:
        try:
            return json.loads(self._required(name))
        except ValueError as error:
            raise ConfigurationError(f"{name} is not JSON: {error}") from error

    def _required(self, name: str) -> str:
        if not (value := self.variables.get(name, "")):
            raise ConfigurationError(f"the environment variable {name} is not set")
        return value

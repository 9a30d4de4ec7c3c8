"""Secrets that a task refers to instead of containing them: in Secrets Manager, or a parameter of SSM."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from duetime.arns import Arn
from duetime.errors import InvalidField, PermanentFailure
from duetime.targets import Reach
from duetime.tasks.aws import call, client

# A rotated secret is picked up within this time; until then it is not fetched for every run.
_FRESH_SECONDS: Final = 300.0
_MOST_REMEMBERED: Final = 256
_remembered: dict[str, tuple[float, str]] = {}


@dataclass(frozen=True, slots=True)
class SecretReference:
    arn: Arn
    # Which value, of a secret that is a JSON object.
    key: str | None = None
    # What comes before it, such as "Bearer ".
    prefix: str = ""

    @classmethod
    def parse(cls, value: Mapping[str, Any], field: str) -> "SecretReference":
        if not set(value) <= {"secret", "key", "prefix"}:
            raise InvalidField(field, "must be text, or an object with secret and perhaps key and prefix")
        text, key, prefix = value.get("secret"), value.get("key"), value.get("prefix", "")
        arn = Arn.parse(text) if isinstance(text, str) else None
        if arn is None or arn.service not in ("secretsmanager", "ssm"):
            raise InvalidField(f"{field}.secret", "must be the ARN of a secret or of an SSM parameter")
        if not isinstance(prefix, str) or not (key is None or isinstance(key, str)):
            raise InvalidField(field, "key and prefix must be texts")
        return cls(arn, key, prefix)

    def check(self, reach: Reach) -> None:
        reach.check_arn(self.arn)

    def resolve(self, reach: Reach) -> str:
        # What is remembered was fetched for somebody; whether this owner may have it is asked every time.
        reach.check_arn(self.arn)
        text = _remember(self.arn)
        if self.key is None:
            return text
        try:
            value = json.loads(text)[self.key]
        except (ValueError, KeyError, TypeError):
            raise PermanentFailure(f"{self.arn.text} has no value {self.key!r}") from None
        return str(value)


def _remember(arn: Arn) -> str:
    known = _remembered.get(arn.text)
    if known and time.monotonic() - known[0] < _FRESH_SECONDS:
        return known[1]
    text = _fetch(arn)
    if len(_remembered) >= _MOST_REMEMBERED:
        _remembered.clear()
    _remembered[arn.text] = (time.monotonic(), text)
    return text


def _fetch(arn: Arn) -> str:
    if arn.service == "ssm":
        get = client("ssm", arn.region).get_parameter
        return str(call(get, Name=arn.text, WithDecryption=True)["Parameter"]["Value"])
    answer = call(client("secretsmanager", arn.region).get_secret_value, SecretId=arn.text)
    if "SecretString" not in answer:
        raise PermanentFailure(f"{arn.text} is binary and cannot be a header")
    return str(answer["SecretString"])

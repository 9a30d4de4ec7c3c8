"""What Duetime starts in ECS and Step Functions carries the run in its name, so that the event of its end finds it."""

import re
from typing import Final, NamedTuple

from duetime.run import RunKey

PREFIX: Final = "duetime"
_STARTED_BY: Final = re.compile(rf"{PREFIX}/([0-9a-f-]{{36}})/([0-9A-Za-z-]+)/(\d+)")
_EXECUTION: Final = re.compile(rf"{PREFIX}_([0-9TZ]{{19}}-[0-9a-fm]+-[0-9a-f]{{16}})([0-9a-f]{{16}})_(\d+)")


class StartedFor(NamedTuple):
    key: RunKey
    attempt: int


def started_by(key: RunKey, attempt: int) -> str:
    """For ECS, which takes 128 letters, digits, dashes, underscores and slashes."""
    return f"{PREFIX}/{key.job_id}/{key.run_id}/{attempt}"


def parse_started_by(text: str) -> StartedFor | None:
    found = _STARTED_BY.fullmatch(text)
    return StartedFor(RunKey(found[1], found[2]), int(found[3])) if found else None


def execution_name(key: RunKey, attempt: int) -> str:
    """For Step Functions, which takes 80 characters. A run's id ends with half of its job's; the other half follows."""
    return f"{PREFIX}_{key.run_id}{key.job_id.replace('-', '')[16:]}_{attempt}"


def parse_execution_name(text: str) -> StartedFor | None:
    found = _EXECUTION.fullmatch(text)
    if not found:
        return None
    digits = found[1][-16:] + found[2]
    job_id = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return StartedFor(RunKey(job_id, found[1]), int(found[3]))

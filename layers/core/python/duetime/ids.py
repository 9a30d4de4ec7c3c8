"""How the ids of jobs and runs look. What does not look so is nobody's, and no store is asked for it."""

import re
from typing import Final

from duetime.run import RunKey

_RUN_ID: Final = re.compile(r"[0-9TZ]{19}-[0-9a-fm]{1,20}-[0-9a-f]{16}")
_JOB_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_job_id(text: str) -> bool:
    return _JOB_ID.fullmatch(text) is not None


def is_run_id(text: str) -> bool:
    return _RUN_ID.fullmatch(text) is not None


def is_run_key(key: RunKey) -> bool:
    return is_job_id(key.job_id) and is_run_id(key.run_id)

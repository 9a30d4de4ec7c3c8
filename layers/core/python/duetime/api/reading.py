"""What a caller may read. Another owner's job does not exist for them."""

import re
from typing import Final

from duetime.api.caller import Caller
from duetime.errors import NotFound
from duetime.job import Job
from duetime.store import Store

_JOB_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def visible_job(job_id: str, caller: Caller, store: Store) -> Job:
    job = store.get_job(job_id) if _JOB_ID.fullmatch(job_id) else None
    if job is None or not caller.may_see(job):
        # One answer for both, or the difference would tell which ids exist.
        raise NotFound("there is no such job, or it is not yours")
    return job

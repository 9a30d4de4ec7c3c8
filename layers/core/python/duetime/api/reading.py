"""What a caller may read. Another owner's job does not exist for them."""

from datetime import datetime

from duetime.api.caller import Caller
from duetime.errors import NotFound
from duetime.ids import is_job_id, is_run_id
from duetime.job import Job
from duetime.planning import STEP
from duetime.run import Run, RunKey, moment_part
from duetime.store import Store


def visible_job(job_id: str, caller: Caller, store: Store) -> Job:
    job = store.get_job(job_id) if is_job_id(job_id) else None
    if job is None or not caller.may_see(job):
        # One answer for both, or the difference would tell which ids exist.
        raise NotFound("there is no such job, or it is not yours")
    return job


def visible_run(job: Job, run_id: str, store: Store) -> Run:
    """Of a job that the caller may see."""
    run = store.get_run(RunKey(job.job_id, run_id)) if is_run_id(run_id) else None
    if run is None:
        raise NotFound("the job has no such run")
    return run


def latest_run(job: Job, store: Store, now: datetime) -> Run | None:
    """The one whose time came last; before any has come, the first that is planned."""
    # "~" sorts behind everything that an id can go on with.
    came = store.list_runs(job.job_id, limit=1, before=f"{moment_part(now)}~").runs
    planned = () if came else store.list_runs(job.job_id, limit=STEP).runs
    return came[0] if came else planned[-1] if planned else None

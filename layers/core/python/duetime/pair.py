from typing import NamedTuple

from duetime.job import Job
from duetime.run import Run


class JobRun(NamedTuple):
    """A run and its job, as they were read or as they shall become."""

    job: Job
    run: Run

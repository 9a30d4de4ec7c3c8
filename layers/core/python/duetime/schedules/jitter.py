"""Spreading jobs that are due together, so that midnight is not a wall."""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b

from duetime.schedules.fire import Schedule
from duetime.schedules.invalid import InvalidSchedule

# A job that fires once has no period to stay within.
LONGEST_JITTER_OF_ONE_FIRE = 86_400


def jitter_for(job_id: str, jitter_seconds: int) -> timedelta:
    """The same for every fire of a job, everywhere and for ever: whole milliseconds in [0, jitter_seconds)."""
    if jitter_seconds <= 0:
        return timedelta(0)
    digest = blake2b(job_id.encode(), digest_size=8).digest()
    return timedelta(milliseconds=int.from_bytes(digest) % (jitter_seconds * 1000))


def check_jitter(jitter_seconds: int, schedule: Schedule) -> None:
    """Less than the period, or a job would be spread past its own next time."""
    if jitter_seconds < 0:
        raise InvalidSchedule("jitter_seconds", f"must not be negative, and is {jitter_seconds}")
    gap = schedule.shortest_gap_seconds
    if gap is None and jitter_seconds > LONGEST_JITTER_OF_ONE_FIRE:
        reason = f"must be at most {LONGEST_JITTER_OF_ONE_FIRE} for a job that runs once"
        raise InvalidSchedule("jitter_seconds", f"{reason}, and is {jitter_seconds}")
    if gap is not None and jitter_seconds >= gap:
        reason = f"must be less than the {gap} s between two times of the schedule"
        raise InvalidSchedule("jitter_seconds", f"{reason}, and is {jitter_seconds}")

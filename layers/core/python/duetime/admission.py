"""Whether an owner may submit more: a quota of jobs that have not ended.

Counting every job would cost every job a write, and one owner's counter could not take 10,000 of them a second. So the
jobs are not counted but estimated: they are spread evenly over the parts of the owner's list, and some of the parts are
counted, seldom while there is room and often when there is little. A function adds what it accepted itself since. The
quota protects; it is not an invoice.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from duetime.arns import matches
from duetime.clock import Clock
from duetime.errors import TooMany
from duetime.listing import BUCKETS, Lists, Part, Standing

COUNTED_AT_ONCE: Final = 4000
"""About so many entries are counted for an estimate: it is then right to within some 2 %."""

RETRY_AFTER: Final = timedelta(seconds=60)
# How long an estimate holds, by how much of the quota it found used.
_FRESH: Final = (
    (0.5, timedelta(seconds=60)),
    (0.9, timedelta(seconds=10)),
    (float("inf"), timedelta(seconds=2)),
)


class Quota(NamedTuple):
    """The first one whose principals match an owner is the owner's."""

    principals: Sequence[str]
    waiting_jobs: int


@dataclass(slots=True)
class _Estimate:
    jobs: float
    holds_until: datetime


class Admission:
    def __init__(self, lists: Lists, quotas: Sequence[Quota], clock: Clock) -> None:
        self._lists = lists
        self._quotas = quotas
        self._clock = clock
        self._estimates: dict[str, _Estimate] = {}
        self._known: set[str] = set()

    def admit(self, owner: str, count: int = 1) -> None:
        """Before anything is written. Raises TooMany."""
        if owner not in self._known:
            self._lists.know_owner(owner)
            self._known.add(owner)
        limit = self._limit_of(owner)
        if limit is None:
            return
        estimate = self._estimates.get(owner)
        if estimate is None or estimate.holds_until <= self._clock.now():
            estimate = self._estimates[owner] = self._estimate(owner, limit)
        if estimate.jobs + count > limit:
            raise TooMany(
                f"about {round(estimate.jobs)} jobs of {owner} have not ended, and {limit} is the quota: cancel some, "
                "or wait until some have ended",
                retry_after=RETRY_AFTER,
            )
        estimate.jobs += count

    def _limit_of(self, owner: str) -> int | None:
        for principals, waiting_jobs in self._quotas:
            if any(matches(owner, pattern) for pattern in principals):
                return waiting_jobs
        return None

    def _estimate(self, owner: str, limit: int) -> _Estimate:
        buckets = random.sample(range(BUCKETS), max(1, min(BUCKETS, COUNTED_AT_ONCE * BUCKETS // limit)))
        counted = sum(
            # More than twice its share: then it is enough to know that.
            self._lists.count_listed(Part(owner, Standing.LIVE, bucket), limit=2 * limit // BUCKETS + 100)
            for bucket in buckets
        )
        jobs = counted * BUCKETS / len(buckets)
        holds_for = next(span for share, span in _FRESH if jobs < share * limit)
        return _Estimate(jobs, self._clock.now() + holds_for)

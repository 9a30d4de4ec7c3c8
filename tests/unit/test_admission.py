from datetime import timedelta

import pytest
from duetime.admission import Admission, Quota
from duetime.clock import ManualClock
from duetime.errors import TooMany
from duetime.listing import Part
from duetime.memory_store import MemoryStore
from duetime.status import JobStatus

from tests.factories import NOW, OWNER, a_job

OTHER = "arn:aws:iam::123456789012:role/other"


class Counting(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.counted = 0
        self.known: list[str] = []

    def count_listed(self, part: Part, *, limit: int) -> int:
        self.counted += 1
        return super().count_listed(part, limit=limit)

    def know_owner(self, owner: str) -> None:
        self.known.append(owner)


def fill(store: MemoryStore, count: int, **changes: object) -> None:
    for _ in range(count):
        store.create(a_job(**changes), [])


def test_what_has_not_ended_counts_and_what_has_does_not() -> None:
    store = MemoryStore()
    fill(store, 8)
    fill(store, 50, status=JobStatus.COMPLETED)
    fill(store, 50, owner=OTHER)
    admission = Admission(store, [Quota((OWNER,), 10)], ManualClock(NOW))
    admission.admit(OWNER, 2)
    with pytest.raises(TooMany, match="10 is the quota") as caught:
        admission.admit(OWNER)
    assert caught.value.retry_after == timedelta(seconds=60)


def test_the_first_rule_that_matches_counts_and_without_one_there_is_no_limit() -> None:
    store = MemoryStore()
    fill(store, 5)
    rules = [Quota(("arn:aws:iam::*:role/pay*",), 5), Quota(("*payments",), 1000)]
    with pytest.raises(TooMany):
        Admission(store, rules, ManualClock(NOW)).admit(OWNER)
    Admission(store, [Quota(("nobody",), 1)], ManualClock(NOW)).admit(OWNER)


def test_an_estimate_is_made_seldom_while_there_is_room() -> None:
    store, clock = Counting(), ManualClock(NOW)
    admission = Admission(store, [Quota(("*",), 1_000_000)], clock)
    for _ in range(1000):
        admission.admit(OWNER)
    assert store.counted == 1
    assert store.known == [OWNER]
    clock.advance(timedelta(seconds=61))
    admission.admit(OWNER)
    assert store.counted == 2


def test_room_that_became_free_is_seen_soon() -> None:
    store, clock = MemoryStore(), ManualClock(NOW)
    jobs = [a_job() for _ in range(3)]
    for job in jobs:
        store.create(job, [])
    admission = Admission(store, [Quota(("*",), 3)], clock)
    with pytest.raises(TooMany):
        admission.admit(OWNER)
    store.adjust(jobs[0], jobs[0].evolve(status=JobStatus.CANCELLED), ())
    clock.advance(timedelta(seconds=3))
    admission.admit(OWNER)


def test_a_large_estimate_is_right_within_some_percent() -> None:
    store = MemoryStore()
    fill(store, 4000)
    admission = Admission(store, [Quota(("*",), 64_000)], ManualClock(NOW))
    estimate = admission._estimate(OWNER, 64_000)
    assert 0.6 < estimate.jobs / 4000 < 1.4

"""From what changed to what is told: notices, and whether anybody wants them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

import pytest
from duetime.clock import ManualClock
from duetime.enqueuing import Change
from duetime.interests import Interests, KnownSubscriptions, announce_job_notice, announce_notices
from duetime.memory_notices import MemorySubscriptions
from duetime.notices import Notice, missed_notice, notices_for, paused_notice
from duetime.notify import NoticeEvent, Notify, Protocol
from duetime.run import Run
from duetime.status import RunStatus
from duetime.subscriptions import Subscription

from tests.factories import NOW, OWNER, a_job, a_run, a_spec

OTHER = "arn:aws:iam::123456789012:role/ads"
LATER = NOW + timedelta(seconds=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedRun(Run):
    """A run as the status feed knows it."""

    late_at: datetime | None = None


def marked(run: Run, late_at: datetime | None) -> MarkedRun:
    return MarkedRun(**{field.name: getattr(run, field.name) for field in fields(Run)} | {"late_at": late_at})


def a_subscription(**changes: Any) -> Subscription:
    values: dict[str, Any] = {
        "subscription_id": "sub-1",
        "owner": OWNER,
        "protocol": Protocol.HTTPS,
        "endpoint": "https://example.com/hook",
        "events": (NoticeEvent.FAILED,),
        "created_at": NOW,
        "created_by": OWNER,
    }
    return Subscription(**values | changes)


class KeptQueue:
    def __init__(self) -> None:
        self.sent: list[Notice] = []

    def send_notices(self, notices: Sequence[Notice]) -> Sequence[Notice]:
        self.sent += notices
        return ()


class CountedSubscriptions(MemorySubscriptions):
    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def of_owner(self, owner: str) -> Sequence[Subscription]:
        self.reads += 1
        return super().of_owner(owner)


class Listening:
    def __init__(self, *subscriptions: Subscription) -> None:
        self.clock = ManualClock(NOW)
        self.store = CountedSubscriptions()
        for subscription in subscriptions:
            self.store.add(subscription)
        self.interests = Interests(KnownSubscriptions(self.store, self.clock))
        self.queue = KeptQueue()

    def announce(self, *changes: Change) -> list[NoticeEvent]:
        assert announce_notices(changes, self.interests, self.queue) == ()
        return [notice.event for notice in self.queue.sent]


def change(status: RunStatus, was: RunStatus | None = RunStatus.RUNNING, **changes: Any) -> Change:
    before = a_run(changes.pop("job", None) or a_job())
    values = {field.name: getattr(before, field.name) for field in fields(Run)}
    after = Run(**values | {"status": status, "modified_time": LATER} | changes)
    return Change(after, None if was is None else Run(**values | {"status": was}))


@pytest.mark.parametrize(
    ("status", "event"),
    [
        (RunStatus.SUCCEEDED, NoticeEvent.SUCCEEDED),
        (RunStatus.FAILED, NoticeEvent.FAILED),
        (RunStatus.DEAD_LETTERED, NoticeEvent.DEAD_LETTERED),
        (RunStatus.RETRYING, NoticeEvent.RETRIED),
    ],
)
def test_a_status_that_was_entered_is_news(status: RunStatus, event: NoticeEvent) -> None:
    (notice,) = notices_for(change(status, attempt=2, error_message="x" * 5000))
    assert (notice.event, notice.at, notice.attempt, notice.status) == (event, LATER, 2, status)
    assert notice.error == "x" * 1000
    assert (notice.not_before is not None) == (event is NoticeEvent.RETRIED)


@pytest.mark.parametrize(
    ("status", "was"),
    [
        (RunStatus.FAILED, RunStatus.FAILED),
        (RunStatus.RUNNING, RunStatus.QUEUED),
        (RunStatus.QUEUED, None),
        (RunStatus.CANCELLED, RunStatus.RUNNING),
        (RunStatus.SKIPPED, RunStatus.QUEUED),
    ],
)
def test_other_writes_are_not(status: RunStatus, was: RunStatus | None) -> None:
    assert list(notices_for(change(status, was))) == []


def test_a_run_is_late_once() -> None:
    run = a_run(a_job())
    fresh = Change(marked(run, LATER), marked(run, None))
    known = Change(marked(run, LATER), marked(run, LATER))
    assert [(notice.event, notice.at) for notice in notices_for(fresh)] == [(NoticeEvent.LATE, LATER)]
    assert list(notices_for(known)) == []


def test_the_same_change_has_the_same_id_and_another_change_another() -> None:
    job = a_job()
    first = change(RunStatus.FAILED, job=job)
    (again,), (notice,) = notices_for(first), notices_for(first)
    assert again.notice_id == notice.notice_id
    redriven = change(RunStatus.FAILED, job=job, modified_time=LATER + timedelta(seconds=9))
    others = [*notices_for(redriven), *notices_for(change(RunStatus.SUCCEEDED, job=job))]
    assert len({notice.notice_id, *(other.notice_id for other in others)}) == 3


def test_a_missed_time_is_one_notice_however_often_it_is_found() -> None:
    job = a_job()
    first, again = missed_notice(job, NOW, LATER), missed_notice(job, NOW, LATER + timedelta(minutes=1))
    assert first.notice_id == again.notice_id
    assert (first.event, first.due_at, first.run_id) == (NoticeEvent.MISSED, NOW, None)
    assert missed_notice(job, LATER, LATER).notice_id != first.notice_id


def test_a_pause_says_who() -> None:
    notice = paused_notice(a_job(updated_at=LATER, updated_by=OTHER))
    assert (notice.event, notice.by, notice.at) == (NoticeEvent.PAUSED, OTHER, LATER)


@pytest.mark.parametrize("status", [RunStatus.SUCCEEDED, RunStatus.RETRYING, RunStatus.FAILED])
def test_a_notice_survives_its_journey(status: RunStatus) -> None:
    (notice,) = notices_for(change(status, error_message="no"))
    assert Notice.from_json(notice.to_json()) == notice


def test_nothing_is_sent_of_an_owner_without_subscriptions_and_one_read_finds_that_out() -> None:
    listening = Listening()
    changes = [change(RunStatus.SUCCEEDED) for _ in range(50)]
    assert listening.announce(*changes) == []
    assert listening.store.reads == 1


@pytest.mark.parametrize(
    ("wish", "is_sent"),
    [
        ({}, True),
        ({"tag": "x"}, True),  # whether the job has the tag is found out later
        ({"job_id": "the job"}, True),
        ({"job_id": "another job"}, False),
        ({"events": (NoticeEvent.SUCCEEDED,)}, False),
        ({"owner": OTHER}, False),
    ],
)
def test_what_somebody_may_want_is_sent(wish: dict[str, Any], is_sent: bool) -> None:
    listening = Listening(a_subscription(**wish))
    sent = listening.announce(change(RunStatus.FAILED, job=a_job(job_id="the job")))
    assert sent == ([NoticeEvent.FAILED] if is_sent else [])


def test_a_jobs_own_block_is_known_from_the_run_without_a_read() -> None:
    notify = Notify((NoticeEvent.FAILED,), Protocol.HTTPS, "https://example.com")
    job = a_job(spec=a_spec(notify=notify))
    assert a_run(job).notify == (NoticeEvent.FAILED,)
    listening = Listening()
    assert listening.announce(change(RunStatus.FAILED, job=job)) == [NoticeEvent.FAILED]
    assert listening.store.reads == 0
    listening.announce(change(RunStatus.SUCCEEDED, job=job))
    assert len(listening.queue.sent) == 1


def test_a_new_subscription_is_heard_of_after_half_a_minute() -> None:
    listening = Listening()
    assert listening.announce(change(RunStatus.FAILED)) == []
    listening.store.add(a_subscription())
    assert listening.announce(change(RunStatus.FAILED)) == []
    listening.clock.advance(timedelta(seconds=30))
    assert listening.announce(change(RunStatus.FAILED)) == [NoticeEvent.FAILED]


def test_what_happens_to_a_job_itself_is_announced_to_those_who_want_it() -> None:
    notify = Notify((NoticeEvent.PAUSED,), Protocol.HTTPS, "https://example.com")
    listening, silent = Listening(), a_job()
    wanting = a_job(spec=a_spec(notify=notify))
    for job in (silent, wanting):
        assert announce_job_notice(paused_notice(job), job, listening.interests, listening.queue)
    assert [notice.job_id for notice in listening.queue.sent] == [wanting.job_id]


def test_a_run_that_started_late_though_no_patrol_saw_it_wait_is_told_as_late() -> None:
    run = a_run(a_job())
    started = run.evolve(status=RunStatus.RUNNING, attempt=1, start_time=run.due_at + timedelta(seconds=9))
    assert [notice.event for notice in notices_for(Change(started, run))] == [NoticeEvent.LATE]
    in_time = started.evolve(start_time=run.due_at + timedelta(seconds=1))
    assert list(notices_for(Change(in_time, run))) == []

"""Whether anybody wants to hear of something. Most runs end without a listener, and such a run costs nothing here."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from duetime.clock import Clock
from duetime.job import Job
from duetime.notices import Notice, RunChange, notices_for
from duetime.notify import NoticeEvent
from duetime.subscriptions import Subscription, SubscriptionStore

FRESH_FOR: Final = timedelta(seconds=30)
_MOST_OWNERS: Final = 10_000


class NoticeQueue(Protocol):
    def send_notices(self, notices: Sequence[Notice]) -> Sequence[Notice]:
        """Returns those that were not sent."""


class KnownSubscriptions:
    """An owner's subscriptions, read at most every half a minute. So a new one is heard of after half a minute at the
    latest, and a deleted one as long."""

    def __init__(self, store: SubscriptionStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, tuple[datetime, Sequence[Subscription]]] = {}

    def of_owner(self, owner: str) -> Sequence[Subscription]:
        now = self._clock.now()
        known = self._known.get(owner)
        if known and now - known[0] < FRESH_FOR:
            return known[1]
        if len(self._known) >= _MOST_OWNERS:
            self._known.clear()
        found = self._store.of_owner(owner)
        self._known[owner] = (now, found)
        return found


class Interests:
    def __init__(self, subscriptions: KnownSubscriptions) -> None:
        self._subscriptions = subscriptions

    def may_matter(self, notice: Notice, notify: Sequence[NoticeEvent] = ()) -> bool:
        """Tags are the job's, and not looked up for this: whoever sends the notice on decides. `notify` is what the
        job's own block lists."""
        if notice.event in notify:
            return True
        listening = self._subscriptions.of_owner(notice.owner)
        return any(each.may_want(notice.event, notice.job_id) for each in listening)


def announce_notices(
    changes: Iterable[RunChange], interests: Interests, queue: NoticeQueue
) -> Sequence[Notice]:
    """From changes of runs to the queue. Returns the notices that could not be sent; a change that is announced again
    makes the same notices again, with the same ids."""
    news = [(notice, change.run) for change in changes for notice in notices_for(change)]
    wanted = [notice for notice, run in news if interests.may_matter(notice, run.notify)]
    return queue.send_notices(wanted) if wanted else ()


def announce_job_notice(notice: Notice, job: Job, interests: Interests, queue: NoticeQueue) -> bool:
    """The same for what happened to a job itself. False: it could not be sent."""
    own = job.spec.notify.events if job.spec.notify else ()
    return not interests.may_matter(notice, own) or not queue.send_notices([notice])

"""Storms: when much of the same happens at once, the first few are told one by one and the rest in one summary.

Time is cut into windows of five minutes. For each recipient and kind of event a window remembers which notices were
told one by one, and counts those that were held back. Before the first is held back, a message to the notifier itself
is on its way that arrives when the window is over: so a count never stands without somebody coming to tell it, whoever
dies when. Should two such messages come, the one that claims the window tells it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Protocol

from duetime.notices import Notice
from duetime.notify import NoticeEvent

WINDOW: Final = timedelta(minutes=5)
ONE_BY_ONE: Final = 5
JOBS_NAMED: Final = 20
"""So many jobs of a summary are kept by name; of more it is only known that there are more."""

KEPT_FOR: Final = timedelta(days=1)


class WindowKey(NamedTuple):
    # A subscription's id, or what stands for a job's notify block.
    recipient: str
    event: NoticeEvent
    starts_at: datetime

    @property
    def ends_at(self) -> datetime:
        return self.starts_at + WINDOW


def window_at(recipient: str, event: NoticeEvent, now: datetime) -> WindowKey:
    passed = (now - datetime.fromtimestamp(0, UTC)) % WINDOW
    return WindowKey(recipient, event, now - passed)


@dataclass(frozen=True, slots=True)
class Window:
    key: WindowKey
    # The ids of those told one by one, so that one which comes again is told again and not counted.
    told: tuple[str, ...] = ()
    held: int = 0
    # The jobs of those held back: their names by their ids.
    jobs: Mapping[str, str] = field(default_factory=dict)
    more_jobs: bool = False
    first_at: datetime | None = None
    last_at: datetime | None = None
    last_error: str | None = None
    # The message that tells the rest. A window that is claimed takes nothing more.
    claimed_by: str | None = None
    # Counts the writes; whoever judged an older state judges again.
    version: int = 0


class Judgement(NamedTuple):
    window: Window
    tell: Sequence[Notice]


def judge(window: Window, notices: Sequence[Notice]) -> Judgement:
    """Which of these are told one by one, and what the window then is."""
    tell: list[Notice] = []
    for notice in notices:
        if notice.notice_id in window.told:
            tell.append(notice)
        elif len(window.told) < ONE_BY_ONE:
            window = replace(window, told=(*window.told, notice.notice_id))
            tell.append(notice)
        else:
            window = _held(window, notice)
    return Judgement(window, tell)


def _held(window: Window, notice: Notice) -> Window:
    known = notice.job_id in window.jobs
    room = len(window.jobs) < JOBS_NAMED
    name = notice.job_name or notice.job_id
    return replace(
        window,
        held=window.held + 1,
        jobs=window.jobs if known or not room else {**window.jobs, notice.job_id: name},
        more_jobs=window.more_jobs or not (known or room),
        first_at=min(filter(None, (window.first_at, notice.at))),
        last_at=max(filter(None, (window.last_at, notice.at))),
        last_error=notice.error or window.last_error,
    )


class Storms(Protocol):
    """`DynamoStorms` and `MemoryStorms` keep these promises."""

    def window(self, key: WindowKey) -> Window:
        """As last written; an empty one if there is none."""

    def exchange(self, seen: Window, after: Window) -> bool:
        """Write it if nobody has written since it was seen."""

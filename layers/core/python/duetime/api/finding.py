"""`GET /jobs` and the bulk operations: from what a caller asks to a page of jobs that it may see."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final, NamedTuple

from duetime.api.caller import Caller
from duetime.api.page_tokens import PageTokens
from duetime.api.requests import asked_time
from duetime.budget import Budget
from duetime.instants import format_instant, parse_instant
from duetime.job import Job, Priority
from duetime.listing import Criteria, Listed
from duetime.running import Running, RunningPlace
from duetime.searching import Question, Search, Wanted
from duetime.timing import ScheduleType

_LIST: Final = "jobs"


@dataclass(frozen=True, slots=True)
class Filter:
    status: Wanted | None = None
    schedule_type: ScheduleType | None = None
    priority: Priority | None = None
    tag: str | None = None
    name_prefix: str | None = None
    due_from: datetime | None = None
    due_before: datetime | None = None
    user_id: str | None = None

    @classmethod
    def of(
        cls,
        *,
        status: str | None,
        schedule_type: str | None,
        priority: str | None,
        due_from: str | None,
        due_before: str | None,
        **others: str | None,
    ) -> "Filter":
        """From what a caller sent."""
        return cls(
            status=Wanted(status) if status else None,
            schedule_type=ScheduleType(schedule_type) if schedule_type else None,
            priority=Priority(priority) if priority else None,
            due_from=asked_time("due_from", due_from),
            due_before=asked_time("due_before", due_before),
            **others,
        )

    def question(self, owner: str | None) -> Question:
        criteria = Criteria(
            schedule_type=self.schedule_type,
            priority=self.priority,
            tag=self.tag,
            name_prefix=self.name_prefix,
        )
        return Question(owner, self.status, criteria, self.due_from, self.due_before)


class JobPage(NamedTuple):
    jobs: Sequence[Job]
    next_page_token: str | None


class _Place(NamedTuple):
    owner: str
    # None: the owner's list has not begun.
    behind: Listed | None = None

    def to_position(self) -> list[str]:
        behind = [format_instant(self.behind.created_at), self.behind.job_id] if self.behind else []
        return [self.owner, *behind]

    @classmethod
    def from_position(cls, position: Sequence[str]) -> "_Place":
        owner, *behind = position
        return cls(owner, Listed(parse_instant(behind[0]), behind[1]) if behind else None)


@dataclass(frozen=True, slots=True)
class Finder:
    search: Search
    tokens: PageTokens

    def page(self, wanted: Filter, caller: Caller, *, limit: int, page_token: str | None) -> JobPage:
        asked = asdict(wanted)
        position = self.tokens.read(_LIST, caller.principal, asked, page_token) if page_token else None
        if wanted.status is Wanted.RUNNING:
            return self._running(wanted, caller, limit, position)
        place = _Place.from_position(position) if position else None
        budget = Budget()
        jobs: list[Job] = []
        for owner in self._owners(wanted, caller, place):
            # Full, or enough was read, and there is another owner whose jobs have not been looked at.
            if len(jobs) == limit or budget.is_spent:
                return JobPage(jobs, self._token(caller, asked, _Place(owner).to_position()))
            behind = place.behind if place and place.owner == owner else None
            found = self.search.find(
                wanted.question(owner), limit=limit - len(jobs), behind=behind, budget=budget
            )
            jobs += found.jobs
            if found.behind:
                return JobPage(jobs, self._token(caller, asked, _Place(owner, found.behind).to_position()))
        return JobPage(jobs, None)

    def _running(self, wanted: Filter, caller: Caller, limit: int, position: Sequence[str] | None) -> JobPage:
        if not caller.is_admin and wanted.user_id not in (None, caller.principal):
            return JobPage((), None)
        owner = wanted.user_id if caller.is_admin else caller.principal
        search = self.search
        running = Running(search.store, search.lists, search.clock, search.threads)
        behind = _running_place(position) if position else None
        found = running.find(wanted.question(owner), limit=limit, behind=behind)
        if found.behind is None:
            return JobPage(found.jobs, None)
        return JobPage(found.jobs, self._token(caller, asdict(wanted), _running_position(found.behind)))

    def _owners(self, wanted: Filter, caller: Caller, place: _Place | None) -> Sequence[str]:
        """Whose jobs the caller may see, and asked for. Everybody's come owner by owner."""
        if not caller.is_admin:
            return [caller.principal] if wanted.user_id in (None, caller.principal) else []
        if wanted.user_id is not None:
            return [wanted.user_id]
        return [owner for owner in self.search.lists.owners() if place is None or owner >= place.owner]

    def _token(self, caller: Caller, asked: object, position: Sequence[str]) -> str:
        return self.tokens.make(_LIST, caller.principal, asked, position)


def _running_position(place: RunningPlace) -> list[str]:
    in_owner = _Place(place.owner, place.behind).to_position() if place.owner else []
    return [str(place.slot), *in_owner]


def _running_place(position: Sequence[str]) -> RunningPlace:
    slot, *in_owner = position
    return RunningPlace(int(slot), *(_Place.from_position(in_owner) if in_owner else ()))

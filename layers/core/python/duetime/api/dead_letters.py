"""An owner's dead letters: listing them, and giving them another chance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from duetime.api.caller import Caller
from duetime.api.page_tokens import PageTokens
from duetime.api.reading import visible_job
from duetime.errors import Conflict
from duetime.instants import format_instant, parse_instant
from duetime.run import Run, RunKey
from duetime.run_control import RunControl
from duetime.status import RunStatus
from duetime.store import Store, WatchedRun, WhichRuns

_LIST: Final = "dead-letters"


@dataclass(frozen=True, slots=True)
class Whose:
    """Of one job, or of an owner: the caller, or for an admin whoever it names."""

    job_id: str | None = None
    user_id: str | None = None

    def owner(self, caller: Caller) -> str | None:
        """None: somebody whose letters the caller may not see."""
        wanted = self.user_id or caller.principal
        return wanted if caller.is_admin or wanted == caller.principal else None


class LetterPage(NamedTuple):
    runs: Sequence[Run]
    next_page_token: str | None


class Redriven(NamedTuple):
    runs: Sequence[Run]
    # Those that could not be, and why.
    refused: Sequence[tuple[Run, str]]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class DeadLetters:
    store: Store
    tokens: PageTokens

    def page(self, whose: Whose, caller: Caller, *, limit: int, page_token: str | None) -> LetterPage:
        asked = [whose.job_id, whose.user_id]
        position = self.tokens.read(_LIST, caller.principal, asked, page_token) if page_token else None
        runs, following = self._find(whose, caller, limit, position)
        if following is None:
            return LetterPage(runs, None)
        return LetterPage(runs, self.tokens.make(_LIST, caller.principal, asked, following))

    def redrive(
        self, whose: Whose, caller: Caller, control: RunControl, *, limit: int, page_token: str | None
    ) -> Redriven:
        page = self.page(whose, caller, limit=limit, page_token=page_token)
        found = self.store.load(run.key for run in page.runs) if page.runs else {}
        redriven: list[Run] = []
        refused: list[tuple[Run, str]] = []
        for run in page.runs:
            try:
                after = control.redrive(found[run.key], caller.actor)
            except Conflict as conflict:
                refused.append((run, conflict.message))
                continue
            if after:
                redriven.append(after)
        return Redriven(redriven, refused, page.next_page_token)

    def _find(
        self, whose: Whose, caller: Caller, limit: int, position: Sequence[str] | None
    ) -> tuple[Sequence[Run], Sequence[str] | None]:
        if whose.job_id is not None:
            job = visible_job(whose.job_id, caller, self.store)
            if whose.user_id not in (None, job.owner):
                return (), None
            before = position[0] if position else None
            page = self.store.list_runs(
                job.job_id, limit=limit, before=before, which=WhichRuns(RunStatus.DEAD_LETTERED)
            )
            return page.runs, page.next_before and [page.next_before]
        owner = whose.owner(caller)
        return self._of_owner(owner, limit, _parse(position)) if owner else ((), None)

    def _of_owner(
        self, owner: str, limit: int, before: WatchedRun | None
    ) -> tuple[Sequence[Run], Sequence[str] | None]:
        letters: list[Run] = []
        while True:
            places = self.store.dead_letters(owner, limit=limit, before=before)
            found = self.store.load(place.key for place in places) if places else {}
            for place in places:
                # The index may be a moment behind: what counts is the run itself.
                if place.key in found and found[place.key].run.status is RunStatus.DEAD_LETTERED:
                    letters.append(found[place.key].run)
                if len(letters) == limit:
                    has_more = place != places[-1] or self.store.dead_letters(owner, limit=1, before=place)
                    return letters, [format_instant(place.at), *place.key] if has_more else None
            if len(places) < limit:
                return letters, None
            before = places[-1]


def _parse(position: Sequence[str] | None) -> WatchedRun | None:
    if position is None:
        return None
    at, job_id, run_id = position
    return WatchedRun(parse_instant(at), RunKey(job_id, run_id))

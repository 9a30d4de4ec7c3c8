"""The store on DynamoDB. Only a failed condition is translated, to a result; everything else rises."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from duetime.audit import Event, EventPage
from duetime.batches import in_batches
from duetime.dynamo_events import event_to_item, read_events
from duetime.dynamo_items import item_to_job, item_to_run, job_key, job_to_item, run_key, run_to_item
from duetime.dynamo_runs import read_earliest, read_latest
from duetime.dynamo_values import Item, Value, to_value
from duetime.dynamo_watch import read_dead, read_held, read_late, read_open
from duetime.dynamo_writes import (
    ConditionFailed,
    Difference,
    Update,
    execute_batch,
    put,
    put_new,
    statement,
    transact,
    update,
)
from duetime.instants import parse_instant
from duetime.job import Job
from duetime.pair import JobRun
from duetime.run import Run, RunKey
from duetime.status import FINAL, RunStatus
from duetime.store import (
    ALL_RUNS,
    GUARDED_BY_RENEWAL,
    MOST_HELD_READ,
    TALLIES,
    LateRuns,
    Move,
    NewJob,
    Once,
    RunPage,
    WaitingJob,
    WatchedRun,
    WhichRuns,
    guarded_fields,
    guarded_with_its_job,
    judged_by_change,
    judged_by_move,
)
from duetime.watch import DEAD_SPREAD, HELD_SLOTS, dead_key, shard_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

KEYS_KEPT_FOR: Final = timedelta(days=7)
"""How long a repeated request for a run is known as such."""

_GET_LIMIT: Final = 100
_TRANSACTION_LIMIT: Final = 100
_TRANSACTION_BYTES: Final = 3_500_000
_STATEMENT_LIMIT: Final = 25
_QUEUED_PAGE: Final = 100
_HELD_PAGE: Final = 1000
_WAITING_INDEX: Final = "waiting"


class DynamoStore:
    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        jobs_table: str,
        runs_table: str,
        records_table: str = "",
        runs_kept_for: timedelta | None = None,
        events_kept_for: timedelta | None = None,
    ) -> None:
        self._client = client
        self._jobs = jobs_table
        self._runs = runs_table
        self._records = records_table
        self._runs_kept_for = runs_kept_for
        self._events_kept_for = events_kept_for

    def create(self, job: Job, runs: Sequence[Run]) -> Job | None:
        try:
            self._put_all(self._new_writes(NewJob(job, runs)))
        except ConditionFailed as failure:
            # A run's id follows from its job's, so a run can only be there if the job is.
            existing = failure.items[0]
            assert existing is not None
            return item_to_job(existing)
        return None

    def create_many(self, new: Sequence[NewJob]) -> Sequence[Job | None]:
        results: dict[str, Job | None] = {}
        for group in _groups(new):
            results |= self._create_group(group)
        return [results[job.job_id] for job, _ in new]

    def get_job(self, job_id: str) -> Job | None:
        answer = self._client.get_item(TableName=self._jobs, Key=job_key(job_id), ConsistentRead=True)
        return item_to_job(answer["Item"]) if "Item" in answer else None

    def get_run(self, key: RunKey) -> Run | None:
        answer = self._client.get_item(TableName=self._runs, Key=run_key(key), ConsistentRead=True)
        return item_to_run(answer["Item"]) if "Item" in answer else None

    def list_runs(
        self,
        job_id: str,
        *,
        limit: int,
        before: str | None = None,
        since: str | None = None,
        which: WhichRuns = ALL_RUNS,
    ) -> RunPage:
        return read_latest(
            self._client, self._runs, job_id, limit=limit, before=before, since=since, which=which
        )

    def runs_from(self, job_id: str, *, since: str, until: str, limit: int) -> Sequence[Run]:
        runs = read_earliest(self._client, self._runs, job_id, since=since, until=until, at_once=limit)
        return list(islice(runs, limit))

    def queued_runs(self, job_id: str, *, since: str, until: str, limit: int) -> Sequence[Run]:
        runs = read_earliest(
            self._client,
            self._runs,
            job_id,
            since=since,
            until=until,
            at_once=_QUEUED_PAGE,
            status=RunStatus.QUEUED,
        )
        return list(islice(runs, limit))

    def load(self, keys: Iterable[RunKey]) -> Mapping[RunKey, JobRun]:
        wanted = list(dict.fromkeys(keys))
        jobs = [(self._jobs, job_key(job_id)) for job_id in dict.fromkeys(key.job_id for key in wanted)]
        items = self._get_all(jobs + [(self._runs, run_key(key)) for key in wanted])
        job_by_id = {job.job_id: job for job in map(item_to_job, items[self._jobs])}
        run_by_key = {run.key: run for run in map(item_to_run, items[self._runs])}
        return {
            key: JobRun(job_by_id[key.job_id], run_by_key[key])
            for key in wanted
            if key in run_by_key and key.job_id in job_by_id
        }

    def load_jobs(self, job_ids: Iterable[str]) -> Sequence[Job]:
        items = self._get_all([(self._jobs, job_key(job_id)) for job_id in dict.fromkeys(job_ids)])
        return [item_to_job(item) for item in items[self._jobs]]

    def change(
        self, seen: Job, after: Job, runs: Sequence[Run] = (), *, event: Event | None = None
    ) -> Job | None:
        write = self._update_job(seen, after, judged_by_change(after))
        try:
            self._write(write, [*self._puts(runs), *self._puts_of(event)])
        except ConditionFailed as failure:
            if failure.failed_at(0):
                there = failure.items[0]
                assert there is not None
                return item_to_job(there)
            # A sweep that died, or is not done, had written some of the runs already: what is planned is planned.
            new = [run for position, run in enumerate(runs, 1) if not failure.failed_at(position)]
            return self.change(seen, after, new, event=event)
        return None

    def exchange(
        self,
        seen: JobRun,
        after: JobRun,
        judged: Collection[str],
        *,
        by_holder: bool = False,
        event: Event | None = None,
    ) -> JobRun | None:
        run = self._update_run(seen.run, after.run, guarded_with_its_job(by_holder))
        job = self._update_job(seen.job, after.job, judged)
        try:
            # The run first: it is what most lost races are about.
            self._write(
                run, [*([{"Update": job.request()}] if job.difference else []), *self._puts_of(event)]
            )
        except ConditionFailed:
            return self.load([seen.run.key])[seen.run.key]
        return None

    def advance(self, seen: Run, after: Run, *, by_holder: bool = False, event: Event | None = None) -> bool:
        return self._try(self._update_run(seen, after, guarded_fields(by_holder)), self._puts_of(event))

    def renew(self, held: Run, deadline_at: datetime) -> Run | None:
        write = self._update_run(held, held.evolve(deadline_at=deadline_at), GUARDED_BY_RENEWAL)
        try:
            there = update(self._client, write, returning=True, tries=1)
        except ConditionFailed:
            return None
        return item_to_run(there)

    def adjust(self, seen: Job, after: Job, judged: Collection[str]) -> bool:
        return self._try(self._update_job(seen, after, judged))

    def waiting(
        self, shard: int, *, until: datetime, limit: int, after: WaitingJob | None = None
    ) -> Sequence[WaitingJob]:
        start: dict[str, Any] = {}
        if after:
            position = job_key(after.job_id) | {
                "shard": to_value(shard_of(after.job_id)),
                "next_run_at": to_value(after.next_run_at),
            }
            start["ExclusiveStartKey"] = position
        answer = self._client.query(
            TableName=self._jobs,
            IndexName=_WAITING_INDEX,
            KeyConditionExpression="#shard = :shard AND next_run_at < :until",
            ExpressionAttributeNames={"#shard": "shard"},
            ExpressionAttributeValues={":shard": to_value(shard), ":until": to_value(until)},
            Limit=limit,
            **start,
        )
        return [WaitingJob(parse_instant(i["next_run_at"]["S"]), i["job_id"]["S"]) for i in answer["Items"]]

    def add_run(self, run: Run, *, event: Event | None = None) -> bool:
        return self._is_new([*self._puts([run]), *self._puts_of(event)])

    def add_run_once(self, run: Run, once: Once, *, event: Event) -> str | None:
        memo = {
            "subject": to_value(f"once#{once.scope}"),
            "entry": to_value(once.key),
            "run_id": to_value(run.run_id),
            "expires_at": to_value(int((event.at + KEYS_KEPT_FOR).timestamp())),
        }
        writes = [{"Put": put_new(self._records, memo, "subject")}, *self._puts([run]), *self._puts_of(event)]
        try:
            transact(self._client, writes)
        except ConditionFailed as failure:
            first = failure.items[0]
            assert first is not None
            run_id: str = first["run_id"]["S"]
            return run_id
        return None

    def events(self, job_id: str, *, limit: int, before: str | None = None) -> EventPage:
        return read_events(self._client, self._records, job_id, limit=limit, before=before)

    def note(self, event: Event) -> bool:
        item = event_to_item(event, self._events_kept_for)
        return self._is_new([{"Put": put_new(self._records, item, "subject")}])

    def move_on(self, moves: Sequence[Move]) -> Collection[str]:
        overtaken: list[str] = []
        for batch in in_batches(moves, _STATEMENT_LIMIT):
            held = execute_batch(self._client, [self._move(move) for move in batch])
            overtaken += [move.seen.job_id for move, did in zip(batch, held, strict=True) if not did]
        return overtaken

    def open_runs(self, slot: int, *, limit: int, after: WatchedRun | None = None) -> Sequence[WatchedRun]:
        return read_open(self._client, self._runs, slot, limit=limit, after=after)

    def dead_letters(
        self, owner: str, *, limit: int, before: WatchedRun | None = None
    ) -> Sequence[WatchedRun]:
        found = [
            place
            for slot in range(DEAD_SPREAD)
            for place in read_dead(
                self._client, self._runs, dead_key(owner, slot), limit=limit, before=before
            )
        ]
        return sorted(found, reverse=True)[:limit]

    def waiting_late(self, slot: int, *, due_before: datetime, limit: int) -> LateRuns:
        return read_late(self._client, self._runs, slot, due_before=due_before, limit=limit)

    def holders(self, job: Job) -> Sequence[RunKey]:
        found: list[RunKey] = []
        examined = 0
        for slot in HELD_SLOTS:
            after: WatchedRun | None = None
            while examined < MOST_HELD_READ:
                page = read_held(
                    self._client, self._runs, slot, owner=job.owner, limit=_HELD_PAGE, after=after
                )
                examined += page.examined
                found += [run.key for run in page.runs if run.key.job_id == job.job_id]
                after = page.until
                if after is None:
                    break
        return found

    def _put_all(self, puts: Sequence[dict[str, Any]]) -> None:
        """One item, such as a job that waits, needs no transaction, which would cost twice as much."""
        if len(puts) == 1:
            put(self._client, puts[0]["Put"])
        else:
            transact(self._client, puts)

    def _is_new(self, puts: Sequence[dict[str, Any]]) -> bool:
        try:
            self._put_all(puts)
        except ConditionFailed:
            return False
        return True

    def _puts(self, runs: Sequence[Run]) -> list[dict[str, Any]]:
        return [{"Put": put_new(self._runs, self._run_item(run), "run_id")} for run in runs]

    def _puts_of(self, event: Event | None) -> list[dict[str, Any]]:
        if event is None:
            return []
        item = event_to_item(event, self._events_kept_for)
        return [{"Put": {"TableName": self._records, "Item": item}}]

    def _create_group(self, group: Sequence[NewJob]) -> dict[str, Job | None]:
        """In one transaction; what is there already is left out of the next try."""
        results: dict[str, Job | None] = {}
        missing = list(group)
        while missing:
            writes = [self._new_writes(new) for new in missing]
            try:
                transact(self._client, [write for each in writes for write in each])
            except ConditionFailed as failure:
                position = 0
                still_missing = []
                for new, each in zip(missing, writes, strict=True):
                    there = failure.items[position] if failure.failed_at(position) else None
                    if there is None:
                        still_missing.append(new)
                    else:
                        results[new.job.job_id] = item_to_job(there)
                    position += len(each)
                missing = still_missing
            else:
                return results | {new.job.job_id: None for new in missing}
        return results

    def _new_writes(self, new: NewJob) -> list[dict[str, Any]]:
        put_job = put_new(self._jobs, job_to_item(new.job), "job_id")
        return [{"Put": put_job}, *self._puts(new.runs)]

    def _write(self, write: Update, others: Sequence[dict[str, Any]]) -> None:
        """Alone it needs no transaction, which would cost twice as much."""
        if others:
            transact(self._client, [{"Update": write.request()}, *others])
        else:
            update(self._client, write)

    def _try(self, write: Update, others: Sequence[dict[str, Any]] = ()) -> bool:
        try:
            self._write(write, others)
        except ConditionFailed:
            return False
        return True

    def _update_job(self, seen: Job, after: Job, judged: Collection[str]) -> Update:
        before = job_to_item(seen)
        difference = Difference.between(before, job_to_item(after), sorted(TALLIES))
        return Update(self._jobs, job_key(seen.job_id), difference, _guard(before, judged))

    def _update_run(self, seen: Run, after: Run, guarded: Collection[str]) -> Update:
        before = run_to_item(seen)
        difference = Difference.between(before, self._run_item(after))
        return Update(self._runs, run_key(seen.key), difference, _guard(before, guarded))

    def _run_item(self, run: Run) -> Item:
        """Only what has ended expires."""
        item = run_to_item(run)
        if run.status in FINAL and run.end_time and self._runs_kept_for:
            item["expires_at"] = to_value(int((run.end_time + self._runs_kept_for).timestamp()))
        return item

    def _move(self, move: Move) -> dict[str, Any]:
        before, after = job_to_item(move.seen), job_to_item(move.after)
        guard = {name: before[name] for name in sorted(judged_by_move(move.after))}
        return statement(self._jobs, job_key(move.seen.job_id), Difference.between(before, after), guard)

    def _get_all(self, keys: Sequence[tuple[str, Item]]) -> dict[str, list[Any]]:
        """BatchGetItem over both tables, in as few calls as its limit allows, whatever it leaves unprocessed."""
        items: dict[str, list[Any]] = {self._jobs: [], self._runs: []}
        for batch in in_batches(keys, _GET_LIMIT):
            request: dict[str, Any] = {}
            for table, key in batch:
                request.setdefault(table, {"Keys": [], "ConsistentRead": True})["Keys"].append(key)
            while request:
                answer = self._client.batch_get_item(RequestItems=request)
                for table, found in answer["Responses"].items():
                    items[table] += found
                request = dict(answer.get("UnprocessedKeys", {}))
        return items


def _groups(new: Sequence[NewJob]) -> Iterable[Sequence[NewJob]]:
    """As many jobs, with their runs, as one transaction takes."""
    group: list[NewJob] = []
    writes = size = 0
    for each in new:
        cost = 1 + len(each.runs)
        # What an item weighs as JSON is no less than what DynamoDB counts.
        weight = len(json.dumps(job_to_item(each.job)))
        if group and (writes + cost > _TRANSACTION_LIMIT or size + weight > _TRANSACTION_BYTES):
            yield group
            group, writes, size = [], 0, 0
        group.append(each)
        writes, size = writes + cost, size + weight
    if group:
        yield group


def _guard(before: Item, names: Collection[str]) -> dict[str, Value | None]:
    return {name: before.get(name) for name in sorted(names)}

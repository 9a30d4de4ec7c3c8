"""The store on DynamoDB. Only a failed condition is translated, to a result; everything else rises."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from duetime.dynamo_items import item_to_job, item_to_run, job_key, job_to_item, run_key, run_to_item
from duetime.dynamo_values import Item, Value, to_value
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
    TALLIES,
    Move,
    RunPage,
    WaitingJob,
    WatchedRun,
    guarded_fields,
    judged_by_change,
    judged_by_move,
)
from duetime.watch import DEAD_SPREAD, dead_key, open_key, shard_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_GET_LIMIT: Final = 100
_STATEMENT_LIMIT: Final = 25
_QUEUED_PAGE: Final = 100
_WAITING_INDEX: Final = "waiting"
_WATCH_INDEX: Final = "watch"


class DynamoStore:
    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        jobs_table: str,
        runs_table: str,
        runs_kept_for: timedelta | None = None,
    ) -> None:
        self._client = client
        self._jobs = jobs_table
        self._runs = runs_table
        self._runs_kept_for = runs_kept_for

    def create(self, job: Job, runs: Sequence[Run]) -> Job | None:
        try:
            self._write_new(put_new(self._jobs, job_to_item(job), "job_id"), runs)
        except ConditionFailed as failure:
            # A run's id follows from its job's, so a run can only be there if the job is.
            existing = failure.items[0]
            assert existing is not None
            return item_to_job(existing)
        return None

    def get_job(self, job_id: str) -> Job | None:
        answer = self._client.get_item(TableName=self._jobs, Key=job_key(job_id), ConsistentRead=True)
        return item_to_job(answer["Item"]) if "Item" in answer else None

    def get_run(self, key: RunKey) -> Run | None:
        answer = self._client.get_item(TableName=self._runs, Key=run_key(key), ConsistentRead=True)
        return item_to_run(answer["Item"]) if "Item" in answer else None

    def list_runs(self, job_id: str, *, limit: int, before: str | None = None) -> RunPage:
        bounds = {":job_id": job_id} if before is None else {":job_id": job_id, ":before": before}
        answer = self._client.query(
            TableName=self._runs,
            KeyConditionExpression=" AND ".join(["job_id = :job_id", "run_id < :before"][: len(bounds)]),
            ExpressionAttributeValues={name: to_value(value) for name, value in bounds.items()},
            ScanIndexForward=False,
            ConsistentRead=True,
            # One more than asked for tells whether there is another page.
            Limit=limit + 1,
        )
        runs = [item_to_run(item) for item in answer["Items"]]
        page = runs[:limit]
        # DynamoDB also ends a page at 1 MB, before the limit.
        more = len(runs) > limit or "LastEvaluatedKey" in answer
        return RunPage(page, page[-1].run_id if more else None)

    def queued_runs(self, job_id: str, *, since: str, until: str, limit: int) -> Sequence[Run]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._runs,
            KeyConditionExpression="job_id = :job_id AND run_id BETWEEN :since AND :until",
            FilterExpression="#status = :queued",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={
                ":job_id": to_value(job_id),
                ":since": to_value(since),
                ":until": to_value(until),
                ":queued": to_value(RunStatus.QUEUED),
            },
            ConsistentRead=True,
            PaginationConfig={"PageSize": _QUEUED_PAGE},
        )
        found = (item_to_run(item) for page in pages for item in page["Items"])
        return list(islice(found, limit))

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

    def change(self, seen: Job, after: Job, runs: Sequence[Run] = ()) -> Job | None:
        write = self._update_job(seen, after, judged_by_change(after))
        try:
            if runs:
                transact(self._client, [{"Update": write.request()}, *self._puts(runs)])
            else:
                update(self._client, write)
        except ConditionFailed as failure:
            if failure.failed_at(0):
                there = failure.items[0]
                assert there is not None
                return item_to_job(there)
            # A sweep that died, or is not done, had written some of the runs already: what is planned is planned.
            new = [run for position, run in enumerate(runs, 1) if not failure.failed_at(position)]
            return self.change(seen, after, new)
        return None

    def exchange(
        self, seen: JobRun, after: JobRun, judged: Collection[str], *, by_holder: bool = False
    ) -> JobRun | None:
        run = self._update_run(seen.run, after.run, by_holder)
        job = self._update_job(seen.job, after.job, judged)
        try:
            if job.difference:
                # The run first: it is what most lost races are about.
                transact(self._client, [{"Update": run.request()}, {"Update": job.request()}])
            else:
                update(self._client, run)
        except ConditionFailed:
            return self.load([seen.run.key])[seen.run.key]
        return None

    def advance(self, seen: Run, after: Run, *, by_holder: bool = False) -> bool:
        return self._try(self._update_run(seen, after, by_holder))

    def renew(self, held: Run, deadline_at: datetime) -> Run | None:
        write = self._update_run(held, held.evolve(deadline_at=deadline_at), by_holder=True)
        try:
            there = update(self._client, write, returning=True)
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

    def add_run(self, run: Run) -> bool:
        try:
            put(self._client, put_new(self._runs, self._run_item(run), "run_id"))
        except ConditionFailed:
            return False
        return True

    def move_on(self, moves: Sequence[Move]) -> Collection[str]:
        overtaken: list[str] = []
        for start in range(0, len(moves), _STATEMENT_LIMIT):
            batch = moves[start : start + _STATEMENT_LIMIT]
            held = execute_batch(self._client, [self._move(move) for move in batch])
            overtaken += [move.seen.job_id for move, did in zip(batch, held, strict=True) if not did]
        return overtaken

    def open_runs(self, slot: int, *, limit: int, after: WatchedRun | None = None) -> Sequence[WatchedRun]:
        return self._watched(open_key(slot), limit=limit, behind=after, forward=True)

    def dead_letters(
        self, owner: str, *, limit: int, before: WatchedRun | None = None
    ) -> Sequence[WatchedRun]:
        found = [
            place
            for slot in range(DEAD_SPREAD)
            for place in self._watched(dead_key(owner, slot), limit=limit, behind=before, forward=False)
        ]
        return sorted(found, reverse=True)[:limit]

    def _watched(
        self, watch_key: str, *, limit: int, behind: WatchedRun | None, forward: bool
    ) -> list[WatchedRun]:
        key = to_value(watch_key)
        start: dict[str, Any] = {}
        if behind:
            position = run_key(behind.key) | {"watch_key": key, "watch_at": to_value(behind.at)}
            start["ExclusiveStartKey"] = position
        answer = self._client.query(
            TableName=self._runs,
            IndexName=_WATCH_INDEX,
            KeyConditionExpression="watch_key = :key",
            ExpressionAttributeValues={":key": key},
            ScanIndexForward=forward,
            Limit=limit,
            **start,
        )
        return [
            WatchedRun(parse_instant(i["watch_at"]["S"]), RunKey(i["job_id"]["S"], i["run_id"]["S"]))
            for i in answer["Items"]
        ]

    def _write_new(self, put_job: dict[str, Any], runs: Sequence[Run]) -> None:
        if runs:
            transact(self._client, [{"Put": put_job}, *self._puts(runs)])
        else:
            # A job that waits is one item: it needs no transaction, which would cost twice as much.
            put(self._client, put_job)

    def _puts(self, runs: Sequence[Run]) -> list[dict[str, Any]]:
        return [{"Put": put_new(self._runs, self._run_item(run), "run_id")} for run in runs]

    def _try(self, write: Update) -> bool:
        try:
            update(self._client, write)
        except ConditionFailed:
            return False
        return True

    def _update_job(self, seen: Job, after: Job, judged: Collection[str]) -> Update:
        before = job_to_item(seen)
        difference = Difference.between(before, job_to_item(after), sorted(TALLIES))
        return Update(self._jobs, job_key(seen.job_id), difference, _guard(before, judged))

    def _update_run(self, seen: Run, after: Run, by_holder: bool) -> Update:
        before = run_to_item(seen)
        difference = Difference.between(before, self._run_item(after))
        return Update(self._runs, run_key(seen.key), difference, _guard(before, guarded_fields(by_holder)))

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
        for start in range(0, len(keys), _GET_LIMIT):
            request: dict[str, Any] = {}
            for table, key in keys[start : start + _GET_LIMIT]:
                request.setdefault(table, {"Keys": [], "ConsistentRead": True})["Keys"].append(key)
            while request:
                answer = self._client.batch_get_item(RequestItems=request)
                for table, found in answer["Responses"].items():
                    items[table] += found
                request = dict(answer.get("UnprocessedKeys", {}))
        return items


def _guard(before: Item, names: Collection[str]) -> dict[str, Value | None]:
    return {name: before.get(name) for name in sorted(names)}

"""The store on DynamoDB. Only a failed condition is translated, to a result; everything else rises."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from duetime.dynamo_items import item_to_job, item_to_run, job_key, job_to_item, run_key, run_to_item
from duetime.dynamo_values import Item, Value, to_value
from duetime.dynamo_writes import (
    ConditionFailed,
    Difference,
    Update,
    execute_batch,
    put_new,
    statement,
    transact,
    update,
)
from duetime.instants import parse_instant
from duetime.job import Job
from duetime.pair import JobRun
from duetime.run import Run, RunKey
from duetime.status import JobStatus
from duetime.store import TALLIES, Move, RunPage, WaitingJob, WatchedRun
from duetime.watch import open_key, shard_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_GET_LIMIT: Final = 100
_STATEMENT_LIMIT: Final = 25
_WAITING_INDEX: Final = "waiting"
_WATCH_INDEX: Final = "watch"


class DynamoStore:
    def __init__(self, client: "DynamoDBClient", *, jobs_table: str, runs_table: str) -> None:
        self._client = client
        self._jobs = jobs_table
        self._runs = runs_table

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
        write = self._update_job(seen, after, {"version", "status"})
        try:
            if runs:
                transact(self._client, [{"Update": write.request()}, *self._puts(runs)])
            else:
                update(self._client, write)
        except ConditionFailed as failure:
            there = failure.items[0]
            assert there is not None
            return item_to_job(there)
        return None

    def exchange(self, seen: JobRun, after: JobRun, judged: Collection[str]) -> JobRun | None:
        run, job = self._update_run(seen.run, after.run), self._update_job(seen.job, after.job, judged)
        try:
            if job.difference:
                # The run first: it is what most lost races are about.
                transact(self._client, [{"Update": run.request()}, {"Update": job.request()}])
            else:
                update(self._client, run)
        except ConditionFailed:
            return self.load([seen.run.key])[seen.run.key]
        return None

    def advance(self, seen: Run, after: Run) -> bool:
        return self._try(self._update_run(seen, after))

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
            self._client.put_item(**put_new(self._runs, run_to_item(run), "run_id"))
        except self._client.exceptions.ConditionalCheckFailedException:
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
        key = to_value(open_key(slot))
        start: dict[str, Any] = {}
        if after:
            position = run_key(after.key) | {"watch_key": key, "watch_at": to_value(after.deadline_at)}
            start["ExclusiveStartKey"] = position
        answer = self._client.query(
            TableName=self._runs,
            IndexName=_WATCH_INDEX,
            KeyConditionExpression="watch_key = :key",
            ExpressionAttributeValues={":key": key},
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
            return
        try:
            # A job that waits is one item: it needs no transaction, which would cost twice as much.
            self._client.put_item(**put_job)
        except self._client.exceptions.ConditionalCheckFailedException as error:
            raise ConditionFailed(["ConditionalCheckFailed"], [error.response.get("Item")]) from error

    def _puts(self, runs: Sequence[Run]) -> list[dict[str, Any]]:
        return [{"Put": put_new(self._runs, run_to_item(run), "run_id")} for run in runs]

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

    def _update_run(self, seen: Run, after: Run) -> Update:
        before = run_to_item(seen)
        guard = _guard(before, ("status", "attempt", "fence", "deadline_at"))
        return Update(self._runs, run_key(seen.key), Difference.between(before, run_to_item(after)), guard)

    def _move(self, move: Move) -> dict[str, Any]:
        before, after = job_to_item(move.seen), job_to_item(move.after)
        completes = move.after.status is JobStatus.COMPLETED
        compared = ("generation", "next_run_at", *(["running"] if completes else []))
        guard = {name: before[name] for name in compared}
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

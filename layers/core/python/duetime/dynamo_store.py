"""The store on DynamoDB. Only a failed condition is translated, to a result; everything else rises."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from duetime.dynamo_items import attempt_to_map, item_to_job, item_to_run, job_to_item, run_to_item, to_value
from duetime.dynamo_writes import ConditionFailed, Update, put_new, transact, update
from duetime.finishing import JobEffect
from duetime.job import Job
from duetime.run import Run, RunKey
from duetime.status import JobStatus, RunStatus
from duetime.store import JobRun, RunPage
from duetime.watch import watch_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_BATCH_GET_LIMIT: Final = 100


class DynamoStore:
    def __init__(self, client: "DynamoDBClient", *, jobs_table: str, runs_table: str) -> None:
        self._client = client
        self._jobs = jobs_table
        self._runs = runs_table

    def create(self, job: Job, runs: Sequence[Run]) -> Job | None:
        writes = [put_new(self._jobs, job_to_item(job), "job_id")]
        writes += [put_new(self._runs, run_to_item(run), "run_id") for run in runs]
        try:
            transact(self._client, writes)
        except ConditionFailed as failure:
            # A run's id follows from its job's, so a run can only be there if the job is.
            existing = failure.items[0]
            assert existing is not None
            return item_to_job(existing)
        return None

    def get_job(self, job_id: str) -> Job | None:
        answer = self._client.get_item(
            TableName=self._jobs, Key={"job_id": to_value(job_id)}, ConsistentRead=True
        )
        return item_to_job(answer["Item"]) if "Item" in answer else None

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
        jobs = {job_id: {"job_id": to_value(job_id)} for job_id, _ in wanted}
        runs = [{"job_id": to_value(job_id), "run_id": to_value(run_id)} for job_id, run_id in wanted]
        items = self._get_all(
            [(self._jobs, key) for key in jobs.values()] + [(self._runs, key) for key in runs]
        )
        job_by_id = {job.job_id: job for job in map(item_to_job, items[self._jobs])}
        run_by_key = {run.key: run for run in map(item_to_run, items[self._runs])}
        return {
            key: JobRun(job_by_id[key.job_id], run_by_key[key])
            for key in wanted
            if key in run_by_key and key.job_id in job_by_id
        }

    def claim(self, seen: JobRun, after: JobRun) -> JobRun | None:
        job = self._update_job(seen.run).set(fence=after.job.fence)
        job.add(running=after.job.running - seen.job.running)
        job.only_if(version=seen.job.version, fence=seen.job.fence)
        if not seen.run.holds_place:
            job.only_if_below("running", seen.job.spec.max_concurrency)
        run = self._update_run(after.run).only_if(status=seen.run.status, attempt=seen.run.attempt)
        run.set(
            attempt=after.run.attempt,
            fence=after.run.fence,
            executor_id=after.run.executor_id,
            claimed_at=after.run.claimed_at,
        )
        try:
            # The run first: it is what most lost races are about, and the first failure is the one reported.
            transact(self._client, [{"Update": run.request()}, {"Update": job.request()}])
        except ConditionFailed:
            return self.load([seen.run.key])[seen.run.key]
        return None

    def finish(self, after: Run, effect: JobEffect, *, completes_job: bool) -> bool:
        run = self._update_run(after).only_if(status=RunStatus.RUNNING, fence=after.fence)
        run.set(not_before=after.not_before, error_message=after.error_message)
        run.set(result=run_to_item(after).get("result", {}).get("S"))
        run.append("attempts", attempt_to_map(after.attempts[-1]))
        job = self._update_job(after).add(
            running=-int(effect.frees_place), succeeded=effect.succeeded, failed=effect.failed
        )
        if effect.outcome:
            job.set(last_outcome=effect.outcome)
        if completes_job:
            job.set(status=JobStatus.COMPLETED).only_if_absent("next_run_at")
            job.only_if(status=JobStatus.SCHEDULED, generation=after.generation)
        writes = [{"Update": run.request()}, *([{"Update": job.request()}] if job.changes_something else [])]
        try:
            transact(self._client, writes)
        except ConditionFailed as failure:
            if failure.failed_at(0):
                return False
            # The job changed while the run went on: the outcome counts all the same, the job goes on.
            return self.finish(after, effect, completes_job=False)
        return True

    def drop(self, seen: Run, after: Run) -> bool:
        run = self._update_run(after).only_if(status=seen.status, attempt=seen.attempt)
        run.set(error_message=after.error_message)
        if not seen.holds_place:
            return self._try(run)
        job = self._update_job(seen).add(running=-1)
        try:
            transact(self._client, [{"Update": run.request()}, {"Update": job.request()}])
        except ConditionFailed:
            return False
        return True

    def mark_dead_lettered(self, after: Run) -> bool:
        return self._try(self._update_run(after).only_if(status=RunStatus.FAILED))

    def _try(self, write: Update) -> bool:
        try:
            update(self._client, write)
        except ConditionFailed:
            return False
        return True

    def _update_job(self, run: Run) -> Update:
        return Update(self._jobs, {"job_id": run.job_id})

    def _update_run(self, after: Run) -> Update:
        """What every transition of a run writes."""
        watch = watch_of(after)
        return Update(self._runs, {"job_id": after.job_id, "run_id": after.run_id}).set(
            status=after.status,
            modified_time=after.modified_time,
            start_time=after.start_time,
            end_time=after.end_time,
            deadline_at=after.deadline_at,
            watch_key=watch and watch.key,
            watch_at=watch and watch.at,
        )

    def _get_all(self, keys: Sequence[tuple[str, Any]]) -> dict[str, list[Any]]:
        """BatchGetItem over both tables, in as few calls as its limit allows, whatever it leaves unprocessed."""
        items: dict[str, list[Any]] = {self._jobs: [], self._runs: []}
        for start in range(0, len(keys), _BATCH_GET_LIMIT):
            request: dict[str, Any] = {}
            for table, key in keys[start : start + _BATCH_GET_LIMIT]:
                request.setdefault(table, {"Keys": [], "ConsistentRead": True})["Keys"].append(key)
            while request:
                answer = self._client.batch_get_item(RequestItems=request)
                for table, found in answer["Responses"].items():
                    items[table] += found
                request = dict(answer.get("UnprocessedKeys", {}))
        return items

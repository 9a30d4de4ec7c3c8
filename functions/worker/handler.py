"""Works off a batch of hints, side by side: a slow run does not hold up the others, nor a failing one fail them."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from botocore.config import Config
from botocore.exceptions import ClientError
from duetime.attempting import Attempter
from duetime.claimant import Claimant
from duetime.clock import SystemClock
from duetime.dynamo_logs import DynamoLogs
from duetime.dynamo_store import DynamoStore
from duetime.emf import MetricLog
from duetime.heart import Heart
from duetime.hints import ReceivedHint
from duetime.logbook import LogShelf
from duetime.pair import JobRun
from duetime.s3_blobs import LazyS3Blobs
from duetime.settings import Settings
from duetime.utilisation import measure_use, time_in_worker
from duetime.worker import LONGEST_WAIT, Worker

BATCH_SIZE = 10
# A hint that could not be dealt with comes back so soon, and not when its long visibility timeout is over.
AGAIN = timedelta(seconds=2)

settings = Settings.from_environment()
clock = SystemClock()
# Each run of a batch talks to DynamoDB at its own moment, the due one: none may wait for a connection. One more is for
# what they log. A claim and an outcome are tried again by whoever wants them written: no call need take minutes.
client = boto3.client(
    "dynamodb",
    config=Config(
        max_pool_connections=BATCH_SIZE + 1,
        connect_timeout=2,
        read_timeout=5,
        retries={"total_max_attempts": 4},
    ),
)
# A lease lasts 15 s: a renewal is answered within a second, or tried again in the next one, over connections that
# nobody else uses.
heart_client = boto3.client(
    "dynamodb", config=Config(connect_timeout=1, read_timeout=1, retries={"total_max_attempts": 1})
)


def _store(dynamodb: Any) -> DynamoStore:
    return DynamoStore(
        dynamodb,
        jobs_table=settings.jobs_table,
        runs_table=settings.runs_table,
        runs_kept_for=settings.runs_kept_for,
    )


store = _store(client)
heart = Heart(_store(heart_client), clock)
logs = DynamoLogs(client, records_table=settings.records_table, kept_for=settings.logs_kept_for, clock=clock)
allowed_targets = settings.allowed_targets
shelf = LogShelf(logs, LazyS3Blobs(settings.spill_bucket))
metrics = MetricLog(settings.environment)
logger = Logger()


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    began_at, busy = clock.now(), list[timedelta]()
    worker = _worker(context)
    hints = {record["messageId"]: ReceivedHint.from_message(record["body"]) for record in event["Records"]}
    found = worker.load(list(hints.values()))
    with ThreadPoolExecutor(max_workers=BATCH_SIZE) as threads:
        done = {
            record["messageId"]: threads.submit(
                _work, worker, found.get(hints[record["messageId"]].key), record, busy
            )
            for record in event["Records"]
        }
    if event["Records"]:
        metrics.emit(measure_use(busy, BATCH_SIZE, clock.now() - began_at))
    failed = [message_id for message_id, ok in done.items() if not ok.result()]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _worker(context: Any) -> Worker:
    ends_at = clock.now() + timedelta(milliseconds=context.get_remaining_time_in_millis())
    attempter = Attempter(store, clock, heart, shelf, allowed_targets, ends_at)
    # The name of the log stream, so that from a run one finds straight to what its worker logged.
    return Worker(store, clock, Claimant(store, clock, context.log_stream_name), attempter)


def _work(worker: Worker, seen: JobRun | None, record: dict[str, Any], busy: list[timedelta]) -> bool:
    """Whether the hint has done its duty. If not, its message comes back."""
    # Of this thread alone: others log about other runs at the same moment.
    logger.thread_safe_clear_keys()
    if seen is None:
        logger.warning("a hint names a run that does not exist; dropped", hint=record["body"])
        return True
    logger.thread_safe_append_keys(
        job_id=seen.run.job_id, run_id=seen.run.run_id, attempt=seen.run.attempt + 1
    )
    try:
        if (early_by := worker.time_until_due(seen)) > LONGEST_WAIT:
            # For the rest of its time, less a second to get here again.
            _send_back(record, early_by - timedelta(seconds=1))
            return False
        run = worker.work(seen)
    except Exception:
        logger.exception("a run could not be worked on")
        _send_back(record, AGAIN)
        return False
    if run is not None:
        busy.append(time_in_worker(run))
        logger.info("an attempt ended", attempt=run.attempt, status=run.status)
    return True


def _send_back(record: dict[str, Any], hidden_for: timedelta) -> None:
    """A courtesy: if it does not work, the message comes back later, and before that a patrol hints its run again."""
    queue_name = record["eventSourceARN"].rsplit(":", 1)[1]
    with suppress(ClientError):
        _sqs().change_message_visibility(
            QueueUrl=next(url for url in settings.run_queue_urls.values() if url.endswith(f"/{queue_name}")),
            ReceiptHandle=record["receiptHandle"],
            VisibilityTimeout=max(0, int(hidden_for.total_seconds())),
        )


@cache
def _sqs() -> Any:
    """Hardly ever needed, so not made at every cold start."""
    return boto3.client("sqs")

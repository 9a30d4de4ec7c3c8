"""Works off a batch of hints, side by side: a slow run does not hold up the others, nor a failing one fail them."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from botocore.config import Config
from duetime.clock import SystemClock
from duetime.dynamo_store import DynamoStore
from duetime.hints import ReceivedHint
from duetime.pair import JobRun
from duetime.settings import Settings
from duetime.tasks import executor
from duetime.worker import LONGEST_WAIT, Worker

BATCH_SIZE = 10

settings = Settings.from_environment()
clock = SystemClock()
# Each run of a batch talks to DynamoDB at its own moment, the due one: none may wait for a connection.
client = boto3.client("dynamodb", config=Config(max_pool_connections=BATCH_SIZE))
store = DynamoStore(client, jobs_table=settings.jobs_table, runs_table=settings.runs_table)
execute = executor(settings.allowed_targets)
logger = Logger()


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    # The name of the log stream, so that from a run one finds straight to what its worker logged.
    worker = Worker(store, clock, execute, executor_id=context.log_stream_name)
    hints = {record["messageId"]: ReceivedHint.from_message(record["body"]) for record in event["Records"]}
    found = worker.load(list(hints.values()))
    with ThreadPoolExecutor(max_workers=BATCH_SIZE) as threads:
        done = {
            record["messageId"]: threads.submit(
                _work, worker, found.get(hints[record["messageId"]].key), record
            )
            for record in event["Records"]
        }
    failed = [message_id for message_id, ok in done.items() if not ok.result()]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _work(worker: Worker, seen: JobRun | None, record: dict[str, Any]) -> bool:
    """Whether the hint has done its duty. If not, its message comes back."""
    if seen is None:
        logger.warning("a hint names a run that does not exist; dropped")
        return True
    try:
        if (early_by := worker.time_until_due(seen)) > LONGEST_WAIT:
            _send_back(record, early_by)
            return False
        run = worker.work(seen)
    except Exception:
        logger.exception("a run could not be worked on", job_id=seen.job.job_id, run_id=seen.run.run_id)
        return False
    if run is not None:
        logger.info(
            "an attempt ended", job_id=run.job_id, run_id=run.run_id, status=run.status, attempt=run.attempt
        )
    return True


def _send_back(record: dict[str, Any], early_by: timedelta) -> None:
    """For the rest of its time, less a second to get here again."""
    queue_name = record["eventSourceARN"].rsplit(":", 1)[1]
    _sqs().change_message_visibility(
        QueueUrl=next(url for url in settings.run_queue_urls.values() if url.endswith(f"/{queue_name}")),
        ReceiptHandle=record["receiptHandle"],
        VisibilityTimeout=max(0, int(early_by.total_seconds()) - 1),
    )


@cache
def _sqs() -> Any:
    """Hardly ever needed, so not made at every cold start."""
    return boto3.client("sqs")

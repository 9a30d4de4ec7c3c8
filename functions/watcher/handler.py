"""Moves on whatever time says must move: waiting jobs become QUEUED runs, forgotten runs are hinted again."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from botocore.config import Config
from duetime.clock import SystemClock
from duetime.due_messages import Patrol, SweepShard, parse_due_message
from duetime.dynamo_store import DynamoStore
from duetime.eventbridge_wakeups import QUICK, EventBridgeWakeUps
from duetime.patrolling import Patroller
from duetime.patrols import Patrols
from duetime.settings import Settings
from duetime.sqs_due_queue import SqsDueQueue
from duetime.sqs_run_queues import SqsRunQueues
from duetime.sweeping import Sweeper, SweepReport
from duetime.wakeups import RememberedWakeUps
from duetime.watching import Watcher

THREADS = 16
# Enough to plan one more page, and to hand on the rest.
RESERVED_MS = 30_000

settings = Settings.from_environment()
clock = SystemClock()
threads = ThreadPoolExecutor(max_workers=THREADS)
sqs = boto3.client("sqs")
store = DynamoStore(
    boto3.client("dynamodb", config=Config(max_pool_connections=THREADS)),
    jobs_table=settings.jobs_table,
    runs_table=settings.runs_table,
)
queues = SqsRunQueues(
    sqs,
    run_queue_urls=settings.run_queue_urls,
    dead_letter_queue_urls=settings.dead_letter_queue_urls,
    lead=settings.hint_lead,
)
due_queue = SqsDueQueue(sqs, settings.due_queue_url)
wakeups = RememberedWakeUps(
    EventBridgeWakeUps(boto3.client("scheduler", config=QUICK), **settings.wakeups).create
)
watcher = Watcher(
    Sweeper(store, wakeups, due_queue, clock, threads),
    Patroller(store, queues, clock, threads),
    Patrols(due_queue),
    wakeups,
    clock,
)
logger = Logger()


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: Any) -> None:
    # One message at a time (see the mapping): a large shard has a watcher to itself.
    for record in event["Records"]:
        message = parse_due_message(record["body"])
        match message:
            case SweepShard():
                has_time = lambda: context.get_remaining_time_in_millis() > RESERVED_MS  # noqa: E731
                _report(watcher.sweep_shard(message, has_time))
            case Patrol():
                watcher.patrol(message)
            case _:
                _report(watcher.tick())


def _report(report: SweepReport) -> None:
    for job_id, error in report.unplannable:
        logger.error("a job cannot be planned", job_id=job_id, reason=str(error))
    logger.info("swept", jobs=report.jobs, runs=report.runs, handed_on=report.handed_on)
    if report.unwritten:
        # The message comes back, and whoever takes it up plans what is left.
        raise ExceptionGroup("a sweep was not complete", report.unwritten)

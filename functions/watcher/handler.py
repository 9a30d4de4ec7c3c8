"""Moves on whatever time says must move: waiting jobs become QUEUED runs, forgotten runs are hinted again or
rescued."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from botocore.config import Config
from botocore.exceptions import ClientError
from duetime.clock import SystemClock
from duetime.due_messages import Patrol, SweepShard, WorkEnded, parse_due_message
from duetime.dynamo_store import DynamoStore
from duetime.eventbridge_wakeups import QUICK, EventBridgeWakeUps
from duetime.letters import LetterKeeper
from duetime.patrolling import Patroller, PatrolReport
from duetime.patrols import Patrols
from duetime.rescuing import Rescuer
from duetime.s3_blobs import LazyS3Blobs
from duetime.settings import Settings
from duetime.shelf import Shelf
from duetime.sqs_dead_letters import SqsDeadLetters
from duetime.sqs_due_queue import SqsDueQueue
from duetime.sqs_run_queues import SqsRunQueues
from duetime.sweeping import Sweeper, SweepReport
from duetime.wakeups import RememberedWakeUps
from duetime.watching import Watcher
from duetime.work_reports import WorkReports

THREADS = 16
# Enough to plan one more page, and to hand on the rest.
RESERVED_MS = 30_000
# A message that could not be dealt with comes back so soon, and not when its long visibility timeout is over.
AGAIN_SECONDS = 10

settings = Settings.from_environment()
clock = SystemClock()
threads = ThreadPoolExecutor(max_workers=THREADS)
sqs = boto3.client("sqs")
store = DynamoStore(
    boto3.client("dynamodb", config=Config(max_pool_connections=THREADS)),
    jobs_table=settings.jobs_table,
    runs_table=settings.runs_table,
    runs_kept_for=settings.runs_kept_for,
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
rescuer = Rescuer(store, Shelf(LazyS3Blobs(settings.spill_bucket)), clock)
watcher = Watcher(
    Sweeper(store, wakeups, due_queue, clock, threads),
    Patroller(store, queues, rescuer, clock, threads),
    Patrols(due_queue),
    WorkReports(store, rescuer),
    LetterKeeper(store, SqsDeadLetters(sqs, settings.dead_letter_queue_urls.values()), clock),
    wakeups,
    clock,
)
logger = Logger()


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: Any) -> None:
    # One message at a time (see the mapping): a large shard has a watcher to itself.
    for record in event["Records"]:
        try:
            _look(record["body"], context)
        except Exception:
            # A courtesy: without it the message comes back later.
            with suppress(ClientError):
                sqs.change_message_visibility(
                    QueueUrl=settings.due_queue_url,
                    ReceiptHandle=record["receiptHandle"],
                    VisibilityTimeout=AGAIN_SECONDS,
                )
            raise


def _look(body: str, context: Any) -> None:
    match message := parse_due_message(body):
        case SweepShard():
            has_time = lambda: context.get_remaining_time_in_millis() > RESERVED_MS  # noqa: E731
            _report_sweep(watcher.sweep_shard(message, has_time))
        case Patrol():
            if report := watcher.patrol(message):
                _log_patrol(report)
                if report.unread:
                    raise ExceptionGroup("a patrol was not complete", report.unread)
        case WorkEnded():
            watcher.take_report(message)
        case tick:
            sweep, patrol = watcher.tick()
            _log_patrol(patrol)
            _report_sweep(sweep)
            if tick.is_thorough:
                logger.info("tidied the dead-letter queues", removed=watcher.tidy())


def _report_sweep(report: SweepReport) -> None:
    for job_id, error in report.unplannable:
        logger.error("a job cannot be planned", job_id=job_id, reason=str(error))
    logger.info("swept", jobs=report.jobs, runs=report.runs, handed_on=report.handed_on)
    if report.unwritten:
        # The message comes back, and whoever takes it up does what is left.
        raise ExceptionGroup("a sweep was not complete", report.unwritten)


def _log_patrol(report: PatrolReport) -> None:
    for run in report.rescued:
        logger.warning("a run was rescued", job_id=run.job_id, run_id=run.run_id, status=run.status)
    for key, error in report.unanswered:
        logger.warning(
            "a run could not be looked after", job_id=key.job_id, run_id=key.run_id, reason=repr(error)[:1000]
        )

"""Moves on whatever time says must move: waiting jobs become QUEUED runs, forgotten runs are hinted again or
rescued."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from aws_lambda_powertools import Logger
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from duetime.audit import Action
from duetime.clock import SystemClock
from duetime.due_messages import Audit, Patrol, SweepShard, WorkEnded, parse_due_message
from duetime.dynamo_store import DynamoStore
from duetime.emf import MetricLog
from duetime.eventbridge_wakeups import QUICK, EventBridgeWakeUps
from duetime.instants import format_instant
from duetime.letters import LetterKeeper
from duetime.patrolling import Patroller, PatrolReport
from duetime.patrols import Patrols
from duetime.rescuing import Rescuer
from duetime.run import Run
from duetime.s3_blobs import LazyS3Blobs
from duetime.settings import Settings
from duetime.shelf import Shelf
from duetime.sqs_dead_letters import SqsDeadLetters
from duetime.sqs_due_queue import SqsDueQueue
from duetime.sqs_queue_lengths import queue_lengths
from duetime.sqs_run_queues import SqsRunQueues
from duetime.sweeping import Sweeper, SweepReport
from duetime.wakeups import RememberedWakeUps
from duetime.watch_measures import of_audit, of_patrol, of_queues, of_sweep
from duetime.watching import Watcher
from duetime.work_reports import WorkReports

if TYPE_CHECKING:
    from duetime.auditing import Auditor, AuditReport

THREADS = 16
# Enough to plan one more page, and to hand on the rest.
RESERVED_MS = 30_000
# A message that could not be dealt with comes back so soon, and not when its long visibility timeout is over.
AGAIN_SECONDS = 10
# So many missed times of one audit are told to whoever wants to hear; the rest is on record.
MOST_TOLD = 100

settings = Settings.from_environment()
clock = SystemClock()
threads = ThreadPoolExecutor(max_workers=THREADS)
sqs = boto3.client("sqs")
dynamodb = boto3.client("dynamodb", config=Config(max_pool_connections=THREADS))
store = DynamoStore(
    dynamodb,
    jobs_table=settings.jobs_table,
    runs_table=settings.runs_table,
    records_table=settings.records_table,
    runs_kept_for=settings.runs_kept_for,
    events_kept_for=settings.events_kept_for,
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
metrics = MetricLog(settings.environment)
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
                _report_patrol(report)
                if report.unread:
                    raise ExceptionGroup("a patrol was not complete", report.unread)
        case Audit():
            _report_audit(_auditor().audit(message.job_ids))
        case WorkEnded():
            _report_work(watcher.take_report(message))
        case tick:
            sweep, patrol = watcher.tick()
            _report_patrol(patrol)
            _report_queues()
            _report_sweep(sweep)
            if tick.is_thorough:
                logger.info("tidied the dead-letter queues", removed=watcher.tidy())


def _report_sweep(report: SweepReport) -> None:
    metrics.emit(of_sweep(report))
    for job_id, error in report.unplannable:
        logger.error("a job cannot be planned", job_id=job_id, reason=str(error))
    for failure in report.unasked:
        logger.warning("an audit could not be asked for; the next one makes up for it", reason=str(failure))
    logger.info("swept", jobs=report.jobs, runs=report.runs, handed_on=report.handed_on)
    if report.unwritten:
        # The message comes back, and whoever takes it up does what is left.
        raise ExceptionGroup("a sweep was not complete", report.unwritten)


def _report_patrol(report: PatrolReport) -> None:
    metrics.emit(of_patrol(report))
    for run in report.rescued:
        logger.warning("a run was rescued", **_keys(run), status=run.status)
    for run in report.hinted:
        logger.warning("a run was hinted again", **_keys(run), hints=run.hints)
    for run in report.given_up:
        logger.error("a run was given up as undeliverable", **_keys(run))
    for run in report.marked_late:
        logger.warning("a run is late, and waits still", **_keys(run), due_at=format_instant(run.due_at))
    for key, error in report.unanswered:
        logger.warning(
            "a run could not be looked after", job_id=key.job_id, run_id=key.run_id, reason=repr(error)[:1000]
        )


def _report_audit(report: "AuditReport") -> None:
    metrics.emit(of_audit(report))
    for found in report.findings:
        logger.error(
            "missed fire: a time has no run"
            if found.action == Action.MISSED
            else "duplicated fire: a time was run twice",
            job_id=found.job.job_id,
            run_id=found.run_id,
            nominal_at=format_instant(found.nominal_at),
        )
    for job_id, error in report.unread:
        logger.warning("a job could not be audited", job_id=job_id, reason=str(error))
    if report.missed:
        _tell_of_misses(report)


def _tell_of_misses(report: "AuditReport") -> None:
    """Those who want to hear of it, the first so many. All are on record, whether or not anybody can be told."""
    from duetime.dynamo_subscriptions import DynamoSubscriptions
    from duetime.interests import Interests, KnownSubscriptions, announce_job_notice
    from duetime.notices import missed_notice
    from duetime.sqs_notices import SqsNotices

    subscriptions = DynamoSubscriptions(dynamodb, records_table=settings.records_table)
    notices = SqsNotices(sqs, settings.notices_queue_url)
    interests = Interests(KnownSubscriptions(subscriptions, clock))
    missed = [found for found in report.findings if found.action == Action.MISSED]
    for found in missed[:MOST_TOLD]:
        try:
            notice = missed_notice(found.job, found.nominal_at, clock.now())
            is_told = announce_job_notice(notice, found.job, interests, notices)
        except (ClientError, BotoCoreError):
            is_told = False
        if not is_told:
            logger.warning("a missed time could not be announced", job_id=found.job.job_id)


@cache
def _auditor() -> "Auditor":
    """Not needed for what a cold start is in a hurry for."""
    from duetime.auditing import Auditor

    return Auditor(store, clock, threads, settings.runs_kept_for)


def _report_queues() -> None:
    try:
        metrics.emit(of_queues(queue_lengths(sqs, settings.run_queue_urls)))
    except ClientError as error:
        # A number that is missing for a minute is no reason to do a tick again.
        logger.warning("the run queues could not be measured", reason=str(error))


def _report_work(run: Run | None) -> None:
    if run is not None:
        logger.info("work that went on elsewhere has ended", **_keys(run), status=run.status)


def _keys(run: Run) -> dict[str, Any]:
    """By which everything that happened to a run is found, in the log of every function."""
    return {"job_id": run.job_id, "run_id": run.run_id, "attempt": run.attempt}

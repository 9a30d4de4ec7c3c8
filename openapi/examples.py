"""Examples of answers, made by the code that makes the answers."""

from datetime import UTC, datetime, timedelta
from typing import Any

from duetime.api.answers import (
    show_health,
    show_job,
    show_log,
    show_run,
    show_status,
    show_submission,
    show_summary,
    show_upcoming,
)
from duetime.api.explanations import show_explanation
from duetime.api.history import creation_of, show_event
from duetime.api.problems import INVALID, describe
from duetime.api.statistics import show_statistics
from duetime.api.subscriptions import show_new_subscription, show_subscription
from duetime.audit import Action, Actor, Source
from duetime.blobs import MemoryBlobs
from duetime.claiming import claimed
from duetime.explaining import Explainer
from duetime.finishing import after_the_end, succeeded
from duetime.health import Health, Stage
from duetime.job import Job, JobSpec, Priority
from duetime.logbook import LogLine, LogPiece
from duetime.memory_store import MemoryStore
from duetime.notify import NoticeEvent
from duetime.notify import Protocol as Channel
from duetime.pair import JobRun
from duetime.planning import Agenda, plan
from duetime.run import Run
from duetime.schedules import preview
from duetime.signing import SigningKey
from duetime.submission import Submission
from duetime.subscriptions import Subscription
from duetime.timing import ScheduleType, Timing

DUE = datetime(2026, 11, 18, 7, 0, tzinfo=UTC)
NOW = DUE + timedelta(minutes=5)
OWNER = "arn:aws:iam::123456789012:role/payments"
JOB_ID = "7f9c24e8-3b12-4f5a-9b0e-1c2d3e4f5a6b"
WORKER = "2026/11/18/[$LATEST]0123456789abcdef"

REQUEST: dict[str, Any] = {
    "name": "Daily payout",
    "schedule_type": "CRON",
    "cron_expression": "0 2 * * *",
    "timezone": "America/New_York",
    "task": {
        "type": "http",
        "method": "POST",
        "url": "https://pay.example.com/run",
        "headers": {"X-Team": "pay"},
    },
    "payload": {"batch": "eu"},
    "priority": "high",
    "max_retries": 3,
    "timeout_seconds": 60,
    "retry": {"kind": "exponential", "base_seconds": 2, "cap_seconds": 300},
    "tags": ["payments"],
}


def _job() -> Job:
    created_at = DUE - timedelta(hours=1)
    timing = Timing(schedule_type=ScheduleType.CRON, cron_expression="0 2 * * *", timezone="America/New_York")
    spec = JobSpec(
        name="Daily payout",
        timing=timing,
        task=REQUEST["task"],
        payload=REQUEST["payload"],
        priority=Priority.HIGH,
        tags=("payments",),
    )
    return Job(
        job_id=JOB_ID,
        owner=OWNER,
        spec=spec,
        created_at=created_at,
        updated_at=created_at,
        updated_by=OWNER,
        anchor_at=created_at,
        next_run_at=DUE,
        created_from="203.0.113.7",
    )


def _ended() -> JobRun:
    made = plan(_job(), DUE - timedelta(minutes=2))
    held = claimed(JobRun(made.job, made.runs[0]), WORKER, DUE - timedelta(milliseconds=40))
    done = succeeded(held.run, {"paid": 3}, DUE, DUE + timedelta(seconds=2))
    return after_the_end(held, done)


JOB, RUN = _ended()
_SUBSCRIPTION = Subscription(
    subscription_id="0b7e6f0e-1f6d-5b1e-9d55-0c6a7f1f2a3b",
    owner=OWNER,
    protocol=Channel.HTTPS,
    endpoint="https://hooks.example.com/duetime",
    events=(NoticeEvent.DEAD_LETTERED,),
    tag="payments",
    created_at=NOW,
    created_by=OWNER,
)
PAIR = JobRun(JOB, RUN)
BLOBS = MemoryBlobs()


def job() -> dict[str, Any]:
    return show_job(JOB, NOW)


def job_with_statistics() -> dict[str, Any]:
    return job() | {"statistics": show_statistics(JOB, [RUN])}


def subscription() -> dict[str, Any]:
    return show_subscription(_SUBSCRIPTION)


def new_subscription() -> dict[str, Any]:
    return show_new_subscription(_SUBSCRIPTION, SigningKey(lambda: b"an example, and nobody's secret"))


def run(of: Run = RUN) -> dict[str, Any]:
    return show_run(of, BLOBS)


def page(item: dict[str, Any]) -> dict[str, Any]:
    return {"items": [item], "next_page_token": None}


def submitted() -> dict[str, Any]:
    return show_submission(Submission(JOB, repeated=False), NOW)


def summary() -> dict[str, Any]:
    return show_summary(JOB, NOW)


def status() -> dict[str, Any]:
    return show_status(JOB, RUN, BLOBS)


def log() -> dict[str, Any]:
    piece = LogPiece(1, 0, [LogLine(DUE + timedelta(seconds=1), "paid 3 of 3")])
    lines = show_log([piece], attempt=None, since=None, tail=10)
    return {"run_id": RUN.run_id, "items": lines, "log_url": None}


def upcoming() -> dict[str, Any]:
    agenda = Agenda.of(JOB)
    return {"items": show_upcoming(preview(agenda.schedule, NOW, 2))}


def events() -> dict[str, Any]:
    actor = Actor(OWNER, Source("203.0.113.7", "duetime-client", "JKJaXmPLvHcESHA="))
    change = actor.did(Action.CHANGED, JOB_ID, NOW, changes={"priority": {"from": "medium", "to": "high"}})
    return {"items": [show_event(change), show_event(creation_of(JOB))], "next_page_token": None}


def explanation() -> dict[str, Any]:
    store = MemoryStore()
    store.create(JOB, [RUN])
    return show_explanation(JOB, Explainer(store, timedelta(days=30)).explain(JOB, DUE, NOW))


def health() -> dict[str, Any]:
    return show_health(Health(NOW, dict.fromkeys(Stage, timedelta())), "prod")


def problem() -> dict[str, Any]:
    message = "Input should be 'high', 'medium' or 'low'"
    return describe(INVALID, f"priority: {message}", [{"field": "priority", "message": message}])

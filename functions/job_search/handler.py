"""Every read that callers make."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response, content_types
from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.config import Config
from duetime.api.answers import show_health, show_job, show_log, show_run, show_status, show_summary
from duetime.api.caller import Caller, identify
from duetime.api.dead_letters import DeadLetters, Whose
from duetime.api.entry import refuse_unknown_parameters, resolve
from duetime.api.executions import Executions
from duetime.api.explanations import show_explanation
from duetime.api.finding import Filter, Finder
from duetime.api.history import read_history, show_event
from duetime.api.log_keys import log_keys
from duetime.api.page_tokens import LONGEST, PageTokens
from duetime.api.problems import answer_with_problems
from duetime.api.reading import latest_run, visible_job, visible_run
from duetime.api.requests import PRINCIPAL, Preview, Status, asked_time
from duetime.api.statistics import show_statistics
from duetime.api.subscriptions import show_subscription
from duetime.api.upcoming import preview_schedule, upcoming_of
from duetime.clock import SystemClock
from duetime.dynamo_lists import DynamoLists
from duetime.dynamo_logs import DynamoLogs
from duetime.dynamo_store import DynamoStore
from duetime.dynamo_subscriptions import DynamoSubscriptions
from duetime.explaining import Explainer
from duetime.health import Examiner
from duetime.job import Job
from duetime.run import Run, moment_part
from duetime.s3_blobs import PRESIGNING, S3Blobs
from duetime.searching import Search
from duetime.settings import Settings
from duetime.signing import key_in_secrets_manager
from duetime.statistics import RECENT
from duetime.status import RunStatus
from duetime.store import WhichRuns

THREADS = 16
CONTRACT = Path(__file__).with_name("openapi.json")

settings = Settings.from_environment()
admins = settings.admins
clock = SystemClock()
threads = ThreadPoolExecutor(max_workers=THREADS)
dynamodb = boto3.client("dynamodb", config=Config(max_pool_connections=THREADS))
store = DynamoStore(
    dynamodb,
    jobs_table=settings.jobs_table,
    runs_table=settings.runs_table,
    records_table=settings.records_table,
)
blobs = S3Blobs(boto3.client("s3", config=PRESIGNING), settings.spill_bucket)
logs = DynamoLogs(
    dynamodb, records_table=settings.records_table, kept_for=settings.logs_kept_for, clock=clock
)
lists = DynamoLists(
    dynamodb,
    jobs_table=settings.jobs_table,
    runs_table=settings.runs_table,
    records_table=settings.records_table,
)
signing_key = key_in_secrets_manager(partial(boto3.client, "secretsmanager"), settings.signing_secret_arn)
tokens = PageTokens(lambda: signing_key.derive("page-tokens"))
finder = Finder(Search(store, lists, clock, threads), tokens)
letters = DeadLetters(store, tokens)
subscriptions = DynamoSubscriptions(dynamodb, records_table=settings.records_table)
executions = Executions(store, lists, tokens, threads)
logger = Logger()
app = APIGatewayHttpResolver(enable_validation=True)
app.use([refuse_unknown_parameters])
answer_with_problems(app, logger)

Limit = Annotated[int, Query(ge=1, le=100)]
PageToken = Annotated[str | None, Query(min_length=1, max_length=LONGEST)]
# Kept as text, as in a body: what the document promises is what is taken.
Moment = Annotated[str | None, Query(max_length=64, json_schema_extra={"format": "date-time"})]
UserId = Annotated[str | None, Query(max_length=256, pattern=PRINCIPAL)]


@app.get("/jobs")
def list_jobs(
    status: Annotated[Status | None, Query()] = None,
    schedule_type: Annotated[Literal["IMMEDIATE", "FUTURE", "CRON", "INTERVAL"] | None, Query()] = None,
    priority: Annotated[Literal["high", "medium", "low"] | None, Query()] = None,
    tag: Annotated[str | None, Query(min_length=1, max_length=64)] = None,
    name_prefix: Annotated[str | None, Query(min_length=1, max_length=128)] = None,
    due_from: Moment = None,
    due_before: Moment = None,
    user_id: UserId = None,
    limit: Limit = 25,
    page_token: PageToken = None,
) -> dict[str, Any]:
    wanted = Filter.of(
        status=status,
        schedule_type=schedule_type,
        priority=priority,
        tag=tag,
        name_prefix=name_prefix,
        due_from=due_from,
        due_before=due_before,
        user_id=user_id,
    )
    page = finder.page(wanted, _caller(), limit=limit, page_token=page_token)
    now = clock.now()
    return _page([show_summary(job, now) for job in page.jobs], page.next_page_token)


@app.get("/jobs/<job_id>")
def get_job(job_id: str) -> Response[dict[str, Any]]:
    job = _visible(job_id)
    return Response(
        status_code=200,
        content_type=content_types.APPLICATION_JSON,
        headers={"ETag": f'"{job.version}"'},
        body=show_job(job, clock.now()) | {"statistics": show_statistics(job, _recent_runs(job))},
    )


def _recent_runs(job: Job) -> Sequence[Run]:
    """Whose time has come: what is planned for later has nothing to tell yet."""
    return store.list_runs(job.job_id, limit=RECENT, before=f"{moment_part(clock.now())}~").runs


@app.get("/jobs/<job_id>/status")
def get_status(job_id: str) -> dict[str, Any]:
    job = _visible(job_id)
    return show_status(job, latest_run(job, store, clock.now()), blobs)


@app.get("/jobs/<job_id>/runs")
def list_runs(
    job_id: str,
    status: Annotated[RunStatus | None, Query()] = None,
    due_from: Moment = None,
    due_before: Moment = None,
    limit: Limit = 25,
    page_token: PageToken = None,
) -> dict[str, Any]:
    caller = _caller()
    job = visible_job(job_id, caller, store)
    since, until = asked_time("due_from", due_from), asked_time("due_before", due_before)
    asked = [job_id, status, since, until]
    position = tokens.read("runs", caller.principal, asked, page_token) if page_token else None
    page = store.list_runs(
        job.job_id,
        limit=limit,
        before=position[0] if position else moment_part(until) if until else None,
        # Ids go by the nominal time, which is up to the jitter before the due one.
        since=moment_part(since - timedelta(seconds=job.spec.timing.jitter_seconds)) if since else None,
        which=WhichRuns(status, since, until),
    )
    following = page.next_before and tokens.make("runs", caller.principal, asked, [page.next_before])
    return _page([show_run(run, blobs) for run in page.runs], following)


@app.get("/jobs/<job_id>/runs/<run_id>")
def get_run(job_id: str, run_id: str) -> dict[str, Any]:
    return show_run(visible_run(_visible(job_id), run_id, store), blobs)


@app.get("/jobs/<job_id>/logs")
def get_logs(
    job_id: str,
    run_id: Annotated[str | None, Query(max_length=64)] = None,
    attempt: Annotated[int | None, Query(ge=1, le=1000)] = None,
    since: Moment = None,
    tail: Annotated[int, Query(ge=1, le=5000)] = 1000,
) -> dict[str, Any]:
    job = _visible(job_id)
    run = visible_run(job, run_id, store) if run_id else latest_run(job, store, clock.now())
    if run is None:
        return {"run_id": None, "items": [], "log_url": None}
    lines = show_log(logs.pieces(run.key), attempt=attempt, since=asked_time("since", since), tail=tail)
    return {"run_id": run.run_id, "items": lines, "log_url": run.log_key and blobs.url(run.log_key)}


@app.get("/jobs/<job_id>/upcoming")
def get_upcoming(job_id: str, count: Annotated[int, Query(ge=1, le=100)] = 10) -> dict[str, Any]:
    return {"items": upcoming_of(_visible(job_id), clock.now(), count)}


@app.get("/jobs/<job_id>/events")
def list_events(job_id: str, limit: Limit = 25, page_token: PageToken = None) -> dict[str, Any]:
    caller = _caller()
    job = visible_job(job_id, caller, store)
    position = tokens.read("events", caller.principal, job_id, page_token) if page_token else None
    events, before = read_history(job, store, limit=limit, before=position[0] if position else None)
    following = before and tokens.make("events", caller.principal, job_id, [before])
    return _page([show_event(event) for event in events], following)


@app.get("/jobs/<job_id>/explain")
def explain(
    job_id: str, at: Annotated[str, Query(max_length=64, json_schema_extra={"format": "date-time"})]
) -> dict[str, Any]:
    job = _visible(job_id)
    moment = asked_time("at", at)
    assert moment is not None
    return show_explanation(job, Explainer(store, settings.runs_kept_for).explain(job, moment, clock.now()))


@app.get("/executions")
def list_executions(
    worker_id: Annotated[str | None, Query(min_length=1, max_length=512)] = None,
    user_id: UserId = None,
    limit: Limit = 25,
    page_token: PageToken = None,
) -> dict[str, Any]:
    runs, following = executions.page(worker_id, user_id, _caller(), limit=limit, page_token=page_token)
    return _page([show_run(run, blobs) for run in runs], following)


@app.get("/dead-letters")
def list_dead_letters(
    job_id: Annotated[str | None, Query(max_length=64)] = None,
    user_id: UserId = None,
    limit: Limit = 25,
    page_token: PageToken = None,
) -> dict[str, Any]:
    page = letters.page(Whose(job_id, user_id), _caller(), limit=limit, page_token=page_token)
    return _page([show_run(run, blobs) for run in page.runs], page.next_page_token)


@app.get("/subscriptions")
def list_subscriptions(user_id: UserId = None) -> dict[str, Any]:
    caller = _caller()
    owner = user_id or caller.principal
    if owner != caller.principal and not caller.is_admin:
        return {"items": []}
    return {"items": [show_subscription(each) for each in subscriptions.of_owner(owner)]}


@app.post("/schedules/preview")
def preview_times(body: Annotated[Preview, Body()]) -> dict[str, Any]:
    # Nobody's data, but not for strangers either.
    _caller()
    return {"items": preview_schedule(body, clock.now())}


@app.get("/health")
def get_health() -> dict[str, Any]:
    _caller()
    return show_health(Examiner(store, clock, threads).examine(), settings.environment)


@app.get("/openapi.json")
def get_contract() -> Response[str]:
    _caller()
    return Response(status_code=200, content_type=content_types.APPLICATION_JSON, body=CONTRACT.read_text())


def _caller() -> Caller:
    return identify(app.current_event.raw_event, admins)


def _visible(job_id: str) -> Job:
    return visible_job(job_id, _caller(), store)


def _page(items: Sequence[dict[str, Any]], next_page_token: str | None) -> dict[str, Any]:
    return {"items": list(items), "next_page_token": next_page_token}


@logger.inject_lambda_context(clear_state=True)
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    logger.append_keys(**log_keys(event))
    return resolve(app, event, context)

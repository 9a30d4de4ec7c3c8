"""Every read that callers make."""

from typing import Annotated, Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response, content_types
from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from aws_lambda_powertools.utilities.typing import LambdaContext
from duetime.api.answers import show_job, show_log, show_run, show_status
from duetime.api.caller import identify
from duetime.api.dead_letters import list_dead_letters
from duetime.api.entry import resolve
from duetime.api.log_keys import log_keys
from duetime.api.problems import answer_with_problems
from duetime.api.reading import latest_run, visible_job, visible_run
from duetime.api.requests import Preview, asked_time
from duetime.api.upcoming import preview_schedule, upcoming_of
from duetime.clock import SystemClock
from duetime.dynamo_logs import DynamoLogs
from duetime.dynamo_store import DynamoStore
from duetime.job import Job
from duetime.s3_blobs import PRESIGNING, S3Blobs
from duetime.settings import Settings

settings = Settings.from_environment()
admins = settings.admins
clock = SystemClock()
dynamodb = boto3.client("dynamodb")
store = DynamoStore(dynamodb, jobs_table=settings.jobs_table, runs_table=settings.runs_table)
blobs = S3Blobs(boto3.client("s3", config=PRESIGNING), settings.spill_bucket)
logs = DynamoLogs(
    dynamodb, records_table=settings.records_table, kept_for=settings.logs_kept_for, clock=clock
)
logger = Logger()
app = APIGatewayHttpResolver(enable_validation=True)
answer_with_problems(app, logger)


@app.get("/jobs/<job_id>")
def get_job(job_id: str) -> Response[dict[str, Any]]:
    job = _visible(job_id)
    return Response(
        status_code=200,
        content_type=content_types.APPLICATION_JSON,
        headers={"ETag": f'"{job.version}"'},
        body=show_job(job, clock.now()),
    )


@app.get("/jobs/<job_id>/status")
def get_status(job_id: str) -> dict[str, Any]:
    job = _visible(job_id)
    return show_status(job, latest_run(job, store, clock.now()), blobs)


@app.get("/jobs/<job_id>/runs")
def list_runs(
    job_id: str,
    limit: Annotated[int, Query(ge=1, le=100)] = 25,
    page_token: Annotated[str | None, Query(min_length=1, max_length=128)] = None,
) -> dict[str, Any]:
    page = store.list_runs(_visible(job_id).job_id, limit=limit, before=page_token)
    return {"items": [show_run(run, blobs) for run in page.runs], "next_page_token": page.next_before}


@app.get("/jobs/<job_id>/runs/<run_id>")
def get_run(job_id: str, run_id: str) -> dict[str, Any]:
    return show_run(visible_run(_visible(job_id), run_id, store), blobs)


@app.get("/jobs/<job_id>/logs")
def get_logs(
    job_id: str,
    run_id: Annotated[str | None, Query(max_length=64)] = None,
    attempt: Annotated[int | None, Query(ge=1, le=1000)] = None,
    since: Annotated[str | None, Query(max_length=64)] = None,
    tail: Annotated[int, Query(ge=1, le=5000)] = 1000,
) -> dict[str, Any]:
    job = _visible(job_id)
    run = visible_run(job, run_id, store) if run_id else latest_run(job, store, clock.now())
    if run is None:
        return {"run_id": None, "items": [], "log_url": None}
    lines = show_log(logs.pieces(run.key), attempt=attempt, since=asked_time("since", since), tail=tail)
    return {"run_id": run.run_id, "items": lines, "log_url": run.log_key and blobs.url(run.log_key)}


@app.get("/dead-letters")
def get_dead_letters(
    limit: Annotated[int, Query(ge=1, le=100)] = 25,
    page_token: Annotated[str | None, Query(min_length=1, max_length=512)] = None,
    job_id: Annotated[str | None, Query(max_length=64)] = None,
) -> dict[str, Any]:
    owner = identify(app.current_event.raw_event, admins).principal
    page = list_dead_letters(owner, store, limit=limit, page_token=page_token, job_id=job_id)
    return {"items": [show_run(run, blobs) for run in page.runs], "next_page_token": page.next_page_token}


@app.get("/jobs/<job_id>/upcoming")
def get_upcoming(job_id: str, count: Annotated[int, Query(ge=1, le=100)] = 10) -> dict[str, Any]:
    return {"items": upcoming_of(_visible(job_id), clock.now(), count)}


@app.post("/schedules/preview")
def preview_times(body: Annotated[Preview, Body()]) -> dict[str, Any]:
    # Nobody's data, but not for strangers either.
    identify(app.current_event.raw_event, admins)
    return {"items": preview_schedule(body, clock.now())}


def _visible(job_id: str) -> Job:
    return visible_job(job_id, identify(app.current_event.raw_event, admins), store)


@logger.inject_lambda_context(clear_state=True)
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    logger.append_keys(**log_keys(event))
    return resolve(app, event, context)

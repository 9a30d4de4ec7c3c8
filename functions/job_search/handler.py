"""Every read that callers make."""

from typing import Annotated, Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response, content_types
from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from aws_lambda_powertools.utilities.typing import LambdaContext
from duetime.api.answers import show_job, show_run, show_status
from duetime.api.caller import identify
from duetime.api.problems import answer_with_problems
from duetime.api.reading import latest_run, visible_job, visible_run
from duetime.api.requests import Preview
from duetime.api.upcoming import preview_schedule, upcoming_of
from duetime.clock import SystemClock
from duetime.dynamo_store import DynamoStore
from duetime.job import Job
from duetime.settings import Settings

settings = Settings.from_environment()
admins = settings.admins
clock = SystemClock()
store = DynamoStore(boto3.client("dynamodb"), jobs_table=settings.jobs_table, runs_table=settings.runs_table)
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
    return show_status(job, latest_run(job, store, clock.now()))


@app.get("/jobs/<job_id>/runs")
def list_runs(
    job_id: str,
    limit: Annotated[int, Query(ge=1, le=100)] = 25,
    page_token: Annotated[str | None, Query(min_length=1, max_length=128)] = None,
) -> dict[str, Any]:
    page = store.list_runs(_visible(job_id).job_id, limit=limit, before=page_token)
    return {"items": [show_run(run) for run in page.runs], "next_page_token": page.next_before}


@app.get("/jobs/<job_id>/runs/<run_id>")
def get_run(job_id: str, run_id: str) -> dict[str, Any]:
    return show_run(visible_run(_visible(job_id), run_id, store))


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


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)

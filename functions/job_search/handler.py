"""Every read that callers make."""

from typing import Annotated, Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.utilities.typing import LambdaContext
from duetime.api.answers import show_job, show_run, show_status
from duetime.api.caller import identify
from duetime.api.problems import answer_with_problems
from duetime.api.reading import visible_job
from duetime.dynamo_store import DynamoStore
from duetime.job import Job
from duetime.settings import Settings

settings = Settings.from_environment()
admins = settings.admins
store = DynamoStore(boto3.client("dynamodb"), jobs_table=settings.jobs_table, runs_table=settings.runs_table)
logger = Logger()
app = APIGatewayHttpResolver(enable_validation=True)
answer_with_problems(app, logger)


@app.get("/jobs/<job_id>")
def get_job(job_id: str) -> dict[str, Any]:
    return show_job(_visible(job_id))


@app.get("/jobs/<job_id>/status")
def get_status(job_id: str) -> dict[str, Any]:
    job = _visible(job_id)
    latest = store.list_runs(job.job_id, limit=1).runs
    return show_status(job, latest[0] if latest else None)


@app.get("/jobs/<job_id>/runs")
def list_runs(
    job_id: str,
    limit: Annotated[int, Query(ge=1, le=100)] = 25,
    page_token: Annotated[str | None, Query(min_length=1, max_length=128)] = None,
) -> dict[str, Any]:
    page = store.list_runs(_visible(job_id).job_id, limit=limit, before=page_token)
    return {"items": [show_run(run) for run in page.runs], "next_page_token": page.next_before}


def _visible(job_id: str) -> Job:
    return visible_job(job_id, identify(app.current_event.raw_event, admins), store)


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)

"""Every write that callers make."""

from http import HTTPStatus
from typing import Annotated, Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response, content_types
from aws_lambda_powertools.event_handler.openapi.params import Body, Header
from aws_lambda_powertools.utilities.typing import LambdaContext
from duetime.api.answers import show_submission
from duetime.api.caller import identify
from duetime.api.problems import answer_with_problems
from duetime.api.requests import CreateJob
from duetime.clock import SystemClock
from duetime.dynamo_store import DynamoStore
from duetime.settings import Settings
from duetime.submission import submit

settings = Settings.from_environment()
allowed_targets, admins = settings.allowed_targets, settings.admins
clock = SystemClock()
store = DynamoStore(boto3.client("dynamodb"), jobs_table=settings.jobs_table, runs_table=settings.runs_table)
logger = Logger()
app = APIGatewayHttpResolver(enable_validation=True)
answer_with_problems(app, logger)


@app.post("/jobs")
def create_job(
    body: Annotated[CreateJob, Body()],
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> Response[dict[str, Any]]:
    submission = submit(
        body.to_spec(),
        owner=identify(app.current_event.raw_event, admins).principal,
        request=body.model_dump(),
        idempotency_key=idempotency_key,
        allowed=allowed_targets,
        store=store,
        clock=clock,
    )
    return Response(
        status_code=HTTPStatus.CREATED,
        content_type=content_types.APPLICATION_JSON,
        headers={"Location": f"/jobs/{submission.job.job_id}"},
        body=show_submission(submission),
    )


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)

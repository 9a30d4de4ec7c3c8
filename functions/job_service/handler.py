"""Every write that callers make."""

import re
from http import HTTPStatus
from typing import Annotated, Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response, content_types
from aws_lambda_powertools.event_handler.openapi.params import Body, Header
from aws_lambda_powertools.utilities.typing import LambdaContext
from duetime import changing
from duetime.api.answers import show_job, show_run, show_submission
from duetime.api.caller import Caller, identify
from duetime.api.problems import answer_with_problems
from duetime.api.reading import visible_job
from duetime.api.requests import CreateJob, UpdateJob, merge
from duetime.clock import SystemClock
from duetime.dynamo_store import DynamoStore
from duetime.errors import InvalidField
from duetime.eventbridge_wakeups import QUICK, EventBridgeWakeUps
from duetime.settings import Settings
from duetime.submission import Intake
from duetime.wakeups import RememberedWakeUps

settings = Settings.from_environment()
admins = settings.admins
clock = SystemClock()
store = DynamoStore(boto3.client("dynamodb"), jobs_table=settings.jobs_table, runs_table=settings.runs_table)
wakeups = RememberedWakeUps(
    EventBridgeWakeUps(boto3.client("scheduler", config=QUICK), **settings.wakeups).create
)
intake = Intake(store, wakeups, clock, settings.allowed_targets)
changes = changing.Changes(intake)
logger = Logger()
app = APIGatewayHttpResolver(enable_validation=True)
answer_with_problems(app, logger)

IfMatch = Annotated[str | None, Header(alias="if-match", max_length=32)]


@app.post("/jobs")
def create_job(
    body: Annotated[CreateJob, Body()],
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> Response[dict[str, Any]]:
    submission = intake.submit(
        body.to_spec(),
        owner=_caller().principal,
        request=body.model_dump(),
        idempotency_key=idempotency_key,
    )
    return _answer(
        HTTPStatus.CREATED,
        show_submission(submission, clock.now()),
        {"Location": f"/jobs/{submission.job.job_id}"},
    )


@app.put("/jobs/<job_id>")
def update_job(
    job_id: str, body: Annotated[UpdateJob, Body()], if_match: IfMatch = None
) -> Response[dict[str, Any]]:
    given = body.model_dump(exclude_unset=True)
    return _change(job_id, changing.update(lambda job: merge(given, job), intake), if_match)


@app.post("/jobs/<job_id>/pause")
def pause_job(job_id: str, if_match: IfMatch = None) -> Response[dict[str, Any]]:
    return _change(job_id, changing.pause, if_match)


@app.post("/jobs/<job_id>/resume")
def resume_job(job_id: str, if_match: IfMatch = None) -> Response[dict[str, Any]]:
    return _change(job_id, changing.resume, if_match)


@app.delete("/jobs/<job_id>")
def cancel_job(job_id: str, if_match: IfMatch = None) -> Response[dict[str, Any]]:
    return _change(job_id, changing.cancel, if_match)


@app.post("/jobs/<job_id>/runNow")
def run_job_now(job_id: str) -> Response[dict[str, Any]]:
    run = changes.run_now(visible_job(job_id, _caller(), store))
    location = {"Location": f"/jobs/{run.job_id}/runs/{run.run_id}"}
    return _answer(HTTPStatus.ACCEPTED, show_run(run), location)


def _change(job_id: str, change: changing.Change, if_match: str | None) -> Response[dict[str, Any]]:
    caller = _caller()
    job = visible_job(job_id, caller, store)
    after = changes.apply(job, change, by=caller.principal, if_match=_version(if_match))
    return _answer(HTTPStatus.OK, show_job(after, clock.now()), {"ETag": f'"{after.version}"'})


def _version(if_match: str | None) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    if not (match := re.fullmatch(r'"(\d{1,18})"', if_match.strip())):
        raise InvalidField("If-Match", 'must be the ETag of the job, such as "3"')
    return int(match[1])


def _caller() -> Caller:
    return identify(app.current_event.raw_event, admins)


def _answer(status: HTTPStatus, body: dict[str, Any], headers: dict[str, str]) -> Response[dict[str, Any]]:
    return Response(
        status_code=status, content_type=content_types.APPLICATION_JSON, headers=dict(headers), body=body
    )


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)

"""Every write that callers make."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import cache, partial
from http import HTTPStatus
from typing import Annotated, Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response, content_types
from aws_lambda_powertools.event_handler.openapi.params import Body, Header, Query
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import ClientError
from duetime import changing
from duetime.admission import Admission
from duetime.api.answers import show_job, show_outcome, show_run, show_submission, show_time
from duetime.api.bulk import Bulk
from duetime.api.caller import Caller, identify
from duetime.api.dead_letters import DeadLetters, Whose
from duetime.api.entry import refuse_unknown_parameters, resolve
from duetime.api.finding import Filter, Finder
from duetime.api.log_keys import log_keys
from duetime.api.page_tokens import PageTokens
from duetime.api.problems import answer_with_problems
from duetime.api.reading import visible_job, visible_run
from duetime.api.requests import (
    PRINCIPAL,
    Batch,
    BulkRequest,
    Complete,
    CreateJob,
    Fail,
    Heartbeat,
    Redrive,
    UpdateJob,
    merge,
)
from duetime.api.subscriptions import (
    CreateSubscription,
    notify_secret_of,
    show_new_subscription,
    show_subscription,
)
from duetime.audit import Action
from duetime.callbacks import Callbacks
from duetime.clock import SystemClock
from duetime.dynamo_lists import DynamoLists
from duetime.dynamo_store import DynamoStore
from duetime.dynamo_subscriptions import DynamoSubscriptions
from duetime.errors import Conflict, InvalidField, NotFound, RequestError
from duetime.eventbridge_wakeups import QUICK, EventBridgeWakeUps
from duetime.interests import Interests, KnownSubscriptions, announce_job_notice
from duetime.job import Job
from duetime.notices import paused_notice
from duetime.pair import JobRun
from duetime.run import Run, RunKey
from duetime.run_control import RunControl
from duetime.s3_blobs import PRESIGNING, S3Blobs
from duetime.searching import Search
from duetime.settings import Settings
from duetime.shelf import Shelf
from duetime.signing import key_in_secrets_manager
from duetime.sns_topics import SnsTopics
from duetime.sqs_notices import SqsNotices
from duetime.status import RunStatus
from duetime.submission import Intake, Submission
from duetime.subscriptions import Subscriptions
from duetime.wakeups import RememberedWakeUps

THREADS = 8
# Enough for one more job of a bulk operation, and for the answer.
RESERVED_MS = 2_000

settings = Settings.from_environment()
admins = settings.admins
clock = SystemClock()
dynamodb = boto3.client("dynamodb")
store = DynamoStore(
    dynamodb,
    jobs_table=settings.jobs_table,
    runs_table=settings.runs_table,
    records_table=settings.records_table,
    runs_kept_for=settings.runs_kept_for,
    events_kept_for=settings.events_kept_for,
)
blobs = S3Blobs(boto3.client("s3", config=PRESIGNING), settings.spill_bucket)
wakeups = RememberedWakeUps(
    EventBridgeWakeUps(boto3.client("scheduler", config=QUICK), **settings.wakeups).create
)
lists = DynamoLists(
    dynamodb,
    jobs_table=settings.jobs_table,
    runs_table=settings.runs_table,
    records_table=settings.records_table,
)
signing_key = key_in_secrets_manager(partial(boto3.client, "secretsmanager"), settings.signing_secret_arn)
intake = Intake(
    store,
    wakeups,
    clock,
    settings.allowed_targets,
    Admission(lists, settings.quotas, clock),
    lambda: signing_key.derive("job-ids"),
)
subscription_store = DynamoSubscriptions(dynamodb, records_table=settings.records_table)
subscriptions = Subscriptions(
    subscription_store,
    SnsTopics(partial(boto3.client, "sns"), settings.notice_topics),
    settings.allowed_targets,
    clock,
)
interests = Interests(KnownSubscriptions(subscription_store, clock))


def _tell(job: Job, action: Action) -> None:
    """Those who want to hear of it. The job is paused all the same if they cannot be told."""
    if action is not Action.PAUSED:
        return
    notices = SqsNotices(_sqs(), settings.notices_queue_url)
    try:
        is_told = announce_job_notice(paused_notice(job), job, interests, notices)
    except ClientError as error:
        is_told = False
        logger.warning("whoever wants to hear of a pause is not known", reason=str(error))
    if not is_told:
        logger.warning("a pause could not be announced", job_id=job.job_id)


@cache
def _sqs() -> Any:
    """Hardly ever needed, so not made at every cold start."""
    return boto3.client("sqs")


changes = changing.Changes(intake, _tell)
control = RunControl(store, clock)
callbacks = Callbacks(store, Shelf(blobs), clock)
tokens = PageTokens(lambda: signing_key.derive("page-tokens"))
letters = DeadLetters(store, tokens)
bulk = Bulk(
    Finder(Search(store, lists, clock, ThreadPoolExecutor(max_workers=THREADS)), tokens), changes, control
)
logger = Logger()
app = APIGatewayHttpResolver(enable_validation=True)
app.use([refuse_unknown_parameters])
answer_with_problems(app, logger)

Token = Annotated[str, Header(alias="duetime-callback-token", min_length=1, max_length=128)]
IdempotencyKey = Annotated[str | None, Header(min_length=1, max_length=255)]
IfMatch = Annotated[str | None, Header(alias="if-match", max_length=32)]


@app.post("/jobs")
def create_job(
    body: Annotated[CreateJob, Body()],
    idempotency_key: IdempotencyKey = None,
) -> Response[dict[str, Any]]:
    submission = intake.submit(
        body.to_spec(),
        by=_caller().actor,
        request=body.model_dump(),
        idempotency_key=idempotency_key,
    )
    return _answer(
        HTTPStatus.CREATED,
        show_submission(submission, clock.now(), notify_secret_of(submission.job, signing_key)),
        {"Location": f"/jobs/{submission.job.job_id}"},
    )


@app.post("/jobs/batch")
def create_jobs(body: Annotated[Batch, Body()], idempotency_key: IdempotencyKey = None) -> dict[str, Any]:
    outcomes = intake.submit_many(
        body.specs(), by=_caller().actor, request=body.jobs, idempotency_key=idempotency_key
    )
    now = clock.now()
    return {"items": [show_outcome(outcome, now, _secret_of(outcome)) for outcome in outcomes]}


def _secret_of(outcome: Submission | RequestError) -> str | None:
    return notify_secret_of(outcome.job, signing_key) if isinstance(outcome, Submission) else None


@app.post("/jobs/bulk")
def change_jobs(body: Annotated[BulkRequest, Body()]) -> dict[str, Any]:
    wanted = body.filter.model_dump()
    if not any(wanted.values()):
        raise InvalidField("filter", "must say something: without a filter this would be every job")
    context = app.lambda_context
    result = bulk.carry_out(
        body.action,
        Filter.of(**wanted),
        _caller(),
        limit=body.limit,
        page_token=body.page_token,
        has_time=lambda: context.get_remaining_time_in_millis() > RESERVED_MS,
    )
    return {
        "changed": list(result.changed),
        "unchanged": list(result.unchanged),
        "next_page_token": result.next_page_token,
    }


@app.put("/jobs/<job_id>")
def update_job(
    job_id: str, body: Annotated[UpdateJob, Body()], if_match: IfMatch = None
) -> Response[dict[str, Any]]:
    given = body.model_dump(exclude_unset=True)
    return _change(job_id, changing.update(lambda job: merge(given, job), intake), Action.CHANGED, if_match)


@app.post("/jobs/<job_id>/pause")
def pause_job(job_id: str, if_match: IfMatch = None) -> Response[dict[str, Any]]:
    return _change(job_id, changing.pause, Action.PAUSED, if_match)


@app.post("/jobs/<job_id>/resume")
def resume_job(job_id: str, if_match: IfMatch = None) -> Response[dict[str, Any]]:
    return _change(job_id, changing.resume, Action.RESUMED, if_match)


@app.delete("/jobs/<job_id>")
def cancel_job(job_id: str, if_match: IfMatch = None) -> Response[dict[str, Any]]:
    caller = _caller()
    answer = _change(job_id, changing.cancel, Action.CANCELLED, if_match)
    # First the job, so that nothing new starts; then what is open, whatever has been cancelled before.
    control.cancel_all(visible_job(job_id, caller, store), caller.actor)
    return answer


@app.post("/jobs/<job_id>/runNow")
def run_job_now(job_id: str, idempotency_key: IdempotencyKey = None) -> Response[dict[str, Any]]:
    caller = _caller()
    run = changes.run_now(visible_job(job_id, caller, store), caller.actor, idempotency_key)
    return _run_answer(HTTPStatus.ACCEPTED, run)


@app.post("/jobs/<job_id>/runs/<run_id>/cancel")
def cancel_run(job_id: str, run_id: str) -> Response[dict[str, Any]]:
    caller = _caller()
    run = visible_run(visible_job(job_id, caller, store), run_id, store)
    return _run_answer(HTTPStatus.ACCEPTED, control.cancel(run.key, caller.actor))


@app.post("/jobs/<job_id>/runs/<run_id>/redrive")
def redrive_run(job_id: str, run_id: str) -> Response[dict[str, Any]]:
    caller = _caller()
    job = visible_job(job_id, caller, store)
    run = visible_run(job, run_id, store)
    after = control.redrive(JobRun(job, run), caller.actor) if run.status is RunStatus.DEAD_LETTERED else None
    if after is None:
        raise Conflict(f"the run is {run.status}, and not a dead letter")
    intake.wake_for_open([after])
    return _run_answer(HTTPStatus.ACCEPTED, after)


@app.post("/dead-letters/redrive")
def redrive_many(body: Annotated[Redrive, Body()]) -> dict[str, Any]:
    done = letters.redrive(
        Whose(body.job_id, body.user_id), _caller(), control, limit=body.limit, page_token=body.page_token
    )
    intake.wake_for_open(done.runs)
    return {
        "redriven": [{"job_id": run.job_id, "run_id": run.run_id} for run in done.runs],
        "refused": [{"job_id": run.job_id, "run_id": run.run_id, "reason": why} for run, why in done.refused],
        "next_page_token": done.next_page_token,
    }


@app.post("/subscriptions")
def create_subscription(
    body: Annotated[CreateSubscription, Body()], idempotency_key: IdempotencyKey = None
) -> Response[dict[str, Any]]:
    caller = _caller()
    made = subscriptions.create(
        body.to_wish(),
        by=caller.principal,
        find_job=lambda job_id: visible_job(job_id, caller, store),
        request=body.model_dump(),
        idempotency_key=idempotency_key,
    )
    location = {"Location": f"/subscriptions/{made.subscription_id}"}
    return _answer(HTTPStatus.CREATED, show_new_subscription(made, signing_key), location)


@app.delete("/subscriptions/<subscription_id>")
def delete_subscription(
    subscription_id: str, user_id: Annotated[str | None, Query(max_length=256, pattern=PRINCIPAL)] = None
) -> dict[str, Any]:
    caller = _caller()
    owner = user_id if user_id and caller.is_admin else caller.principal
    return show_subscription(subscriptions.delete(owner, subscription_id))


# These three are for the system that does an attempt's work, whoever it signs as: it is known by the attempt's token.


@app.post("/jobs/<job_id>/runs/<run_id>/heartbeat")
def report_heartbeat(
    job_id: str, run_id: str, body: Annotated[Heartbeat, Body()], token: Token
) -> dict[str, Any]:
    with _told_only_to_its_owner(job_id):
        run = callbacks.heartbeat(RunKey(job_id, run_id), token, body.checkpoint)
    return {"cancel_requested": run.cancel_requested is not None, "deadline_at": show_time(run.deadline_at)}


@app.post("/jobs/<job_id>/runs/<run_id>/complete")
def report_completion(
    job_id: str, run_id: str, body: Annotated[Complete, Body()], token: Token
) -> dict[str, Any]:
    with _told_only_to_its_owner(job_id):
        return {"status": callbacks.complete(RunKey(job_id, run_id), token, body.result).status}


@app.post("/jobs/<job_id>/runs/<run_id>/fail")
def report_failure(job_id: str, run_id: str, body: Annotated[Fail, Body()], token: Token) -> dict[str, Any]:
    delay = body.retry_after_seconds
    retry_after = None if delay is None else timedelta(seconds=delay)
    with _told_only_to_its_owner(job_id):
        run = callbacks.fail(
            RunKey(job_id, run_id), token, body.error, retry=body.retry, retry_after=retry_after
        )
    return {"status": run.status}


@contextmanager
def _told_only_to_its_owner(job_id: str) -> Iterator[None]:
    """That a run is over, or never was. To anybody else without its token the whole job does not exist."""
    caller = _caller()
    try:
        yield
    except (Conflict, NotFound):
        visible_job(job_id, caller, store)
        raise


def _change(
    job_id: str, change: changing.Change, action: Action, if_match: str | None
) -> Response[dict[str, Any]]:
    caller = _caller()
    job = visible_job(job_id, caller, store)
    after = changes.apply(job, change, actor=caller.actor, action=action, if_match=_version(if_match))
    return _answer(HTTPStatus.OK, show_job(after, clock.now()), {"ETag": f'"{after.version}"'})


def _run_answer(status: HTTPStatus, run: Run) -> Response[dict[str, Any]]:
    return _answer(status, show_run(run, blobs), {"Location": f"/jobs/{run.job_id}/runs/{run.run_id}"})


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


@logger.inject_lambda_context(clear_state=True)
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    logger.append_keys(**log_keys(event))
    return resolve(app, event, context)

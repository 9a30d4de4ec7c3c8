"""The `duetime` command: thin over the client, so that whatever it does a program can do too."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import click

from duetime_client.client import ApiError, Client, Unreachable
from duetime_client.next_times import next_times

_STACK_FILE = Path("local/stack.json")

Connect = Callable[[], Client]

IF_MATCH = click.option(
    "--if-match", type=click.IntRange(1), metavar="VERSION", help="Only if the job is still at this version."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--api-url", envvar="DUETIME_API_URL", help="The deployment's URL. Needs AWS credentials to sign with."
)
@click.option("--region", envvar="AWS_REGION", help="The deployment's region.")
@click.option(
    "--stack-file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=_STACK_FILE,
    show_default=True,
    help="Where `make up` wrote the local stack's address and key; read when there is no --api-url.",
)
@click.pass_context
def main(context: click.Context, api_url: str | None, region: str | None, stack_file: Path) -> None:
    """Submit jobs to Duetime and see what became of them."""
    context.obj = lambda: _connect(api_url, region, stack_file)


@main.command()
@click.argument("job", type=click.File(encoding="utf-8"))
@click.option("--idempotency-key", help="Repeating the command with the same key makes no second job.")
@click.pass_obj
def submit(connect: Connect, job: Any, idempotency_key: str | None) -> None:
    """Submit the job in the file JOB (JSON; - reads standard input)."""
    body = _read_json(job)
    _show(lambda: connect().create_job(body, idempotency_key=idempotency_key))


@main.command()
@click.argument("job_id")
@click.argument("changes", type=click.File(encoding="utf-8"))
@IF_MATCH
@click.pass_obj
def update(connect: Connect, job_id: str, changes: Any, if_match: int | None) -> None:
    """Change a job: the file CHANGES (JSON; - reads standard input) has only the fields to change."""
    body = _read_json(changes)
    _show(lambda: connect().update_job(job_id, body, if_match=if_match))


@main.command()
@click.argument("job_id")
@IF_MATCH
@click.pass_obj
def pause(connect: Connect, job_id: str, if_match: int | None) -> None:
    """Pause a job: it starts nothing until it is resumed."""
    _show(lambda: connect().pause_job(job_id, if_match=if_match))


@main.command()
@click.argument("job_id")
@IF_MATCH
@click.pass_obj
def resume(connect: Connect, job_id: str, if_match: int | None) -> None:
    """Resume a paused job; its catch_up says what becomes of the times it slept through."""
    _show(lambda: connect().resume_job(job_id, if_match=if_match))


@main.command()
@click.argument("job_id")
@IF_MATCH
@click.pass_obj
def cancel(connect: Connect, job_id: str, if_match: int | None) -> None:
    """Cancel a job for good."""
    _show(lambda: connect().cancel_job(job_id, if_match=if_match))


@main.command("run-now")
@click.argument("job_id")
@click.option("--idempotency-key", help="Makes it safe to repeat: the same key never makes a second run.")
@click.pass_obj
def run_now(connect: Connect, job_id: str, idempotency_key: str | None) -> None:
    """Run a job once, now, whatever its schedule says."""
    _show(lambda: connect().run_job_now(job_id, idempotency_key=idempotency_key))


@main.command("list")
@click.option(
    "--status", help="SCHEDULED, PAUSED, CANCELLED, COMPLETED, pending, running, completed or failed."
)
@click.option("--type", "schedule_type", help="IMMEDIATE, FUTURE, CRON or INTERVAL.")
@click.option("--priority", help="high, medium or low.")
@click.option("--tag", help="Only jobs with this tag.")
@click.option("--name", "name_prefix", help="Only jobs whose name begins so.")
@click.option("--due-from", help="Only jobs whose next time is not before this.")
@click.option("--due-before", help="Only jobs whose next time is before this.")
@click.option("--user", "user_id", help="For admins: whose jobs.")
@click.option("--limit", type=click.IntRange(1, 100), help="How many at the most.")
@click.option("--page-token", help="The next_page_token of the page before.")
@click.pass_obj
def list_jobs(connect: Connect, /, **filters: Any) -> None:
    """List jobs, the newest first."""
    _show(lambda: connect().list_jobs(**filters))


@main.command()
@click.argument("job_id")
@click.option("--limit", type=click.IntRange(1, 100), help="How many at the most.")
@click.option("--page-token", help="The next_page_token of the page before.")
@click.pass_obj
def events(connect: Connect, job_id: str, limit: int | None, page_token: str | None) -> None:
    """Show who did what to a job, the latest first."""
    _show(lambda: connect().list_events(job_id, limit=limit, page_token=page_token))


@main.command()
@click.argument("job_id")
@click.argument("at")
@click.pass_obj
def explain(connect: Connect, job_id: str, at: str) -> None:
    """Show why a job ran, or did not run, AT a time such as 2030-01-31T09:00:00Z."""
    _show(lambda: connect().explain(job_id, at))


@main.command()
@click.option("--worker", "worker_id", help="A run's executor_id.")
@click.pass_obj
def executions(connect: Connect, worker_id: str | None) -> None:
    """Show what is running."""
    _show(lambda: connect().list_executions(worker_id=worker_id))


@main.command()
@click.pass_obj
def health(connect: Connect) -> None:
    """Show how far behind Duetime is."""
    _show(lambda: connect().get_health())


@main.command()
@click.argument("job_id")
@click.pass_obj
def get(connect: Connect, job_id: str) -> None:
    """Show a job."""
    _show(lambda: connect().get_job(job_id))


@main.command()
@click.argument("job_id")
@click.pass_obj
def status(connect: Connect, job_id: str) -> None:
    """Show a job's status and its latest run."""
    _show(lambda: connect().get_status(job_id))


@main.command()
@click.argument("job_id")
@click.option("--limit", type=click.IntRange(1, 100), help="How many runs at the most.")
@click.option("--page-token", help="The next_page_token of the page before.")
@click.pass_obj
def runs(connect: Connect, job_id: str, limit: int | None, page_token: str | None) -> None:
    """List a job's runs, the latest first."""
    _show(lambda: connect().list_runs(job_id, limit=limit, page_token=page_token))


@main.command()
@click.argument("job_id")
@click.option("--count", type=click.IntRange(1, 100), help="How many times.")
@click.pass_obj
def upcoming(connect: Connect, job_id: str, count: int | None) -> None:
    """Show when a job is due next, with the times that daylight saving moves or drops."""
    _show(lambda: connect().get_upcoming(job_id, count=count))


@main.command()
@click.argument("job_id")
@click.option("--run", "run_id", help="Which run; the latest by default.")
@click.option("--attempt", type=click.IntRange(1), help="Which attempt; all of them by default.")
@click.option("--since", metavar="TIME", help="Only what was logged from then on (RFC 3339).")
@click.option("--tail", type=click.IntRange(1, 5000), help="Only the last so many lines.")
@click.pass_obj
def logs(
    connect: Connect,
    job_id: str,
    run_id: str | None,
    attempt: int | None,
    since: str | None,
    tail: int | None,
) -> None:
    """Show what a job's run has logged, also while it runs."""
    found = _ask(lambda: connect().get_logs(job_id, run_id=run_id, attempt=attempt, since=since, tail=tail))
    for line in found["items"]:
        click.echo(f"{line['at']} [{line['attempt']}] {line['text']}")
    if found["log_url"]:
        click.echo(f"The whole log: {found['log_url']}", err=True)


@main.command("cancel-run")
@click.argument("job_id")
@click.argument("run_id")
@click.pass_obj
def cancel_run(connect: Connect, job_id: str, run_id: str) -> None:
    """Cancel one run, also one that is under way."""
    _show(lambda: connect().cancel_run(job_id, run_id))


@main.command("dead-letters")
@click.option("--job", "job_id", help="Only those of this job.")
@click.option("--limit", type=click.IntRange(1, 100), help="How many at the most.")
@click.option("--page-token", help="The next_page_token of the page before.")
@click.pass_obj
def dead_letters(connect: Connect, job_id: str | None, limit: int | None, page_token: str | None) -> None:
    """List the runs that failed for good, the latest first."""
    _show(lambda: connect().list_dead_letters(job_id=job_id, limit=limit, page_token=page_token))


@main.command()
@click.argument("job_id", required=False)
@click.argument("run_id", required=False)
@click.option("--all", "everything", is_flag=True, help="All dead letters, or all of JOB_ID.")
@click.pass_obj
def redrive(connect: Connect, job_id: str | None, run_id: str | None, everything: bool) -> None:
    """Give dead letters more attempts: one run, or many with --all."""
    if run_id and job_id and not everything:
        _show(lambda: connect().redrive_run(job_id, run_id))
        return
    if run_id or not everything:
        raise click.UsageError("give JOB_ID and RUN_ID for one run, or --all for many")
    token: str | None = None
    while True:
        page = _ask(lambda: connect().redrive_dead_letters(job_id=job_id, page_token=token))
        for run in page["redriven"]:
            click.echo(f"redriven  {run['job_id']} {run['run_id']}")
        for run in page["refused"]:
            click.echo(f"refused   {run['job_id']} {run['run_id']}: {run['reason']}")
        if not (token := page["next_page_token"]):
            return


main.add_command(next_times)


def _connect(api_url: str | None, region: str | None, stack_file: Path) -> Client:
    if api_url is None:
        if not stack_file.exists():
            raise click.ClickException(f"{stack_file} does not exist: run `make up`, or give --api-url")
        return Client.from_stack_file(stack_file)
    session = boto3.Session()
    credentials = session.get_credentials()
    if credentials is None:
        raise click.ClickException("there are no AWS credentials to sign with: set AWS_PROFILE, for instance")
    if not (chosen := region or session.region_name or os.environ.get("AWS_DEFAULT_REGION")):
        raise click.ClickException("the deployment's region is not known: give --region")
    return Client(api_url, chosen, credentials)


def _read_json(file: Any) -> Any:
    try:
        return json.load(file)
    except ValueError as error:
        raise click.ClickException(f"{file.name} is not JSON: {error}") from error


def _show(call: Callable[[], dict[str, Any]]) -> None:
    click.echo(json.dumps(_ask(call), indent=2))


def _ask(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return call()
    except (ApiError, Unreachable) as error:
        raise click.ClickException(str(error)) from error

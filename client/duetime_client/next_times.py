"""`duetime next`: when a cron expression fires, worked out here, without a deployment and without a network."""

import json
from datetime import UTC, datetime

import click
from duetime.schedules import Cron, InvalidSchedule, Upcoming, frequency_to_cron, preview

_WORDS = ("hourly", "daily", "weekly", "monthly", "yearly")
_NOTES = {
    "gap": "moved: {wall} does not exist that day",
    "overlap": "occurs twice that day; this is the one that counts",
    "dropped": "dropped: {wall} does not exist that day",
}


@click.command("next")
@click.argument("expression")
@click.option("--tz", "zone", default="UTC", show_default=True, help="The IANA time zone of the expression.")
@click.option("--from", "since", metavar="TIME", help="Start there instead of now (RFC 3339).")
@click.option("--count", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many times.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="The format.",
)
def next_times(expression: str, zone: str, since: str | None, count: int, output: str) -> None:
    """Show when EXPRESSION fires next: a cron with five fields, or six with the seconds first; @daily and its kin; or a
    word such as daily. Needs no deployment."""
    try:
        cron = Cron(frequency_to_cron(expression) if expression in _WORDS else expression, zone)
    except InvalidSchedule as error:
        raise click.ClickException(str(error)) from error
    lines = preview(cron, _moment(since), count)
    if output == "json":
        click.echo(
            json.dumps([line.local_at.isoformat() for line in lines if line.flag != "dropped"], indent=2)
        )
        return
    for line in lines:
        click.echo(_described(line))


def _moment(text: str | None) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter("must be a time such as 2030-01-31T09:00:00Z", param_hint="--from") from None
    if moment.tzinfo is None:
        raise click.BadParameter(
            "has no UTC offset; write it as in 2030-01-31T09:00:00Z", param_hint="--from"
        )
    return moment


def _described(line: Upcoming) -> str:
    if line.flag is None:
        return line.local_at.isoformat()
    wall = line.wall_at.strftime("%H:%M:%S") if line.wall_at else ""
    return f"{line.local_at.isoformat()}  {_NOTES[line.flag].format(wall=wall)}"

"""Instants are aware UTC with whole milliseconds: what DynamoDB stores, what the API shows, what sorts as text."""

from datetime import UTC, datetime, timedelta

_WIDTH = len("2026-11-18T07:00:00.000Z")


def to_milliseconds(instant: datetime) -> datetime:
    """Cut to the millisecond, so that an instant read back equals the one written."""
    if instant.tzinfo is None:
        raise ValueError(f"{instant!r} has no time zone: Duetime only knows aware times")
    utc = instant.astimezone(UTC)
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


def format_instant(instant: datetime) -> str:
    return to_milliseconds(instant).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def parse_instant(text: str) -> datetime:
    """Read what `format_instant` wrote. What people write is validated at the edge, not here."""
    if len(text) != _WIDTH or not text.endswith("Z"):
        raise ValueError(f"{text!r} is not an instant that Duetime wrote")
    return datetime.fromisoformat(text[:-1]).replace(tzinfo=UTC)


def milliseconds_between(earlier: datetime, later: datetime) -> int:
    return (later - earlier) // timedelta(milliseconds=1)

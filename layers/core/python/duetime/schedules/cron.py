"""Cron expressions: what Duetime accepts, and what it means.

    ┌───────────── second   0-59, only in the six-field form, where it comes FIRST
    │ ┌─────────── minute   0-59
    │ │ ┌───────── hour     0-23
    │ │ │ ┌─────── day      1-31, L (the last day), ?
    │ │ │ │ ┌───── month    1-12, JAN-DEC
    │ │ │ │ │ ┌─── weekday  0-7, SUN-SAT (0 and 7 are Sunday), FRI#2 (the second), L5 or 5L (the last Friday), ?
    * * * * * *

Seconds come first, as in Quartz, Spring, cronsim and the cron of Go and Node, and as people read it:
`*/10 * * * * *` is every ten seconds. croniter alone puts them last by default, where the same text means every
second of every tenth minute. Most of what is written in that order is refused below, with a hint.

Each field takes `*`, values, ranges, steps and lists. A range may run through the end of its field (`22-3`,
`FRI-MON`) if it has no step; `5/15` is 5 and every 15 from there; `?` is `*`. When day and weekday are both
restricted either suffices; but when one of them begins with a star (`*/2`) both must match: Vixie's and Debian's rule.

Refused although croniter takes them: a year, `H` and `R`, `W`, and a step longer than its field (`*/90` is not every
90 minutes). Refused as useless or harmful: what never happens, and what happens more often than every ten seconds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from duetime.schedules.days import Days
from duetime.schedules.invalid import InvalidSchedule, quote
from duetime.schedules.terms import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, Field, Item, expand_field
from duetime.schedules.wall import WallPattern

SHORTEST_GAP_SECONDS = 10
_ORDER_OF_SIX = "Of six fields, the first is the seconds: '*/10 * * * * *' is every ten seconds"
# All sixty minutes written out take 169 characters.
LONGEST_EXPRESSION = 255

_FREQUENCIES = {
    "hourly": "0 * * * *",
    "daily": "0 0 * * *",
    "weekly": "0 0 * * 0",
    "monthly": "0 0 1 * *",
    "yearly": "0 0 1 1 *",
}
_NICKNAMES = {f"@{word}": expression for word, expression in _FREQUENCIES.items()} | {
    "@midnight": _FREQUENCIES["daily"],
    "@annually": _FREQUENCIES["yearly"],
}


def frequency_to_cron(frequency: str) -> str:
    if frequency not in _FREQUENCIES:
        known = ", ".join(_FREQUENCIES)
        raise InvalidSchedule("frequency", f"{quote(frequency)} is not a frequency; use one of {known}")
    return _FREQUENCIES[frequency]


# A sweep meets the same few expressions again and again.
@lru_cache(maxsize=1024)
def parse_cron(expression: str) -> WallPattern:
    fields = _split_fields(expression)
    try:
        pattern = _read_pattern(fields)
        _require_sense(expression, pattern)
    except InvalidSchedule as error:
        if len(expression.split()) == 6:
            raise InvalidSchedule(error.field, f"{error.message}. {_ORDER_OF_SIX}") from error
        raise
    return pattern


def _require_sense(expression: str, pattern: WallPattern) -> None:
    if not pattern.days.happen():
        raise _refuse(expression, "never happens: no month in it has such a day")
    # Less than a minute only happens with seconds, so five fields are spared the arithmetic.
    if len(pattern.seconds) == 1 or pattern.shortest_gap_seconds >= SHORTEST_GAP_SECONDS:
        return
    least = f"{SHORTEST_GAP_SECONDS} s is the least"
    raise _refuse(expression, f"fires {pattern.shortest_gap_seconds} s apart, and {least}")


def _split_fields(expression: str) -> list[str]:
    """Six fields, whatever form was given."""
    if len(expression) > LONGEST_EXPRESSION:
        raise _refuse(expression, f"is longer than {LONGEST_EXPRESSION} characters; use ranges and steps")
    if not expression.isascii():
        raise _refuse(expression, "has characters that no cron expression has")
    if expression.strip().startswith("@"):
        expression = _read_nickname(expression)
    fields = expression.split()
    if len(fields) not in (5, 6):
        form = "five (minute hour day month weekday), or six with the seconds first"
        raise _refuse(expression, f"has {len(fields)} fields instead of {form}")
    return fields if len(fields) == 6 else ["0", *fields]


def _read_nickname(expression: str) -> str:
    nickname = expression.strip().lower()
    if nickname not in _NICKNAMES:
        raise _refuse(expression, f"is not one of {', '.join(_NICKNAMES)}")
    return _NICKNAMES[nickname]


def _read_pattern(fields: list[str]) -> WallPattern:
    seconds, minutes, hours, days, months, weekdays = fields
    return WallPattern(
        seconds=_read_values(SECOND, seconds),
        minutes=_read_values(MINUTE, minutes),
        hours=_read_values(HOUR, hours),
        days=_read_days(days, months, weekdays),
        is_fixed=not (minutes.startswith("*") or hours.startswith("*")),
    )


def _read_days(days: str, months: str, weekdays: str) -> Days:
    by_weekday: frozenset[Item] = expand_field(WEEKDAY, weekdays)
    return Days(
        months=frozenset(_read_values(MONTH, months)),
        days=frozenset(_read_values(DAY, days)),
        weekdays=frozenset(item for item in by_weekday if isinstance(item, int)),
        nth_weekdays=frozenset(item for item in by_weekday if isinstance(item, tuple)),
        must_match_both=days.startswith(("*", "?")) or weekdays.startswith(("*", "?")),
    )


def _read_values(where: Field, text: str) -> tuple[int, ...]:
    """Only a weekday has items that are not plain values."""
    return tuple(sorted(cast("frozenset[int]", expand_field(where, text))))


def _refuse(expression: str, reason: str) -> InvalidSchedule:
    return InvalidSchedule("cron_expression", f"{quote(expression)} {reason}")

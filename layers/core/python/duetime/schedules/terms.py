"""One field of a cron expression, term by term: which values it names.

croniter expands each plain term (`*`, `5`, `1-5`, `*/15`). It is given one term at a time and only plain ones,
because it has rules of its own for the rest: `9-9` and `59/5` become the whole field, `22-4/3` comes out wrong,
`MON,FRI#2` is refused, `*,FRI#2` loses its star, and with six fields day 0 is day 1 and weekday 7 does not exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from duetime.schedules.days import LAST
from duetime.schedules.invalid import InvalidSchedule, quote

# A value, or for weekdays also (weekday, which one of the month).
Item = int | tuple[int, int]

_PLAIN = re.compile(r"(?P<low>\*|[0-9]{1,2})(-(?P<high>[0-9]{1,2}))?(/(?P<step>[0-9]{1,3}))?")
_NTH_WEEKDAY = re.compile(r"(?P<range>[0-9](-[0-9])?)#(?P<nth>[1-5])|l(?P<a>[0-9])|(?P<b>[0-9])l")
_TO_LAST_DAY = re.compile(r"-l(?=/|$)")


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    slot: int  # its place in croniter's five fields; a second is written like a minute
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict)

    def refuse(self, term: str, reason: str) -> InvalidSchedule:
        return InvalidSchedule("cron_expression", f"{quote(term)} in the {self.name} field {reason}")


def _number(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


SECOND = Field("second", 0, 0, 59)
MINUTE = Field("minute", 0, 0, 59)
HOUR = Field("hour", 1, 0, 23)
DAY = Field("day-of-month", 2, 1, 31)
MONTH = Field("month", 3, 1, 12, _number("jan feb mar apr may jun jul aug sep oct nov dec", 1))
WEEKDAY = Field("day-of-week", 4, 0, 6, _number("sun mon tue wed thu fri sat", 0))


def expand_field(where: Field, text: str) -> frozenset[Item]:
    if text == "?" and where in (DAY, WEEKDAY):
        text = "*"
    return frozenset(item for term in text.split(",") for item in _expand_term(where, term))


def _expand_term(where: Field, term: str) -> set[Item]:
    text = _replace_names(where, term.lower())
    if where is DAY and text == "l":
        return {LAST}
    if where is DAY:
        text = _TO_LAST_DAY.sub(f"-{DAY.high}", text)
    if where is WEEKDAY and (found := _NTH_WEEKDAY.fullmatch(text)):
        plain = found["range"] or found["a"] or found["b"]
        nth = int(found["nth"]) if found["nth"] else LAST
        return {(weekday, nth) for weekday in _expand_plain(where, term, plain)}
    return set(_expand_plain(where, term, text))


def _replace_names(where: Field, text: str) -> str:
    for name, number in where.names.items():
        text = text.replace(name, str(number))
    return text


def _expand_plain(where: Field, term: str, text: str) -> list[int]:
    found = _PLAIN.fullmatch(text)
    if not found or (found["low"] == "*" and found["high"]):
        raise where.refuse(term, _explain(where, text))
    if int(found["step"] or 1) > where.high - where.low + 1:
        raise where.refuse(term, "has a step longer than the field, which would not do what it says")
    if found["low"] != "*":
        text = _settle_range(where, term, int(found["low"]), found["high"], found["step"])
    values = _expand_by_croniter(where.slot, text)
    if values is None:
        raise where.refuse(term, _explain(where, text))
    return list(range(where.low, where.high + 1)) if values == ("*",) else [int(value) for value in values]


def _settle_range(where: Field, term: str, low: int, high_text: str | None, step: str | None) -> str:
    """The range without what croniter and Vixie's cron read differently."""
    high = int(high_text) if high_text else where.high if step else low
    if where is WEEKDAY and low == 7:  # Sunday, at the front of a range as well
        low, high = 0, high % 7
    if low == high:
        return str(low)
    if step and low > high:
        raise where.refuse(term, "runs backwards and has a step; write the values as a list")
    return f"{low}-{high}/{step or 1}"


# A few dozen terms make up nearly all expressions, and croniter takes 30 µs for each.
@lru_cache(maxsize=512)
def _expand_by_croniter(slot: int, text: str) -> tuple[int | str, ...] | None:
    # Imported here: it takes 30 ms, and most functions never see a cron expression.
    from croniter import CroniterError, croniter

    fields = ["*"] * 5
    fields[slot] = text
    try:
        return tuple(croniter.expand(" ".join(fields))[0][slot])
    except CroniterError:
        return None


def _explain(where: Field, text: str) -> str:
    if where is DAY and "w" in text:
        return "asks for the nearest weekday, which is not supported"
    if text[:1] in ("h", "r"):
        return "is a hashed or random value, which is not supported; jitter_seconds spreads jobs"
    names = f", or {', '.join(where.names).upper()}" if where.names else ""
    return f"is not understood; use values from {where.low} to {where.high}{names}, ranges, steps and lists"

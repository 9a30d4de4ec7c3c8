"""Python values as DynamoDB attribute values, and back.

Not boto3's own serializer: it reads every number as a Decimal, and takes longer than all the rest of a cold claim.
Task, payload and result are kept as JSON text: DynamoDB's own numbers would turn 1.0 into 1 and refuse NaN late.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from duetime.instants import format_instant, parse_instant

Value = dict[str, Any]
Item = dict[str, Value]

END_OF_TIME: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""Behind every time that an index may hold: for a range without an upper end."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How the values of one field are written and read."""

    write: Callable[[Any], Value]
    read: Callable[[Value], Any]


def to_value(value: Any) -> Value:
    """For values whose kind is plain to see. A bool is an int to Python, so it is looked at first."""
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": str(value)}
        case int():
            return {"N": str(value)}
        case datetime():
            return {"S": format_instant(value)}
        case Mapping():
            return {"M": {name: to_value(inner) for name, inner in value.items()}}
        case list() | tuple():
            return {"L": [to_value(inner) for inner in value]}
    raise TypeError(f"{type(value).__name__} has no place in an item")


TEXT = Kind(to_value, lambda value: value["S"])
NUMBER = Kind(to_value, lambda value: int(value["N"]))
FLAG = Kind(to_value, lambda value: value["BOOL"])
INSTANT = Kind(to_value, lambda value: parse_instant(value["S"]))
TEXTS = Kind(to_value, lambda value: tuple(inner["S"] for inner in value["L"]))
INSTANTS = Kind(to_value, lambda value: tuple(parse_instant(inner["S"]) for inner in value["L"]))
JSON = Kind(
    lambda value: {"S": json.dumps(value, separators=(",", ":"))}, lambda value: json.loads(value["S"])
)


def enum(members: type[StrEnum]) -> Kind:
    return Kind(to_value, lambda value: members(value["S"]))


def enums(members: type[StrEnum]) -> Kind:
    return Kind(to_value, lambda value: tuple(members(inner["S"]) for inner in value["L"]))


def record(kinds: Mapping[str, Kind], build: Callable[..., Any]) -> Kind:
    """A dataclass as a map."""
    return Kind(
        lambda value: {"M": write_fields(value, kinds)},
        lambda value: build(**read_fields(value["M"], kinds)),
    )


def records(kinds: Mapping[str, Kind], build: Callable[..., Any]) -> Kind:
    one = record(kinds, build)
    return Kind(
        lambda values: {"L": [one.write(value) for value in values]},
        lambda value: tuple(one.read(inner) for inner in value["L"]),
    )


def write_fields(source: Any, kinds: Mapping[str, Kind]) -> Item:
    """None is left out: an index must not hold what has no such key, and absence costs no bytes."""
    values = ((name, kind, getattr(source, name)) for name, kind in kinds.items())
    return {name: kind.write(value) for name, kind, value in values if value is not None}


def read_fields(item: Mapping[str, Value], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """What the item does not have is left to the dataclass's defaults; what a newer version may have added to the item,
    and index keys, are passed over."""
    return {name: kind.read(item[name]) for name, kind in kinds.items() if name in item}

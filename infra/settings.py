"""Reads a block of cdk.json into a frozen dataclass, and refuses everything that the dataclass does not say."""

from __future__ import annotations

import ipaddress
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Block = TypeVar("Block", bound="DataclassInstance")
# Says what a value must be, or None if it is that.
Check = Callable[[Any], str | None]


class SettingsError(Exception):
    """What is wrong with cdk.json, in one sentence that names the environment and the setting."""


@dataclass(frozen=True)
class Place:
    environment: str
    path: str = ""

    def of(self, name: str) -> Place:
        return Place(self.environment, f"{self.path}.{name}" if self.path else name)

    def error(self, problem: str) -> SettingsError:
        what = f"setting '{self.path}'" if self.path else "the block"
        return SettingsError(f"environment '{self.environment}': {what} {problem}")


def between(low: int, high: int) -> Any:
    return field(
        metadata={"check": lambda value: None if low <= value <= high else f"between {low} and {high}"}
    )


def one_of(*choices: int | str) -> Any:
    listed = ", ".join(str(choice) for choice in choices)
    return field(metadata={"check": lambda value: None if value in choices else f"one of {listed}"})


def each(check: Check) -> Any:
    def first_problem(values: tuple[str, ...]) -> str | None:
        return next((problem for value in values if (problem := check(value))), None)

    return field(metadata={"check": first_problem})


def is_cidr(value: str) -> str | None:
    try:
        ipaddress.ip_network(value)
    except ValueError:
        return "a list of CIDR blocks such as '10.0.0.0/8'"
    return None


def is_address(value: str) -> str | None:
    # Only what surely is none is refused: SNS asks the recipient before it sends anything else.
    name, at, domain = value.partition("@")
    if name and at and "." in domain and "@" not in domain and not any(c.isspace() for c in value):
        return None
    return "a list of e-mail addresses"


def read_block(kind: type[Block], block: object, place: Place) -> Block:
    if not isinstance(block, Mapping):
        raise place.error(f"must be a block of settings in cdk.json, not {block!r}")
    hints = get_type_hints(kind)
    for name in block:
        if name not in hints:
            raise place.of(name).error("is unknown in cdk.json: remove it, or correct its name")
    for name in hints:
        if name not in block:
            raise place.of(name).error("is missing in cdk.json")
    values = {name: _read_value(hint, block[name], place.of(name)) for name, hint in hints.items()}
    for described in fields(kind):
        _check(described.metadata.get("check"), values[described.name], place.of(described.name))
    try:
        return kind(**values)
    except ValueError as error:
        raise place.error(str(error)) from None


def _check(check: Check | None, value: object, place: Place) -> None:
    problem = check(value) if check else None
    if problem:
        raise place.error(f"must be {problem} in cdk.json, not {_shown(value)}")


def _read_value(hint: Any, value: object, place: Place) -> object:
    if get_origin(hint) is types.UnionType:
        return _read_choice(get_args(hint), value, place)
    if get_origin(hint) is tuple:
        kind = get_args(hint)[0]
        return _read_texts(value, place) if kind is str else _read_blocks(kind, value, place)
    if is_dataclass(hint) and isinstance(hint, type):
        return read_block(hint, value, place)
    return _read_plain(hint, value, place)


def _read_choice(kinds: tuple[Any, ...], value: object, place: Place) -> object:
    if value is None and types.NoneType in kinds:
        return None
    blocks = [kind for kind in kinds if kind is not types.NoneType]
    if len(blocks) == 1:
        return read_block(blocks[0], value, place)
    for kind in blocks:
        if isinstance(value, Mapping) and any(described.name in value for described in fields(kind)):
            return read_block(kind, value, place)
    ways = " or ".join("{" + ", ".join(described.name for described in fields(kind)) + "}" for kind in blocks)
    raise place.error(f"must be {ways} in cdk.json, not {value!r}")


def _read_texts(value: object, place: Place) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise place.error(f"must be a list of texts in cdk.json, not {value!r}")
    return tuple(value)


def _read_blocks(kind: Any, value: object, place: Place) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise place.error(f"must be a list of blocks in cdk.json, not {value!r}")
    return tuple(read_block(kind, block, place.of(str(number))) for number, block in enumerate(value))


def _read_plain(kind: type, value: object, place: Place) -> object:
    # `type` and not isinstance: true is an int to Python, and never what a memory size should be.
    if type(value) is not kind:
        named = {int: "a whole number", bool: "true or false", str: "a text"}[kind]
        raise place.error(f"must be {named} in cdk.json, not {value!r}")
    return value


def _shown(value: object) -> str:
    return repr(list(value)) if isinstance(value, tuple) else repr(value)

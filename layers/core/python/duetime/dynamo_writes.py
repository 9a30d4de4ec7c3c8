"""Guarded writes to DynamoDB: an update of what differs, under conditions with names, alone or in transactions."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from duetime.dynamo_values import Item, Value

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_TRIES: Final = 8
_LONGEST_PAUSE_SECONDS: Final = 0.4
_FAILED_CONDITION: Final = "ConditionalCheckFailed"
# Why a write can fail though nothing about it is wrong: another transaction touched the same item at that moment, or a
# partition was busy. Inside a transaction or a batch the SDK retries neither.
_PASSING: Final = frozenset(
    {
        "TransactionConflict",
        "ThrottlingError",
        "ProvisionedThroughputExceeded",
        "RequestLimitExceeded",
        "InternalServerError",
    }
)

Sleep = Callable[[float], None]


class ConditionFailed(Exception):
    """A guard did not hold. For each write of a transaction: whether it was that one's, and what is there instead."""

    def __init__(self, codes: Sequence[str], items: Sequence[Item | None]) -> None:
        super().__init__("a condition of the write did not hold")
        self._codes = codes
        self.items = items

    def failed_at(self, position: int) -> bool:
        return self._codes[position] == _FAILED_CONDITION


@dataclass(frozen=True, slots=True)
class Difference:
    """What must be written to make one item of another. Tallies are added to, so that they never compete."""

    sets: Mapping[str, Value]
    adds: Mapping[str, int]
    removes: Sequence[str]

    @classmethod
    def between(cls, before: Item, after: Item, tallies: Sequence[str] = ()) -> "Difference":
        adds = {name: _number(after, name) - _number(before, name) for name in tallies}
        changed = {name for name in before | after if before.get(name) != after.get(name)} - set(tallies)
        return cls(
            sets={name: after[name] for name in sorted(changed) if name in after},
            adds={name: amount for name, amount in adds.items() if amount},
            removes=[name for name in sorted(changed) if name not in after],
        )

    def __bool__(self) -> bool:
        return bool(self.sets or self.adds or self.removes)


@dataclass
class Update:
    """One UpdateItem. Expressions name every attribute by a placeholder, so that they never meet reserved words."""

    table: str
    key: Item
    difference: Difference
    # Each of these must have this value, or, where it is None, must not be there.
    guard: Mapping[str, Value | None]
    _names: dict[str, str] = field(default_factory=dict)
    _values: dict[str, Value] = field(default_factory=dict)

    def request(self) -> dict[str, Any]:
        actions = {
            "SET": [
                f"{self._name(name)} = {self._value(value)}" for name, value in self.difference.sets.items()
            ],
            "ADD": [
                f"{self._name(name)} {self._value({'N': str(amount)})}"
                for name, amount in self.difference.adds.items()
            ],
            "REMOVE": [self._name(name) for name in self.difference.removes],
        }
        clauses = [self._clause(name, value) for name, value in self.guard.items()]
        request = {
            "TableName": self.table,
            "Key": self.key,
            "UpdateExpression": " ".join(
                f"{verb} {', '.join(parts)}" for verb, parts in actions.items() if parts
            ),
            "ConditionExpression": " AND ".join(clauses),
            "ExpressionAttributeNames": self._names,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return request | ({"ExpressionAttributeValues": self._values} if self._values else {})

    def _clause(self, name: str, value: Value | None) -> str:
        if value is None:
            return f"attribute_not_exists({self._name(name)})"
        return f"{self._name(name)} = {self._value(value)}"

    def _name(self, name: str) -> str:
        self._names[f"#{name}"] = name
        return f"#{name}"

    def _value(self, value: Value) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder


def put_new(table: str, item: Item, key: str) -> dict[str, Any]:
    return {
        "TableName": table,
        "Item": item,
        "ConditionExpression": "attribute_not_exists(#key)",
        "ExpressionAttributeNames": {"#key": key},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def transact(client: "DynamoDBClient", writes: Sequence[Any], sleep: Sleep = time.sleep) -> None:
    for tried in range(1, _TRIES + 1):
        try:
            client.transact_write_items(TransactItems=writes)
            return
        except ClientError as error:
            reasons = error.response.get("CancellationReasons", [])
            codes = [reason.get("Code", "None") for reason in reasons]
            if _FAILED_CONDITION in codes:
                raise ConditionFailed(codes, [reason.get("Item") for reason in reasons]) from error
            if not _PASSING.intersection(codes) or tried == _TRIES:
                raise
        sleep(_pause(tried))


def update(
    client: "DynamoDBClient",
    write: Update,
    *,
    returning: bool = False,
    tries: int = _TRIES,
    sleep: Sleep = time.sleep,
) -> Item:
    """The item as it became, if that is wanted."""
    request = write.request() | ({"ReturnValues": "ALL_NEW"} if returning else {})
    answer = _persist(lambda: client.update_item(**request), sleep, tries)
    item: Item = answer.get("Attributes", {})
    return item


def put(client: "DynamoDBClient", request: Any, sleep: Sleep = time.sleep) -> None:
    _persist(lambda: client.put_item(**request), sleep)


def _persist(write: Callable[[], Any], sleep: Sleep, tries: int = _TRIES) -> Any:
    """A single write too meets transactions on its item, and the SDK does not retry that."""
    for tried in range(1, tries + 1):
        try:
            return write()
        except ClientError as error:
            code = error.response["Error"]["Code"].removesuffix("Exception")
            if code == _FAILED_CONDITION:
                item: Any = error.response.get("Item")
                raise ConditionFailed([_FAILED_CONDITION], [item]) from error
            if code not in _PASSING or tried == tries:
                raise
        sleep(_pause(tried))
    raise AssertionError("the last try returns or raises")


def statement(table: str, key: Item, difference: Difference, guard: Mapping[str, Value]) -> dict[str, Any]:
    """The same update as a PartiQL statement: the one form in which conditional writes can be sent by the batch."""
    sets = [f'SET "{name}" = ?' for name in difference.sets]
    removes = [f'REMOVE "{name}"' for name in difference.removes]
    compared = key | dict(guard)
    where = " AND ".join(f'"{name}" = ?' for name in compared)
    return {
        "Statement": f'UPDATE "{table}" {" ".join(sets + removes)} WHERE {where}',
        "Parameters": [*difference.sets.values(), *compared.values()],
    }


def execute_batch(
    client: "DynamoDBClient", statements: Sequence[Any], sleep: Sleep = time.sleep
) -> list[bool]:
    """For each statement, whether its condition held. One that fails does not cancel its neighbours."""
    held: dict[int, bool] = {}
    waiting = dict(enumerate(statements))
    for tried in range(1, _TRIES + 1):
        answers = client.batch_execute_statement(Statements=list(waiting.values()))["Responses"]
        for position, answer in zip(list(waiting), answers, strict=True):
            code = answer.get("Error", {}).get("Code")
            if code in _PASSING and tried < _TRIES:
                continue
            if code not in (None, _FAILED_CONDITION):
                raise RuntimeError(f"DynamoDB refused a statement: {answer['Error']}")
            held[position] = code is None
            del waiting[position]
        if not waiting:
            break
        sleep(_pause(tried))
    return [held[position] for position in range(len(statements))]


def _number(item: Item, name: str) -> int:
    return int(item[name]["N"]) if name in item else 0


def _pause(tried: int) -> float:
    return random.uniform(0, min(_LONGEST_PAUSE_SECONDS, 0.01 * 2**tried))  # noqa: S311  (jitter, no secret)

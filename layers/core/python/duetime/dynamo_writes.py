"""Guarded writes to DynamoDB: an update whose condition is made of named clauses, and transactions of them."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from duetime.dynamo_items import Item, to_value

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_TRIES: Final = 8
_LONGEST_PAUSE_SECONDS: Final = 0.4
# Why a transaction can be cancelled though nothing about it is wrong: another one touched the same item at that
# moment, or a partition was busy. The SDK retries neither.
_PASSING: Final = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})

_FAILED_CONDITION: Final = "ConditionalCheckFailed"

Sleep = Callable[[float], None]


class ConditionFailed(Exception):
    """A guard did not hold. For each write of a transaction: whether it was that one's, and what is there instead."""

    def __init__(self, codes: Sequence[str], items: Sequence[Item | None]) -> None:
        super().__init__("a condition of the write did not hold")
        self._codes = codes
        self.items = items

    def failed_at(self, position: int) -> bool:
        return self._codes[position] == _FAILED_CONDITION


@dataclass
class Update:
    """One UpdateItem. Clauses are added by name of the attribute; expressions never meet reserved words."""

    table: str
    key: Mapping[str, str]
    _sets: list[str] = field(default_factory=list)
    _adds: list[str] = field(default_factory=list)
    _removes: list[str] = field(default_factory=list)
    _guards: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _values: dict[str, Any] = field(default_factory=dict)

    def set(self, **values: Any) -> "Update":
        """Set, or remove where the value is None: absence is how Duetime writes 'none'."""
        for name, value in values.items():
            if value is None:
                self._removes.append(self._name(name))
            else:
                self._sets.append(f"{self._name(name)} = {self._value(value)}")
        return self

    def append(self, name: str, element: Any) -> "Update":
        self._sets.append(f"{self._name(name)} = list_append({self._name(name)}, {self._value([element])})")
        return self

    def add(self, **amounts: int) -> "Update":
        self._adds += [
            f"{self._name(name)} {self._value(amount)}" for name, amount in amounts.items() if amount
        ]
        return self

    def only_if(self, **expected: Any) -> "Update":
        self._guards += [f"{self._name(name)} = {self._value(value)}" for name, value in expected.items()]
        return self

    def only_if_below(self, name: str, limit: int) -> "Update":
        self._guards.append(f"{self._name(name)} < {self._value(limit)}")
        return self

    def only_if_absent(self, name: str) -> "Update":
        self._guards.append(f"attribute_not_exists({self._name(name)})")
        return self

    @property
    def changes_something(self) -> bool:
        return bool(self._sets or self._adds or self._removes)

    def request(self) -> dict[str, Any]:
        actions = {"SET": self._sets, "ADD": self._adds, "REMOVE": self._removes}
        guards = {"ConditionExpression": " AND ".join(self._guards)} if self._guards else {}
        return guards | {
            "TableName": self.table,
            "Key": {name: to_value(value) for name, value in self.key.items()},
            "UpdateExpression": " ".join(
                f"{verb} {', '.join(parts)}" for verb, parts in actions.items() if parts
            ),
            "ExpressionAttributeNames": self._names,
            "ExpressionAttributeValues": self._values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _name(self, name: str) -> str:
        self._names[f"#{name}"] = name
        return f"#{name}"

    def _value(self, value: Any) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = to_value(value)
        return placeholder


def put_new(table: str, item: Item, key: str) -> dict[str, Any]:
    return {
        "Put": {
            "TableName": table,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": key},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
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
        sleep(random.uniform(0, min(_LONGEST_PAUSE_SECONDS, 0.01 * 2**tried)))  # noqa: S311  (jitter, no secret)


def update(client: "DynamoDBClient", write: Update) -> None:
    try:
        client.update_item(**write.request())
    except client.exceptions.ConditionalCheckFailedException as error:
        raise ConditionFailed([_FAILED_CONDITION], [None]) from error

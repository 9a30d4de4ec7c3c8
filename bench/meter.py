"""Counts the requests of boto3 clients, and the write units of those to DynamoDB."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.write_units import Table


@dataclass
class Meter:
    tables: Mapping[str, Table]
    # Reads items before and after a write; its own requests do not count.
    onlooker: Any
    requests: Counter[str] = field(default_factory=Counter)
    units: Counter[str] = field(default_factory=Counter)
    _before: list[Any] = field(default_factory=list)

    def watch(self, client: Any) -> Any:
        client.meta.events.register("provide-client-params", self._note_before)
        client.meta.events.register("after-call", self._note_after)
        return client

    def _note_before(self, params: Any, model: Any, **_: Any) -> None:
        self._before = [(table, key, self._read(table, key)) for table, key in _written(model.name, params)]

    def _note_after(self, model: Any, **_: Any) -> None:
        self.requests[model.name] += 1
        for name, key, before in self._before:
            after = self._read(name, key)
            if before != after:
                table = self.tables[name]
                in_transaction = model.name == "TransactWriteItems"
                self.units[model.name] += table.units(before, after, in_transaction=in_transaction)
        self._before = []

    def _read(self, table: str, key: Any) -> Any:
        return self.onlooker.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")

    def _keys(self, table: str) -> tuple[str, ...]:
        return self.tables[table].keys


def _written(operation: str, params: Any) -> list[tuple[str, Any]]:
    match operation:
        case "PutItem":
            return [_key_of_item(params)]
        case "UpdateItem":
            return [(params["TableName"], params["Key"])]
        case "TransactWriteItems":
            return [key for write in params["TransactItems"] for key in _key_of_write(write)]
        case "BatchExecuteStatement":
            return [_key_of_statement(statement) for statement in params["Statements"]]
    return []


def _key_of_write(write: Any) -> list[tuple[str, Any]]:
    if "Put" in write:
        return [_key_of_item(write["Put"])]
    return [(write["Update"]["TableName"], write["Update"]["Key"])]


def _key_of_item(put: Any) -> tuple[str, Any]:
    kinds = (("subject", "entry"), ("job_id", "run_id"), ("job_id",))
    names = next(kind for kind in kinds if kind[-1] in put["Item"])
    return put["TableName"], {name: put["Item"][name] for name in names}


def _key_of_statement(statement: Any) -> tuple[str, Any]:
    """The parameters are what is set, and then what is compared, the key first."""
    text = statement["Statement"]
    return text.split('"')[1], {"job_id": statement["Parameters"][text.count("SET ")]}

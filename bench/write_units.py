"""What DynamoDB charges for writes, by its published rules, from the items before and after.

A write costs a unit for each KB of the larger of the two items, twice that in a transaction. An index costs its own
units: one for an entry that appears, disappears or changes in what it projects, two for one whose key changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Item = Mapping[str, Mapping[str, Any]]
KB = 1024


@dataclass(frozen=True)
class Index:
    keys: tuple[str, str]
    # Besides its own keys and the table's.
    projected: tuple[str, ...] = ()

    def entry(self, item: Item | None, table_keys: Sequence[str]) -> dict[str, Any] | None:
        if item is None or not all(key in item for key in self.keys):
            return None
        names = {*self.keys, *table_keys, *self.projected}
        return {name: value for name, value in item.items() if name in names}

    def units(self, before: Item | None, after: Item | None, table_keys: Sequence[str]) -> int:
        old, new = self.entry(before, table_keys), self.entry(after, table_keys)
        if old == new:
            return 0
        if old and new and any(old[key] != new[key] for key in self.keys):
            return _units(old) + _units(new)
        return max(_units(old) if old else 0, _units(new) if new else 0)


@dataclass(frozen=True)
class Table:
    keys: tuple[str, ...]
    indexes: tuple[Index, ...]

    def units(self, before: Item | None, after: Item | None, *, in_transaction: bool) -> int:
        own = max(_units(item) for item in (before, after) if item is not None)
        indexes = sum(index.units(before, after, self.keys) for index in self.indexes)
        return own * (2 if in_transaction else 1) + indexes


def _units(item: Item) -> int:
    return max(1, -(-size_of(item) // KB))


def size_of(item: Item) -> int:
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return len(content.strip("-0.")) // 2 + 2
        case "BOOL":
            return 1
        case "M":
            return 3 + sum(1 + len(name.encode()) + _size(inner) for name, inner in content.items())
        case "L":
            return 3 + sum(1 + _size(inner) for inner in content)
    raise ValueError(f"no rule for the size of {kind}")

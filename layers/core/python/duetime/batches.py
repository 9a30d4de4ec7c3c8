from collections.abc import Iterator, Sequence
from typing import TypeVar

Element = TypeVar("Element")


def in_batches(elements: Sequence[Element], size: int) -> Iterator[Sequence[Element]]:
    """AWS takes a bounded number of things at once. (`itertools.batched` needs Python 3.12; 3.11 is supported.)"""
    return (elements[start : start + size] for start in range(0, len(elements), size))

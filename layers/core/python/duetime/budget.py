"""How much one request may read before it ends its page early, with a token to go on."""

from dataclasses import dataclass
from typing import Final

MOST_EXAMINED: Final = 20_000
"""Entries of indexes, and jobs, that one request looks at."""

A_QUERY: Final = 10
"""What a query counts as, besides what it reads: one that finds nothing takes its time too."""


@dataclass(slots=True)
class Budget:
    left: int = MOST_EXAMINED

    @property
    def is_spent(self) -> bool:
        return self.left <= 0

    def spend(self, examined: int, *, queries: int = 0) -> None:
        self.left -= examined + A_QUERY * queries

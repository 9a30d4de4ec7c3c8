"""What the ends of runs need besides the store: where results go, and chance for backoff."""

import random
from dataclasses import dataclass, field

from duetime.blobs import Blobs
from duetime.retry import Fraction


@dataclass(frozen=True, slots=True)
class Shelf:
    blobs: Blobs
    fraction: Fraction = field(default=random.random)

"""Leases: how long a worker may be silent before its run is given to another.

    claim        beat         beat  (dies)                    lease ends       found within 15 s, and retried
    ──┬────────────┬────────────┬────┬─────────────────────────────┬────────────────────┬──▶
      0 s          5 s         10 s               25 s to 35 s: 15 s to 25 s after the last beat

The end of a lease is rounded up, so that not every beat moves the run on the watch index, which would cost two writes.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

LEASE: Final = timedelta(seconds=15)
HEARTBEAT: Final = timedelta(seconds=5)
SAFETY: Final = timedelta(seconds=3)
"""A worker that cannot renew its lease stops its task so long before the lease ends."""

_GRID: Final = timedelta(seconds=10)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def lease_end(now: datetime, length: timedelta = LEASE) -> datetime:
    end = now + length
    return end + (_EPOCH - end) % _GRID

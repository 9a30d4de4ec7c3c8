"""Time zones by IANA name, seen as whole seconds of offset from UTC.

The data is that of the `tzdata` package and of nothing else. `ZoneInfo(name)` would prefer what the operating
system ships, so that a preview on a laptop and the run in Lambda could disagree; and it would open any file
under that folder that it is told to (`localtime`, `right/…`). The package's own list of names decides instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import tzdata  # type: ignore[import-untyped]  # it is all data

from duetime.schedules.invalid import InvalidSchedule, quote

DAY = 86_400
# No zone in the data changes its offset twice within six days (a test reads all of it), so two equal offsets
# less than that apart mean that nothing changed in between, and two different ones mean a single change.
QUIET = 6 * DAY
# No change is larger than this: to cross the date line is 24 hours.
LARGEST_SHIFT = DAY
# And no two offsets that a zone ever had are as far apart as this.
WIDEST_SPREAD = 2 * DAY

_DATA = Path(tzdata.__file__).parent
# In the list, but a placeholder for "nobody has configured this machine".
_NOT_A_PLACE = {"Factory"}


@dataclass(frozen=True, slots=True)
class Change:
    """Clocks go from one offset to another; `at` is the first second of the new one, since 1970 in UTC."""

    at: int
    before: int
    after: int

    @property
    def is_gap(self) -> bool:
        return self.after > self.before


@dataclass(frozen=True, slots=True)
class Zone:
    info: ZoneInfo

    def offset_at(self, instant: int) -> int:
        offset = datetime.fromtimestamp(instant, self.info).utcoffset()
        assert offset is not None
        return offset.days * DAY + offset.seconds

    def find_change(self, start: int, end: int, before: int) -> Change | None:
        """The change in (start, end], no longer than QUIET, when the offset at its start is `before`."""
        after = self.offset_at(end)
        if before == after:
            return None
        while end - start > 1:
            middle = (start + end) // 2
            if self.offset_at(middle) == before:
                start = middle
            else:
                end = middle
        return Change(end, before, after)


@cache
def zone_names() -> frozenset[str]:
    return frozenset((_DATA / "zones").read_text("ascii").split()) - _NOT_A_PLACE


def find_zone(name: str) -> Zone:
    # Checked before the cache, so that no stream of made-up names can fill it.
    if name not in zone_names():
        hint = "use an IANA name such as America/New_York, with its capitals, or UTC"
        raise InvalidSchedule("timezone", f"{quote(name)} is not a known time zone; {hint}")
    return _load_zone(name)


@cache
def _load_zone(name: str) -> Zone:
    with (_DATA / "zoneinfo" / name).open("rb") as file:
        return Zone(ZoneInfo.from_file(file, key=name))

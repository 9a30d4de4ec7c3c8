"""From wall time to instants: what happens to a schedule when the clocks change.

The rule is that of Debian's cron. There are two classes of cron schedule, told apart by the first character of
two fields, as Debian does:

- **fixed**: neither hour nor minute begins with a star (`30 1 * * *`, `0 9-17 * * MON-FRI`): times of the day;
- **real time**: hour or minute begins with a star (`*/15 * * * *`, `0 */2 * * *`): a rhythm.

|                                | fixed                                            | real time                    |
|--------------------------------|--------------------------------------------------|------------------------------|
| gap, `dst_gap` "next"          | once, at the instant the gap closes              | nothing: it never was        |
| gap, `dst_gap` "skip"          | nothing                                          | nothing                      |
| overlap, `dst_overlap` "first" | the first time it occurs                         | each time it occurs          |
| overlap, `dst_overlap` "second"| the second time it occurs                        | each time it occurs          |
| overlap, `dst_overlap` "both"  | each time it occurs                              | each time it occurs          |

So the two settings are about fixed times only; a rhythm needs none. "next" and "first" are the defaults: a daily
payout happens once a day, every day. Times that come to the same instant fire once: `0 2,3 * * *` fires once at
03:00 on the day when 02:00 does not exist. A gap may be a whole day (Samoa had no 2011-12-30): what was due on it
fires as the next day begins, and that day's own times fire too.

Debian leaves jumps of three hours and more alone, as corrections of the clock. A zone's history holds no
corrections, so here every change is treated alike, as by cronsim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from duetime.schedules.fire import Moved
from duetime.schedules.wall import WallPattern
from duetime.schedules.zones import LARGEST_SHIFT, QUIET, WIDEST_SPREAD, Change, Zone

DstGap = Literal["next", "skip"]
DstOverlap = Literal["first", "second", "both"]


@dataclass(slots=True)
class DaylightWalk:
    """From `at` on, one stretch of constant offset after another: so instants come in order by construction.

    `at` is the first instant not yet looked at, `offset` the one in force until then.
    """

    pattern: WallPattern
    zone: Zone
    gap: DstGap
    overlap: DstOverlap
    at: int
    offset: int = field(init=False)
    # Before this wall time the clock shows what it has shown already.
    repeated_until: int | None = field(init=False)

    def __post_init__(self) -> None:
        self._enter(self.at)

    def __iter__(self) -> Iterator[tuple[int, Moved]]:
        while (wall := self.pattern.find_at_or_after(self.at + self.offset)) is not None:
            target = wall - self.offset
            is_far = target - self.at > QUIET
            end = self.at + WIDEST_SPREAD if is_far else target
            if change := self.zone.find_change(self.at - 1, end, self.offset):
                if self._cross(change, wall):
                    yield change.at, "gap"
            elif is_far:
                # No wall time matches in between, and no change of offset brings one in from that far away.
                self._enter(target - WIDEST_SPREAD)
            else:
                self.at = target + 1
                repeats = self.pattern.is_fixed and self._find_repeat(wall, target)
                if not repeats or self.overlap in (repeats, "both"):
                    yield target, "overlap" if repeats else None

    def _enter(self, at: int) -> None:
        self.at, self.offset = at, self.zone.offset_at(at - 1)
        before = at - 1 - LARGEST_SHIFT
        change = self.zone.find_change(before, at - 1, self.zone.offset_at(before))
        self.repeated_until = _end_of_repeat(change)

    def _cross(self, change: Change, wall: int) -> bool:
        """Go on behind the change; true if a fixed time fell into its gap and fires at its end."""
        is_lost = wall < change.at + change.after
        fires = is_lost and self.pattern.is_fixed and self.gap == "next"
        # A time that is due at the very end of the gap is the same fire.
        self.at = change.at + 1 if fires else change.at
        self.offset, self.repeated_until = change.after, _end_of_repeat(change)
        return fires

    def _find_repeat(self, wall: int, instant: int) -> Literal["first", "second"] | None:
        """Which of two occurrences this is, or None for a wall time that occurs once."""
        if self.repeated_until is not None and wall < self.repeated_until:
            return "second"
        change = self.zone.find_change(instant, instant + LARGEST_SHIFT, self.offset)
        return "first" if change and change.at + change.after <= wall else None


def _end_of_repeat(change: Change | None) -> int | None:
    return change.at + change.before if change and not change.is_gap else None

"""Which days of the calendar a cron expression names, and the next of them.

A month is one of 28 kinds (seven weekdays to begin on, four lengths). Its matching days are a bit mask, bit d
for day d, computed once for each kind; so the 29th of February is found by looking at months, not at days.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

# The last day of a month, or the last of a weekday in it.
LAST = -1
_LONGEST_MONTH = 31
# The last year of `datetime`, less one, so that no offset or look ahead can step over its end.
_LAST_YEAR = 9998
# 28 years hold every kind of year in every order that is not interrupted by a century; twice that, so that
# what happens once in such a cycle is met twice. A century's interruption only makes gaps longer.
_SURVEYED_YEARS = range(2000, 2056)


@dataclass(frozen=True, slots=True)
class Days:
    months: frozenset[int]
    days: frozenset[int]  # 1 to 31, LAST
    weekdays: frozenset[int]  # Sunday is 0
    nth_weekdays: frozenset[tuple[int, int]]  # (weekday, 1 to 5 or LAST)
    # Vixie's and Debian's rule: with a star at the front of either field both must match, else one suffices.
    must_match_both: bool
    _masks: dict[tuple[int, int], int] = field(default_factory=dict, repr=False, compare=False)

    def find_at_or_after(self, ordinal: int) -> int | None:
        """The proleptic ordinal of the first matching day, or None when the calendar ends before it."""
        wanted = date.fromordinal(ordinal)
        mask = self._mask_of(wanted.year, wanted.month) >> wanted.day << wanted.day
        if mask:
            return ordinal - wanted.day + _lowest_bit(mask)
        return next(self._first_days_after(wanted.year, wanted.month), None)

    def happen(self) -> bool:
        """Whether any day matches, ever: every month meets every first weekday, leap years too."""
        lengths = {length for month in self.months for length in _lengths(month)}
        return any(self._mask(first, length) for length in lengths for first in range(7))

    def shortest_gap(self) -> int:
        """The least number of days between two matching days."""
        shortest, previous = len(_SURVEYED_YEARS) * 366, None
        for day in self._surveyed_days():
            if previous is not None:
                shortest = min(shortest, day - previous)
            if shortest == 1:
                break
            previous = day
        return shortest

    def _surveyed_days(self) -> Iterator[int]:
        for year in _SURVEYED_YEARS:
            for month in sorted(self.months):
                mask, eve = self._mask_of(year, month), date(year, month, 1).toordinal() - 1
                yield from (eve + day for day in range(1, _LONGEST_MONTH + 1) if mask >> day & 1)

    def _first_days_after(self, year: int, month: int) -> Iterator[int]:
        """The first matching day of every month after this one."""
        months = sorted(self.months)
        for later_year in range(year, _LAST_YEAR + 1):
            for later_month in months:
                if (later_year, later_month) <= (year, month):
                    continue
                mask = self._mask_of(later_year, later_month)
                if mask:
                    yield date(later_year, later_month, 1).toordinal() - 1 + _lowest_bit(mask)

    def _mask_of(self, year: int, month: int) -> int:
        if month not in self.months or year > _LAST_YEAR:
            return 0
        weekday, length = monthrange(year, month)
        return self._mask((weekday + 1) % 7, length)

    def _mask(self, first_weekday: int, length: int) -> int:
        kind = (first_weekday, length)
        if kind not in self._masks:
            by_day, by_weekday = self._mask_by_day(length), self._mask_by_weekday(first_weekday, length)
            self._masks[kind] = by_day & by_weekday if self.must_match_both else by_day | by_weekday
        return self._masks[kind]

    def _mask_by_day(self, length: int) -> int:
        mask = sum(1 << day for day in self.days if 0 < day <= length)
        return mask | 1 << length if LAST in self.days else mask

    def _mask_by_weekday(self, first_weekday: int, length: int) -> int:
        mask = 0
        for weekday in range(7):
            found = range(1 + (weekday - first_weekday) % 7, length + 1, 7)
            for index, day in enumerate(found, 1):
                nth = (weekday, index) in self.nth_weekdays
                last = day == found[-1] and (weekday, LAST) in self.nth_weekdays
                if weekday in self.weekdays or nth or last:
                    mask |= 1 << day
        return mask


def _lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _lengths(month: int) -> tuple[int, ...]:
    return (28, 29) if month == 2 else (monthrange(2001, month)[1],)

from datetime import timedelta

import pytest
from duetime.retry import BackoffKind, RetryPolicy, bounded

ALMOST_ONE = 0.999999


def test_a_fixed_delay_is_always_the_same() -> None:
    policy = RetryPolicy(BackoffKind.FIXED, base_seconds=7)
    assert {policy.delay_after(n, lambda: 0.3) for n in range(1, 20)} == {timedelta(seconds=7)}


@pytest.mark.parametrize(("failed", "ceiling"), [(1, 2), (2, 4), (3, 8), (8, 256), (9, 300), (21, 300)])
def test_an_exponential_delay_doubles_up_to_its_cap(failed: int, ceiling: int) -> None:
    delay = RetryPolicy().delay_after(failed, lambda: ALMOST_ONE)
    assert timedelta(seconds=ceiling - 0.01) <= delay < timedelta(seconds=ceiling)


def test_full_jitter_reaches_down_to_nothing() -> None:
    assert RetryPolicy().delay_after(5, lambda: 0.0) == timedelta()


@pytest.mark.parametrize(("asked", "given"), [(-1, 0), (30, 30), (86_400, 900)])
def test_a_delay_is_bounded_by_what_a_queue_can_hold(asked: int, given: int) -> None:
    assert bounded(timedelta(seconds=asked)) == timedelta(seconds=given)

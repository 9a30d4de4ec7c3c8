"""A run always fits into an item, whatever its tasks say, and however often it is tried."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from duetime.api.answers import show_run
from duetime.blobs import MemoryBlobs
from duetime.cutting import CUT, cut
from duetime.dynamo_items import run_to_item
from duetime.errors import PermanentFailure, TransientFailure
from duetime.finishing import ATTEMPTS_KEPT, ERROR_BYTES, cancelled, failed, succeeded
from duetime.results import with_result
from duetime.run import Run
from duetime.status import RunStatus
from duetime.tasks.interface import CHECKPOINT_LIMIT_BYTES, HANDLE_LIMIT_BYTES

from tests.factories import NOW, a_pair, a_spec, claimed_pair

ITEM_BYTES = 400 * 1024


def size_of(run: Run) -> int:
    return len(json.dumps(run_to_item(run), ensure_ascii=False).encode())


@pytest.mark.parametrize("letter", ["x", "ü", "€", "😀", "\x00"])
def test_an_error_is_cut_by_its_bytes(letter: str) -> None:
    job, run = claimed_pair(a_pair())
    after = failed(job, run, PermanentFailure(letter * 300_000), NOW, NOW, lambda: 0.5)
    assert len((after.error_message or "").encode()) <= ERROR_BYTES
    assert (after.error_message or "").endswith(CUT)
    assert size_of(after) < 64 * 1024


def test_a_text_that_fits_is_left_as_it_is() -> None:
    assert cut("é" * 10, 20) == "é" * 10
    assert len(cut("é" * 11, 20).encode()) <= 20


def test_a_run_that_is_tried_for_ever_and_says_all_it_can_fits_into_an_item() -> None:
    job, run = claimed_pair(a_pair(spec=a_spec(max_retries=20)), "w" * 512)
    run = replace(
        run,
        max_attempt=10**6,
        owner="o" * 2048,
        checkpoint="c" * CHECKPOINT_LIMIT_BYTES,
        cancel_requested="p" * 2048,
    )
    for number in range(200):
        run = failed(job, run, TransientFailure("€" * 100_000), NOW, NOW, lambda: 0.5)
        run = replace(
            run, status=RunStatus.RUNNING, attempt=number + 2, handle={"h": "h" * HANDLE_LIMIT_BYTES}
        )
    done = with_result(succeeded(run, None, NOW, NOW), "r" * 4000, MemoryBlobs())
    for each in (run, done, cancelled(run, NOW, NOW, "y" * 100_000)):
        assert size_of(each) < ITEM_BYTES / 4


def test_the_latest_attempts_are_on_record_and_the_answer_says_how_many_were_before() -> None:
    job, run = claimed_pair(a_pair())
    assert show_run(run, MemoryBlobs())["earlier_attempts"] == 0
    run = replace(run, max_attempt=1000)
    for number in range(ATTEMPTS_KEPT + 5):
        run = failed(job, run, TransientFailure("no"), NOW, NOW + timedelta(seconds=number), lambda: 0.5)
        run = replace(run, status=RunStatus.RUNNING, attempt=run.attempt + 1)
    shown = show_run(run, MemoryBlobs())
    assert [each["attempt"] for each in shown["attempts"]] == list(range(6, ATTEMPTS_KEPT + 6))
    assert shown["earlier_attempts"] == 5

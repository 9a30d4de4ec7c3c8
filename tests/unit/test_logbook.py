import json
from datetime import timedelta
from typing import Any

import pytest
from duetime.blobs import MemoryBlobs
from duetime.clock import ManualClock
from duetime.dynamo_logs import DynamoLogs
from duetime.logbook import (
    INLINE_BYTES,
    LINE_LENGTH,
    PIECE_BYTES,
    PIECES_KEPT,
    WHOLE_BYTES,
    LogBook,
    LogShelf,
    MemoryLogs,
)
from duetime.results import INLINE_BYTES as SMALL_RESULT
from duetime.results import with_result
from duetime.run import RunKey
from duetime.secrecy import Redactor

from tests.factories import NOW, a_job, a_run

KEY = RunKey("job", "run")


class Scene:
    def __init__(self) -> None:
        self.logs, self.blobs, self.redactor = MemoryLogs(), MemoryBlobs(), Redactor()
        self.clock = ManualClock(NOW)
        self.book = LogBook(LogShelf(self.logs, self.blobs), KEY, 1, self.clock, self.redactor.clean)

    @property
    def texts(self) -> list[str]:
        return [line.text for piece in self.logs.pieces(KEY) for line in piece.lines]


def test_lines_are_there_after_a_flush_with_their_times() -> None:
    scene = Scene()
    scene.book.write("one\ntwo")
    assert scene.texts == []
    scene.clock.advance(timedelta(seconds=1))
    scene.book.write("three\n")
    scene.book.flush()
    assert scene.texts == ["one", "two", "three"]
    times = [line.at for piece in scene.logs.pieces(KEY) for line in piece.lines]
    assert times == [NOW, NOW, NOW + timedelta(seconds=1)]


def test_nothing_logged_is_nothing_written() -> None:
    scene = Scene()
    scene.book.flush()
    assert scene.book.close() is None
    assert list(scene.logs.pieces(KEY)) == []


def test_a_long_log_is_written_in_pieces_of_which_the_latest_are_kept_and_wholly_in_a_blob() -> None:
    scene = Scene()
    line = "x" * 1023
    count = (PIECES_KEPT + 3) * PIECE_BYTES // 1024
    for number in range(count):
        scene.book.write(f"{number:06d}{line[6:]}")
    key = scene.book.close()
    assert key == "logs/job/run/1.log"
    pieces = scene.logs.pieces(KEY)
    assert len(pieces) == PIECES_KEPT
    assert [piece.number for piece in pieces] == list(range(3, PIECES_KEPT + 3))
    assert scene.texts[-1].startswith(f"{count - 1:06d}")
    assert scene.blobs.contents[key].count(b"\n") == count - 1


def test_a_log_without_end_is_bounded() -> None:
    scene = Scene()
    for _ in range(WHOLE_BYTES // LINE_LENGTH + 100):
        scene.book.write("y" * LINE_LENGTH)
    key = scene.book.close()
    assert key is not None
    content = scene.blobs.contents[key]
    assert len(content) < WHOLE_BYTES * 1.1
    assert b"the log went on" in content[-100:]


def test_a_line_without_end_is_cut() -> None:
    scene = Scene()
    scene.book.write("z" * 1_000_000)
    scene.book.flush()
    assert len(scene.texts[0]) < LINE_LENGTH + 20
    assert scene.texts[0].endswith("(cut)")


@pytest.mark.parametrize("text", ["\n", "\x00", "é\n", "😀" * 4096])
def test_every_piece_fits_into_an_item_and_the_whole_into_its_bound(text: str) -> None:
    sizes: list[int] = []

    class Table:
        def put_item(self, **request: Any) -> None:
            sizes.append(len(json.dumps(request["Item"])))

    table: Any = Table()
    logs = DynamoLogs(table, records_table="t", kept_for=timedelta(days=1), clock=ManualClock(NOW))
    blobs = MemoryBlobs()
    book = LogBook(LogShelf(logs, blobs), KEY, 1, ManualClock(NOW), lambda text: text)
    for _ in range(8):
        book.write(text * max(1, 20_000 // len(text)))
    key = book.close()
    assert key is not None
    assert max(sizes) < 400 * 1024
    assert len(blobs.contents[key]) < WHOLE_BYTES * 1.1


def test_a_short_log_needs_no_blob() -> None:
    scene = Scene()
    scene.book.write("a" * 100)
    assert scene.book.close() is None
    assert scene.blobs.contents == {}
    assert INLINE_BYTES > 100


def test_secrets_are_struck_out_of_every_line() -> None:
    scene = Scene()
    scene.redactor.keep_secret("hunter2-hunter2")
    scene.book.write("the password is hunter2-hunter2, twice: hunter2-hunter2")
    scene.book.flush()
    assert scene.texts == ["the password is [secret], twice: [secret]"]


def test_a_log_that_cannot_be_stored_fails_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    monkeypatch.setattr(scene.logs, "put_piece", lambda *_: 1 / 0)
    monkeypatch.setattr(scene.blobs, "put", lambda *_: 1 / 0)
    for _ in range(50):
        scene.book.write("b" * 1000)
    assert scene.book.close() is None
    assert len(scene.book.problems) >= 2


class TestResults:
    def test_a_small_result_stays_with_its_run(self) -> None:
        blobs = MemoryBlobs()
        run = with_result(a_run(a_job()), {"a": 1}, blobs)
        assert (run.result, run.result_key, blobs.contents) == ({"a": 1}, None, {})

    def test_a_larger_one_is_a_blob(self) -> None:
        blobs = MemoryBlobs()
        run = with_result(a_run(a_job()), "x" * SMALL_RESULT, blobs)
        assert run.result is None
        assert run.result_key is not None
        assert len(blobs.contents[run.result_key]) == SMALL_RESULT + 2

    def test_one_that_cannot_be_stored_does_not_undo_the_work(self, monkeypatch: pytest.MonkeyPatch) -> None:
        blobs = MemoryBlobs()
        monkeypatch.setattr(blobs, "put", lambda *_: 1 / 0)
        run = with_result(a_run(a_job()), "x" * SMALL_RESULT, blobs)
        assert "could not be stored" in run.result["lost"]


class TestRedactor:
    def test_the_forms_in_which_an_echo_would_show_it_are_struck_out_too(self) -> None:
        redactor = Redactor()
        redactor.keep_secret('pa"ss/wörd +x')
        for shown in (
            'pa"ss/wörd +x',
            'pa\\"ss/wörd +x',
            'pa\\"ss/w\\u00f6rd +x',
            "pa%22ss%2Fw%C3%B6rd%20%2Bx",
        ):
            assert "rd" not in redactor.clean(f"<{shown}>"), shown

    def test_nested_values_are_cleaned(self) -> None:
        redactor = Redactor()
        redactor.keep_secret("secret-value")
        assert redactor.clean_json({"secret-value": ["a secret-value", 3, None]}) == {
            "[secret]": ["a [secret]", 3, None]
        }

    def test_what_is_too_short_to_be_a_secret_is_refused(self) -> None:
        with pytest.raises(Exception, match="cannot be kept secret"):
            Redactor().keep_secret("abc")

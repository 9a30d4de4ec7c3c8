"""The log of a run, in memory and in the table of records."""

from datetime import timedelta

import pytest
from duetime.clock import ManualClock
from duetime.dynamo_logs import DynamoLogs
from duetime.dynamo_store import DynamoStore
from duetime.logbook import PIECES_KEPT, LogLine, LogPiece, LogStore, MemoryLogs
from duetime.run import RunKey

from tests.factories import NOW, a_job
from tests.tables import RECORDS


@pytest.fixture(params=["memory", "dynamo"])
def logs(request: pytest.FixtureRequest) -> LogStore:
    if request.param == "memory":
        return MemoryLogs()
    store: DynamoStore = request.getfixturevalue("dynamo_store")
    return DynamoLogs(
        store._client, records_table=RECORDS, kept_for=timedelta(days=30), clock=ManualClock(NOW)
    )


def a_key() -> RunKey:
    return RunKey(a_job().job_id, "20261118T070000123Z-1-3f1f7c529d5c4a44")


def a_piece(attempt: int, number: int) -> LogPiece:
    return LogPiece(attempt, number, [LogLine(NOW, f"{attempt}.{number} ñ\n")])


def test_pieces_come_back_in_order_whenever_they_were_written(logs: LogStore) -> None:
    key = a_key()
    for piece in (a_piece(2, 0), a_piece(1, 1), a_piece(1, 0)):
        logs.put_piece(key, piece)
    assert list(logs.pieces(key)) == [a_piece(1, 0), a_piece(1, 1), a_piece(2, 0)]


def test_a_further_piece_takes_the_place_of_the_oldest(logs: LogStore) -> None:
    key = a_key()
    for number in range(PIECES_KEPT + 2):
        logs.put_piece(key, a_piece(1, number))
    assert [piece.number for piece in logs.pieces(key)] == list(range(2, PIECES_KEPT + 2))


def test_another_runs_log_is_another_log(logs: LogStore) -> None:
    logs.put_piece(a_key(), a_piece(1, 0))
    assert list(logs.pieces(a_key())) == []

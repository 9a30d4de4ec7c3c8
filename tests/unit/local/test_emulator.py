import os
from pathlib import Path
from typing import Any

import pytest

from local.emulator import Emulator, environment_of, wait_until_healthy
from local.errors import LocalStackError

EMULATOR = Emulator(pid=4321, port=4610, token="duetime-0123456789abcdef")


def test_a_record_brings_back_the_emulator() -> None:
    assert Emulator.from_record(EMULATOR.as_record()) == EMULATOR


@pytest.mark.parametrize("record", [None, {}, {"pid": 1}, {"pid": "1", "port": 4610, "token": "t"}])
def test_a_damaged_record_is_no_emulator(record: dict[str, Any] | None) -> None:
    assert Emulator.from_record(record) is None


def test_one_that_dies_while_starting_is_explained_by_its_last_words(tmp_path: Path) -> None:
    log = tmp_path / "emulator.log"
    log.write_text("Traceback (most recent call last):\nModuleNotFoundError: No module named 'ministack'\n")
    dead = Emulator(pid=2**31 - 1, port=4610, token="duetime-0123456789abcdef")
    with pytest.raises(LocalStackError, match=r"ended while starting: ModuleNotFoundError.*emulator\.log"):
        wait_until_healthy(dead, log)


def test_it_listens_on_loopback_alone(tmp_path: Path) -> None:
    given = environment_of(tmp_path, 4610, "token", auth=True)
    assert (given["BIND_HOST"], given["GATEWAY_PORT"]) == ("127.0.0.1", "4610")
    assert (given["IOT_MTLS_ENABLED"], given["SFTP_ENABLED"]) == ("0", "0")


def test_all_its_files_stay_in_its_folder(tmp_path: Path) -> None:
    given = environment_of(tmp_path, 4610, "token", auth=True)
    assert {Path(given[name]).parent for name in ("STATE_DIR", "S3_DATA_DIR", "TMPDIR")} == {tmp_path}


def test_functions_inherit_nothing_of_the_persons_own_account(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "PYTHONPATH", "HTTP_PROXY"):
        monkeypatch.setenv(name, "mine")
    given = environment_of(tmp_path, 4610, "token", auth=True)
    assert "mine" not in given.values()
    assert given["PATH"] == os.environ["PATH"]

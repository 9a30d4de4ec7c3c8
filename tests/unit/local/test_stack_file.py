import json
import stat
from pathlib import Path

import pytest

from local.stack_file import StackFile, read_stack_file, write_stack_file

STACK = StackFile(
    api_url="http://127.0.0.1:4610/_aws/execute-api/abc",
    region="us-east-1",
    access_key_id="AKIAEXAMPLE",
    secret_access_key="secret",
    endpoint_url="http://127.0.0.1:4610",
    stack_name="duetime-local",
)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write_stack_file(tmp_path / "stack.json", STACK)
    assert read_stack_file(tmp_path / "stack.json") == STACK


def test_tools_find_the_names_they_were_promised(tmp_path: Path) -> None:
    write_stack_file(tmp_path / "stack.json", STACK)
    promised = {"api_url", "region", "access_key_id", "secret_access_key"}
    assert promised <= json.loads((tmp_path / "stack.json").read_text()).keys()


def test_only_its_owner_may_read_the_secret_key(tmp_path: Path) -> None:
    write_stack_file(tmp_path / "stack.json", STACK)
    assert stat.S_IMODE((tmp_path / "stack.json").stat().st_mode) == 0o600


def test_a_write_that_breaks_off_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stack_file(tmp_path / "stack.json", STACK)

    def break_off(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(json, "dump", break_off)
    with pytest.raises(KeyboardInterrupt):
        write_stack_file(tmp_path / "stack.json", STACK)
    assert read_stack_file(tmp_path / "stack.json") == STACK
    assert [path.name for path in tmp_path.iterdir()] == ["stack.json"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"api_url": "http://127.0.0.1:4610"}'])
def test_a_damaged_file_counts_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "stack.json").write_text(content)
    assert read_stack_file(tmp_path / "stack.json") is None


def test_a_missing_file_counts_as_none(tmp_path: Path) -> None:
    assert read_stack_file(tmp_path / "stack.json") is None

import pytest

from local.errors import LocalStackError
from local.ports import DEFAULT_PORT, asked_port, wanted_port


def test_our_own_port_unless_another_is_asked_for() -> None:
    assert wanted_port({}) == DEFAULT_PORT
    assert wanted_port({"DUETIME_LOCAL_PORT": " "}) == DEFAULT_PORT
    assert wanted_port({"DUETIME_LOCAL_PORT": "4700"}) == 4700


def test_nothing_asked_for_is_told_from_our_own_port_asked_for() -> None:
    assert asked_port({}) is None
    assert asked_port({"DUETIME_LOCAL_PORT": str(DEFAULT_PORT)}) == DEFAULT_PORT


@pytest.mark.parametrize("text", ["0", "65536", "http", "-1", "4610.0", "٤٦١٠"])
def test_what_is_no_port_number_is_refused_by_name(text: str) -> None:
    with pytest.raises(LocalStackError, match=r"DUETIME_LOCAL_PORT is .* from 1 to 65535"):
        wanted_port({"DUETIME_LOCAL_PORT": text})

from pathlib import Path

import pytest

from local.errors import LocalStackError
from local.layout import Layout
from local.tools import require_tools


def test_a_missing_tool_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    with pytest.raises(
        LocalStackError, match=r"The emulator is not installed \(local/\.state/.*`make setup`"
    ):
        require_tools(Layout(tmp_path))


def test_a_missing_cdk_cli_is_not_blamed_on_node(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.emulator_python.parent.mkdir(parents=True)
    layout.emulator_python.touch()
    with pytest.raises(LocalStackError, match="The CDK CLI is not installed"):
        require_tools(layout)

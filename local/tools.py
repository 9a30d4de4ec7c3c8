"""What `make setup` must have installed before anything can be started."""

from pathlib import Path

from local.errors import LocalStackError
from local.layout import Layout


def require_emulator(layout: Layout) -> Path:
    return _require(layout, layout.emulator_python, "The emulator")


def require_tools(layout: Layout) -> None:
    require_emulator(layout)
    _require(layout, layout.node, "Node")
    _require(layout, layout.cdk, "The CDK CLI")
    _require(layout, layout.host_layer, "The dependencies layer for this machine")


def _require(layout: Layout, path: Path, what: str) -> Path:
    if not path.exists():
        raise LocalStackError(
            f"{what} is not installed ({layout.shown(path)} is missing): run `make setup`, "
            "or `make clean setup` if it was there before."
        )
    return path

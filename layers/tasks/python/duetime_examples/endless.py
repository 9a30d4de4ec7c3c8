"""A function that must be stopped: for trying out timeouts and cancellation."""

import os
from pathlib import Path
from typing import Any


def spin(payload: dict[str, str], duetime: dict[str, Any]) -> None:  # noqa: ARG001
    Path(payload["mark"]).write_text(str(os.getpid()))
    while True:
        pass

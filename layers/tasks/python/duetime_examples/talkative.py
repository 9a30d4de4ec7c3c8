"""A function that says what it does: for trying out logs and results."""

import time
from pathlib import Path
from typing import Any


def talk(payload: dict[str, Any], duetime: dict[str, Any]) -> str | None:  # noqa: ARG001
    for number in range(payload["lines"]):
        print(f"line {number}")
    gate = payload.get("gate")
    while gate and not Path(gate).exists():
        time.sleep(0.05)
    print("that is all")
    return "x" * payload["result"] if "result" in payload else None

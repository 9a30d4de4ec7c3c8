"""The process in which a `python` task's function runs.

Reads one call from standard input; says what it has to say (checkpoints, and at the end the outcome) as lines of JSON
over the file descriptor that it was given. What the function prints goes where it always does, and is its log.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, Final

from duetime.errors import PermanentFailure
from duetime.tasks.interface import CHECKPOINT_LIMIT_BYTES

RESULT_LIMIT_BYTES: Final = 1024 * 1024
ERROR_LENGTH: Final = 64 * 1024
"""What is kept of it is shorter still; this is for the pipe."""

_PR_SET_PDEATHSIG: Final = 1


class Duetime(dict[str, Any]):
    """What every attempt receives, as a dictionary, and what a function may do while it runs."""

    def __init__(self, told: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(told)
        self._say = say

    def checkpoint(self, value: Any) -> None:
        """Save progress: if this attempt does not succeed, the next one finds it as `duetime["checkpoint"]`."""
        if len(json.dumps(value, allow_nan=False).encode()) > CHECKPOINT_LIMIT_BYTES:
            raise ValueError(f"a checkpoint is at most {CHECKPOINT_LIMIT_BYTES} bytes as JSON")
        self._say({"checkpoint": value})


def answer_to(call: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    module_name, _, function_name = call["function"].partition(":")
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        return {"outcome": "permanent", "error": f"{call['function']} is not in the worker's layers: {error}"}
    try:
        return _succeeded(function(call["payload"], Duetime(call["duetime"], say)))
    except PermanentFailure as error:
        return {"outcome": "permanent", "error": str(error)[:ERROR_LENGTH]}
    except Exception as error:
        traceback.print_exc()
        return {"outcome": "transient", "error": f"{type(error).__name__}: {error}"[:ERROR_LENGTH]}


def _succeeded(result: Any) -> dict[str, Any]:
    """The work is done by now: a result that cannot be kept must not make it be done again."""
    try:
        text = json.dumps(result, allow_nan=False)
    except (TypeError, ValueError) as error:
        return {"outcome": "permanent", "error": f"the function ran, but its result is not JSON: {error}"}
    if len(text.encode()) > RESULT_LIMIT_BYTES:
        reason = f"the function ran, but its result exceeds {RESULT_LIMIT_BYTES} bytes"
        return {"outcome": "permanent", "error": reason}
    return {"outcome": "succeeded", "result": result}


def die_with_the_worker() -> None:
    """A worker that is killed cannot stop us any more, and its run is about to be tried by another."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(descriptor: int) -> None:
    die_with_the_worker()
    os.set_inheritable(descriptor, False)
    call = json.loads(sys.stdin.read())
    with os.fdopen(descriptor, "w", encoding="utf-8") as channel:

        def say(message: dict[str, Any]) -> None:
            channel.write(json.dumps(message) + "\n")
            channel.flush()

        say(answer_to(call, say))


if __name__ == "__main__":
    main(int(sys.argv[1]))

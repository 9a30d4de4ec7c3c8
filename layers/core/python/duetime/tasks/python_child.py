"""The process in which a `python` task's function runs. Reads one call from stdin, answers with one line of JSON."""

import importlib
import json
import os
import sys
import traceback
from typing import Any

from duetime.errors import PermanentFailure
from duetime.tasks.python import RESULT_LIMIT_BYTES


def answer_to(call: dict[str, Any]) -> dict[str, Any]:
    module_name, _, function_name = call["function"].partition(":")
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        return {"outcome": "permanent", "error": f"{call['function']} is not in the worker's layers: {error}"}
    try:
        return _succeeded(function(call["payload"], call["duetime"]))
    except PermanentFailure as error:
        return {"outcome": "permanent", "error": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"outcome": "transient", "error": f"{type(error).__name__}: {error}"}


def _succeeded(result: Any) -> dict[str, Any]:
    """The work is done by now: a result that cannot be kept must not make it be done again."""
    try:
        text = json.dumps(result, allow_nan=False)
    except (TypeError, ValueError) as error:
        return {"outcome": "permanent", "error": f"the function ran, but its result is not JSON: {error}"}
    if len(text.encode()) > RESULT_LIMIT_BYTES:
        return {
            "outcome": "permanent",
            "error": f"the function ran, but its result exceeds {RESULT_LIMIT_BYTES} bytes",
        }
    return {"outcome": "succeeded", "result": result}


def main() -> None:
    call = json.loads(sys.stdin.read())
    # Whatever the function prints goes to stderr: stdout carries the answer and nothing else.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    answers.write(json.dumps(answer_to(call)))
    answers.flush()


if __name__ == "__main__":
    main()

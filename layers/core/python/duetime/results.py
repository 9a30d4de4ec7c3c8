"""What becomes of what a task returned: a small result stays with its run, a larger or very deep one is a blob."""

import json
from dataclasses import replace
from typing import Any, Final

from duetime.blobs import Blobs
from duetime.depth import is_too_deep
from duetime.run import Run

INLINE_BYTES: Final = 4 * 1024


def with_result(run: Run, result: Any, blobs: Blobs) -> Run:
    content = json.dumps(result, separators=(",", ":")).encode()
    if len(content) <= INLINE_BYTES and not is_too_deep(result):
        return replace(run, result=result, result_key=None)
    key = f"results/{run.job_id}/{run.run_id}/{run.attempt}.json"
    try:
        blobs.put(key, content, "application/json")
    except Exception as error:
        # The work is done: that its result cannot be kept must not make it be done again.
        return replace(run, result={"lost": f"the result could not be stored: {type(error).__name__}"})
    return replace(run, result=None, result_key=key)

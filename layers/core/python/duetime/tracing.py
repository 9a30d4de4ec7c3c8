"""The id under which X-Ray knows what a request caused: from the API, over the run, to the task.

Only where a request directly causes a run (a job that is due at once, a run by hand, a redrive): what a schedule causes
later is nobody's request, and the id would be written with each of its runs.
"""

import re
from collections.abc import Mapping
from typing import Final

HEADER: Final = "X-Amzn-Trace-Id"
_ROOT: Final = re.compile(r"(?:^|;)\s*Root=(1-[0-9a-f]{8}-[0-9a-f]{24})(?:;|$)")
_LONGEST: Final = 512


def trace_id_in(headers: Mapping[str, str]) -> str | None:
    """The root's; API Gateway makes one where a caller sent none, and names headers in lower case."""
    text = headers.get(HEADER.lower()) or headers.get(HEADER) or ""
    found = _ROOT.search(text[:_LONGEST])
    return found[1] if found else None


def as_header(trace_id: str) -> str:
    return f"Root={trace_id}"

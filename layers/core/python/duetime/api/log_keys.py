"""By what the log of a request is found: the job and the run that it names, and the gateway's own id of it."""

from collections.abc import Mapping
from typing import Any, Final

from duetime.tracing import trace_id_in

_LONGEST: Final = 64


def log_keys(event: Mapping[str, Any]) -> dict[str, str]:
    path = event.get("pathParameters") or {}
    found = {
        # What a caller wrote into a path may be anything; what is longer than an id is none.
        "job_id": path.get("job_id", "")[:_LONGEST],
        "run_id": path.get("run_id", "")[:_LONGEST],
        "request_id": event.get("requestContext", {}).get("requestId"),
        "trace_id": trace_id_in(event.get("headers") or {}),
    }
    return {name: str(value) for name, value in found.items() if value}

"""A first call to every function, so that nobody's first job waits for four cold starts in a row.

It also finds what a deployment does not: a function that cannot be imported from its package and layers.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from local.aws import root_client
from local.errors import LocalStackError
from local.progress import Progress

OWN = "duetime-local-"
# No records for those that read queues and streams, no known route for those behind the API: nothing to do.
NOTHING_TO_DO = {
    "Records": [],
    "version": "2.0",
    "routeKey": "$default",
    "rawPath": "/",
    "rawQueryString": "",
    "headers": {},
    "isBase64Encoded": False,
    "requestContext": {"stage": "$default", "http": {"method": "GET", "path": "/"}},
}


def warm_functions(endpoint_url: str, progress: Progress) -> None:
    with progress.step("Waking the functions"):
        client = root_client("lambda", endpoint_url)
        names = _callees(client)
        with ThreadPoolExecutor(max_workers=len(names) or 1) as threads:
            list(threads.map(lambda name: _call(client, name), names))


def _callees(client: Any) -> list[str]:
    """A function as often as there are queues or streams to wake it: these do so at the same moment. Only Duetime's
    own: people try things in the emulator too."""
    names = [function["FunctionName"] for function in client.list_functions()["Functions"]]
    functions = [name for name in names if name.startswith(OWN)]
    sources = client.list_event_source_mappings()["EventSourceMappings"]
    named = [source["FunctionArn"].rpartition(":")[2] for source in sources]
    woken = [name for name in named if name.startswith(OWN)]
    return woken + [name for name in functions if name not in woken]


def _call(client: Any, name: str) -> None:
    answer = client.invoke(FunctionName=name, Payload=json.dumps(NOTHING_TO_DO).encode())
    if "FunctionError" in answer:
        reason = json.load(answer["Payload"]).get("errorMessage", "it gave no reason")
        raise LocalStackError(f"The function {name} does not start: {reason}.")

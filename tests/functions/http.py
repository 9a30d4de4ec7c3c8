"""Requests to the two functions behind the API, as API Gateway would hand them over."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.functions.conftest import sample

Call = Callable[[str, dict[str, Any]], Any]


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def fields(self) -> list[str]:
        return [error["field"] for error in self.body.get("errors", [])]


def send(
    call: Call,
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: dict[str, str] | None = None,
    query: dict[str, str] | None = None,
    function: str | None = None,
    user_arn: str | None = None,
) -> Answer:
    event = sample("http_get_job")
    event |= {
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "headers": event["headers"] | (headers or {}),
        "body": None if body is None else json.dumps(body),
        "rawQueryString": urlencode(query or {}),
        "queryStringParameters": query,
    }
    event["requestContext"]["http"] |= {"method": method, "path": path}
    if user_arn:
        event["requestContext"]["authorizer"]["iam"]["userArn"] = user_arn
    reads = method == "GET" or path == "/schedules/preview"
    answer = call(function or ("job_search" if reads else "job_service"), event)
    return Answer(answer["statusCode"], json.loads(answer["body"]), answer["headers"])

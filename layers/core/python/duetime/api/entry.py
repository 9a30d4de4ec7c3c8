"""The way in and out: what cannot even be read is refused before a route sees it, and every answer says its version."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware

from duetime.api.problems import INVALID, NOT_JSON, describe, problem
from duetime.depth import DEEPEST, is_too_deep
from duetime.errors import InvalidField
from duetime.version import VERSION


def resolve(app: APIGatewayHttpResolver, event: dict[str, Any], context: Any) -> dict[str, Any]:
    answer = _resolve(app, event, context)
    answer.setdefault("headers", {})["Duetime-Version"] = VERSION
    return answer


def refuse_unknown_parameters(app: APIGatewayHttpResolver, next_middleware: NextMiddleware) -> Response[Any]:
    """A misspelt filter must not quietly become no filter."""
    known = {field.alias for field in app.context["_route"].dependant.query_params}
    for name in app.current_event.query_string_parameters or {}:
        if name not in known:
            raise InvalidField(name, "is not a parameter that Duetime knows here")
    return next_middleware(app)


def _resolve(app: APIGatewayHttpResolver, event: dict[str, Any], context: Any) -> dict[str, Any]:
    try:
        body = event.get("body") or ""
        if event.get("isBase64Encoded"):
            body = base64.b64decode(body, validate=True).decode("utf-8")
            event = event | {"body": body, "isBase64Encoded": False}
        if body and not _is_json(event.get("headers") or {}):
            return _told(describe(NOT_JSON, "the body must be JSON: send Content-Type application/json"))
        if is_too_deep(json.loads(body or "null")):
            return _refused(f"is nested more than {DEEPEST} levels deep")
    except json.JSONDecodeError:
        # The route says where the mistake is.
        return app.resolve(event, context)
    except RecursionError:
        return _refused("is nested too deeply")
    except (binascii.Error, ValueError):
        return _refused("is not readable: it is not UTF-8, or has a number of thousands of digits")
    return app.resolve(event, context)


def _is_json(headers: Mapping[str, str]) -> bool:
    """No type at all is taken for JSON: there is nothing else that it could be."""
    named = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    media_type = named.split(";")[0].strip().lower()
    return media_type in ("", "application/json") or media_type.endswith("+json")


def _refused(reason: str) -> dict[str, Any]:
    return _told(describe(INVALID, f"body: {reason}", [{"field": "body", "message": reason}]))


def _told(body: Mapping[str, Any]) -> dict[str, Any]:
    answer = problem(body)
    return {
        "statusCode": answer.status_code,
        "headers": {"Content-Type": answer.content_type},
        "body": answer.body,
        "isBase64Encoded": False,
    }

"""The way in: what cannot even be read is refused before any route sees it."""

import base64
import binascii
import json
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

from duetime.api.problems import problem


def resolve(app: APIGatewayHttpResolver, event: dict[str, Any], context: Any) -> dict[str, Any]:
    try:
        body = event.get("body") or ""
        if event.get("isBase64Encoded"):
            body = base64.b64decode(body, validate=True).decode("utf-8")
            event = event | {"body": body, "isBase64Encoded": False}
        json.loads(body or "null")
    except json.JSONDecodeError:
        # The route says where the mistake is.
        return app.resolve(event, context)
    except RecursionError:
        return _refused("is nested too deeply")
    except (binascii.Error, ValueError):
        return _refused("is not readable: it is not UTF-8, or has a number of thousands of digits")
    return app.resolve(event, context)


def _refused(reason: str) -> dict[str, Any]:
    answer = problem(HTTPStatus.BAD_REQUEST, f"body: {reason}", [{"field": "body", "message": reason}])
    return {
        "statusCode": answer.status_code,
        "headers": {"Content-Type": answer.content_type},
        "body": answer.body,
        "isBase64Encoded": False,
    }

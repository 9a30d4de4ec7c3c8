"""Errors as RFC 9457 problems. The one place where Duetime's errors become HTTP statuses."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError

from duetime.errors import (
    Conflict,
    InvalidField,
    NotFound,
    NotIdentified,
    RequestError,
    Stale,
    Unavailable,
)

_CONTENT_TYPE: Final = "application/problem+json"
_STATUSES: Final[Mapping[type[RequestError], HTTPStatus]] = {
    InvalidField: HTTPStatus.BAD_REQUEST,
    NotIdentified: HTTPStatus.FORBIDDEN,
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    Stale: HTTPStatus.PRECONDITION_FAILED,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
_RETRY_AFTER_SECONDS: Final = "5"

FieldErrors = Sequence[Mapping[str, str]]


def problem(status: HTTPStatus, detail: str, errors: FieldErrors = ()) -> Response[str]:
    kind = "invalid-request" if errors else status.phrase.lower().replace(" ", "-")
    body: dict[str, Any] = {
        "type": f"urn:duetime:problem:{kind}",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
    }
    if errors:
        body["errors"] = list(errors)
    return Response(status_code=int(status), content_type=_CONTENT_TYPE, body=json.dumps(body))


def answer_with_problems(app: APIGatewayHttpResolver, logger: Logger) -> None:
    def failed(error: Exception) -> Response[str]:
        # The caller learns nothing about our insides; the log has everything.
        logger.exception("a request failed", exc_info=error)
        return problem(
            HTTPStatus.INTERNAL_SERVER_ERROR, "Duetime failed to answer; the request can be repeated"
        )

    def unavailable(error: Unavailable) -> Response[str]:
        # What AWS said is for the log; the caller is only told to come back.
        logger.warning("a request was put off", reason=error.message, cause=str(error.__cause__))
        return _refused(error)

    app.exception_handler(Unavailable)(unavailable)
    app.exception_handler(RequestError)(_refused)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(NotFoundError)(_no_route)
    app.exception_handler(RecursionError)(_too_deep)
    app.exception_handler(Exception)(failed)


def _refused(error: RequestError) -> Response[str]:
    fields = [{"field": error.field, "message": error.reason}] if isinstance(error, InvalidField) else []
    answer = problem(_STATUSES[type(error)], error.message, fields)
    if isinstance(error, Unavailable):
        answer.headers["Retry-After"] = _RETRY_AFTER_SECONDS
    return answer


def _invalid(error: RequestValidationError) -> Response[str]:
    fields = [{"field": _field_of(found), "message": _message_of(found)} for found in error.errors()]
    detail = "; ".join(f"{field['field']}: {field['message']}" for field in fields)
    return problem(HTTPStatus.BAD_REQUEST, detail, fields)


def _too_deep(_: RecursionError) -> Response[str]:
    return _refused(InvalidField("body", "is nested too deeply"))


def _no_route(_: NotFoundError) -> Response[str]:
    return problem(HTTPStatus.NOT_FOUND, "there is no such route")


def _field_of(found: Mapping[str, Any]) -> str:
    """Powertools puts where it looked (body, query, path, header) in front of the field's own path."""
    place, *path = (str(part) for part in found["loc"])
    if found["type"] == "json_invalid":
        return place
    return ".".join(path) or place


def _message_of(found: Mapping[str, Any]) -> str:
    if found["type"] == "extra_forbidden":
        return "is not a field that Duetime knows here"
    if found["type"] == "json_invalid":
        return f"is not JSON: {found['ctx']['error']}"
    return str(found["msg"]).removeprefix("Value error, ")

"""Errors as RFC 9457 problems. The one place where Duetime's errors become HTTP statuses."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final, NamedTuple

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
    TooMany,
    Unavailable,
)

_CONTENT_TYPE: Final = "application/problem+json"
_MOST_TOLD: Final = 20
_LONGEST_NAME: Final = 200
_UNAVAILABLE_FOR: Final = timedelta(seconds=5)

FieldErrors = Sequence[Mapping[str, str]]


class Kind(NamedTuple):
    """A kind of problem. Callers may rely on its name; docs/api.md says what to do about each."""

    name: str
    status: HTTPStatus


INVALID: Final = Kind("invalid-request", HTTPStatus.BAD_REQUEST)
NOT_JSON: Final = Kind("unsupported-media-type", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
NO_ROUTE: Final = Kind("no-such-route", HTTPStatus.NOT_FOUND)
INTERNAL: Final = Kind("internal-error", HTTPStatus.INTERNAL_SERVER_ERROR)
KINDS: Final[Mapping[type[RequestError], Kind]] = {
    InvalidField: INVALID,
    NotIdentified: Kind("not-identified", HTTPStatus.FORBIDDEN),
    NotFound: Kind("not-found", HTTPStatus.NOT_FOUND),
    Conflict: Kind("conflict", HTTPStatus.CONFLICT),
    Stale: Kind("stale-version", HTTPStatus.PRECONDITION_FAILED),
    TooMany: Kind("quota-exceeded", HTTPStatus.TOO_MANY_REQUESTS),
    Unavailable: Kind("unavailable", HTTPStatus.SERVICE_UNAVAILABLE),
}


def describe(kind: Kind, detail: str, errors: FieldErrors = ()) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": f"urn:duetime:problem:{kind.name}",
        "title": kind.status.phrase,
        "status": int(kind.status),
        "detail": detail,
    }
    return body | ({"errors": list(errors)} if errors else {})


def describe_error(error: RequestError) -> dict[str, Any]:
    fields = [{"field": error.field, "message": error.reason}] if isinstance(error, InvalidField) else []
    return describe(KINDS[type(error)], error.message, fields)


def problem(body: Mapping[str, Any], retry_after: timedelta | None = None) -> Response[str]:
    headers = {"Retry-After": str(int(retry_after.total_seconds()))} if retry_after else {}
    return Response(
        status_code=body["status"], content_type=_CONTENT_TYPE, headers={**headers}, body=json.dumps(body)
    )


def answer_with_problems(app: APIGatewayHttpResolver, logger: Logger) -> None:
    def failed(error: Exception) -> Response[str]:
        # The caller learns nothing about our insides; the log has everything.
        logger.exception("a request failed", exc_info=error)
        return problem(describe(INTERNAL, "Duetime failed to answer; the request can be repeated"))

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
    match error:
        case Unavailable():
            return problem(describe_error(error), _UNAVAILABLE_FOR)
        case TooMany():
            return problem(describe_error(error), error.retry_after)
    return problem(describe_error(error))


def _invalid(error: RequestValidationError) -> Response[str]:
    # Bounded: each of thousands of unknown fields would be told twice, and Lambda answers with 6 MB at the most.
    found = error.errors()[:_MOST_TOLD]
    fields = [{"field": _field_of(each)[:_LONGEST_NAME], "message": _message_of(each)} for each in found]
    detail = "; ".join(f"{field['field']}: {field['message']}" for field in fields)
    return problem(describe(INVALID, detail, fields))


def _too_deep(_: RecursionError) -> Response[str]:
    return _refused(InvalidField("body", "is nested too deeply"))


def _no_route(_: NotFoundError) -> Response[str]:
    return problem(describe(NO_ROUTE, "there is no such route"))


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

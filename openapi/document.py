"""Puts the document together: requests from the handlers, answers from the table of operations."""

import importlib
import json
import os
import re
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from duetime.version import VERSION
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from openapi import answers, examples
from openapi.operations import OPERATIONS, Operation

PATH: Final = Path(__file__).parents[1] / "functions" / "job_search" / "openapi.json"
Json = dict[str, Any]

_HANDLERS: Final = ("job_service", "job_search")
_HEADERS: Final[dict[str, str]] = {
    "if-match": "If-Match",
    "idempotency-key": "Idempotency-Key",
    "duetime-callback-token": "Duetime-Callback-Token",
}
_PARAMETERS: Final[dict[str, Json]] = {
    "job_id": {"type": "string", "format": "uuid"},
    "subscription_id": {"type": "string", "format": "uuid"},
    "run_id": {"type": "string", "pattern": "^[0-9TZ]{19}-[0-9a-fm]{1,20}-[0-9a-f]{16}$"},
}
_EVERYWHERE: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
_OF_THE_GATEWAY: Final = (HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
# What the handlers ask for when they are imported. Nothing is called.
_ENVIRONMENT: Final = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "DUETIME_ENVIRONMENT": "contract",
    "DUETIME_JOBS_TABLE": "jobs",
    "DUETIME_RUNS_TABLE": "runs",
    "DUETIME_RECORDS_TABLE": "records",
    "DUETIME_SPILL_BUCKET": "spill",
    "DUETIME_SIGNING_SECRET_ARN": "secret",
    "DUETIME_NOTICES_QUEUE_URL": "notices",
    "DUETIME_NOTICE_TOPICS": "topics",
    "DUETIME_RUN_DAYS": "1",
    "DUETIME_RUN_LOG_DAYS": "1",
    "DUETIME_EVENT_DAYS": "1",
    "DUETIME_ADMINS": "[]",
    "DUETIME_QUOTAS": "[]",
    "DUETIME_ALLOWED_TARGETS": "[]",
    "DUETIME_WAKEUPS": json.dumps(
        {"group": "g", "role_arn": "r", "queue_arn": "q", "dead_letter_queue_arn": "d"}
    ),
}


def document() -> Json:
    paths: Json = {}
    schemas: Json = {}
    for part in _of_handlers():
        schemas |= part["components"]["schemas"]
        for path, methods in part["paths"].items():
            for method, operation in methods.items():
                paths.setdefault(path, {})[method] = _completed(operation, path, method)
    unused = {"HTTPValidationError", "ValidationError", "ResponseValidationError"}
    schemas = {name: schema for name, schema in schemas.items() if name not in unused} | _answer_schemas()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Duetime",
            "version": VERSION,
            "description": "A job scheduler in your own AWS account. Every request is signed with Signature Version 4 "
            "for the service `execute-api`. Errors are problems by RFC 9457.",
        },
        "servers": [{"url": "/"}],
        "security": [{"sigv4": []}],
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {
            "schemas": {name: schemas[name] for name in sorted(schemas)},
            "securitySchemes": {
                "sigv4": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "x-amazon-apigateway-authtype": "awsSigv4",
                }
            },
        },
    }


def text() -> str:
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def _of_handlers() -> list[Json]:
    with patch.dict(os.environ, _ENVIRONMENT):
        modules = [importlib.import_module(f"functions.{name}.handler") for name in _HANDLERS]
    return [json.loads(m.app.get_openapi_json_schema(title="Duetime", version=VERSION)) for m in modules]


def _completed(operation: Json, path: str, method: str) -> Json:
    name = _name_of(operation["operationId"], path, method)
    told = OPERATIONS[name]
    completed: Json = {
        "operationId": name,
        "tags": [told.tag],
        "summary": told.summary,
        **({"description": told.description} if told.description else {}),
        "parameters": [_parameter(parameter) for parameter in operation.get("parameters", [])],
    }
    if "requestBody" in operation:
        completed["requestBody"] = operation["requestBody"]
        completed["requestBody"]["content"]["application/json"]["example"] = told.request
    has_body = "requestBody" in operation
    return completed | {"responses": _responses(told, path, has_body)}


def _name_of(operation_id: str, path: str, method: str) -> str:
    """Powertools appends the path and the method to the function's name."""
    return operation_id.removesuffix(re.sub(r"\W", "_", f"{path}_{method}"))


def _parameter(parameter: Json) -> Json:
    """What a parameter may be if it is there. Absence is not null."""
    given: str = parameter["name"]
    name = _HEADERS.get(given, given)
    is_path = parameter["in"] == "path"
    schema: Json = _PARAMETERS[name] if is_path and name in _PARAMETERS else parameter["schema"]
    choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "title", "default")}
        schema = choices[0] | rest
    schema = {key: value for key, value in schema.items() if key != "title"}
    return {"name": name, "in": parameter["in"], "required": parameter["required"], "schema": schema}


def _responses(told: Operation, path: str, has_body: bool) -> Json:
    example = told.example()
    told.answer.model_validate(example)
    success: Json = {
        "description": told.status.phrase,
        "headers": {
            "Duetime-Version": _header("the version that answered"),
            **{name: _header(meaning) for name, meaning in told.headers.items()},
        },
        "content": {"application/json": {"schema": _ref(told.answer), "example": example}},
    }
    statuses = {*_EVERYWHERE, *told.problems}
    if "{" in path:
        statuses.add(HTTPStatus.NOT_FOUND)
    if has_body:
        statuses.add(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    return {str(int(told.status)): success} | {
        str(int(status)): _problem(status) for status in sorted(statuses)
    }


def _problem(status: HTTPStatus) -> Json:
    content: Json = {"application/problem+json": {"schema": _ref(answers.Problem)}}
    if status is HTTPStatus.BAD_REQUEST:
        content["application/problem+json"]["example"] = examples.problem()
    if status in _OF_THE_GATEWAY:
        content["application/json"] = {"schema": _ref(answers.GatewayMessage)}
    response: Json = {"description": status.phrase, "content": content}
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        response["headers"] = {"Retry-After": _header("seconds to wait; not on API Gateway's own 429")}
    return response


def _header(meaning: str) -> Json:
    return {"description": meaning, "schema": {"type": "string"}}


def _ref(model: Any) -> Json:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _answer_schemas() -> Json:
    models: set[type[BaseModel]] = {told.answer for told in OPERATIONS.values()} | {
        answers.Problem,
        answers.GatewayMessage,
    }
    _, schema = models_json_schema(
        [(model, "serialization") for model in sorted(models, key=lambda model: model.__name__)],
        ref_template="#/components/schemas/{model}",
    )
    definitions: Json = schema["$defs"]
    return definitions


if __name__ == "__main__":
    PATH.write_text(text())
    print(f"{PATH.relative_to(Path.cwd())} is up to date")

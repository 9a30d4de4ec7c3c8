"""The committed document is what the code says."""

import tomllib
from pathlib import Path

import pytest
from duetime.api.problems import INTERNAL, INVALID, KINDS, NO_ROUTE, NOT_JSON
from duetime.version import VERSION

from openapi import examples
from openapi.document import PATH, document, text
from openapi.operations import OPERATIONS

ROOT = Path(__file__).parents[2]


def test_the_committed_document_is_up_to_date() -> None:
    assert PATH.read_text() == text(), "run `make openapi`, and look at what changed"


def test_every_operation_has_a_summary_an_example_and_its_problems() -> None:
    for methods in document()["paths"].values():
        for operation in methods.values():
            assert operation["summary"]
            assert {"400", "403", "429"} <= set(operation["responses"])
            success = next(iter(operation["responses"].values()))
            assert "example" in success["content"]["application/json"]
            if body := operation.get("requestBody"):
                assert body["content"]["application/json"]["example"] is not None


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_example_is_what_the_document_says_of_answers(name: str) -> None:
    OPERATIONS[name].answer.model_validate(OPERATIONS[name].example())


def test_examples_of_jobs_and_runs_name_every_field_and_no_other() -> None:
    """They are made by the code that answers, so this holds the models to the code."""
    for name, example in (("get_job", examples.job_with_statistics()), ("get_run", examples.run())):
        assert set(OPERATIONS[name].answer.model_fields) == set(example)


def test_unknown_fields_are_refused_in_every_body() -> None:
    schemas = document()["components"]["schemas"]
    for name in (
        "CreateJob",
        "UpdateJob",
        "Batch",
        "BulkRequest",
        "Selection",
        "Preview",
        "Redrive",
        "Retry",
    ):
        assert schemas[name]["additionalProperties"] is False


def test_every_kind_of_problem_is_explained() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    for kind in (INTERNAL, INVALID, NO_ROUTE, NOT_JSON, *KINDS.values()):
        assert f"| `{kind.name}` | {int(kind.status)} |" in page


def test_every_operation_is_in_the_docs() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    for path, methods in document()["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in page


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION

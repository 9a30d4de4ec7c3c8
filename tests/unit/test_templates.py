from typing import Any

import pytest
from duetime.errors import InvalidField
from duetime.targets import Reach
from duetime.tasks import check_task
from duetime.tasks.templates import fill, has_templates, values_of

from tests.factories import NOW, a_spec

VALUES = values_of(
    job_id="j",
    run_id="r",
    attempt=2,
    due_at=NOW,
    fence=7,
    payload={"n": 3, "who": {"name": "Ada"}, "list": [1, {"x": "y"}]},
)


@pytest.mark.parametrize(
    ("task", "field"),
    [
        ({"type": "ecs", "completion": "{{payload.mode}}"}, "task.completion"),
        ({"type": "http", "url": "https://x.example.com/", "callback": "{{payload.mode}}"}, "task.callback"),
    ],
)
def test_what_decides_over_a_token_cannot_be_a_template(task: dict[str, Any], field: str) -> None:
    """The token is made with the claim, before any template is filled."""
    with pytest.raises(InvalidField) as refused:
        check_task(a_spec(task=task, payload={"mode": "callback"}), Reach("ann"))
    assert (refused.value.field, "cannot be a template" in refused.value.reason) == (field, True)


def test_what_a_callback_consists_of_can_be_a_template() -> None:
    callback = {"heartbeat_seconds": "{{payload.n}}"}
    task = {"type": "http", "url": "https://x.example.com/", "callback": callback}
    check_task(a_spec(task=task, payload={"n": 60}), Reach("ann"))


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plain", "plain"),
        ("{{run_id}}", "r"),
        ("{{ due_at }}", "2026-11-18T07:00:00.123Z"),
        ("on {{due_date}} at once", "on 2026-11-18 at once"),
        ("{{payload.n}}", 3),
        ("n={{payload.n}}", "n=3"),
        ("{{payload.who}}", {"name": "Ada"}),
        ("Hello, {{payload.who.name}}!", "Hello, Ada!"),
        ("{{payload.list.1.x}}", "y"),
        ("{{payload.who}} and {{fence}}", '{"name": "Ada"} and 7'),
        ("{single}", "{single}"),
    ],
)
def test_a_template_is_filled(text: str, filled: Any) -> None:
    assert fill(text, VALUES) == filled


def test_templates_are_found_anywhere_but_in_names() -> None:
    settings = {"url": "x", "body": {"{{run_id}}": ["a", {"b": "{{attempt}}"}]}}
    assert has_templates(settings)
    assert fill(settings, VALUES) == {"url": "x", "body": {"{{run_id}}": ["a", {"b": 2}]}}
    assert not has_templates({"a": [1, {"b": None}]})


@pytest.mark.parametrize(
    "text", ["{{nobody}}", "{{payload.x}}", "{{payload.n.x}}", "{{payload.list.9}}", "{{run_id.x}}"]
)
def test_a_name_that_leads_nowhere_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(InvalidField, match="leads nowhere") as refused:
        fill({"headers": {"X": text}}, VALUES)
    assert refused.value.field == "task.headers.X"


@pytest.mark.parametrize(
    "text",
    ["{{", "{{}}", "{{ run_id", "{{run id}}", "{{payload..x}}", "{{{{run_id}}}}", "{{__class__.x}}x{{"],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(InvalidField):
        fill(text, VALUES)


def test_a_value_that_looks_like_a_template_is_not_filled_again() -> None:
    values = values_of(job_id="j", run_id="r", attempt=1, due_at=NOW, fence=1, payload={"x": "{{run_id}}"})
    assert fill("a {{payload.x}}", values) == "a {{run_id}}"

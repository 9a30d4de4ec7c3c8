"""A kind of task that a package registers: the worked example of docs/tasks.md, installed and run."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from duetime.errors import InvalidField, PermanentFailure, TransientFailure
from duetime.job import JobSpec
from duetime.tasks import check_task, parse_task, registry
from duetime.timing import ScheduleType, Timing

from tests.listener import Answer, listening
from tests.tasks.conftest import ALLOWED, a_context, attempt, perform

EXAMPLE = Path(__file__).parents[2] / "examples" / "slack_kind"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a team would put it into the tasks layer."""
    source, folder = tmp_path_factory.mktemp("source") / "slack", tmp_path_factory.mktemp("layer")
    shutil.copytree(EXAMPLE, source)
    uv = Path(sys.executable).with_name("uv")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([uv, "pip", "install", *options, "--target", folder, source], check=True)
    return folder


@pytest.fixture
def slack(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(installed))
    registry._load.cache_clear()
    yield
    registry._load.cache_clear()


@pytest.fixture
def webhook(aws: Any) -> Any:
    """A secret that holds the URL of a listener."""

    def keep(url: str) -> dict[str, str]:
        arn = aws("secretsmanager").create_secret(
            Name="demo-webhook", SecretString=f"{url}/services/T0/B0/x"
        )["ARN"]
        return {"secret": arn}

    return keep


@pytest.mark.usefixtures("slack")
class TestTheExample:
    def test_it_posts_and_its_secret_appears_nowhere(self, webhook: Any) -> None:
        with listening() as channel:
            lines: list[str] = []
            task = {"type": "slack", "webhook": webhook(channel.url), "text": "Paid 3 invoices"}
            context = a_context(task, log=lines.append)
            assert perform(context) == {"posted": "Paid 3 invoices"}
        assert channel.received[0].body == b'{"text": "Paid 3 invoices"}'
        assert lines == ["Slack answered 200"]
        assert context.redactor.clean(f"{channel.url}/services/T0/B0/x") == "[secret]"

    @pytest.mark.parametrize(
        ("status", "error"), [(400, PermanentFailure), (429, TransientFailure), (503, TransientFailure)]
    )
    def test_it_tells_failures_apart(self, webhook: Any, status: int, error: type[Exception]) -> None:
        with listening(lambda _: Answer(status)) as channel, pytest.raises(error, match=str(status)):
            attempt({"type": "slack", "webhook": webhook(channel.url), "text": "x"})

    @pytest.mark.parametrize(
        ("settings", "field"),
        [
            ({"text": "x"}, "task.webhook"),
            ({"webhook": {"secret": "arn:aws:secretsmanager:r:1:secret:x"}}, "task.text"),
            ({"webhook": {"secret": "nonsense"}, "text": "x"}, "task.webhook.secret"),
            ({"colour": "red"}, "task.colour"),
        ],
    )
    def test_a_bad_setting_is_refused_by_its_name(self, settings: dict[str, Any], field: str) -> None:
        with pytest.raises(InvalidField) as refused:
            parse_task({"type": "slack", **settings})
        assert refused.value.field == field

    def test_a_job_with_it_is_checked_when_it_is_written(self) -> None:
        arn = "arn:aws:secretsmanager:us-east-1:999999999999:secret:x"
        task = {"type": "slack", "webhook": {"secret": arn}, "text": "Paid {{payload.count}}"}
        timing = Timing(schedule_type=ScheduleType.IMMEDIATE)
        with pytest.raises(InvalidField, match="is not listed for"):
            check_task(
                JobSpec(name="x", timing=timing, task=task, payload={"count": 1}), ALLOWED.reach_of("me")
            )

    def test_it_is_named_among_the_kinds(self) -> None:
        with pytest.raises(InvalidField, match="ecs, slack"):
            parse_task({"type": "nothing"})


def test_a_kind_that_nobody_registered_is_refused() -> None:
    with pytest.raises(InvalidField, match=r"task\.type"):
        parse_task({"type": "slack"})


def test_a_built_in_name_cannot_be_taken() -> None:
    assert registry.find_kind("http").__module__ == "duetime.tasks.http"

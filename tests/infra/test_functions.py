import pytest
from duetime.metrics import Metric

from infra.metrics import METRICS
from tests.infra.conftest import Synthesised

FUNCTIONS = ("job_service", "job_search", "enqueuer", "status_feed", "watcher", "worker", "notifier")
TABLES = ("JOBS_TABLE", "RUNS_TABLE", "RUN_DAYS")
FINDINGS = ("RECORDS_TABLE", "EVENT_DAYS", "NOTICES_QUEUE_URL")
LOGS = ("RECORDS_TABLE", "RUN_LOG_DAYS")
QUEUES = ("RUN_QUEUE_URLS", "DEAD_LETTER_QUEUE_URLS", "DUE_QUEUE_URL", "HINT_LEAD_MS")


def test_these_functions_and_no_others_are_deployed(synthesised: Synthesised) -> None:
    names = {each["FunctionName"] for each in synthesised.all("AWS::Lambda::Function").values()}
    assert names == {f"duetime-{synthesised.environment.name}-{name}" for name in FUNCTIONS}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_runs_on_python_3_13_on_arm_with_its_layers(synthesised: Synthesised, name: str) -> None:
    function = synthesised.function(name)
    assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"])
    assert function["Handler"] == "handler.handle"
    layers = [each["Ref"].removeprefix("Layers")[:4] for each in function["Layers"]]
    with_tasks = name in ("worker", "job_service", "watcher")
    assert layers == ["Core", "Depe", *(["Task"] if with_tasks else [])]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_functions_log_is_kept_as_long_as_the_environment_says(synthesised: Synthesised, name: str) -> None:
    log_group = synthesised.function(name)["LoggingConfig"]["LogGroup"]["Ref"]
    expected = synthesised.environment.settings.retention.function_log_days
    assert synthesised.all("AWS::Logs::LogGroup")[log_group]["RetentionInDays"] == expected


def test_no_log_is_kept_for_ever(synthesised: Synthesised) -> None:
    assert all("RetentionInDays" in each for each in synthesised.all("AWS::Logs::LogGroup").values())


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        (
            "job_service",
            {
                *TABLES,
                "RECORDS_TABLE",
                "EVENT_DAYS",
                "QUOTAS",
                "ALLOWED_TARGETS",
                "ADMINS",
                "WAKEUPS",
                "SPILL_BUCKET",
                "SIGNING_SECRET_ARN",
                "NOTICES_QUEUE_URL",
                "NOTICE_TOPICS",
            },
        ),
        ("job_search", {*TABLES, *LOGS, "ADMINS", "SPILL_BUCKET", "SIGNING_SECRET_ARN"}),
        ("enqueuer", {"RUNS_TABLE", *QUEUES}),
        ("status_feed", {"RECORDS_TABLE", "NOTICES_QUEUE_URL"}),
        ("watcher", {*TABLES, "WAKEUPS", *QUEUES, "SPILL_BUCKET", *FINDINGS}),
        (
            "notifier",
            {
                "JOBS_TABLE",
                "RECORDS_TABLE",
                "ALLOWED_TARGETS",
                "SIGNING_SECRET_ARN",
                "NOTICES_QUEUE_URL",
                "NOTICE_TOPICS",
            },
        ),
        ("worker", {*TABLES, *LOGS, "ALLOWED_TARGETS", "RUN_QUEUE_URLS", "SPILL_BUCKET"}),
    ],
)
def test_a_function_is_told_what_it_needs_and_no_more(
    synthesised: Synthesised, name: str, variables: set[str]
) -> None:
    given = set(synthesised.function(name)["Environment"]["Variables"])
    shared = {"DUETIME_ENVIRONMENT", "POWERTOOLS_SERVICE_NAME", "POWERTOOLS_LOG_LEVEL"}
    assert given - shared == {f"DUETIME_{variable}" for variable in variables}


def test_alarms_and_dashboard_know_the_metrics_that_the_functions_emit() -> None:
    """Two lists, since neither the templates nor the functions import the other."""
    emitted = {metric.value: (metric.unit.value, set(metric.sets)) for metric in Metric}
    known = {
        name: (each.unit, {(by,) for by in each.split_by} | ({()} if each.has_total else set()))
        for name, each in METRICS.items()
    }
    assert emitted == known

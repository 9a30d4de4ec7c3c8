import pytest

from tests.infra.conftest import Synthesised

FUNCTIONS = ("job_service", "job_search", "enqueuer", "watcher", "worker")
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
    assert layers == ["Core", "Depe", *(["Task"] if name == "worker" else [])]


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
        ("job_service", {"JOBS_TABLE", "RUNS_TABLE", "ALLOWED_TARGETS", "ADMINS", "WAKEUPS"}),
        ("job_search", {"JOBS_TABLE", "RUNS_TABLE", "ADMINS"}),
        ("enqueuer", {"RUNS_TABLE", *QUEUES}),
        ("watcher", {"JOBS_TABLE", "RUNS_TABLE", "WAKEUPS", *QUEUES}),
        ("worker", {"JOBS_TABLE", "RUNS_TABLE", "ALLOWED_TARGETS", "RUN_QUEUE_URLS"}),
    ],
)
def test_a_function_is_told_what_it_needs_and_no_more(
    synthesised: Synthesised, name: str, variables: set[str]
) -> None:
    given = set(synthesised.function(name)["Environment"]["Variables"])
    shared = {"DUETIME_ENVIRONMENT", "POWERTOOLS_SERVICE_NAME", "POWERTOOLS_LOG_LEVEL"}
    assert given - shared == {f"DUETIME_{variable}" for variable in variables}

"""Each alarm with its threshold, its rule for missing data and whom it tells; and that somebody can act on it."""

from dataclasses import dataclass
from typing import Any

import pytest

from infra.environments import AlarmSettings
from infra.metrics import METRICS, duetime_metric
from infra.parts import INDEXES
from tests.infra.conftest import BLOCKS, Properties, Synthesised, synthesise

FUNCTIONS = ("job_service", "job_search", "watcher", "enqueuer", "status_feed", "worker", "notifier")
PRIORITIES = ("high", "medium", "low")
WELL, BAD, AS_BEFORE = "notBreaching", "breaching", "ignore"


@dataclass(frozen=True)
class Expected:
    threshold: int
    missing: str
    metric: str
    statistic: str
    seconds: int = 300
    periods: int = 1
    comparison: str = "GreaterThanThreshold"


def plain_alarms(settings: dict[str, Any]) -> dict[str, Expected]:
    visible, age = "ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"
    letters, undelivered = settings["dead_letters"], settings["undelivered_messages"]
    silent = settings["watcher_silent_minutes"] // 5
    return {
        "late-starts": Expected(settings["lateness_p99_ms"], WELL, "Lateness", "p99"),
        "waiting-late": Expected(settings["waiting_late_runs"], WELL, "WaitingLate", "Minimum"),
        "missed-fires": Expected(settings["missed_fires"], AS_BEFORE, "MissedFires", "Sum"),
        "duplicated-fires": Expected(settings["duplicated_fires"], AS_BEFORE, "DuplicatedFires", "Sum"),
        **{f"dead-letters-{each}": Expected(letters, AS_BEFORE, visible, "Maximum") for each in PRIORITIES},
        **{
            f"undelivered-{each}": Expected(undelivered, AS_BEFORE, visible, "Maximum")
            for each in ("due", "stream", "feed", "notices")
        },
        **{
            f"old-messages-{each}": Expected(settings["oldest_hint_seconds"], WELL, age, "Maximum")
            for each in PRIORITIES
        },
        **{
            f"old-messages-{each}": Expected(settings["oldest_inner_message_seconds"], WELL, age, "Maximum")
            for each in ("due", "notices")
        },
        **{
            f"errors-{each}": Expected(settings["function_errors"], WELL, "Errors", "Sum")
            for each in FUNCTIONS
        },
        **{
            f"stream-behind-{each}": Expected(
                settings["stream_age_ms"], WELL, "IteratorAge", "Maximum", 60, 3
            )
            for each in ("enqueuer", "status_feed")
        },
        "watcher-silent": Expected(1, BAD, "Invocations", "Sum", 300, silent, "LessThanThreshold"),
        "api-5xx": Expected(settings["api_5xx"], WELL, "5xx", "Sum"),
    }


def computed_alarms(settings: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Threshold, and how many metrics go into it."""
    return {
        "failure-rate": (settings["failure_rate_percent"], 2),
        "throttled-functions": (settings["throttles"], len(FUNCTIONS)),
        "dropped-invocations": (settings["dropped_invocations"], 3),
        "throttled-table-jobs": (settings["throttles"], 6),
        "throttled-table-runs": (settings["throttles"], 4),
        "throttled-table-records": (settings["throttles"], 2),
    }


def alarms(synthesised: Synthesised) -> dict[str, Properties]:
    prefix = f"duetime-{synthesised.environment.name}-"
    found = synthesised.all("AWS::CloudWatch::Alarm").values()
    assert all(each["AlarmName"].startswith(prefix) for each in found)
    return {each["AlarmName"].removeprefix(prefix): each for each in found}


def block(synthesised: Synthesised) -> dict[str, Any]:
    settings: dict[str, Any] = BLOCKS[synthesised.environment.name]["alarms"]
    return settings


def inputs(alarm: Properties) -> list[Properties]:
    return [each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each]


def test_these_alarms_and_no_others_are_deployed(synthesised: Synthesised) -> None:
    expected = {*plain_alarms(block(synthesised))}
    # The emulator's CloudFormation refuses alarms on several metrics.
    if not synthesised.environment.is_local:
        expected |= {*computed_alarms(block(synthesised))}
    assert set(alarms(synthesised)) == expected


@pytest.mark.parametrize("name", plain_alarms(BLOCKS["prod"]["alarms"]))
def test_an_alarm_rings_at_the_threshold_of_its_environment(synthesised: Synthesised, name: str) -> None:
    alarm = alarms(synthesised)[name]
    assert plain_alarms(block(synthesised))[name] == Expected(
        threshold=alarm["Threshold"],
        missing=alarm["TreatMissingData"],
        metric=alarm["MetricName"],
        statistic=alarm.get("Statistic") or alarm["ExtendedStatistic"],
        seconds=alarm["Period"],
        periods=alarm["EvaluationPeriods"],
        comparison=alarm["ComparisonOperator"],
    )
    assert alarm["DatapointsToAlarm"] == alarm["EvaluationPeriods"]


@pytest.mark.parametrize("name", computed_alarms(BLOCKS["prod"]["alarms"]))
def test_an_alarm_on_several_metrics_does_so_too(in_aws: list[Synthesised], name: str) -> None:
    for synthesised in in_aws:
        alarm = alarms(synthesised)[name]
        assert computed_alarms(block(synthesised))[name] == (alarm["Threshold"], len(inputs(alarm)))
        assert (alarm["TreatMissingData"], alarm["ComparisonOperator"]) == (WELL, "GreaterThanThreshold")
        assert (alarm["EvaluationPeriods"], alarm["DatapointsToAlarm"]) == (1, 1)
        assert {each["Period"] for each in inputs(alarm)} == {300}


def test_every_alarm_tells_the_topic_when_it_begins_and_when_it_is_over(synthesised: Synthesised) -> None:
    topic, _ = synthesised.one("AWS::SNS::Topic", "MonitoringAlarms")
    for alarm in alarms(synthesised).values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": topic}]


def test_every_alarm_says_what_it_means_and_where_to_read_on(synthesised: Synthesised) -> None:
    for name, alarm in alarms(synthesised).items():
        sentence, _, entry = alarm["AlarmDescription"].partition(" What to do: docs/operations.md#")
        assert sentence.endswith(".")
        assert name.startswith(entry)


def test_a_few_failures_are_no_failure_rate(prod: Synthesised) -> None:
    alarm = alarms(prod)["failure-rate"]
    [expression] = [each["Expression"] for each in alarm["Metrics"] if "Expression" in each]
    assert expression == f"IF(ended >= {block(prod)['failure_rate_min_runs']}, 100 * rate, 0)"
    stats = {each["Metric"]["MetricName"]: each["Stat"] for each in inputs(alarm)}
    assert stats == {"RunsEnded": "Sum", "FailureRate": "Average"}


@pytest.mark.parametrize("name", ["throttled-functions", "dropped-invocations", "throttled-table-jobs"])
def test_a_metric_without_data_does_not_hide_the_others_of_a_sum(prod: Synthesised, name: str) -> None:
    alarm = alarms(prod)[name]
    [expression] = [each["Expression"] for each in alarm["Metrics"] if "Expression" in each]
    filled = ", ".join(f"FILL({each['Id']}, 0)" for each in alarm["Metrics"] if "MetricStat" in each)
    assert expression == f"SUM([{filled}])"
    # CloudWatch takes no more in one alarm.
    assert len(inputs(alarm)) <= 10


def test_the_throttling_of_every_index_is_watched(prod: Synthesised) -> None:
    for name, indexes in INDEXES.items():
        _, table = prod.one("AWS::DynamoDB::Table", f"Storage{name.title()}")
        assert {each["IndexName"] for each in table.get("GlobalSecondaryIndexes", [])} == {*indexes}


def test_an_alarm_on_our_own_metric_has_dimensions_that_are_emitted(synthesised: Synthesised) -> None:
    ours = [each for each in alarms(synthesised).values() if each.get("Namespace") == "Duetime"]
    assert len(ours) == 4
    for alarm in ours:
        assert alarm["MetricName"] in METRICS
        assert alarm["Dimensions"] == [{"Name": "environment", "Value": synthesised.environment.name}]


def test_a_metric_that_nobody_emits_is_refused() -> None:
    with pytest.raises(KeyError):
        duetime_metric("prod", "RunsLost", "Sum")
    with pytest.raises(ValueError, match="SweepTime is not emitted by priority"):
        duetime_metric("prod", "SweepTime", "p99", priority="high")
    with pytest.raises(ValueError, match="QueueLength is emitted by"):
        duetime_metric("prod", "QueueLength", "Maximum")


def test_the_watcher_is_not_called_silent_before_two_ticks_of_the_backstop_are_missing() -> None:
    for name, environment in BLOCKS.items():
        minutes = environment["alarms"]["watcher_silent_minutes"]
        assert minutes > 2 * 15, name
        assert minutes % 5 == 0, name


def test_alarms_may_publish_to_the_topic_and_nobody_without_tls(synthesised: Synthesised) -> None:
    topic, properties = synthesised.one("AWS::SNS::Topic", "MonitoringAlarms")
    # CloudWatch could not publish through SNS's own key.
    assert "KmsMasterKeyId" not in properties
    _, policy = synthesised.one("AWS::SNS::TopicPolicy", "MonitoringAlarms")
    assert policy["Topics"] == [{"Ref": topic}]
    statements = {each["Effect"]: each for each in policy["PolicyDocument"]["Statement"]}
    assert statements["Allow"]["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert statements["Allow"]["Condition"]["StringEquals"] == {
        "aws:SourceAccount": {"Ref": "AWS::AccountId"}
    }
    if synthesised.environment.is_local:
        assert "Deny" not in statements
    else:
        assert statements["Deny"]["Principal"] == "*"
        assert statements["Deny"]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_every_recipient_is_subscribed() -> None:
    addresses = ["on-call@example.com", "second@example.com"]
    synthesised = synthesise("dev", blocks=with_recipients("dev", addresses))
    topic, _ = synthesised.one("AWS::SNS::Topic", "MonitoringAlarms")
    subscriptions = synthesised.all("AWS::SNS::Subscription").values()
    assert sorted(each["Endpoint"] for each in subscriptions) == addresses
    assert {(each["Protocol"], each["TopicArn"]["Ref"]) for each in subscriptions} == {("email", topic)}


def test_without_recipients_nobody_is_subscribed(synthesised: Synthesised) -> None:
    assert len(synthesised.all("AWS::SNS::Subscription")) == len(block(synthesised)["recipients"])


def test_a_block_of_cdk_json_has_every_threshold() -> None:
    names = set(AlarmSettings.__dataclass_fields__)
    assert all(set(environment["alarms"]) == names for environment in BLOCKS.values())


def with_recipients(name: str, addresses: list[str]) -> dict[str, Any]:
    environment = BLOCKS[name]
    return BLOCKS | {name: environment | {"alarms": environment["alarms"] | {"recipients": addresses}}}

"""What Duetime promises to the owners of jobs: that they run, once, in time, and how many fail."""

from collections.abc import Iterator

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.alarms.rule import Rule
from infra.environments import AlarmSettings
from infra.metrics import FIVE_MINUTES, duetime_metric

# No run, no lateness and no failure.
QUIET_IS_WELL = cloudwatch.TreatMissingData.NOT_BREACHING
# Until the next audit says otherwise: it comes four times an hour, and so does its metric.
AS_THE_LAST_AUDIT_SAID = cloudwatch.TreatMissingData.IGNORE


def promise_rules(environment: str, settings: AlarmSettings) -> Iterator[Rule]:
    yield Rule(
        name="late-starts",
        entry="late-starts",
        means=f"More than 1 % of the runs that started in 5 minutes did so over {settings.lateness_p99_ms} ms late.",
        # Few runs are judged too (then p99 is the latest): a promise broken once in a quiet hour is broken.
        metric=duetime_metric(environment, "Lateness", "p99"),
        threshold=settings.lateness_p99_ms,
        missing=QUIET_IS_WELL,
    )
    yield Rule(
        name="waiting-late",
        entry="waiting-late",
        means=f"For 5 minutes there were always more than {settings.waiting_late_runs} runs waiting past their time.",
        # `late-starts` knows only what has started at last; this one sees what does not start at all.
        metric=duetime_metric(environment, "WaitingLate", "Minimum"),
        threshold=settings.waiting_late_runs,
        missing=QUIET_IS_WELL,
    )
    yield Rule(
        name="failure-rate",
        entry="failure-rate",
        means=f"Over {settings.failure_rate_percent} % of the runs that ended in 5 minutes failed after all retries.",
        metric=_failure_percentage(environment, settings.failure_rate_min_runs),
        threshold=settings.failure_rate_percent,
        missing=QUIET_IS_WELL,
    )
    yield _audit_rule(environment, "missed-fires", "MissedFires", "had no run", settings.missed_fires)
    yield _audit_rule(
        environment, "duplicated-fires", "DuplicatedFires", "had more than one run", settings.duplicated_fires
    )


def _failure_percentage(environment: str, min_runs: int) -> cloudwatch.MathExpression:
    # One failure of two runs is half of them, and nothing to wake anybody for.
    return cloudwatch.MathExpression(
        expression=f"IF(ended >= {min_runs}, 100 * rate, 0)",
        using_metrics={
            "ended": duetime_metric(environment, "RunsEnded", "Sum"),
            "rate": duetime_metric(environment, "FailureRate", "Average"),
        },
        period=FIVE_MINUTES,
        label="failed, %",
    )


def _audit_rule(environment: str, name: str, metric: str, what: str, most: int) -> Rule:
    return Rule(
        name=name,
        entry=name,
        means=f"An audit found more than {most} times of recurring jobs that {what}.",
        metric=duetime_metric(environment, metric, "Sum"),
        threshold=most,
        missing=AS_THE_LAST_AUDIT_SAID,
    )

"""The functions: whether they fail, are throttled, are stopped as a loop, fall behind, or are not called at all."""

from collections.abc import Iterator

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from infra.alarms.rule import Rule
from infra.aws_metrics import function_metric, total
from infra.environments import AlarmSettings
from infra.parts import Parts

STREAM_READERS = ("enqueuer", "status_feed")
# Lambda stops what seems to wake itself through a queue; other sources it does not follow.
QUEUE_READERS = ("watcher", "worker", "notifier")

# Nothing was called, so nothing failed.
UNCALLED_IS_WELL = cloudwatch.TreatMissingData.NOT_BREACHING
# Of the watcher, silence is the very thing to be told of.
SILENCE_IS_BAD = cloudwatch.TreatMissingData.BREACHING
SILENCE_STEP_MINUTES = 5


def function_rules(parts: Parts, settings: AlarmSettings) -> Iterator[Rule]:
    for name, function in parts.functions.items():
        yield Rule(
            name=f"errors-{name}",
            entry="errors",
            means=f"The function {name} failed more than {settings.function_errors} times in 5 minutes.",
            metric=function_metric(function, "Errors", "Sum"),
            threshold=settings.function_errors,
            missing=UNCALLED_IS_WELL,
        )
    for name in _present(parts, STREAM_READERS):
        yield Rule(
            name=f"stream-behind-{name}",
            entry="stream-behind",
            means=f"For 3 minutes {name} has read the runs' stream more than {settings.stream_age_ms} ms behind.",
            metric=function_metric(
                parts.functions[name], "IteratorAge", "Maximum", period=Duration.minutes(1)
            ),
            threshold=settings.stream_age_ms,
            missing=UNCALLED_IS_WELL,
            periods=3,
        )
    # One alarm each for all of them: the cause is the account's, or the same loop, and the dashboard says which.
    yield _counted(parts, "throttled-functions", "Throttles", tuple(parts.functions), settings.throttles)
    yield _counted(
        parts,
        "dropped-invocations",
        "RecursiveInvocationsDropped",
        QUEUE_READERS,
        settings.dropped_invocations,
    )
    yield _silence(parts, settings.watcher_silent_minutes)


def _present(parts: Parts, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in parts.functions]


def _counted(parts: Parts, name: str, metric: str, functions: tuple[str, ...], most: int) -> Rule:
    counted = {
        each: function_metric(parts.functions[each], metric, "Sum") for each in _present(parts, functions)
    }
    return Rule(
        name=name,
        entry=name,
        means=f"Lambda refused more than {most} invocations in 5 minutes ({metric}).",
        metric=total(counted),
        threshold=most,
        missing=UNCALLED_IS_WELL,
    )


def _silence(parts: Parts, minutes: int) -> Rule:
    """The backstop calls the watcher every 15 minutes, so two calls must have been missed. In small steps, because
    CloudWatch looks for points further back than it was told before it takes missing ones for bad: with one long
    period that would be hours."""
    return Rule(
        name="watcher-silent",
        entry="watcher-silent",
        means=f"The watcher has not been called for {minutes} minutes, though the backstop calls it every 15.",
        metric=function_metric(
            parts.functions["watcher"], "Invocations", "Sum", period=Duration.minutes(SILENCE_STEP_MINUTES)
        ),
        threshold=1,
        comparison=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
        missing=SILENCE_IS_BAD,
        periods=minutes // SILENCE_STEP_MINUTES,
    )

from dataclasses import dataclass

from aws_cdk import aws_cloudwatch as cloudwatch


@dataclass(frozen=True)
class Rule:
    """When somebody is called, and why. The alarm is `duetime-ENVIRONMENT-name`, and `entry` its heading in
    docs/operations.md."""

    name: str
    entry: str
    means: str
    metric: cloudwatch.IMetric
    # The most that is still well, unless the comparison says otherwise.
    threshold: int
    missing: cloudwatch.TreatMissingData
    # So many periods in a row.
    periods: int = 1
    comparison: cloudwatch.ComparisonOperator = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD

    @property
    def is_computed(self) -> bool:
        return isinstance(self.metric, cloudwatch.MathExpression)

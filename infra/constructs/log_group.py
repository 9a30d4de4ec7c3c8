from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

_RETENTION = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    5: logs.RetentionDays.FIVE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    120: logs.RetentionDays.FOUR_MONTHS,
    150: logs.RetentionDays.FIVE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
}


class ExpiringLogGroup(logs.LogGroup):
    """Goes with the stack: what must outlive a deployment is in the tables, not in logs."""

    def __init__(self, scope: Construct, construct_id: str, *, name: str, days: int) -> None:
        super().__init__(
            scope,
            construct_id,
            log_group_name=name,
            retention=_RETENTION[days],
            removal_policy=RemovalPolicy.DESTROY,
        )

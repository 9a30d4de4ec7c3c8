from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct


class WakeUps(Construct):
    """The group that holds the schedules of occupied minutes, and the role that EventBridge takes on to fire them."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        # Destroyed with the stack even where data is kept: schedules can be rebuilt from the jobs.
        self.group = scheduler.ScheduleGroup(self, "Group", removal_policy=RemovalPolicy.DESTROY)
        self.role = iam.Role(self, "Role", assumed_by=self._scheduler_for_this_group())

    def _scheduler_for_this_group(self) -> iam.ServicePrincipal:
        # Without these, another account's schedules could borrow the role (the confused deputy).
        conditions = {
            "StringEquals": {
                "aws:SourceAccount": Aws.ACCOUNT_ID,
                "aws:SourceArn": self.group.schedule_group_arn,
            }
        }
        return iam.ServicePrincipal("scheduler.amazonaws.com", conditions=conditions)

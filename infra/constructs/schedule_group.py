import json

from aws_cdk import Aws, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct


class WakeUps(Construct):
    """The group that holds the schedules of occupied minutes, and the role that EventBridge takes on to fire them."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        # Destroyed with the stack even where data is kept: schedules can be rebuilt from the jobs.
        self.group = scheduler.ScheduleGroup(self, "Group", removal_policy=RemovalPolicy.DESTROY)
        self.role = iam.Role(self, "Role", assumed_by=self._scheduler_for_this_group())

    def allow(self, actions: list[str], resources: list[str]) -> None:
        self.role.add_to_policy(iam.PolicyStatement(actions=actions, resources=resources))

    @property
    def any_schedule_arn(self) -> str:
        return Stack.of(self).format_arn(
            service="scheduler", resource="schedule", resource_name=f"{self.group.schedule_group_name}/*"
        )

    @property
    def any_schedule_shown_by_nag(self) -> str:
        account = "arn:<AWS::Partition>:scheduler:<AWS::Region>:<AWS::AccountId>"
        return f"{account}:schedule/{self.group.schedule_group_name}/*"

    def add_backstop(self, queue: sqs.Queue, dead_letters: sqs.Queue) -> None:
        """Whatever else was missed, by anyone, for any length of time, is found by this one."""
        scheduler.CfnSchedule(
            self,
            "Backstop",
            group_name=self.group.schedule_group_name,
            schedule_expression="rate(15 minutes)",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=queue.queue_arn,
                role_arn=self.role.role_arn,
                input=json.dumps({"kind": "tick", "thorough": True}),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=dead_letters.queue_arn),
            ),
        )

    def _scheduler_for_this_group(self) -> iam.ServicePrincipal:
        # Without these, another account's schedules could borrow the role (the confused deputy).
        conditions = {
            "StringEquals": {
                "aws:SourceAccount": Aws.ACCOUNT_ID,
                "aws:SourceArn": self.group.schedule_group_arn,
            }
        }
        return iam.ServicePrincipal("scheduler.amazonaws.com", conditions=conditions)

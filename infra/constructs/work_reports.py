from collections.abc import Collection

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

# How what Duetime starts is named: tasks/work_names.py.
PATTERNS = {
    "ecs": {
        "source": ["aws.ecs"],
        "detail-type": ["ECS Task State Change"],
        "detail": {"lastStatus": ["STOPPED"], "startedBy": [{"prefix": "duetime/"}]},
    },
    "states": {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {
            "status": ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"],
            "name": [{"prefix": "duetime_"}],
        },
    },
}


class WorkReports(Construct):
    """The ends of containers and executions that Duetime started, from EventBridge to the due queue. Only where tasks
    may start any."""

    def __init__(
        self, scope: Construct, construct_id: str, *, queue: sqs.Queue, services: Collection[str]
    ) -> None:
        super().__init__(scope, construct_id)
        for service in sorted(set(services) & set(PATTERNS)):
            rule = events.CfnRule(
                self,
                service.title(),
                event_pattern=PATTERNS[service],
                targets=[events.CfnRule.TargetProperty(arn=queue.queue_arn, id="due-queue")],
            )
            queue.add_to_resource_policy(
                iam.PolicyStatement(
                    actions=["sqs:SendMessage"],
                    resources=[queue.queue_arn],
                    principals=[iam.ServicePrincipal("events.amazonaws.com")],
                    conditions={"ArnEquals": {"aws:SourceArn": rule.attr_arn}},
                )
            )

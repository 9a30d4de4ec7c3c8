from collections.abc import Sequence

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.constructs.nag import NO_TLS_THERE, acknowledge


class AlarmTopic(sns.Topic):
    """Where alarms go, and from there to people. Not encrypted at rest: CloudWatch cannot publish through SNS's own KMS
    key and says so only in the alarm's history, and a key of our own would be a dollar a month and one more thing
    that can silently stand between an alarm and a person. A message holds names and numbers, nothing of any job."""

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, recipients: Sequence[str], tls_only: bool
    ) -> None:
        super().__init__(scope, construct_id, topic_name=f"{name}-alarms", enforce_ssl=tls_only)
        if not tls_only:
            acknowledge(self, "AwsSolutions-SNS3", NO_TLS_THERE)
        self._allow_alarms_of(name)
        for address in recipients:
            self.add_subscription(subscriptions.EmailSubscription(address))

    def _allow_alarms_of(self, name: str) -> None:
        # A policy of one's own replaces the default one, which let everything in the account publish: without this,
        # demanding TLS would silence every alarm.
        alarms = Stack.of(self).format_arn(
            service="cloudwatch",
            resource="alarm",
            resource_name=f"{name}-*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        self.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AllowAlarms",
                actions=["sns:Publish"],
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                resources=[self.topic_arn],
                conditions={
                    "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                    "ArnLike": {"aws:SourceArn": alarms},
                },
            )
        )

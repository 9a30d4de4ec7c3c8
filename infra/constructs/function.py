from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from aws_cdk import CfnElement, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.constructs.layers import ARCHITECTURE, NOT_SHIPPED, RUNTIME
from infra.constructs.log_group import ExpiringLogGroup
from infra.constructs.nag import acknowledge


@dataclass(frozen=True)
class Workplace:
    """What all functions of one deployment share."""

    environment: str
    log_level: str
    log_days: int
    sources: Path


class Function(Construct):
    """A Lambda function with a role of its own that may write to its own log and nothing else; the stack grants."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        workplace: Workplace,
        layers: Sequence[lambda_.ILayerVersion],
        memory_mb: int,
        timeout: Duration,
        variables: Mapping[str, str],
    ) -> None:
        super().__init__(scope, construct_id)
        full_name = f"duetime-{workplace.environment}-{name}"
        log = ExpiringLogGroup(self, "Log", name=f"/aws/lambda/{full_name}", days=workplace.log_days)
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self.allow(["logs:CreateLogStream", "logs:PutLogEvents"], [log.log_group_arn])
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=full_name,
            role=self.role,
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            code=lambda_.Code.from_asset(str(workplace.sources / name), exclude=NOT_SHIPPED),
            handler="handler.handle",
            layers=list(layers),
            memory_size=memory_mb,
            timeout=timeout,
            log_group=log,
            environment={
                "DUETIME_ENVIRONMENT": workplace.environment,
                "POWERTOOLS_SERVICE_NAME": name,
                "POWERTOOLS_LOG_LEVEL": workplace.log_level,
                **variables,
            },
        )
        acknowledge(
            self.function,
            "AwsSolutions-L1",
            "The dependencies layer is built for Python 3.13; runtime and layer are raised together.",
        )

    def logical_id_of(self, construct: Construct) -> str:
        return Stack.of(self).get_logical_id(cast(CfnElement, construct.node.default_child))

    def allow(
        self,
        actions: Sequence[str],
        resources: Sequence[str],
        conditions: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        # Not CDK's grant methods: they add actions and index wildcards that nobody here uses.
        self.role.add_to_principal_policy(
            iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions)
        )

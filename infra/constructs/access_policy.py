from collections.abc import Sequence

from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.constructs.http_api import STAGE, SignedHttpApi
from infra.constructs.nag import acknowledge


class AccessPolicy(iam.ManagedPolicy):
    """What a team attaches to the people and the systems that use the API."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        api: SignedHttpApi,
        routes: Sequence[str],
        description: str,
    ) -> None:
        arns = [api.invocation_arn(route) for route in routes]
        super().__init__(
            scope,
            construct_id,
            description=description,
            statements=[iam.PolicyStatement(actions=["execute-api:Invoke"], resources=arns)],
        )
        for route in routes:
            if "*" in route:
                acknowledge(
                    self,
                    f"AwsSolutions-IAM5[Resource::{_shown_by_nag(api, route)}]",
                    "A job's id is part of the path, and no policy can list the ids of jobs that do not exist yet. "
                    "The function itself answers 404 for a job that the caller may not see.",
                )


def _shown_by_nag(api: SignedHttpApi, route: str) -> str:
    method, path = route.split(" ")
    account = "arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>"
    return f"{account}:<{api.logical_id}>/{STAGE}/{method}{path}"

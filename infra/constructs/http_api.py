import json
from collections.abc import Sequence
from typing import cast

from aws_cdk import ArnFormat, CfnElement, CfnResource, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from infra.constructs.log_group import ExpiringLogGroup
from infra.environments import Api, RouteLimit

STAGE = "$default"
# Who asked for what, and how it ended. No query, header or body: they may hold what is not ours to log.
LOGGED = {
    "request_id": "$context.requestId",
    "requested_at": "$context.requestTime",
    "caller": "$context.identity.userArn",
    "source_ip": "$context.identity.sourceIp",
    "route": "$context.routeKey",
    "path": "$context.path",
    "status": "$context.status",
    "latency_ms": "$context.responseLatency",
    "integration_error": "$context.integrationErrorMessage",
}


class SignedHttpApi(Construct):
    """An HTTP API whose every route demands a SigV4 signature, and whose every request is logged and throttled."""

    def __init__(self, scope: Construct, construct_id: str, *, name: str, limits: Api, log_days: int) -> None:
        super().__init__(scope, construct_id)
        self._authorizer = HttpIamAuthorizer()
        self.api = apigateway.HttpApi(
            self,
            "Api",
            api_name=name,
            create_default_stage=False,
            # For the route that somebody adds one day without thinking of it.
            default_authorizer=self._authorizer,
        )
        stage = apigateway.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name=STAGE,
            auto_deploy=True,
            throttle=apigateway.ThrottleSettings(
                rate_limit=limits.requests_per_second, burst_limit=limits.burst
            ),
        )
        self._stage = cast(apigateway.CfnStage, stage.node.default_child)
        # The prefix keeps the delivery's permission out of CloudWatch's resource policy, which is limited in size.
        self.access_log = ExpiringLogGroup(
            self, "AccessLog", name=f"/aws/vendedlogs/apis/{name}", days=log_days
        )
        self._stage.access_log_settings = self._log_to(self.access_log)

    def serve(self, function: lambda_.Function, routes: Sequence[str]) -> None:
        integration = HttpLambdaIntegration("Integration", function)
        for method, path in (route.split(" ") for route in routes):
            added = self.api.add_routes(
                path=path,
                methods=[apigateway.HttpMethod[method]],
                integration=integration,
                authorizer=self._authorizer,
            )
            for route in added:
                # A route must exist before the stage can limit it.
                self._stage.add_dependency(cast(CfnResource, route.node.default_child))

    def limit(self, routes: Sequence[RouteLimit]) -> None:
        self._stage.route_settings = {
            each.route: {
                "ThrottlingBurstLimit": each.burst,
                "ThrottlingRateLimit": each.requests_per_second,
            }
            for each in routes
        }

    @property
    def logical_id(self) -> str:
        return Stack.of(self).get_logical_id(cast(CfnElement, self.api.node.default_child))

    def invocation_arn(self, route: str) -> str:
        method, path = route.split(" ")
        return self.api.arn_for_execute_api(method, path, STAGE)

    def _log_to(self, log: ExpiringLogGroup) -> apigateway.CfnStage.AccessLogSettingsProperty:
        # The log group's own ARN attribute ends in ":*", which API Gateway does not document as a destination.
        arn = Stack.of(self).format_arn(
            service="logs",
            resource="log-group",
            resource_name=log.log_group_name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        return apigateway.CfnStage.AccessLogSettingsProperty(destination_arn=arn, format=json.dumps(LOGGED))

"""The stack in front: one REST API, its authorizer, and one function per operation."""

from __future__ import annotations

from typing import Any

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_apigateway as apigateway
from constructs import Construct

from functions import catalog
from functions.catalog import Authorizer, Http
from infra.cloud.answers import answers
from infra.cloud.function import Functions, pascal, seconds
from infra.cloud.ground import Ground

STAGE = "live"
EVERYTHING = "*/*"
"""Bodies pass through as bytes whatever their type: a file must come back as it was sent."""


class ApiStack(Stack):
    """A regional REST API: the only kind that streams."""

    def __init__(self, scope: Construct, id: str, ground: Ground, **props: Any) -> None:
        super().__init__(scope, id, **props)
        self._ground = ground
        self._functions = Functions(self, ground)
        self._api = apigateway.RestApi(
            self,
            "Api",
            description=f"{ground.target.name}: sandboxes on many providers",
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            binary_media_types=[EVERYTHING],
            cloud_watch_role=False,
            deploy_options=apigateway.StageOptions(stage_name=STAGE, tracing_enabled=True),
        )
        for answer in answers():
            self._gateway_response(answer.type, answer.status, answer.body, answer.headers)
        authorizer = self._authorizer()
        for row in catalog.HTTP:
            self._operation(row, authorizer)
        CfnOutput(self, "ApiUrl", value=self._api.url)
        CfnOutput(self, "ApiId", value=self._api.rest_api_id)

    def _authorizer(self) -> apigateway.RequestAuthorizer:
        row = next(row for row in catalog.WORKERS if isinstance(row, Authorizer))
        return apigateway.RequestAuthorizer(
            self,
            "Authorizer",
            handler=self._functions.make(row),
            identity_sources=[apigateway.IdentitySource.header("Authorization")],
            results_cache_ttl=Duration.seconds(row.cache_seconds),
        )

    def _operation(self, row: Http, authorizer: apigateway.RequestAuthorizer) -> None:
        target = self._ground.target
        modes = apigateway.ResponseTransferMode
        integration = apigateway.LambdaIntegration(
            self._functions.make(row),
            allow_test_invoke=False,
            timeout=Duration.seconds(seconds(row, target)),
            response_transfer_mode=modes.STREAM if row.stream and target.streaming else None,
        )
        public = row.scope is None
        self._api.root.resource_for_path(row.path).add_method(
            row.method,
            integration,
            operation_name=row.operation_id,
            authorizer=None if public else authorizer,
            authorization_type=apigateway.AuthorizationType.NONE if public else None,
        )

    def _gateway_response(self, name: str, status: int, body: str, headers: dict[str, str]) -> None:
        # The L1: the L2's table of types has other names than the API.
        response = apigateway.CfnGatewayResponse(
            self,
            f"Answer{pascal(name.lower())}",
            rest_api_id=self._api.rest_api_id,
            response_type=name,
            status_code=str(status),
            response_parameters={
                f"gatewayresponse.header.{header}": value for header, value in headers.items()
            },
            response_templates={"application/json": body},
        )
        deployment = self._api.latest_deployment
        assert deployment is not None
        deployment.node.add_dependency(response)
        deployment.add_to_logical_id({name: [status, body, headers]})

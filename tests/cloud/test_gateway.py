"""The API is the catalog, and what the gateway says itself has the shape of every other error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.catalog import HTTP
from infra.local.invocation import refusal
from infra.local.proxy_event import Reply
from sandbox_router.model.failure import NotFound, StoreBusy, Unauthenticated
from sandbox_router.model.failure_class import Effect
from tests.cloud.synthesis import Assembly, Resource

REQUEST_ID = "$context.requestId"


def methods(assembly: Assembly) -> dict[tuple[str, str], Resource]:
    """Method and path -> the method."""
    nodes = assembly.of_type("AWS::ApiGateway::Resource")

    def path(ref: dict[str, Any]) -> str:
        if "Ref" not in ref:
            return ""
        node = nodes[ref["Ref"]]
        return f"{path(node['ParentId'])}/{node['PathPart']}"

    found = assembly.of_type("AWS::ApiGateway::Method").values()
    return {(m["HttpMethod"], path(m["ResourceId"])): m for m in found}


def test_the_methods_are_the_catalogs(assembly: Assembly) -> None:
    assert set(methods(assembly)) == {(row.method, row.path) for row in HTTP}


@pytest.mark.parametrize("row", HTTP, ids=lambda row: row.name)
def test_a_method_calls_its_function_through_the_authorizer(assembly: Assembly, row: Any) -> None:
    method = methods(assembly)[row.method, row.path]
    assert method["OperationName"] == row.operation_id
    assert method["AuthorizationType"] == ("NONE" if row.scope is None else "CUSTOM")
    assert ("AuthorizerId" in method) is (row.scope is not None)
    integration = method["Integration"]
    assert integration["Type"] == "AWS_PROXY"
    function = assembly.functions[row.name]
    assert integration["TimeoutInMillis"] == function["Timeout"] * 1000
    uri = json.dumps(integration["Uri"])
    if row.stream:
        assert integration["ResponseTransferMode"] == "STREAM"
        assert "/2021-11-15/functions/" in uri
        assert "/response-streaming-invocations" in uri
        assert 29_000 < integration["TimeoutInMillis"] <= 900_000
    else:
        assert "ResponseTransferMode" not in integration
        assert "/2015-03-31/functions/" in uri


def test_without_streaming_no_method_streams(buffered: Assembly) -> None:
    for method in methods(buffered).values():
        assert "ResponseTransferMode" not in method["Integration"]
        assert method["Integration"]["TimeoutInMillis"] <= 29_000


def test_the_authorizer_is_asked_once_a_minute_per_key(assembly: Assembly) -> None:
    (authorizer,) = assembly.of_type("AWS::ApiGateway::Authorizer").values()
    assert authorizer["Type"] == "REQUEST"
    assert authorizer["AuthorizerResultTtlInSeconds"] == 60
    assert authorizer["IdentitySource"] == "method.request.header.Authorization"


def test_the_api_is_regional_traced_and_passes_bytes(assembly: Assembly) -> None:
    (api,) = assembly.of_type("AWS::ApiGateway::RestApi").values()
    assert api["EndpointConfiguration"] == {"Types": ["REGIONAL"]}
    assert api["BinaryMediaTypes"] == ["*/*"]
    (stage,) = assembly.of_type("AWS::ApiGateway::Stage").values()
    assert (stage["StageName"], stage["TracingEnabled"]) == ("live", True)


def responses(assembly: Assembly) -> dict[str, Resource]:
    found = assembly.of_type("AWS::ApiGateway::GatewayResponse").values()
    return {one["ResponseType"]: one for one in found}


def test_every_answer_of_the_gateway_is_a_problem_document(assembly: Assembly) -> None:
    found = responses(assembly)
    assert {"DEFAULT_4XX", "DEFAULT_5XX", "UNAUTHORIZED", "THROTTLED"} <= set(found)
    for answer in found.values():
        document = json.loads(answer["ResponseTemplates"]["application/json"])
        assert str(document["status"]) == answer["StatusCode"]
        assert {"type", "title", "detail", "code", "class", "retryable", "outcome"} < set(document)
        assert document["request_id"] == REQUEST_ID
        headers = answer["ResponseParameters"]
        assert headers["gatewayresponse.header.Content-Type"] == "'application/problem+json'"
        assert headers["gatewayresponse.header.X-Request-Id"] == "context.requestId"


@pytest.mark.parametrize(
    ("name", "local"),
    [
        # API Gateway's word for an unknown path
        ("MISSING_AUTHENTICATION_TOKEN", refusal(NotFound(), REQUEST_ID)),
        ("RESOURCE_NOT_FOUND", refusal(NotFound(), REQUEST_ID)),
        ("UNAUTHORIZED", refusal(Unauthenticated(), REQUEST_ID)),
        # It raised: nobody can look the key up now.
        ("AUTHORIZER_FAILURE", refusal(StoreBusy(retry_after=1), REQUEST_ID, outcome=Effect.NONE)),
    ],
)
def test_the_gateway_says_what_the_local_gateway_says(
    assembly: Assembly, name: str, local: Reply
) -> None:
    answer = responses(assembly)[name]
    assert int(answer["StatusCode"]) == local.status
    assert json.loads(answer["ResponseTemplates"]["application/json"]) == json.loads(local.body)
    ours = {
        key.removeprefix("gatewayresponse.header."): value.strip("'")
        for key, value in answer["ResponseParameters"].items()
    }
    assert {name: ours[name] for name, _ in local.headers} == {
        **dict(local.headers),
        "X-Request-Id": "context.requestId",
    }


def test_a_change_of_an_answer_or_a_method_is_a_new_deployment(assembly: Assembly) -> None:
    (deployment,) = (
        resource
        for resource in assembly.stacks["api"]["Resources"].values()
        if resource["Type"] == "AWS::ApiGateway::Deployment"
    )
    needed = set(deployment["DependsOn"])
    assert set(assembly.of_type("AWS::ApiGateway::GatewayResponse")) <= needed
    assert set(assembly.of_type("AWS::ApiGateway::Method")) <= needed

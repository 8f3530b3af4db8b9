"""API Gateway's REST proxy event and answer, as values: what a function gets and gives."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

STAGE = "local"
ACCOUNT = "000000000000"
REGION = "local"
TEXT = ("application/json", "text/")
Headers = list[tuple[str, str]]


class Malformed(Exception):
    """The request or the function's answer is not what the gateway can carry."""


@dataclass(frozen=True)
class Call:
    """One HTTP request, read in full; header names as the client wrote them."""

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes = field(repr=False)
    client: str
    protocol: str
    request_id: str

    def header(self, name: str) -> str | None:
        """The last value of a header, in any case of its name."""
        found = [value for key, value in self.headers if key.lower() == name]
        return found[-1] if found else None


@dataclass(frozen=True)
class Target:
    """Where a call goes: the path's template and what filled it."""

    resource: str
    parameters: Mapping[str, str]
    function: str


def proxy_event(
    call: Call, target: Target, now: datetime, authorizer: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The event of an integration; raises Malformed for a query that is no UTF-8."""
    query = _query(call.query)
    body, encoded = _body(call)
    event: dict[str, Any] = {
        "resource": target.resource,
        "path": call.path,
        "httpMethod": call.method,
        "headers": dict(call.headers) or None,
        "multiValueHeaders": _multi(call.headers),
        "queryStringParameters": dict(query) or None,
        "multiValueQueryStringParameters": _multi(query),
        "pathParameters": dict(target.parameters) or None,
        "stageVariables": None,
        "requestContext": _context(call, target, now),
        "body": body,
        "isBase64Encoded": encoded,
    }
    if authorizer is not None:
        event["requestContext"]["authorizer"] = dict(authorizer)
    return event


def authorizer_event(call: Call, target: Target, now: datetime) -> dict[str, Any]:
    """The event of a REQUEST authorizer: the proxy event without its body."""
    event = proxy_event(call, target, now)
    del event["body"], event["isBase64Encoded"]
    return {
        "type": "REQUEST",
        "methodArn": method_arn(call.method, call.path),
        "identitySource": call.header("authorization"),
        "authorizationToken": call.header("authorization"),
        **event,
    }


def method_arn(method: str, path: str) -> str:
    """The name IAM policies of an authorizer speak about."""
    return f"arn:aws:execute-api:{REGION}:{ACCOUNT}:local/{STAGE}/{method}/{path.lstrip('/')}"


def _query(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=200)
    except ValueError as error:  # includes what is no UTF-8
        raise Malformed("The query string cannot be read") from error


def _multi(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]] | None:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found or None


def _body(call: Call) -> tuple[str | None, bool]:
    """Text as text; everything else, and text that is none, in base64."""
    if not call.body:
        return None, False
    if (call.header("content-type") or "application/json").lower().startswith(TEXT):
        try:
            return call.body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(call.body).decode(), True


def _context(call: Call, target: Target, now: datetime) -> dict[str, Any]:
    return {
        "accountId": ACCOUNT,
        "apiId": "local",
        "domainName": call.header("host") or "localhost",
        "extendedRequestId": call.request_id,
        "httpMethod": call.method,
        "identity": {"sourceIp": call.client, "userAgent": call.header("user-agent")},
        "path": call.path,  # as behind a domain of one's own: no stage in front
        "protocol": call.protocol,
        "requestId": call.request_id,
        "requestTime": now.astimezone(UTC).strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "requestTimeEpoch": int(now.timestamp() * 1000),
        "resourceId": target.function,
        "resourcePath": target.resource,
        "stage": STAGE,
    }


@dataclass(frozen=True)
class Reply:
    """An HTTP answer in one piece."""

    status: int
    headers: Headers
    body: bytes = field(repr=False)


def reply_of(answer: object) -> Reply:
    """What a function's proxy answer says; raises Malformed when it says nothing usable."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("statusCode"), int):
        raise Malformed("The function's answer has no status")
    body = answer.get("body") or ""
    data = base64.b64decode(body) if answer.get("isBase64Encoded") else str(body).encode()
    return Reply(answer["statusCode"], _headers(answer), data)


def _headers(answer: Mapping[str, Any]) -> Headers:
    """Both forms of headers merged, the multi-value form first, as API Gateway does."""
    multi = answer.get("multiValueHeaders") or {}
    found = [(str(name), str(value)) for name, values in multi.items() for value in values]
    have = {name.lower() for name, _ in found}
    single = answer.get("headers") or {}
    found += [(str(k), str(v)) for k, v in single.items() if k.lower() not in have]
    if any(c in "\r\n\0" for name, value in found for c in name + value):
        raise Malformed("The function's answer has a header that would break the protocol")
    return found

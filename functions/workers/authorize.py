"""REQUEST authorizer: an API key in, its tenant and scopes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.edge import wiring
from functions.edge.log import unexpected
from functions.edge.principal import bearer, context_of
from sandbox_router.model.failure import StoreBusy


class _Unauthorized(Exception):
    """API Gateway answers 401 to exactly this text, and so to every cause."""

    def __init__(self) -> None:
        super().__init__("Unauthorized")


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Allow the whole stage, since the gateway keeps the answer for other methods too; what the
    key may do there is for the functions to say.
    """
    key = bearer(_authorization(event))
    if key is None:
        raise _Unauthorized
    try:
        principal = wiring.router().authenticate(key)
    except Exception as error:
        unexpected(error, operation="authorize")
        raise StoreBusy from None
    if principal is None:
        raise _Unauthorized
    statement = {
        "Action": "execute-api:Invoke",
        "Effect": "Allow",
        "Resource": _stage(str(event["methodArn"])),
    }
    return {
        "principalId": principal.key_id,
        "policyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        "context": context_of(principal),
    }


def _authorization(event: Mapping[str, Any]) -> list[str]:
    many = event.get("multiValueHeaders")
    if many is None:
        many = {name: [value] for name, value in (event.get("headers") or {}).items()}
    return [v for name, values in many.items() if name.lower() == "authorization" for v in values]


def _stage(method_arn: str) -> str:
    api, stage, *_ = method_arn.split("/")
    return f"{api}/{stage}/*"

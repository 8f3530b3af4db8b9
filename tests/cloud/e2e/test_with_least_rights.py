"""Roles are enforced here: what this deployment has shown so far, it has shown with least rights.

The last of its files: it looks at what all others left in the logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.cloud.e2e.deployment import Cloud
from tests.local.acceptance.deployment import eventually


@pytest.fixture(scope="module")
def cloud(enforced: Cloud) -> Cloud:
    return enforced


@contextmanager
def unable(cloud: Cloud, function: str, action: str) -> Iterator[None]:
    """The function's role without one action."""
    iam, name = cloud.emulator.client("iam"), cloud.functions[function]["Role"].rpartition("/")[2]
    policy = {"RoleName": name, "PolicyName": "may"}
    document: dict[str, Any] = iam.get_role_policy(**policy)["PolicyDocument"]
    kept = json.dumps(document)
    left = [one for one in document["Statement"] if action not in json.dumps(one["Action"])]
    assert left != document["Statement"]
    less = json.dumps({**document, "Statement": left})
    iam.put_role_policy(**policy, PolicyDocument=less)
    try:
        yield
    finally:
        iam.put_role_policy(**policy, PolicyDocument=kept)


def test_the_emulator_enforces_roles(cloud: Cloud) -> None:
    health = httpx.get(f"{cloud.emulator.url}/_ministack/health", trust_env=False)
    assert health.json()["auth"] == "enabled"


def test_what_a_role_lacks_its_function_cannot_do_and_says_so(cloud: Cloud) -> None:
    def status() -> int:
        return cloud.api.get("/v1/sandboxes").status_code

    assert status() == 200
    assert cloud.refused() == [], "something was refused to a role of ours"
    with unable(cloud, "list_sandboxes", "dynamodb:Query"):
        eventually(lambda: status() == 500, 10)
    eventually(lambda: status() == 200, 10)
    assert {line.partition(": ")[2].strip() for line in cloud.refused()} == {
        "dynamodb: AccessDeniedException"
    }

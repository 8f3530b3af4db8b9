"""BACKEND=aws: a Router out of what a stack tells its functions, and nothing before its time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.aws.session import ONCE, Session
from functions.edge import wiring
from functions.edge.pools import Document, RenewedPools
from functions.edge.settings import BadSetting, Settings
from sandbox_router.model.failure import NotFound
from sandbox_router.model.secret import Secret
from tests.architecture.tree import ROOT
from tests.contract.aws.cloud import BUCKET, REGION, TABLE, made_secret, make_table

NAMES = {
    "BACKEND": "aws",
    "DEPLOYMENT": "test",
    "TABLE_NAME": TABLE,
    "BUCKET_NAME": BUCKET,
    "EVENT_BUS_NAME": "bus",
    "CREATE_QUEUE_URL": "https://sqs.test/1/create",
    "TEARDOWN_QUEUE_URL": "https://sqs.test/1/teardown",
    "LETTERS_QUEUE_URL": "https://sqs.test/1/letters",
    "PEPPER_SECRET_ARN": "arn:pepper",
    "POOLS_SECRET_ARN": "arn:pools",
    "VAULT_SECRET_ARN": "arn:vault",
}


def pools(*ids: str, **more: Any) -> str:
    rows = [{"id": id, "kind": "e2b", "key": "CANARY-key"} for id in ids]
    images = {"default": {"e2b": {"2x4": "base"}}}
    return json.dumps({"pools": rows, "images": images, **more})


def named(manager: Any, text: str) -> dict[str, str]:
    """The variables of a deployment whose secrets exist."""
    given = {"PEPPER": "p" * 64, "VAULT": "v" * 64, "POOLS": text}
    return {**NAMES, **{f"{n}_SECRET_ARN": made_secret(manager, v) for n, v in given.items()}}


@pytest.fixture
def manager(account: Session, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    return account.made("secretsmanager")


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"BACKEND", "DEPLOYMENT"}))
@pytest.mark.parametrize("empty", [{}, {"": ""}], ids=["missing", "empty"])
def test_a_name_that_is_not_told_is_named(name: str, empty: dict[str, str]) -> None:
    told = {key: value for key, value in NAMES.items() if key != name}
    with pytest.raises(BadSetting, match=f"^{name} is needed"):
        Settings.of({**told, **({name: ""} if empty else {})})


def test_a_router_over_aws_keeps_and_finds_a_key(account: Session, manager: Any) -> None:
    make_table(account.made("dynamodb"))
    try:
        router = wiring.build(Settings.of(named(manager, pools("one", "two"))))
        assert [pool.id for pool in router.pools()] == ["one", "two"]
        router.add_key("acme", Secret("sbr_x"), ["sandboxes:read"])
        principal = router.authenticate(Secret("sbr_x"))
        assert principal is not None
        assert principal.tenant == "acme"
    finally:
        account.made("dynamodb").delete_table(TableName=TABLE)


def test_pools_that_cannot_be_used_stop_the_start_and_show_no_key(manager: Any) -> None:
    row = {"id": "x", "kind": "none", "key": "CANARY-key"}
    for text in ("{", json.dumps({"pools": [row]}), pools("one", more=1)):
        with pytest.raises(BadSetting) as caught:
            wiring.build(Settings.of(named(manager, text)))
        assert "the secret with the pools" in str(caught.value)
        assert "CANARY" not in str(caught.value)


def test_a_key_beside_a_file_needs_a_file(manager: Any) -> None:
    row = {"id": "one", "kind": "e2b", "key_file": "e2b.key"}
    with pytest.raises(BadSetting, match="kept in a file"):
        wiring.build(Settings.of(named(manager, pools("one", pools=[row]))))


def test_a_short_pepper_is_refused(manager: Any) -> None:
    env = {**named(manager, pools()), "PEPPER_SECRET_ARN": made_secret(manager, "short")}
    with pytest.raises(BadSetting, match="pepper"):
        wiring.build(Settings.of(env))


def test_event_sources_come_from_the_same_secret(manager: Any) -> None:
    source = {"acme.orders": {"tenant": "acme", "scopes": ["sandboxes:write"]}}
    env = named(manager, pools("one", event_sources=source))
    outward = wiring.OUTWARD["aws"](Settings.of(env))
    assert outward.sources()["acme.orders"].tenant == "acme"


def test_one_session_serves_a_process(manager: Any) -> None:
    settings = Settings.of(named(manager, pools()))
    behind, outward = wiring.aws(settings), wiring.OUTWARD["aws"](settings)
    vault = behind.vault.seal("sbx-" + "a" * 26, {})
    assert wiring.aws(settings).vault.unseal("sbx-" + "a" * 26, vault) == {}
    assert wiring.aws(settings).table is behind.table
    assert wiring.OUTWARD["aws"](settings).bus is outward.bus


class Kept:
    """A document others may change."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self) -> Document:
        return Document("the secret", self.text)


@pytest.fixture
def made(tmp_path: Path) -> Callable[[Document], wiring.ConfiguredPools]:
    settings = Settings(state=tmp_path)
    return lambda document: wiring.ConfiguredPools(settings, document=document)


def test_changed_pools_are_made_again_and_the_same_are_kept(
    made: Callable[[Document], wiring.ConfiguredPools],
) -> None:
    kept = Kept(pools("one"))
    renewed = RenewedPools(kept, made)
    provider = renewed.provider("one")
    assert renewed.provider("one") is provider
    kept.text = pools("two", "one")
    assert [pool.id for pool in renewed.all()] == ["two", "one"]
    assert renewed.provider("one") is not provider
    kept.text = pools("two")
    with pytest.raises(NotFound):
        renewed.pool("one")


def test_a_broken_change_leaves_the_pools_as_they_were(
    made: Callable[[Document], wiring.ConfiguredPools],
) -> None:
    kept = Kept(pools("one"))
    renewed = RenewedPools(kept, made)
    for text in ("{", pools("NOT AN ID")):
        kept.text = text
        assert [pool.id for pool in renewed.all()] == ["one"]
    kept.text = pools("two")
    assert [pool.id for pool in renewed.all()] == ["two"]


def test_the_table_is_asked_once_and_the_rest_may_be_asked_again(account: Session) -> None:
    retries = {
        name: account.made(name).meta.config.retries["total_max_attempts"]
        for name in ("dynamodb", "sqs", "secretsmanager", "events", "s3")
    }
    assert retries == {"dynamodb": 1, "sqs": 3, "secretsmanager": 3, "events": 3, "s3": 3}
    assert ONCE["total_max_attempts"] == 1


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import adapters.aws.deployment", []),
        ("from functions.edge import wiring", []),
        (
            "from adapters.aws.deployment import Deployment\n"
            "more = {'queues': {'letters': 'u'}, 'secrets': {'vault': 'v'}}\n"
            "Deployment(table='t', bucket='o', bus='b', **more)",
            [],
        ),
        ("from adapters.aws.session import Session\nSession('x').made('sqs')", ["boto3"]),
    ],
)
def test_boto3_is_imported_with_the_first_client(code: str, loaded: list[str]) -> None:
    script = (
        f"{code}\nimport sys\nprint([m for m in ('boto3', 'httpx._client') if m in sys.modules])"
    )
    command = [sys.executable, "-c", script]
    env = {"PYTHONPATH": f"{ROOT}/layers/core/python:{ROOT}"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == str(loaded)

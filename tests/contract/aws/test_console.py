"""What an operator does to a new deployment: pools in, a key out, nothing secret said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.aws.session import Session
from functions.edge import wiring
from functions.edge.settings import Settings
from infra.cloud.console.__main__ import main
from infra.cloud.console.deployed import NAMES, Deployed
from sandbox_router.model.secret import Secret
from tests.contract.aws.cloud import REGION, TABLE, made_secret, make_table

API = f"https://abc.execute-api.{REGION}.amazonaws.com/live"
CANARY = "CANARY-" + "c" * 40
IMAGES = {"default": {"e2b": {"2x4": "base"}}}
NO_POOLS = '{"pools": [], "images": {}}'
ROW = {"id": "one", "kind": "e2b", "key": CANARY}


class Operator:
    """A deployment, a folder, and the command."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.manager = session.made("secretsmanager")
        self.folder, self.outputs = folder, folder / "outputs.json"
        arns = {
            "PepperSecretArn": made_secret(self.manager, "p" * 64),
            "VaultSecretArn": made_secret(self.manager, "v" * 64),
            "PoolsSecretArn": made_secret(self.manager, NO_POOLS),
        }
        self.pools_arn = arns["PoolsSecretArn"]
        urls = {
            f"{name}QueueUrl": f"https://q/{name}" for name in ("Create", "Teardown", "Letters")
        }
        data = {
            "TableName": TABLE,
            "BucketName": "o",
            "EventBusName": "bus",
            "ExportsOutputRefX": "x",
            **arns,
        }
        api = {"ApiUrl": f"{API}/", "ApiId": "abc"}
        self.write_outputs({"r-data": data, "r-workers": urls, "r-api": api})

    def write_outputs(self, stacks: dict[str, dict[str, str]]) -> None:
        self.outputs.write_text(json.dumps(stacks))

    def run(self, command: str, **env: str) -> int:
        return main([command], {"OUTPUTS": str(self.outputs), **env})

    def file(self, *rows: dict[str, Any], name: str = "pools.json", **more: Any) -> str:
        path = self.folder / name
        path.write_text(json.dumps({"pools": rows, "images": IMAGES, **more}))
        return str(path)

    @property
    def kept(self) -> str:
        text: str = self.manager.get_secret_value(SecretId=self.pools_arn)["SecretString"]
        return text

    def router(self) -> Any:
        variables = Deployed.read(self.outputs).variables
        return wiring.build(Settings.of(variables))


@pytest.fixture
def operator(account: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-1")  # not where the deployment is
    return Operator(account, tmp_path)


@pytest.fixture
def table(account: Session) -> Any:
    client = account.made("dynamodb")
    make_table(client)
    yield client
    client.delete_table(TableName=TABLE)


@pytest.mark.parametrize(
    ("env", "tenant", "scopes"),
    [
        ({}, "default", {"sandboxes:read", "sandboxes:write"}),
        ({"TENANT": "acme", "SCOPES": "sandboxes:read"}, "acme", {"sandboxes:read"}),
    ],
)
def test_a_key_is_printed_once_and_let_in(
    operator: Operator,
    table: Any,
    capsys: pytest.CaptureFixture[str],
    env: dict[str, str],
    tenant: str,
    scopes: set[str],
) -> None:
    assert operator.run("key", **env) == 0
    said = capsys.readouterr()
    (key,) = said.out.splitlines()
    assert key not in said.err
    assert f"API={API}\n" in said.err
    principal = operator.router().authenticate(Secret(key))
    assert (principal.tenant, principal.scopes) == (tenant, frozenset(scopes))
    assert principal.key_id in said.err
    assert key not in json.dumps(table.scan(TableName=TABLE)["Items"])


def test_two_keys_are_two(
    operator: Operator, table: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (operator.run("key"), operator.run("key")) == (0, 0)
    first, second = capsys.readouterr().out.splitlines()
    assert first != second
    assert operator.router().authenticate(Secret(first)) is not None


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"TENANT": "No tenant"}, "TENANT='No tenant' is not lower-case"),
        ({"TENANT": ""}, "TENANT='' is not lower-case"),
        ({"SCOPES": "sandboxes:all"}, "SCOPES: 'sandboxes:all' is none of sandboxes:read"),
        ({"SCOPES": " "}, "SCOPES is empty"),
    ],
)
def test_a_key_nobody_could_use_is_not_made(
    operator: Operator, capsys: pytest.CaptureFixture[str], env: dict[str, str], said: str
) -> None:
    assert operator.run("key", **env) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


def test_pools_are_put_with_their_keys_and_read_by_the_functions(
    operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    (operator.folder / "e2b.key").write_text(f"{CANARY}-file\n")
    rows = [
        {"id": "typed", "kind": "e2b", "key": CANARY},
        {"id": "told", "kind": "e2b", "key_env": "E2B_API_KEY"},
        {"id": "beside", "kind": "e2b", "key_file": "e2b.key"},
    ]
    file = operator.file(*rows)
    assert operator.run("pools", FILE=file, E2B_API_KEY=f"{CANARY}-env") == 0
    assert "Pools: typed, told, beside." in capsys.readouterr().out
    kept = {row["id"]: row["key"] for row in json.loads(operator.kept)["pools"]}
    assert kept == {"typed": CANARY, "told": f"{CANARY}-env", "beside": f"{CANARY}-file"}
    assert [pool.id for pool in operator.router().pools()] == ["typed", "told", "beside"]


def test_a_toml_file_is_kept_as_what_the_functions_read(operator: Operator) -> None:
    path = operator.folder / "pools.toml"
    text = f'[[pools]]\nid = "one"\nkind = "e2b"\nkey = "{CANARY}"\n'
    path.write_text(f'{text}[images.default.e2b]\n"2x4" = "base"\n')
    assert operator.run("pools", FILE=str(path)) == 0
    assert json.loads(operator.kept) == {"pools": [ROW], "images": IMAGES}


def test_a_pool_that_is_left_out_is_named(
    operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    operator.run("pools", FILE=operator.file(ROW, {**ROW, "id": "two"}))
    operator.run("pools", FILE=operator.file(ROW))
    *_, last = capsys.readouterr().out.splitlines()
    assert last == "No longer there, so nobody can end what runs in: two"


def test_event_sources_go_with_the_pools(operator: Operator) -> None:
    source = {"acme": {"tenant": "acme", "scopes": ["sandboxes:write"]}}
    assert operator.run("pools", FILE=operator.file(ROW, event_sources=source)) == 0
    assert json.loads(operator.kept)["event_sources"] == source


@pytest.mark.parametrize(
    ("rows", "more", "said"),
    [
        ([{**ROW, "kind": "none"}], {}, "pools[0].kind 'none' is not known; known are: e2b"),
        ([{**ROW, "key_env": "X"}], {}, "pools[0] needs exactly one of key, key_env and key_file"),
        ([{"id": "a", "kind": "e2b", "key_env": "X"}], {}, "pools[0].key_env leads to no key"),
        ([{"id": "a", "kind": "e2b", "local_account": "a"}], {}, "needs exactly one of key"),
        ([{**ROW, "api_url": "http://x.test"}], {}, "pool 'one'"),
        ([ROW], {"pool": []}, "pool is none of `pools`"),
        ([ROW], {"event_sources": {"acme": {"tenant": "a"}}}, "event_sources.acme.scopes"),
        ([{**ROW, "region": "r" * 66_000}], {}, "over 65536 bytes"),
    ],
)
def test_a_wrong_file_changes_nothing_and_shows_no_key(
    operator: Operator,
    capsys: pytest.CaptureFixture[str],
    rows: list[dict[str, Any]],
    more: dict[str, Any],
    said: str,
) -> None:
    assert operator.run("pools", FILE=operator.file(*rows, **more)) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert "pools.json" in shown.err
    assert "CANARY" not in shown.err + shown.out
    assert operator.kept == NO_POOLS


def test_a_file_must_be_named_and_be_there(
    operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert operator.run("pools") == 2
    assert operator.run("pools", FILE=str(operator.folder / "none.json")) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("FILE=")
    assert second.endswith("none.json: cannot be read (No such file or directory)")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "is not there; `make deploy` writes it"),
        ("[1", "cannot be read as the outputs"),
        ("[]", "cannot be read as the outputs"),
        ("{}", "no ApiUrl in it; did `make deploy` finish?"),
        (json.dumps({"r": {**dict.fromkeys(NAMES.values(), "x"), "ApiUrl": "x"}}), "none of API G"),
    ],
)
def test_without_a_deployment_it_says_so(
    operator: Operator, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    operator.outputs.unlink()
    if text is not None:
        operator.outputs.write_text(text)
    assert operator.run("key") == 2
    assert said in capsys.readouterr().err


def test_credentials_of_another_account_are_the_likely_reason(
    operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    """No table of that name there, no secret either."""
    assert operator.run("key") == 1
    assert f"{REGION}: no usable answer (Internal); are the" in capsys.readouterr().err
    operator.manager.delete_secret(SecretId=operator.pools_arn, ForceDeleteWithoutRecovery=True)
    assert operator.run("pools", FILE=operator.file(ROW)) == 1
    assert f"{REGION}: ResourceNotFoundException; are the credentials" in capsys.readouterr().err

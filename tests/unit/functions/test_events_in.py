"""Events of other systems: taken once, or a dead letter without values."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from functions.catalog import WORKERS, FromBus
from functions.edge import events
from functions.workers import accept_event
from infra import schemas
from sandbox_router.model.failure import StoreBusy
from tests.architecture.tree import ROOT
from tests.unit.functions.world import NOBODY, World, call, on

BUS = ROOT / "events" / "bus"
SAMPLES = sorted(path.stem for path in BUS.glob("*.json"))
CREATE, DESTROY = "sandbox.create.requested", "sandbox.destroy.requested"
CANARY = "CANARY-7f3a-x7Qz"


def sample(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((BUS / f"{name}.json").read_text())
    return found


def asked(kind: str = CREATE, detail: Any = None, **envelope: Any) -> dict[str, Any]:
    given = {} if detail is None else detail
    return {**sample(CREATE), "detail-type": kind, "detail": given, **envelope}


def sandboxes(tenant: str = "acme") -> list[Any]:
    found: list[Any] = call("list_sandboxes", tenant=tenant).json["data"]
    return found


def test_the_schemas_are_current() -> None:
    assert schemas.stale() == [], "python -m infra.schemas --write"


def test_a_stale_schema_is_found(tmp_path: Path) -> None:
    for name, text in schemas.texts().items():
        (tmp_path / name).write_text(text)
    (tmp_path / "more.json").write_text("{}")
    (tmp_path / f"{CREATE}.json").write_text("{}")
    assert schemas.stale(tmp_path) == ["more.json", f"{CREATE}.json"]


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_as_the_schemas_say(name: str) -> None:
    schema = json.loads((schemas.FOLDER / f"{name}.json").read_text())
    jsonschema.validate(sample(name)["detail"], schema, jsonschema.Draft202012Validator)
    assert sample(name)["detail-type"] == name


def test_there_is_a_sample_and_a_rule_for_every_event() -> None:
    assert {*events.IN, *events.OUT} == set(SAMPLES)
    (row,) = (row for row in WORKERS if isinstance(row, FromBus))
    assert set(row.detail_types) == set(events.IN)


def test_a_create_is_stored_and_handed_over_without_a_provider(world: World) -> None:
    assert accept_event.handler(sample(CREATE), None) == {"outcome": "taken"}
    (box,) = sandboxes()
    assert (box["state"], box["labels"]) == ("starting", {"order": "4711"})
    assert world.first.calls == []
    world.router.advance(box["id"])
    assert on("get_sandbox", box["id"]).json["state"] == "running"
    assert sandboxes("other") == []


def test_a_create_may_name_a_snapshot_of_its_tenants_and_waits_until_it_is_ready(
    world: World,
) -> None:
    source = world.created()
    found = on("take_snapshot", source, headers={"Prefer": "wait=0"}).json["id"]
    made_of = asked(detail={"snapshot_id": found})
    with pytest.raises(accept_event.Later):
        accept_event.handler(made_of, None)
    world.router.advance(found)
    assert accept_event.handler(made_of, None) == {"outcome": "taken"}
    made = next(box for box in sandboxes() if box["id"] != source)
    assert made["snapshot_id"] == found
    stranger = {**asked(detail={"snapshot_id": found}), "source": "other.app"}
    assert accept_event.handler(stranger, None) == {"outcome": "refused"}
    assert sandboxes("other") == []


def test_an_event_delivered_again_is_one_sandbox(world: World) -> None:
    for _ in range(3):
        assert accept_event.handler(sample(CREATE), None)["outcome"] == "taken"
        for box in sandboxes():
            world.router.advance(box["id"])
    assert len(sandboxes()) == 1
    assert len(world.first.boxes) == 1
    accept_event.handler({**sample(CREATE), "id": "another"}, None)
    assert len(sandboxes()) == 2
    assert world.bus.letters == []


def test_a_destroy_destroys_once(world: World) -> None:
    box = world.created()
    for _ in range(2):
        event = asked(DESTROY, {"sandbox_id": box})
        assert accept_event.handler(event, None) == {"outcome": "taken"}
    assert on("get_sandbox", box).json["state"] == "destroyed"


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (asked(source="nobody"), "forbidden"),
        (asked(source="sandbox-router"), "forbidden"),
        (asked(source="acme.reader"), "forbidden"),
        (asked(account="999999999999"), "forbidden"),
        (asked("sandbox.other"), "invalid_request"),
        (asked(detail={"nope": CANARY}), "invalid_request"),
        (asked(detail={"size": CANARY}), "invalid_request"),
        (asked(detail={"labels": {"a": "\ud800"}}), "invalid_request"),
        (asked(detail={"vcpu": float("nan"), "memory_gib": 1}), "invalid_request"),
        (asked(detail=[CANARY]), "invalid_request"),
        (asked(detail="x" * 70_000), "invalid_request"),
        (asked(detail={"env": {"TOKEN": CANARY}}), "unsupported"),
        (asked(detail={"credentials": [{"value": CANARY}]}), "unsupported"),
        (asked(detail={"env_secret_arn": f"arn:{CANARY}"}), "unsupported"),
        (asked(detail={"region": "nowhere"}), "unsupported"),
        (asked(id="no id"), "invalid_request"),
        (asked(id=None), "invalid_request"),
        (asked(DESTROY, {"sandbox_id": CANARY}), "invalid_request"),
        (asked(DESTROY, {"sandbox_id": NOBODY}), "not_found"),
        (asked(DESTROY, {}), "invalid_request"),
        ({}, "forbidden"),
        ([], "forbidden"),
    ],
    ids=range(22),
)
def test_what_cannot_be_taken_is_a_dead_letter_without_values(
    world: World, event: Any, code: str, logged: io.StringIO
) -> None:
    assert accept_event.handler(event, None) == {"outcome": "refused"}
    (letter,) = world.bus.letters
    assert letter["code"] == code
    detail = event["detail"] if event else {}
    assert letter["detail_keys"] == (sorted(detail) if isinstance(detail, dict) else [])
    assert {"event_id", "source", "detail_type", "reason", "field_errors"} <= letter.keys()
    assert "CANARY" not in json.dumps(letter) + logged.getvalue()
    assert code in logged.getvalue()
    assert sandboxes() == []
    assert world.first.calls == []


def test_anothers_sandbox_is_not_there(world: World) -> None:
    box = world.created()
    accept_event.handler(asked(DESTROY, {"sandbox_id": box}, source="other.app"), None)
    assert world.bus.letters[0]["code"] == "not_found"
    assert on("get_sandbox", box).json["state"] == "running"


def test_one_id_with_two_bodies_is_a_dead_letter(world: World) -> None:
    accept_event.handler(asked(), None)
    assert accept_event.handler(asked(detail={"size": "4x8"}), None)["outcome"] == "refused"
    assert world.bus.letters[0]["code"] == "idempotency_key_reused"
    assert len(sandboxes()) == 1


def test_names_in_a_letter_are_short_and_few(world: World) -> None:
    detail = {f"{n:03d}" + "x" * 300: 1 for n in range(200)}
    accept_event.handler(asked(detail=detail, source="s" * 500 + "\n"), None)
    (letter,) = world.bus.letters
    assert len(letter["detail_keys"]) == events.KEYS
    assert max(map(len, [*letter["detail_keys"], letter["source"]])) == events.NAME_LENGTH


def test_what_time_may_mend_comes_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any, **__: Any) -> None:
        raise StoreBusy

    with monkeypatch.context() as patch:
        patch.setattr(world.router, "create", busy)
        with pytest.raises(accept_event.Later):
            accept_event.handler(asked(), None)
    assert world.bus.letters == []
    world.bus.down = 1
    with pytest.raises(StoreBusy):  # the letter itself
        accept_event.handler(asked(source="nobody"), None)
    assert accept_event.handler(asked(), None)["outcome"] == "taken"


def test_a_life_longer_than_this_deployment_allows_is_refused(world: World) -> None:
    assert accept_event.handler(asked(detail={"ttl_seconds": 90_000}), None)["outcome"] == "refused"

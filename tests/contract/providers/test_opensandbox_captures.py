"""The OpenSandbox adapter's captures, request by request: what is sent, what is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from sandbox_router.model import failure as fail
from sandbox_router.ports import Capture, CapturePage
from tests.contract.providers.opensandbox_fake import (
    GONE,
    ID,
    KEY,
    ORDER,
    Fake,
    detail,
    error,
    ok,
    page,
)

NAME, SNAPSHOT = "snap-1", "0a1b2c3d-0000-4000-8000-00000000cafe"
SHOWN: dict[str, Any] = {
    "id": SNAPSHOT,
    "sandboxId": ID,
    "name": NAME,
    "status": {"state": "Ready", "message": "CANARY-message"},
    "createdAt": "1970-01-01T00:00:01Z",
}
READY = Capture(SNAPSHOT, "ready", NAME, created_at=1000)
NO_SNAPSHOT = error(404, "SNAPSHOT::NOT_FOUND")
NO_ROUTE = ok({"detail": "Not Found"}, 404)


def shown(**changes: Any) -> httpx.Response:
    return ok({**SHOWN, **changes})


def test_a_capture_is_accepted_and_made_afterwards() -> None:
    fake = Fake(ok({**SHOWN, "status": {"state": "Creating"}}, 202))
    made = fake.account.capture(ID, NAME, "disk", timeout=5)
    assert made == replace(READY, state="creating")
    (request,) = fake.sent
    assert fake.asked == [f"POST /v1/sandboxes/{ID}/snapshots"]
    assert request.headers["open-sandbox-api-key"] == KEY
    assert json.loads(request.content) == {"name": NAME}


def test_memory_is_not_captured() -> None:
    fake = Fake(shown())
    with pytest.raises(fail.PoolUnsupported):
        fake.account.capture(ID, NAME, "memory", timeout=5)
    assert fake.sent == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (GONE, fail.Gone),
        (error(409, "SNAPSHOT::INVALID_SOURCE_STATE"), fail.Conflicted),
        (error(409, "SNAPSHOT::RUNTIME_CREATE_CONFLICT"), fail.Conflicted),
        (error(409, "SNAPSHOT::UNSUPPORTED_RUNTIME"), fail.PoolUnsupported),
        (error(501, "SNAPSHOT::NOT_IMPLEMENTED"), fail.PoolUnsupported),
        (error(500, "SNAPSHOT::RUNTIME_CREATE_FAILED"), fail.Unknown),
        (error(403, "KUBERNETES::QUOTA_EXCEEDED"), fail.Quota),
        (error(401, "INVALID_API_KEY"), fail.BrokenPool),
        (error(422, ""), fail.Rejected),
    ],
)
def test_a_capture_that_is_refused_has_its_class(
    answer: httpx.Response, kind: type[fail.Failure]
) -> None:
    with pytest.raises(kind) as caught:
        Fake(answer).account.capture(ID, NAME, "disk", timeout=5)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("Creating", "creating"),
        ("Ready", "ready"),
        ("Failed", "failed"),
        ("Deleting", "failed"),
        ("Uploading", "creating"),
    ],
)
def test_its_state_is_told(name: str, state: str) -> None:
    fake = Fake(shown(status={"state": name}))
    found = fake.account.get_capture(SNAPSHOT)
    assert found is not None
    assert found.state == state
    assert fake.asked == [f"GET /v1/snapshots/{SNAPSHOT}"]


def test_only_the_servers_own_word_says_that_one_is_gone() -> None:
    assert Fake(NO_SNAPSHOT).account.get_capture(SNAPSHOT) is None
    Fake(NO_SNAPSHOT).account.destroy_capture(SNAPSHOT)
    for answer in (NO_ROUTE, shown(id="another"), shown(status=None), shown(name=7)):
        with pytest.raises(fail.ProtocolBroken):
            Fake(answer).account.get_capture(SNAPSHOT)
    with pytest.raises(fail.ProtocolBroken):
        Fake(NO_ROUTE).account.destroy_capture(SNAPSHOT)
    with pytest.raises(fail.ProtocolBroken):
        Fake(shown()).account.get_capture("../sandboxes")


def test_a_look_up_believes_the_snapshot_not_the_filter() -> None:
    older = {**SHOWN, "id": "older", "createdAt": "1970-01-01T00:00:00Z"}
    others = {**older, "id": "a", "name": "snap-11"}, {**older, "id": "a", "sandboxId": "other"}
    fake = Fake(page(*others, SHOWN, more=True), page(older, number=2))
    found = fake.account.find_capture(ID, NAME)
    assert found == Capture("older", "ready", NAME, created_at=0)
    assert fake.asked == [
        f"GET /v1/snapshots?sandboxId={ID}&page={number}&pageSize=100" for number in (1, 2)
    ]
    assert Fake(page({**SHOWN, "name": None})).account.find_capture(ID, NAME) is None


@pytest.mark.parametrize("code", ["SNAPSHOT::INVALID_STATE", "SNAPSHOT::DELETE_CONFLICT"])
def test_one_that_cannot_go_yet_says_so(code: str) -> None:
    fake = Fake(error(409, code))
    with pytest.raises(fail.Conflicted):
        fake.account.destroy_capture(SNAPSHOT)
    assert fake.asked == [f"DELETE /v1/snapshots/{SNAPSHOT}"]


def test_all_of_them_are_listed_page_by_page() -> None:
    fake = Fake(page(SHOWN, more=True), page(number=2))
    assert fake.account.captures(None) == CapturePage((READY,), "2")
    assert fake.account.captures("2") == CapturePage((), None)
    assert fake.asked[1] == "GET /v1/snapshots?page=2&pageSize=100"


def test_an_instance_is_made_of_one_without_what_belongs_to_an_image() -> None:
    fake = Fake(ok(detail().json(), 202))
    order = replace(ORDER, reference=SNAPSHOT, from_capture=True)
    fake.account.create(order, timeout=0.1)
    body = json.loads(fake.sent[0].content)
    assert body["snapshotId"] == SNAPSHOT
    assert not {"image", "entrypoint"} & set(body)
    assert set(body) == {"snapshotId", "timeout", "resourceLimits", "env", "metadata"}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (NO_SNAPSHOT, fail.Rejected),
        (error(409, "SNAPSHOT::NOT_READY"), fail.Conflicted),
        (error(409, "SNAPSHOT::INVALID_RESTORE_CONFIG"), fail.Rejected),
    ],
)
def test_what_cannot_be_made_of_one_has_its_class(
    answer: httpx.Response, kind: type[fail.Failure]
) -> None:
    order = replace(ORDER, reference=SNAPSHOT, from_capture=True)
    with pytest.raises(kind):
        Fake(answer).account.create(order, timeout=5)

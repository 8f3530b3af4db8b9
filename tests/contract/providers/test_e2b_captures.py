"""The E2B adapter's captures, request by request: what is sent, what is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from sandbox_router.model import failure as fail
from sandbox_router.ports import Capture, CapturePage
from tests.contract.providers.e2b_fake import DETAIL, KEY, MADE, ORDER, Fake, ok

BOX, NAME = str(MADE["sandboxID"]), "snap-1"
ID = f"acme/{NAME}:default"
SHOWN = {"snapshotID": ID, "names": [f"acme/{NAME}"]}
READY = Capture(ID, "ready", NAME)
GONE = ok({"code": 404, "message": "not found"}, 404)


def entry(name: str) -> dict[str, Any]:
    return {"snapshotID": f"acme/{name}:default", "names": [f"acme/{name}:v2"]}


@pytest.mark.parametrize(
    ("contents", "body"), [("memory", {"name": NAME}), ("disk", {"name": NAME, "memory": False})]
)
def test_a_capture_is_ready_when_it_answers(contents: str, body: dict[str, Any]) -> None:
    fake = Fake(ok(SHOWN, 201))
    assert fake.account.capture(BOX, NAME, contents, timeout=5) == READY
    (request,) = fake.sent
    assert (request.method, request.url.path) == ("POST", f"/sandboxes/{BOX}/snapshots")
    assert request.headers["x-api-key"] == KEY
    assert json.loads(request.content) == body


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (409, {"message": "cannot be snapshotted while in 'snapshotting' state"}, fail.Conflicted),
        (503, {"message": "Sandbox 'i' cannot be snapshotted right now"}, fail.Conflicted),
        (503, {"message": "unavailable"}, fail.Unknown),
        (500, {"message": "Error creating snapshot template"}, fail.Unknown),
        (400, {"error_code": "snapshot_filesystem_only_disabled"}, fail.PoolUnsupported),
        (409, {"error_code": "snapshot_filesystem_only_unsupported_node"}, fail.PoolUnsupported),
        (400, {"message": "Invalid name"}, fail.Rejected),
        (401, {}, fail.BrokenPool),
        (403, {}, fail.Permission),
        (429, {}, fail.RateLimited),
        (200, SHOWN, fail.ProtocolBroken),
    ],
)
def test_a_capture_that_is_refused_has_its_class(
    status: int, body: dict[str, Any], kind: type[fail.Failure]
) -> None:
    fake = Fake(ok({"code": status, **body}, status))
    with pytest.raises(kind) as caught:
        fake.account.capture(BOX, NAME, "memory", timeout=5)
    assert type(caught.value) is kind
    assert len(fake.sent) == 1


def test_what_is_paused_is_not_taken_for_gone() -> None:
    paused = Fake(GONE, ok({**DETAIL, "state": "paused"}))
    with pytest.raises(fail.Conflicted):
        paused.account.capture(BOX, NAME, "memory", timeout=5)
    with pytest.raises(fail.Gone):
        Fake(GONE).account.capture(BOX, NAME, "memory", timeout=5)


@pytest.mark.parametrize(
    "changes",
    [
        {"snapshotID": "../x"},
        {"snapshotID": "a/b/c"},
        {"snapshotID": 7},
        {"snapshotID": ""},
        {"snapshotID": "a:b\n"},
        {"names": None},
        {"names": [7]},
    ],
)
def test_an_answer_that_cannot_be_used_is_not(changes: dict[str, Any]) -> None:
    fake = Fake(ok({**SHOWN, **changes}, 201))
    with pytest.raises(fail.ProtocolBroken):
        fake.account.capture(BOX, NAME, "memory", timeout=5)


def test_a_look_up_reads_what_was_taken_of_the_instance_page_by_page() -> None:
    fake = Fake(ok([entry("snap-0")], x_next_token="more&"), ok([SHOWN]))
    assert fake.account.find_capture(BOX, NAME) == READY
    assert [str(r.url.query, "ascii") for r in fake.sent] == [
        f"sandboxID={BOX}&limit=100",
        f"sandboxID={BOX}&limit=100&nextToken=more%26",
    ]
    assert Fake(ok([entry("snap-11"), entry("nap-1")])).account.find_capture(BOX, NAME) is None


def test_a_list_without_an_end_is_given_up() -> None:
    with pytest.raises(fail.ProtocolBroken):
        Fake(ok([], x_next_token="same")).account.find_capture(BOX, NAME)


def test_one_is_looked_at_by_its_id_and_gone_when_the_list_is_empty() -> None:
    fake = Fake(ok([SHOWN]), ok([]), ok([entry("snap-11")]))
    assert fake.account.get_capture(ID) == READY
    assert fake.account.get_capture(ID) is None
    assert fake.account.get_capture(ID) is None
    assert str(fake.sent[0].url.query, "ascii") == "name=acme%2Fsnap-1%3Adefault&limit=100"


def test_an_e2b_without_the_list_does_not_say_that_one_is_gone() -> None:
    account = Fake(GONE).account
    for look in (
        lambda: account.get_capture(ID),
        lambda: account.find_capture(BOX, NAME),
        lambda: account.captures(None),
    ):
        with pytest.raises(fail.ProtocolBroken):
            look()


def test_a_destroy_names_the_template_in_one_piece_of_the_path() -> None:
    fake = Fake(httpx.Response(204), GONE)
    for _ in range(2):
        fake.account.destroy_capture(ID)
    assert fake.sent[0].method == "DELETE"
    assert fake.sent[0].url.raw_path == b"/templates/acme%2Fsnap-1%3Adefault"
    with pytest.raises(fail.ProtocolBroken):
        fake.account.destroy_capture("../keys")


def test_one_that_is_in_use_cannot_go_yet() -> None:
    said = "cannot delete template 't' because there are paused sandboxes using it"
    with pytest.raises(fail.Conflicted):
        Fake(ok({"code": 400, "message": said}, 400)).account.destroy_capture(ID)


def test_all_of_them_are_listed_with_the_names_we_gave() -> None:
    unnamed = {"snapshotID": "abc123:default", "names": []}
    fake = Fake(ok([SHOWN, unnamed, entry("tagged")], x_next_token="t"))
    tagged = Capture("acme/tagged:default", "ready", "tagged")
    every = (READY, Capture("abc123:default", "ready"), tagged)
    assert fake.account.captures(None) == CapturePage(every, "t")
    assert str(fake.sent[0].url.query, "ascii") == "limit=100"


def test_an_instance_is_made_of_one_as_of_any_template() -> None:
    fake = Fake(ok(MADE, 201), ok({"code": 404, "message": "not found"}, 404))
    order = replace(ORDER, reference=ID, from_capture=True)
    fake.account.create(order, timeout=5)
    assert json.loads(fake.sent[0].content)["templateID"] == ID
    with pytest.raises(fail.CaptureGone):
        fake.account.create(order, timeout=5)

"""Files through URLs: an id is its sandbox's, a URL its key's, and neither shows anywhere."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.security.target import ABSENT, Target, problem, showing
from tests.security.test_inputs import REFUSED

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("security")]
CONTENT = f"CANARY-{uuid.uuid4().hex}"
FAULTS = ("cut", "made_503", "error_500", "lost_answer", "redirect", "invalid")


@pytest.fixture(scope="module")
def mine(target: Target) -> Iterator[str]:
    made = target.create(provider={"only": ["alpha"]}).json()["id"]
    yield made
    target.destroy(made)


@pytest.fixture(scope="module")
def others(target: Target) -> Iterator[str]:
    made = target.other.post("/v1/sandboxes", json={"ttl_seconds": 300}).json()["id"]
    yield made
    assert target.other.delete(f"/v1/sandboxes/{made}").status_code in (202, 204)


def offered(client: httpx.Client, box: str, path: str = "/tmp/f") -> dict[str, Any]:
    answer = client.post(f"/v1/sandboxes/{box}/files/uploads", json={"path": path})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def taken(client: httpx.Client, box: str, upload_id: str) -> httpx.Response:
    return client.post(f"/v1/sandboxes/{box}/files/uploads/{upload_id}")


def decoded(upload_id: str) -> bytes:
    text = upload_id.removeprefix("upl-")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encoded(data: bytes) -> str:
    return "upl-" + base64.urlsafe_b64encode(data).decode().rstrip("=")


def test_an_upload_is_its_sandboxes_and_its_tenants(target: Target, mine: str, others: str) -> None:
    offer = offered(target.api, mine)
    assert httpx.put(offer["url"], content=b"x").status_code == 200
    last = target.last_call()
    nothing = offered(target.other, others)["upload_id"]
    strange = [taken(target.other, others, id_) for id_ in (offer["upload_id"], nothing)]
    assert [answer.status_code for answer in strange] == [404, 404]
    assert problem(strange[0]) == problem(strange[1])
    elsewhere = [taken(target.other, box, offer["upload_id"]) for box in (mine, ABSENT)]
    assert problem(elsewhere[0]) == problem(elsewhere[1])
    assert elsewhere[0].json()["code"] == "not_found"
    assert target.calls(last) == []
    assert taken(target.api, mine, offer["upload_id"]).status_code == 204


def test_a_path_in_an_id_cannot_be_changed(target: Target, mine: str) -> None:
    offer = offered(target.api, mine, "/tmp/first")
    assert httpx.put(offer["url"], content=b"x").status_code == 200
    data = decoded(offer["upload_id"])
    mac, said = data[:16], json.loads(data[16:])
    assert "/tmp/first" in said
    last, forged = target.last_call(), []
    for path in ("/etc/passwd", "/tmp/../etc/passwd", "", "/tmp/firsx"):
        words = [path if word == "/tmp/first" else word for word in said]
        payload = json.dumps(words, separators=(",", ":")).encode()
        forged += [encoded(mac + payload), encoded(payload), encoded(bytes(16) + payload)]
    forged += [encoded(data[:-1]), encoded(data + b" "), encoded(mac), offer["upload_id"] + "A"]
    for id_ in forged:
        answer = taken(target.api, mine, id_)
        assert answer.status_code == 404, id_
    for text in ("upl-", "x", "upl-..", "upl-%2e%2e", "upl-" + "A" * 9000, "%00"):
        assert taken(target.api, mine, text).status_code in (404, 431), text
    assert target.calls(last) == []


@pytest.mark.parametrize("kind", ["uploads", "downloads"])
@pytest.mark.parametrize("path", REFUSED)
def test_a_path_that_leads_elsewhere_is_refused_before_anybody_is_asked(
    target: Target, mine: str, kind: str, path: str
) -> None:
    last, kept = target.last_call(), objects(target)
    answer = target.api.post(f"/v1/sandboxes/{mine}/files/{kind}", json={"path": path})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert target.calls(last) == []
    assert objects(target) == kept


def objects(target: Target) -> set[str]:
    folder = target.state / "objects"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


@pytest.mark.parametrize("size", [-1, 5 * 1024**3 + 1, 1.5, "5", True, [5]])
def test_a_size_is_a_number_of_bytes(target: Target, mine: str, size: object) -> None:
    body = {"path": "/tmp/f", "size_bytes": size}
    answer = target.api.post(f"/v1/sandboxes/{mine}/files/uploads", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert [error["path"] for error in answer.json()["field_errors"]] == ["size_bytes"]


def test_a_url_reads_no_other_object(target: Target, mine: str, others: str) -> None:
    target.api.put(
        f"/v1/sandboxes/{mine}/files",
        params={"path": "/tmp/f"},
        content=b"mine",
        headers={"Content-Type": "application/octet-stream"},
    )
    made = target.api.post(f"/v1/sandboxes/{mine}/files/downloads", json={"path": "/tmp/f"})
    url = made.json()["url"]
    assert httpx.get(url).content == b"mine"
    put = offered(target.other, others)["url"]
    mixed = f"{url.partition('?')[0]}?{put.partition('?')[2]}"
    for other in (mixed, url.replace(mine, others), url.replace("/down/", "/up/"), url[:-1]):
        assert httpx.get(other).status_code == 403, other
    for wrong in (httpx.put(url, content=b"x"), httpx.get(put), httpx.delete(url)):
        assert wrong.status_code == 403
    with_key = {"Authorization": f"Bearer {target.key}"}
    assert httpx.get(url.partition("?")[0], headers=with_key).status_code == 403


def ordered(target: Target, fault: str | None) -> None:
    """Let the next call about files meet the fault."""
    if fault is not None:
        order = {"fault": fault, "op": "files", "times": 1}
        assert target.host.post("/_host/faults", json=order).is_success


def test_neither_content_nor_url_shows_anywhere(target: Target, mine: str) -> None:
    box, secrets, told = f"/v1/sandboxes/{mine}/files", [CONTENT], []
    for fault in (None, *FAULTS):
        offer = offered(target.api, mine)
        told.append(httpx.put(offer["url"], content=CONTENT.encode()))
        ordered(target, fault)
        told.append(taken(target.api, mine, offer["upload_id"]))
        told.append(taken(target.api, mine, offer["upload_id"]))
        ordered(target, fault)
        told.append(target.api.post(f"{box}/downloads", json={"path": "/tmp/f"}))
        target.host.delete("/_host/faults")
        offers = [offer, *([told[-1].json()] if told[-1].status_code == 201 else [])]
        secrets += [parse_qs(urlsplit(one["url"]).query)["signature"][0] for one in offers]
        if told[-1].status_code == 201:
            assert httpx.get(told[-1].json()["url"]).text == CONTENT
    assert len(secrets) > len(FAULTS) + 2
    assert showing(target.sinks(), secrets) == []
    assert showing({str(n): answer.content for n, answer in enumerate(told)}, [CONTENT]) == []

"""What is secret shows nowhere: not in a log, the store, a queue, the bus, an answer, a call."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

import httpx
import pytest

from tests.local.acceptance.deployment import eventually
from tests.security.target import Target, forms, showing

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("security")]
ENV, COMMAND, STDIN, FILE, ARGUMENT, PER_EXEC, WRONG = (
    f"{name}-CANARY-{uuid.uuid4().hex}" for name in "abcdefg"
)
ALL = [ENV, COMMAND, STDIN, FILE, ARGUMENT, PER_EXEC, WRONG]
STORM = ("lost_answer", "made_503", "error_500", "cut", "garbage", "redirect", "invalid")


def lives(target: Target, fault: str | None, *, wait: int) -> list[httpx.Response]:
    """A life that carries every secret, with a fault at every kind of call; the answers."""
    headers = {"Prefer": f"wait={wait}", "Idempotency-Key": uuid.uuid4().hex}
    body = {"env": {"TOKEN": ENV}, "ttl_seconds": 120}
    answers = []

    def tell(method: str, path: str, op: str = "exec", **sent: Any) -> httpx.Response:
        if fault is not None:
            order = {"fault": fault, "op": op, "times": 1}
            assert target.host.post("/_host/faults", json=order).is_success
        answers.append(target.api.request(method, path, **sent))
        target.host.delete("/_host/faults")
        return answers[-1]

    made = tell("POST", "/v1/sandboxes", "create", json=body, headers=headers).json()
    if "id" not in made:
        return answers  # refused, which is an answer too
    url = f"/v1/sandboxes/{made['id']}"
    eventually(lambda: target.get(made["id"])["state"] != "starting", 25, every=0.2)
    more = {"env": {"B": PER_EXEC}, "stdin": STDIN, "timeout_seconds": 2}
    tell("POST", f"{url}/exec", json={"command": f": {COMMAND}; cat > /dev/null", **more})
    tell("POST", f"{url}/exec", json={"argv": ["true", ARGUMENT]})
    tell("POST", f"{url}/exec", json={"command": COMMAND, "detach": True})
    octets = {"Content-Type": "application/octet-stream"}
    tell("PUT", f"{url}/files?path=/tmp/f", "files", content=FILE.encode(), headers=octets)
    tell("PATCH", url, "timeout", json={"ttl_seconds": 200, "labels": {"a": "b"}})
    tell("GET", f"{url}?refresh=true", "get")
    tell("DELETE", url, "delete")
    target.destroy(made["id"], seconds=40)
    return answers


@pytest.fixture(scope="module")
def lived(target: Target) -> list[httpx.Response]:
    """Everything was done, with and without faults."""
    answers = lives(target, None, wait=20) + lives(target, None, wait=0)
    for fault in STORM:
        answers += lives(target, fault, wait=20)
    for wrong in (
        {"env": {"A": [ENV]}, "size": ENV},
        {"env": ENV, "image": ENV},
        {"credentials": [{"name": "x", "value": ENV}]},
    ):
        answers.append(target.api.post("/v1/sandboxes", json=wrong))
    broken = f'{{"env": {{"A": "{ENV}"'
    headers = {"Content-Type": "application/json"}
    answers.append(target.api.post("/v1/sandboxes", content=broken, headers=headers))
    return answers


def test_nothing_on_our_side_holds_a_secret_after_a_whole_run(
    target: Target, lived: list[httpx.Response]
) -> None:
    sinks = target.sinks()
    assert {"router.log", "router.db", "queue.db", "events.jsonl", "host.log", "calls"} <= set(
        sinks
    )
    assert len(sinks["router.log"]) > 1_000
    assert len(target.calls(op="exec")) > len(STORM)
    assert showing(sinks, ALL) == []


def test_no_answer_repeats_a_secret(lived: list[httpx.Response]) -> None:
    assert len(lived) > 50
    told = {
        f"{a.request.method} {n}": a.content + str(a.headers).encode() for n, a in enumerate(lived)
    }
    assert showing(told, ALL) == []


def test_the_search_finds_what_is_there(target: Target) -> None:
    sandbox = target.create(labels={"seen": "LABEL-CANARY-1"}).json()
    target.destroy(sandbox["id"])
    found = {name for name, _ in showing(target.sinks(), ["LABEL-CANARY-1"])}
    assert any(name.startswith("router.db") for name in found)


def test_a_key_is_kept_only_as_a_hash_that_needs_the_pepper(target: Target) -> None:
    for key in (target.key, target.other_key):
        assert target.api.get("/v1/sizes", params={"key": key}).status_code == 400
        headers = {"Authorization": f"Bearer {key}x"}
        assert target.other.get("/v1/sizes", headers=headers).status_code == 401
    sinks = target.sinks()
    mine = sinks.pop("key")  # the operator's own copy
    assert target.key.encode() in mine
    printed = sinks.pop(target.output.name)  # and the banner shows it to its terminal
    assert target.other_key.encode() not in printed
    assert showing(sinks, [target.key, target.other_key]) == []
    pepper = (target.state / "pepper").read_text().strip().encode()
    store = b"".join(data for name, data in sinks.items() if name.startswith("router.db"))
    for key in (target.key, target.other_key):
        for digest in (hashlib.sha256(key.encode()), hashlib.sha256(b"key\0" + key.encode())):
            assert digest.hexdigest().encode() not in store
    assert pepper not in store


def test_a_record_shows_no_secret_of_the_provider(target: Target) -> None:
    accounts = json.loads((target.state / "host-accounts.json").read_text())["accounts"]
    keys = [account["key"] for account in accounts]
    box = target.create().json()
    url = f"/v1/sandboxes/{box['id']}"
    shown = [json.dumps(box), target.api.get(url).text, target.api.get("/v1/providers").text]
    text = "".join(shown).encode()
    assert not [key for key in keys if any(form in text for form in forms(key))]
    assert b"access" not in text
    assert b"constal" not in text
    sinks = target.sinks()
    kept = {"pools.resolved.json", "host-accounts.json"}  # where the operator keeps them
    assert showing({n: d for n, d in sinks.items() if n not in kept}, keys) == []
    target.destroy(box["id"])

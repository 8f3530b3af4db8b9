"""The router dies before each port call of taking an upload: taking it again brings it, whole."""

from __future__ import annotations

from contextlib import suppress

import httpx
import pytest

from tests.local.acceptance.conftest import Deploy
from tests.local.acceptance.deployment import Deployment

pytestmark = pytest.mark.slow
DATA = bytes(range(256)) * 4096
PATH = "/tmp/in/place"


def uploaded(deployment: Deployment) -> str:
    """The way to take an upload whose bytes are there."""
    box = f"/v1/sandboxes/{deployment.create(provider={'only': ['alpha']}).json()['id']}"
    offer = deployment.api.post(f"{box}/files/uploads", json={"path": PATH}).json()
    assert httpx.put(offer["url"], content=DATA).status_code == 200
    return f"{box}/files/uploads/{offer['upload_id']}"


def calls(deployment: Deployment) -> list[str]:
    return (deployment.state / "calls").read_text().splitlines()


def content(deployment: Deployment, taking: str) -> bytes | None:
    """What is at the path now."""
    files = taking.partition("/uploads/")[0]
    answer = deployment.api.get(files, params={"path": PATH})
    return answer.content if answer.status_code == 200 else None


def test_a_take_is_whole_or_not_there_wherever_the_router_dies(deploy: Deploy) -> None:
    counting = deploy()
    counting.start(CRASH_AT="0")
    taking = uploaded(counting)
    before = len(calls(counting))
    assert counting.api.post(taking).status_code == 204
    names = [line.partition(" ")[2] for line in calls(counting)[before:]]
    assert {"E2B.write_file", "E2B.move_file", "FolderObjects.put"} <= set(names)
    for at, name in enumerate(names, before + 1):
        dying = deploy()
        dying.start(CRASH_AT=str(at))
        taking = uploaded(dying)
        with suppress(httpx.TransportError):
            dying.api.post(taking)
        assert dying.ended(10) == -9, name
        dying.start()
        moved = names.index("E2B.move_file") < at - before - 1
        assert content(dying, taking) == (DATA if moved else None), name
        assert dying.api.post(taking).status_code == 204, name
        assert content(dying, taking) == DATA, name
        dying.destroy(taking.split("/")[3])

"""Files of any size through URLs, with real processes: byte for byte, in small memory, once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.local.acceptance.deployment import Deployment

MIB = 1024 * 1024
SIZE = 96 * MIB
BLOCK = hashlib.sha256(b"block").digest() * 2048  # 64 KiB
GROWTH_KIB = 64 * 1024


def content(size: int = SIZE) -> Iterator[bytes]:
    """Bytes that say where they are."""
    for n in range(size // len(BLOCK)):
        yield n.to_bytes(8, "big") + BLOCK[8:]


def digest(pieces: Iterator[bytes]) -> str:
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


@pytest.fixture(scope="module", params=["alpha", "gamma"])
def box(request: pytest.FixtureRequest, shared: Deployment) -> Iterator[str]:
    made = shared.create(provider={"only": [request.param]}).json()["id"]
    yield f"/v1/sandboxes/{made}"
    shared.destroy(made)


def peak_kib(deployment: Deployment) -> int:
    """The most memory the router ever took."""
    assert deployment.router is not None
    status = Path(f"/proc/{deployment.router.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def ran(deployment: Deployment, box: str, command: str) -> str:
    answer = deployment.api.post(f"{box}/exec", json={"command": command})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["stdout"])


def test_a_large_file_goes_in_and_comes_out_byte_for_byte(shared: Deployment, box: str) -> None:
    path, wanted, before = "/tmp/new/way/ü b.bin", digest(content()), peak_kib(shared)
    upload = shared.api.post(f"{box}/files/uploads", json={"path": path, "size_bytes": SIZE})
    assert upload.status_code == 201, upload.text
    offer = upload.json()
    headers = {**offer["headers"], "Content-Length": str(SIZE)}
    put = httpx.request(offer["method"], offer["url"], content=content(), headers=headers)
    assert put.status_code == 200, put.text
    assert ran(shared, box, "ls -A /tmp | grep new || echo none") == "none\n"
    taken = shared.api.post(f"{box}/files/uploads/{offer['upload_id']}")
    assert taken.status_code == 204, taken.text
    assert ran(shared, box, f"sha256sum '{path}'").split()[0] == wanted
    assert ran(shared, box, "ls -A /tmp/new/way") == "ü b.bin\n"

    download = shared.api.post(f"{box}/files/downloads", json={"path": path})
    assert download.status_code == 201, download.text
    offer = download.json()
    assert offer["size_bytes"] == SIZE
    with httpx.stream(offer["method"], offer["url"], headers=offer["headers"]) as got:
        assert got.headers["content-length"] == str(SIZE)
        assert digest(got.iter_raw()) == wanted
    assert peak_kib(shared) - before < GROWTH_KIB


def test_an_upload_is_taken_once_and_replaces_a_file(shared: Deployment, box: str) -> None:
    path = "/tmp/replaced"
    ran(shared, box, f"echo before > {path}")
    offer = shared.api.post(f"{box}/files/uploads", json={"path": path}).json()
    taking = f"{box}/files/uploads/{offer['upload_id']}"
    early = shared.api.post(taking)
    assert (early.status_code, early.json()["code"]) == (404, "upload_not_found")
    assert httpx.put(offer["url"], content=b"after").status_code == 200
    assert ran(shared, box, f"cat {path}") == "before\n"
    assert shared.api.post(taking).status_code == 204
    assert ran(shared, box, f"cat {path}; echo more >> {path}") == "after"
    assert shared.api.post(taking).status_code == 204
    assert ran(shared, box, f"cat {path}") == "aftermore\n"


def test_what_cannot_be_a_file_is_refused_and_the_upload_stays(
    shared: Deployment, box: str
) -> None:
    for body in ({"path": "/tmp"}, {"path": "/tmp/none"}):
        answer = shared.api.post(f"{box}/files/downloads", json=body)
        assert answer.status_code in (404, 422), answer.text
    ran(shared, box, "mkdir /tmp/folder")
    offer = shared.api.post(f"{box}/files/uploads", json={"path": "/tmp/folder"}).json()
    assert httpx.put(offer["url"], content=b"x").status_code == 200
    refused = shared.api.post(f"{box}/files/uploads/{offer['upload_id']}")
    assert (refused.status_code, refused.json()["outcome"]) == (422, "none"), refused.text
    ran(shared, box, "rmdir /tmp/folder")
    assert shared.api.post(f"{box}/files/uploads/{offer['upload_id']}").status_code == 204
    assert ran(shared, box, "cat /tmp/folder; ls -A /tmp | grep upload; true") == "x"


def test_objects_are_private_files_and_urls_show_no_path(shared: Deployment, box: str) -> None:
    shared.api.put(
        f"{box}/files",
        params={"path": "/tmp/secret-name"},
        content=b"CANARY-content",
        headers={"Content-Type": "application/octet-stream"},
    )
    offer = shared.api.post(f"{box}/files/downloads", json={"path": "/tmp/secret-name"}).json()
    assert "secret-name" not in offer["url"]
    assert urlsplit(offer["url"]).netloc == shared.api.base_url.netloc.decode()
    files = list((shared.state / "objects").iterdir())
    assert files
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert b"CANARY-content" in b"".join(path.read_bytes()[:100] for path in files)


@pytest.mark.parametrize("fault", ["cut", "lost_answer", "error_500", "made_503"])
def test_a_provider_that_fails_leaves_an_upload_to_be_taken_again(
    shared: Deployment, box: str, fault: str
) -> None:
    path = f"/tmp/fault-{fault}"
    offer = shared.api.post(f"{box}/files/uploads", json={"path": path}).json()
    assert httpx.put(offer["url"], content=BLOCK * 16).status_code == 200
    with shared.fault(fault, op="files", times=1):
        first = shared.api.post(f"{box}/files/uploads/{offer['upload_id']}")
    assert first.status_code in (204, 502, 503), first.text
    assert ran(shared, box, f"cat {path} 2>/dev/null | wc -c").strip() in (
        "0",
        "1048576",
    )
    again = shared.api.post(f"{box}/files/uploads/{offer['upload_id']}")
    assert again.status_code == 204, again.text
    assert ran(shared, box, f"wc -c < {path}").strip() == "1048576"

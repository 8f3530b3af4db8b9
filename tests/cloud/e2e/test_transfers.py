"""Files of any size through the URLs of the deployed stacks: S3's, as the emulator has it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.cloud.e2e.deployment import Cloud

SIZE = 9 * 1024 * 1024
DATA = b"".join(hashlib.sha256(n.to_bytes(4, "big")).digest() for n in range(SIZE // 32))
"""More than a part of S3, and no two blocks of it alike."""


@pytest.fixture(scope="module")
def box(cloud: Cloud) -> Iterator[str]:
    answer = cloud.create()
    assert answer.status_code == 201, answer.text
    made = answer.json()["id"]
    yield f"/v1/sandboxes/{made}"
    cloud.destroy(made)


def sent(offer: dict[str, Any], data: bytes = b"") -> httpx.Response:
    """The request an offer is for, by somebody without a key."""
    return httpx.request(
        offer["method"], offer["url"], content=data, headers=offer["headers"], timeout=60
    )


def ran(cloud: Cloud, box: str, command: str) -> str:
    answer = cloud.api.post(f"{box}/exec", json={"command": command})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["stdout"])


def objects(cloud: Cloud, box: str) -> list[list[str]]:
    """The keys of a sandbox's objects, cut."""
    bucket = cloud.variables["BUCKET_NAME"]
    found = cloud.emulator.client("s3").list_objects_v2(Bucket=bucket).get("Contents", [])
    keys = sorted(one["Key"].split("/") for one in found)
    return [key for key in keys if key[2] == box.rpartition("/")[2]]


def test_nine_mebibytes_go_in_and_come_out_byte_for_byte(cloud: Cloud, box: str) -> None:
    path = "/tmp/deep/ünï code.bin"
    body = {"path": path, "size_bytes": SIZE}
    offer = cloud.api.post(f"{box}/files/uploads", json=body)
    assert offer.status_code == 201, offer.text
    taking = f"{box}/files/uploads/{offer.json()['upload_id']}"
    early = cloud.api.post(taking)
    assert (early.status_code, early.json()["code"]) == (404, "upload_not_found"), early.text
    assert (put := sent(offer.json(), DATA)).status_code == 200, put.text
    taken = cloud.api.post(taking)
    assert taken.status_code == 204, taken.text
    assert ran(cloud, box, f"sha256sum '{path}'").split()[0] == hashlib.sha256(DATA).hexdigest()
    assert ran(cloud, box, "ls -A /tmp/deep") == "ünï code.bin\n"
    assert [key[:2] for key in objects(cloud, box)] == [["done", "default"]]

    download = cloud.api.post(f"{box}/files/downloads", json={"path": path})
    assert download.status_code == 201, download.text
    assert download.json()["size_bytes"] == SIZE
    got = sent(download.json())
    assert (got.status_code, got.content == DATA) == (200, True)
    assert got.headers["content-type"] == "application/octet-stream"
    keys = [key[:2] for key in objects(cloud, box)]
    assert keys == [["done", "default"], ["down", "default"]]

    ran(cloud, box, f"echo more >> '{path}'")
    assert cloud.api.post(taking).status_code == 204  # done already
    assert ran(cloud, box, f"wc -c < '{path}'").strip() == str(SIZE + 5)


def test_a_url_is_signed_by_the_function_for_an_hour(cloud: Cloud, box: str) -> None:
    body = {"path": "/tmp/x", "size_bytes": 1}
    offer = cloud.api.post(f"{box}/files/uploads", json=body).json()
    said = parse_qs(urlsplit(offer["url"]).query)
    assert said["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert said["X-Amz-Expires"] == ["3600"]
    assert said["X-Amz-SignedHeaders"] == ["content-length;host"]
    assert cloud.variables["BUCKET_NAME"] in offer["url"]
    for wrong in (b"", b"xx"):
        assert sent(offer, wrong).status_code == 403
    assert sent({**offer, "method": "GET"}).status_code == 403
    assert sent({**offer, "url": offer["url"].replace("/up/", "/down/")}, b"x").status_code == 403


def test_another_tenant_and_a_forged_id_get_nothing(cloud: Cloud, box: str) -> None:
    offer = cloud.api.post(f"{box}/files/uploads", json={"path": "/tmp/mine"}).json()
    assert (put := sent(offer, b"x")).status_code == 200, put.text
    key = cloud.add_key("stranger", ["sandboxes:read", "sandboxes:write"])
    stranger = {"Authorization": f"Bearer {key}"}
    calls: list[tuple[str, dict[str, Any]]] = [
        (f"{box}/files/uploads/{offer['upload_id']}", {}),
        (f"{box}/files/uploads", {"json": {"path": "/tmp/a"}}),
        (f"{box}/files/downloads", {"json": {"path": "/tmp/a"}}),
    ]
    for url, more in calls:
        answer = cloud.api.post(url, headers=stranger, **more)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), answer.text
    forged = cloud.api.post(f"{box}/files/uploads/{offer['upload_id']}A")
    assert (forged.status_code, forged.json()["code"]) == (404, "upload_not_found")
    assert ran(cloud, box, "ls /tmp | grep mine || echo none") == "none\n"

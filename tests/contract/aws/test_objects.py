"""S3: lost answers, broken reads, what stays in memory, and what a signed URL says."""

from __future__ import annotations

import logging
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.exceptions import (  # type: ignore[import-untyped]
    ClientError,
    IncompleteReadError,
    ReadTimeoutError,
)

from adapters.aws.objects import PART, S3Objects
from adapters.aws.session import Session
from sandbox_router.model.failure import NotFound, StoreBusy
from tests.contract.aws.cloud import BUCKET, bucket_of

KEY = "up/acme/sbx-a/one"
LOST = ReadTimeoutError(endpoint_url="https://aws.test/CANARY")
LARGE = [b"x" * PART, b"y"]


def refusal(code: str, status: int = 404) -> ClientError:
    answer = {
        "Error": {"Code": code, "Message": "CANARY"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(answer, "Operation")


class Lossy:
    """A client that does one operation, or does not, and fails."""

    def __init__(self, client: Any, operation: str, error: Exception, *, done: bool) -> None:
        self.client, self.operation, self.error, self.done = client, operation, error, done

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**request: Any) -> Any:
            failing = name == self.operation
            answer = getattr(self.client, name)(**request) if self.done or not failing else None
            if failing:
                raise self.error
            return answer

        return call


@pytest.fixture
def client(account: Session) -> Iterator[Any]:
    with bucket_of(account):
        yield account.made("s3")


def whole(client: Any) -> bytes:
    with S3Objects(client, BUCKET).read(KEY) as content:
        return b"".join(content.pieces)


PUTS = [
    ("put_object", [b"x"], True),
    ("put_object", [b"x"], False),
    ("create_multipart_upload", LARGE, False),  # done, its name is lost: the bucket's rule ends it
    ("upload_part", LARGE, True),
    ("upload_part", LARGE, False),
    ("complete_multipart_upload", LARGE, True),
    ("complete_multipart_upload", LARGE, False),
]


@pytest.mark.parametrize(("operation", "pieces", "done"), PUTS)
def test_a_put_whose_answer_is_lost_is_repeated_safely(
    client: Any, operation: str, pieces: list[bytes], done: bool
) -> None:
    with pytest.raises(StoreBusy):
        S3Objects(Lossy(client, operation, LOST, done=done), BUCKET).put(KEY, pieces)
    assert S3Objects(client, BUCKET).put(KEY, pieces) == len(b"".join(pieces))
    assert whole(client) == b"".join(pieces)


def test_a_completion_that_was_heard_before_is_one(client: Any) -> None:
    lossy = Lossy(client, "complete_multipart_upload", refusal("NoSuchUpload"), done=True)
    assert S3Objects(lossy, BUCKET).put(KEY, LARGE) == PART + 1
    assert whole(client) == b"".join(LARGE)


def test_an_upload_that_is_gone_is_none(client: Any) -> None:
    lossy = Lossy(client, "complete_multipart_upload", refusal("NoSuchUpload"), done=False)
    S3Objects(client, BUCKET).put(KEY, [b"older"])
    with pytest.raises(StoreBusy):
        S3Objects(lossy, BUCKET).put(KEY, LARGE)
    assert whole(client) == b"older"


@pytest.mark.parametrize(
    "error", [LOST, IncompleteReadError(actual_bytes=1, expected_bytes=2)], ids=["late", "cut"]
)
def test_a_content_that_breaks_off_is_no_content(error: Exception) -> None:
    class Body:
        closed = False

        def iter_chunks(self, size: int) -> Iterator[bytes]:
            yield b"x"
            raise error

        def close(self) -> None:
            self.closed = True

    body = Body()

    class Client:
        def get_object(self, **_: Any) -> Any:
            return {"Body": body, "ContentLength": 2}

    with pytest.raises(StoreBusy), S3Objects(Client(), BUCKET).read(KEY) as content:
        list(content.pieces)
    assert body.closed


@pytest.mark.parametrize(
    ("error", "kind", "noted"),
    [
        (refusal("NoSuchKey"), NotFound, False),
        (refusal("AccessDenied", 403), StoreBusy, True),
        (refusal("NoSuchBucket"), StoreBusy, True),
        (refusal("SlowDown", 503), StoreBusy, False),
        (refusal("RequestTimeout", 400), StoreBusy, False),
        (refusal("InternalError", 500), StoreBusy, False),
    ],
    ids=lambda value: getattr(value, "response", {}).get("Error", {}).get("Code", ""),
)
def test_a_refusal_means_this_and_its_text_shows_nowhere(
    error: Exception, kind: type[Exception], noted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    objects = S3Objects(Lossy(None, "get_object", error, done=False), BUCKET)
    with pytest.raises(kind) as raised, objects.read(KEY):
        pass
    assert "CANARY" not in str(raised.value) + caplog.text
    assert ("s3: " in caplog.text) == noted


def test_memory_holds_some_parts_and_not_the_whole() -> None:
    class Swallows:
        parts = 0

        def __getattr__(self, operation: str) -> Callable[..., Any]:
            def call(**request: Any) -> dict[str, str]:
                self.parts += operation == "upload_part"
                return {"UploadId": "u", "ETag": "e"}

            return call

    client = Swallows()
    tracemalloc.start()
    try:
        size = S3Objects(client, BUCKET).put(KEY, (bytes(65_536) for _ in range(20 * 128)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (size, client.parts) == (20 * PART, 20)
    assert peak < 4 * PART


@pytest.fixture
def signing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], S3Objects]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "CANARY-secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-a-role")
    return lambda region: S3Objects(Session(region).client("s3"), "bucket-x")


@pytest.mark.parametrize("region", ["eu-central-1", "us-west-2", "ap-southeast-4"])
def test_a_url_is_for_the_buckets_own_region_and_one_key(
    signing: Callable[[str], S3Objects], region: str
) -> None:
    for signed in (
        signing(region).upload(KEY, seconds=60, size=None),
        signing(region).download(KEY, seconds=60),
    ):
        url = urlsplit(signed.url)
        said = parse_qs(url.query)
        assert url.scheme == "https"
        assert url.hostname == f"bucket-x.s3.{region}.amazonaws.com"
        assert url.path == f"/{KEY}"
        assert said["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
        assert said["X-Amz-Expires"] == ["60"]
        assert said["X-Amz-SignedHeaders"] == ["host"]
        assert said["X-Amz-Security-Token"] == ["of-a-role"]
        assert "checksum" not in signed.url.lower()
        assert "CANARY" not in signed.url


def test_a_size_is_part_of_what_is_signed(signing: Callable[[str], S3Objects]) -> None:
    url = signing("eu-central-1").upload(KEY, seconds=60, size=5).url
    assert parse_qs(urlsplit(url).query)["X-Amz-SignedHeaders"] == ["content-length;host"]


def test_without_credentials_nothing_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    with pytest.raises(StoreBusy):
        S3Objects(Session("eu-central-1").client("s3"), BUCKET).download(KEY, seconds=60)

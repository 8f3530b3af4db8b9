"""ministack 1.5.33 with what it leaves out of DynamoDB's expiry and of stream mappings.

    python launcher.py            (the emulator's own environment; settings are its variables)

Expiry: looked at every second, not every minute, and an expired item leaves the REMOVE record of
the expiry service in the table's stream, which ministack does not write. Stream mappings: each in a
thread of its own, so that a slow function holds up nobody else; a batch that failed in part is
repeated from its first failure on; tries are counted, batches are halved, and what cannot be worked
off goes to the mapping's on-failure queue. ministack ignores all of that and loses the records
behind a failure. Answers: a function's `"body": null` is an empty body, where ministack breaks off.
And for speed alone: what a function is made of is unpacked once, not once for each process.
After SIGUSR1 roles are enforced (its `AUTH=true`): from the start, CDK could not deploy.

It replaces private names: the version is pinned, and `e2e/test_emulator.py` has a test per gap.
"""

from __future__ import annotations

import hashlib
import signal
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ministack import app
from ministack.core import lambda_runtime
from ministack.core.responses import set_request_account_id, set_request_region
from ministack.services import dynamodb, lambda_svc

EXPIRY_SECONDS = 1.0
RETRY_SECONDS = 0.5
EXPIRY_SERVICE = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


def expire_for_ever() -> None:
    """The expiry service."""
    while True:
        time.sleep(EXPIRY_SECONDS)
        for (account, region, name), setting in list(dynamodb._ttl_settings.all_items()):
            if setting.get("TimeToLiveStatus") == "ENABLED":
                set_request_account_id(account)
                set_request_region(region)
                with dynamodb._lock:
                    expire(account, region, name, setting["AttributeName"])


def expire(account: str, region: str, name: str, attribute: str) -> None:
    """Remove what has expired in one table, as its stream shows it."""
    table = dynamodb._tables.get_scoped(account, region, name)
    rows = table["items"].items() if table else ()
    found = [(pk, sk, item) for pk, sorts in rows for sk, item in sorts.items()]
    for pk, sk, item in found:
        if not expired(item.get(attribute)) or dynamodb._remove_item(table, pk, sk) is None:
            continue
        before = dynamodb.stream_end_position(name)
        dynamodb._emit_stream_event(name, "REMOVE", item, None)
        for record in dynamodb.stream_records_since(name, before, 1):
            record["userIdentity"] = dict(EXPIRY_SERVICE)


def expired(value: dict[str, str] | None) -> bool:
    """Is it a number, and in the past? Anything else never expires."""
    try:
        return value is not None and float(value["N"]) <= time.time()
    except (KeyError, ValueError):
        return False


@dataclass
class Shard:
    """How far one mapping has come: position, tries of what is there, and a cut batch's size."""

    position: int
    tries: int = 0
    size: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def passed(self, records: int) -> None:
        """These records are done with."""
        self.position, self.tries, self.size = self.position + records, 0, None


class Mappings:
    """Stands in for ministack's poller of DynamoDB streams; True when there was work."""

    def __init__(self) -> None:
        self._shards: dict[str, Shard] = {}

    def poll(self) -> bool:
        """Start a turn for every mapping that has records waiting and none under way."""
        started = False
        for account, region, mapping in lambda_svc._iter_all_esms():
            with acting_for(account, region):
                turn = self._turn(account, region, mapping)
            if turn is not None:
                started = True
                threading.Thread(target=turn.run, daemon=True).start()
        return started

    def _turn(self, account: str, region: str, mapping: dict[str, Any]) -> Turn | None:
        arn = mapping.get("EventSourceArn", "")
        if ":dynamodb:" not in arn or not mapping.get("Enabled", True):
            return None
        table = arn.partition(":table/")[2].partition("/")[0]
        known = dynamodb._tables.get(table)
        if not known or known.get("LatestStreamArn") != arn:
            return None
        name, version = mapping["FunctionName"], mapping.get("Qualifier")
        function, _ = lambda_svc._get_func_record_for_qualifier(name, version)
        first, end = dynamodb.stream_start_position(table), dynamodb.stream_end_position(table)
        at = first if mapping.get("StartingPosition") == "TRIM_HORIZON" else end
        shard = self._shards.setdefault(mapping["UUID"], Shard(at))
        shard.position = max(shard.position, first)
        if function is None or shard.position >= end or not shard.lock.acquire(blocking=False):
            return None
        return Turn(account, region, mapping, function, table, shard)


@dataclass
class Turn:
    """One batch of one mapping, under the shard's lock."""

    account: str
    region: str
    mapping: dict[str, Any]
    function: dict[str, Any]
    table: str
    shard: Shard

    def run(self) -> None:
        """Call the function with the batch, and move on as its answer says."""
        try:
            with acting_for(self.account, self.region):
                self._work()
        finally:
            self.shard.lock.release()
            lambda_svc._esm_wake.set()

    def _work(self) -> None:
        size = self.shard.size or int(self.mapping.get("BatchSize", 100))
        records = dynamodb.stream_records_since(self.table, self.shard.position, size)
        batch = lambda_svc._apply_filter_criteria(list(records), self.mapping)
        if not batch:
            self.shard.passed(len(records))
            return
        result = lambda_svc._execute_function(self.function, {"Records": batch})
        failed = self._first_failure(result, batch)
        if failed is None:
            self.shard.passed(len(records))
            return
        done = next(n for n, record in enumerate(records) if number(record) == failed)
        if done:
            self.shard.passed(done)
        self._again_or_never(records[done:], batch, result)

    def _first_failure(self, result: dict[str, Any], batch: list[dict[str, Any]]) -> str | None:
        """The number of the first record to repeat; None when all are done."""
        first = number(batch[0])
        if result.get("error"):
            return first
        body = result.get("body")
        if "ReportBatchItemFailures" not in self.mapping.get("FunctionResponseTypes", ()):
            return None
        failures = body.get("batchItemFailures") if isinstance(body, dict) else None
        named = {failure.get("itemIdentifier") for failure in failures or ()}
        if not named:
            return None
        return next((number(record) for record in batch if number(record) in named), first)

    def _again_or_never(
        self, left: list[dict[str, Any]], batch: list[dict[str, Any]], result: dict[str, Any]
    ) -> None:
        """Halve the batch while there is something to halve, which counts as no try; then count."""
        if self.mapping.get("BisectBatchOnFunctionError") and len(left) > 1:
            self.shard.size = len(left) // 2
        else:
            self.shard.tries += 1
            if 0 <= int(self.mapping.get("MaximumRetryAttempts", -1)) < self.shard.tries:
                arn, reason = self.mapping["EventSourceArn"], "RetryAttemptsExhausted"
                lambda_svc._send_ddb_stream_failure_record(
                    self.mapping, self.function, batch, arn, result, reason
                )
                self.shard.passed(len(left))
                return
        time.sleep(RETRY_SECONDS)


def number(record: dict[str, Any]) -> str:
    """A record's sequence number."""
    return str(record["dynamodb"]["SequenceNumber"])


@contextmanager
def acting_for(account: str, region: str) -> Iterator[None]:
    """ministack asks whose turn it is in this thread."""
    set_request_account_id(account)
    set_request_region(region)
    yield


class SharedZip(zipfile.ZipFile):
    """An archive that is unpacked beside, once, and linked to where it is wanted."""

    folder = Path(tempfile.gettempdir()) / "unpacked"
    unpacking = threading.Lock()

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        """Link what is at the archive's top into the folder."""
        digest = hashlib.sha256(Path(str(self.filename)).read_bytes()).hexdigest()
        shared = self.folder / digest
        with self.unpacking:
            if not shared.exists():
                draft = self.folder / f".{digest}"
                super().extractall(draft, members, pwd)
                draft.rename(shared)
        for entry in shared.iterdir():
            (Path(path) / entry.name).symlink_to(entry)


send_with_body = app._send_response


async def send_response(send: Any, status: int, headers: Any, body: Any, **more: Any) -> None:
    """ministack's own, for answers without a body too."""
    await send_with_body(send, status, headers, b"" if body is None else body, **more)


def enforce_roles(*_: object) -> None:
    """Who calls from now on may do only what a policy allows; functions started from now on call as
    their roles. Our queues refuse what does not come by TLS, and loopback has none: it counts.
    """
    origin = vars(app)["pin_request_origin"]
    vars(app).update(AUTH=True, pin_request_origin=lambda ip, secure: origin(ip, True))


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, enforce_roles)
    threading.Thread(target=expire_for_ever, daemon=True, name="expiry").start()
    lambda_svc._poll_dynamodb_streams = Mappings().poll
    app._send_response = send_response
    vars(lambda_runtime)["zipfile"] = SimpleNamespace(**vars(zipfile) | {"ZipFile": SharedZip})
    app.main()

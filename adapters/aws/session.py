"""One boto3 session for a process, and how each service's client waits and retries."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

CONNECT_SECONDS = 1.0
READ_SECONDS = 5.0
READ: Mapping[str, float] = {"dynamodb": 2.0, "s3": 20.0}
"""For a service's answer, where it is another time: S3 puts large objects together meanwhile."""
CONNECTIONS = 64
RETRIED = {"mode": "standard", "total_max_attempts": 3}
S3: Mapping[str, Any] = {
    "signature_version": "s3v4",  # for signed URLs the default is another one, in some regions
    # The bucket's own regional host: the global one, which URLs would name, answers with a redirect
    # to where their signature is wrong.
    "s3": {"addressing_style": "virtual"},
    # Bodies go out with the hash their signature has; URLs must not ask for one of nothing.
    "request_checksum_calculation": "when_required",
    "response_checksum_validation": "when_required",
}
ONCE = {"mode": "standard", "total_max_attempts": 1}
"""For the table. botocore would repeat a write whose acknowledgement was lost, and answer its own
first success with a failed condition or an addition made twice. What is lost is for the store to
know, and the store repeats reads too: one place that retries, so that waits do not multiply.
"""


class Session:
    """Clients by service name, each made at its first call and shared by all threads.

    boto3 is imported then too; credentials and region are the environment's, as Lambda sets them.
    """

    def __init__(self, region: str | None = None) -> None:
        self._region = region
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()  # making clients is not thread-safe, using them is
        self._session: Any = None

    def client(self, service: str) -> Any:
        """The client to be of a service (`dynamodb`, `sqs`, `secretsmanager`, `events`, `s3`)."""
        return _Late(self, service)

    def made(self, service: str) -> Any:
        """The client itself, made now if it is not there."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._new(service)
            return self._clients[service]

    def _new(self, service: str) -> Any:
        import boto3  # type: ignore[import-untyped]
        from botocore.config import Config  # type: ignore[import-untyped]

        self._session = self._session or boto3.session.Session(region_name=self._region)
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ.get(service, READ_SECONDS),
            retries=ONCE if service == "dynamodb" else RETRIED,
            max_pool_connections=CONNECTIONS,
            tcp_keepalive=True,
            **(S3 if service == "s3" else {}),
        )
        return self._session.client(service, config=config)


class _Late:
    """A client that is made when something is first asked of it: most calls need only one."""

    def __init__(self, session: Session, service: str) -> None:
        self._session, self._service = session, service

    def __getattr__(self, operation: str) -> Any:
        return getattr(self._session.made(self._service), operation)

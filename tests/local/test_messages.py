"""The worker of one machine calls the same function with the same event as a queue on AWS."""

from __future__ import annotations

from typing import Any

import pytest

from functions.edge.worker import looks, named
from infra.local.messages import Unanswered, deliver

SANDBOX, SNAPSHOT = "sbx-" + "a" * 26, "snap-" + "b" * 26


@pytest.mark.parametrize("record_id", [SANDBOX, SNAPSHOT])
def test_a_message_reaches_the_workers_look(record_id: str) -> None:
    seen: list[str] = []
    deliver(looks(seen.append), record_id)
    assert seen == [record_id]


def test_what_fails_comes_again() -> None:
    def look(record_id: str) -> None:
        raise ValueError

    with pytest.raises(Unanswered):
        deliver(looks(look), SANDBOX)


def test_what_names_no_record_is_refused_here_as_there() -> None:
    with pytest.raises(Unanswered):
        deliver(looks(lambda record_id: None), "x")


def test_the_body_is_the_queues_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from adapters.aws.queue import SqsQueue

    sent: list[dict[str, Any]] = []

    class Client:
        def send_message(self, **request: Any) -> None:
            sent.append(request)

    SqsQueue(Client(), {"create": "url"}).send("create", SNAPSHOT)
    assert named(sent[0]["MessageBody"]) == SNAPSHOT
    given: list[dict[str, Any]] = []

    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        given.extend(event["Records"])
        return {}

    deliver(handler, SNAPSHOT)
    assert [record["body"] for record in given] == [sent[0]["MessageBody"]]

"""The drivers of one deployment, over one session, from the names it was deployed with."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox_router.model.secret import Secret

from .bus import EventBridge
from .objects import S3Objects
from .queue import SqsLetters, SqsQueue
from .secrets import SecretStore
from .session import Session
from .table import DynamoTable
from .vault import SecretVault


class Deployment:
    """Table, objects, queues, secrets and bus. Nothing is called, and no client made, before it is
    needed.

    queues: URLs by name, `create`, `teardown` and `letters` among them. secrets: ARNs by name,
    `pepper`, `pools` and `vault`.
    """

    def __init__(
        self,
        *,
        table: str,
        bucket: str,
        bus: str,
        queues: Mapping[str, str],
        secrets: Mapping[str, str],
    ) -> None:
        session = Session()
        self._secrets = SecretStore(session.client("secretsmanager"))
        self._arns = dict(secrets)
        self.table = DynamoTable(session.client("dynamodb"), table)
        self.objects = S3Objects(session.client("s3"), bucket)
        self.queue = SqsQueue(session.client("sqs"), queues)
        self.letters = SqsLetters(session.client("sqs"), queues["letters"])
        self.bus = EventBridge(session.client("events"), bus)
        self.vault = SecretVault(self._secrets, secrets["vault"])

    def secret(self, name: str) -> Secret:
        """A secret's text, at most five minutes old; raises Internal."""
        return self._secrets.text(self._arns[name])

"""What a deployment stands on: the names its functions are told, and the ARNs their roles hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs

from infra.cloud.grants import Statement
from infra.cloud.target import Target

SECRETS = ("pepper", "pools", "vault")


@dataclass(frozen=True)
class Ground:
    """Table, bucket, queues, secrets and bus. deployment: its name at providers."""

    target: Target
    deployment: str
    table: dynamodb.ITableV2
    bucket: s3.IBucket
    bus: events.IEventBus
    secrets: dict[str, secretsmanager.ISecret]
    queues: dict[str, sqs.IQueue] = field(default_factory=dict)

    def arns(self, statement: Statement) -> list[str]:
        """What a statement is about."""
        return [self._arn(*about.partition(".")[::2]) for about in statement.about]

    def _arn(self, kind: str, name: str) -> str:
        match kind:
            case "table":
                found = self.table.table_arn
            case "index":
                found = f"{self.table.table_arn}/index/{name}"
            case "bucket":
                found = self.bucket.bucket_arn
            case "objects":
                found = f"{self.bucket.bucket_arn}/{name}/*"
            case "bus":
                found = self.bus.event_bus_arn
            case "queue":
                found = self.queues[name].queue_arn
            case _:
                found = self.secrets[name].secret_arn
        return str(found)

    def environment(self) -> dict[str, str]:
        """The variables of a function that makes a Router (see `functions.edge.settings`)."""
        return {
            "BACKEND": "aws",
            "DEPLOYMENT": self.deployment,
            "STREAMING": "on" if self.target.streaming else "off",
            "TABLE_NAME": self.table.table_name,
            "BUCKET_NAME": self.bucket.bucket_name,
            "EVENT_BUS_NAME": self.bus.event_bus_name,
            **{f"{name.upper()}_SECRET_ARN": s.secret_arn for name, s in self.secrets.items()},
            **{f"{name.upper()}_QUEUE_URL": q.queue_url for name, q in self.queues.items()},
        }

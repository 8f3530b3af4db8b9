"""The stack that outlives every deploy: records, secrets, bus."""

from __future__ import annotations

from typing import Any

from aws_cdk import Aws, CfnOutput, RemovalPolicy, SecretValue, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.cloud.ground import Ground
from infra.cloud.target import Target
from sandbox_router.table import INDEXES, PK, SK, TTL

SORTS = {"due_at": dynamodb.AttributeType.NUMBER, "tenant_sort": dynamodb.AttributeType.STRING}
NO_POOLS = '{"pools": [], "images": {}}'
PEPPER_LENGTH = VAULT_LENGTH = 64


class DataStack(Stack):
    """Nothing here is deleted with the stack; the table not even by hand without a change."""

    def __init__(self, scope: Construct, id: str, target: Target, **props: Any) -> None:
        super().__init__(scope, id, **props)
        table = self._table()
        bus = events.EventBus(self, "Bus", description="What happens to sandboxes")
        secrets = {
            "pepper": self._random("Pepper", "Keys the hashes of API keys, bodies and cursors"),
            "vault": self._random("Vault", "Seals what a request's secrets must be stored as"),
            "pools": secretsmanager.Secret(
                self,
                "Pools",
                description="Pools, images and the providers' credentials, as JSON",
                secret_string_value=SecretValue.unsafe_plain_text(NO_POOLS),
                removal_policy=RemovalPolicy.RETAIN,
            ),
        }
        deployment = f"{Aws.ACCOUNT_ID}/{Aws.REGION}/{target.name}"
        self.ground = Ground(target, deployment, table, bus, secrets)
        CfnOutput(self, "TableName", value=table.table_name)
        CfnOutput(self, "EventBusName", value=bus.event_bus_name)
        for name, secret in secrets.items():
            CfnOutput(self, f"{name.capitalize()}SecretArn", value=secret.secret_arn)

    def _table(self) -> dynamodb.TableV2:
        text = dynamodb.AttributeType.STRING
        return dynamodb.TableV2(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name=PK, type=text),
            sort_key=dynamodb.Attribute(name=SK, type=text),
            global_secondary_indexes=[
                dynamodb.GlobalSecondaryIndexPropsV2(
                    index_name=index,
                    partition_key=dynamodb.Attribute(name=hashed, type=text),
                    sort_key=dynamodb.Attribute(name=sorts, type=SORTS[sorts]),
                )
                for index, (hashed, sorts) in INDEXES.items()
            ],
            time_to_live_attribute=TTL,
            dynamo_stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
        )

    def _random(self, id: str, description: str) -> secretsmanager.Secret:
        return secretsmanager.Secret(
            self,
            id,
            description=description,
            generate_secret_string=secretsmanager.SecretStringGenerator(
                password_length=PEPPER_LENGTH, exclude_punctuation=True
            ),
            removal_policy=RemovalPolicy.RETAIN,
        )

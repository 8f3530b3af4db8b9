"""The stack that outlives every deploy: records, objects, secrets, bus."""

from __future__ import annotations

from typing import Any

from aws_cdk import Aws, CfnOutput, Duration, RemovalPolicy, SecretValue, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_s3 as s3
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
        table, bucket = self._table(), self._bucket()
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
        self.ground = Ground(target, deployment, table, bucket, bus, secrets)
        CfnOutput(self, "TableName", value=table.table_name)
        CfnOutput(self, "BucketName", value=bucket.bucket_name)
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

    def _bucket(self) -> s3.Bucket:
        """Files on their way. A day is the shortest a rule can say, and as long as an upload can be
        taken; no CORS, since no page of ours asks for a URL. Kept like the rest: CloudFormation
        cannot remove a bucket that holds anything, and an empty one costs nothing.
        """
        rule = s3.LifecycleRule(
            expiration=Duration.days(1), abort_incomplete_multipart_upload_after=Duration.days(1)
        )
        return s3.Bucket(
            self,
            "Objects",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            lifecycle_rules=[rule],
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
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

"""One Lambda function from one row of the catalog: code, layers, role, log group. Nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from functions.catalog import Http
from infra.cloud import grants, layers, sources
from infra.cloud.ground import Ground
from infra.cloud.sources import Row
from infra.cloud.target import Target

ARCHITECTURES = {
    "arm64": lambda_.Architecture.ARM_64,
    "x86_64": lambda_.Architecture.X86_64,
}
LAYERS, STREAM = ("deps", "core", "adapters"), "stream"
BUFFERED_SECONDS = 29
"""What API Gateway waits for an integration that does not stream."""


@dataclass(frozen=True)
class More:
    """What a role needs besides its grants, because of what invokes the function."""

    actions: tuple[str, ...]
    resources: tuple[str, ...]


class Functions:
    """Makes the functions of one stack. Layers are the stack's own: a version shared between
    stacks could not change while the other one uses it.
    """

    def __init__(self, scope: Construct, ground: Ground) -> None:
        self._scope, self._ground = scope, ground
        self._runtime = lambda_.Runtime(
            f"python{ground.target.python}", lambda_.RuntimeFamily.PYTHON
        )
        self._layers: dict[str, lambda_.LayerVersion] = {}

    def make(self, row: Row, more: Sequence[More] = ()) -> lambda_.Function:
        """The function of a row."""
        target = self._ground.target
        id = pascal(row.name)
        built = sources.function(row, target)
        log_group = logs.LogGroup(
            self._scope,
            f"{id}Log",
            retention=logs.RetentionDays.INFINITE,
            removal_policy=RemovalPolicy.DESTROY,
        )
        _keep(log_group, target.log_days)
        streams = isinstance(row, Http) and row.stream and target.streaming
        return lambda_.Function(
            self._scope,
            id,
            description=row.summary,
            code=lambda_.Code.from_asset(str(built.path), asset_hash=built.hash),
            handler=sources.handler(row),
            runtime=self._runtime,
            architecture=ARCHITECTURES[target.arch],
            layers=[self._layer(name) for name in (*LAYERS, *([STREAM] if streams else []))],
            memory_size=row.memory,
            timeout=Duration.seconds(seconds(row, target)),
            environment=self._environment(row, streams=streams),
            tracing=lambda_.Tracing.ACTIVE,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            role=self._role(row, log_group, more),
        )

    def _layer(self, name: str) -> lambda_.LayerVersion:
        if name not in self._layers:
            target = self._ground.target
            built = layers.layer(name, target)
            self._layers[name] = lambda_.LayerVersion(
                self._scope,
                f"{pascal(name)}Layer",
                code=lambda_.Code.from_asset(str(built.path), asset_hash=built.hash),
                compatible_architectures=[ARCHITECTURES[target.arch]],
                compatible_runtimes=[self._runtime],
                description=f"sandbox-router {name}",
            )
        return self._layers[name]

    def _environment(self, row: Row, *, streams: bool) -> dict[str, str]:
        found = self._ground.environment() if row.may else {}
        if streams:
            found["AWS_LAMBDA_EXEC_WRAPPER"] = "/opt/bin/stream-bootstrap"
        return found

    def _role(self, row: Row, log_group: logs.LogGroup, more: Sequence[More]) -> iam.IRole:
        """Its own role, which no construct adds to: what it may is the catalog's to say."""
        allowed = [
            iam.PolicyStatement(
                actions=list(each.actions),
                resources=self._ground.arns(each),
                conditions=each.conditions,
            )
            for each in grants.statements(row.may)
        ]
        runs = [
            More(grants.LOGS, (log_group.log_group_arn,)),
            More(grants.TRACES, ("*",)),
            *more,
        ]
        allowed += [
            iam.PolicyStatement(actions=list(each.actions), resources=list(each.resources))
            for each in runs
        ]
        role = iam.Role(
            self._scope,
            f"{pascal(row.name)}Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"may": iam.PolicyDocument(statements=allowed)},
        )
        return role.without_policy_updates()


def seconds(row: Row, target: Target) -> int:
    """How long it may run: behind a gateway no longer than the gateway waits."""
    if isinstance(row, Http) and not (row.stream and target.streaming):
        return min(row.timeout, BUFFERED_SECONDS)
    return row.timeout


def pascal(name: str) -> str:
    """A construct's name for a row's."""
    return "".join(part.capitalize() for part in name.split("_"))


def _keep(log_group: logs.LogGroup, days: int) -> None:
    resource = log_group.node.default_child
    assert isinstance(resource, logs.CfnLogGroup)
    resource.retention_in_days = days

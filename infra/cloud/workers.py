"""The stack behind the API: queues, what takes from them, the clock, and the guard's stream."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions import catalog
from functions.catalog import Every, FromBus, FromQueues, FromStream
from infra.cloud import grants
from infra.cloud.function import Functions, More, pascal
from infra.cloud.ground import Ground
from sandbox_router.table import PK

VISIBILITY = 6
"""Times the function's timeout: what AWS asks for, so that a message comes again after its batch
is surely over. A sandbox does not wait for that: the sweep sends another message every minute.
"""
RECEIVES = 5
KEEP = Duration.days(14)
LETTERS = "letters"
"""The queue of what other systems sent and nobody could take; an operator reads it."""
STREAM_TRIES = 20
CHANGES: dict[str, dict[str, Any]] = {
    "expired": {
        "eventName": ["REMOVE"],
        "userIdentity": {"type": ["Service"], "principalId": ["dynamodb.amazonaws.com"]},
    },
    "new": {"eventName": ["INSERT"]},
}
"""A row's `change` as a filter of the table's stream."""
OUR_SOURCE = "sandbox-router"
EVENT_TRIES, EVENT_AGE = 2, Duration.hours(6)


class WorkersStack(Stack):
    """Every function nobody calls over HTTP, and what calls it."""

    def __init__(self, scope: Construct, id: str, ground: Ground, **props: Any) -> None:
        super().__init__(scope, id, **props)
        rows = [row for row in catalog.WORKERS if isinstance(row, FromQueues)]
        queues = {name: self._queue(name, row.timeout) for row in rows for name in row.queues}
        queues[LETTERS] = self._dead_letters("event")
        self.ground = replace(ground, queues=queues)
        self._functions = Functions(self, self.ground)
        for row in catalog.WORKERS:
            match row:
                case FromQueues():
                    self._from_queues(row)
                case Every():
                    self._every(row)
                case FromStream():
                    self._from_stream(row)
                case FromBus():
                    self._from_bus(row)
        for name, queue in queues.items():
            CfnOutput(self, f"{pascal(name)}QueueUrl", value=queue.queue_url)

    def _dead_letters(self, name: str) -> sqs.Queue:
        return sqs.Queue(
            self, f"{pascal(name)}DeadLetters", retention_period=KEEP, enforce_ssl=True
        )

    def _queue(self, name: str, timeout: int) -> sqs.Queue:
        return sqs.Queue(
            self,
            f"{pascal(name)}Queue",
            visibility_timeout=Duration.seconds(timeout * VISIBILITY),
            enforce_ssl=True,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self._dead_letters(name), max_receive_count=RECEIVES
            ),
        )

    def _from_queues(self, row: FromQueues) -> None:
        queues = {name: self.ground.queues[name] for name in row.queues}
        takes = More(grants.CONSUME, tuple(queue.queue_arn for queue in queues.values()))
        function = self._functions.make(row, [takes])
        # It sends messages to its own queues. Lambda would stop that after 16 rounds; ours ends
        # by itself: passes, deadlines and looks at open attempts are all counted (`decide`).
        function.node.default_child.recursive_loop = "Allow"
        for name, queue in queues.items():
            lambda_.EventSourceMapping(
                self,
                f"{pascal(row.name)}From{pascal(name)}",
                target=function,
                event_source_arn=queue.queue_arn,
                batch_size=row.batch,
                report_batch_item_failures=True,
            )

    def _every(self, row: Every) -> None:
        function = self._functions.make(row)
        # Missed is missed: the next one looks at everything again.
        target = targets.LambdaFunction(
            function, retry_attempts=0, max_event_age=Duration.seconds(60)
        )
        events.Rule(
            self,
            f"{pascal(row.name)}Clock",
            description=row.summary,
            schedule=events.Schedule.rate(Duration.minutes(row.minutes)),
            targets=[target],
        )

    def _from_stream(self, row: FromStream) -> None:
        """Only the changes the row asks for; others do not even start the function."""
        arn = self.ground.table.table_stream_arn
        lost = self._dead_letters(row.name)
        needs = [
            More(grants.STREAM, (arn,)),
            More(grants.STREAMS, ("*",)),
            More(grants.LOSES, (lost.queue_arn,)),
        ]
        mapping = lambda_.EventSourceMapping(
            self,
            f"{pascal(row.name)}FromStream",
            target=self._functions.make(row, needs),
            event_source_arn=arn,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=row.batch,
            retry_attempts=STREAM_TRIES,
            bisect_batch_on_error=True,
            report_batch_item_failures=True,
        )
        keys = {"dynamodb": {"Keys": {PK: {"S": [{"prefix": row.prefix}]}}}}
        pattern = json.dumps({**CHANGES[row.change], **keys})
        resource = mapping.node.default_child
        resource.filter_criteria = {"filters": [{"pattern": pattern}]}
        # Not by the L2, which would let the queue grant to a role that takes no grants.
        resource.destination_config = {"onFailure": {"destination": lost.queue_arn}}

    def _from_bus(self, row: FromBus) -> None:
        lost = self._dead_letters(row.name)
        function = self._functions.make(row, [More(grants.LOSES, (lost.queue_arn,))])
        function.configure_async_invoke(
            retry_attempts=EVENT_TRIES,
            max_event_age=EVENT_AGE,
            on_failure=destinations.SqsDestination(lost),
        )
        events.Rule(
            self,
            f"{pascal(row.name)}Rule",
            description=row.summary,
            event_bus=self.ground.bus,
            event_pattern=events.EventPattern(
                source=events.Match.anything_but(OUR_SOURCE), detail_type=list(row.detail_types)
            ),
            targets=[targets.LambdaFunction(function, max_event_age=EVENT_AGE)],
        )

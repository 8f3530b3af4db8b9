"""Powertools' resolver for one operation, made safe for calls side by side.

Powertools keeps the current event in a class attribute, since Lambda gives a process one call at a
time. The local gateway gives it many, in threads: here each call keeps its own event, in its own
context. Validation is ours (`binding`), not Powertools': theirs takes the first of repeated
values, decides by the content type's letter case and lets unknown parameters pass.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayRestResolver

_EVENT: ContextVar[Any] = ContextVar("event")
_LAMBDA: ContextVar[Any] = ContextVar("lambda_context")
_STATE: ContextVar[dict[str, Any]] = ContextVar("state")


class Resolver(APIGatewayRestResolver):
    """One event at a time per context, any number per process."""

    def __init__(self) -> None:
        super().__init__(debug=False)
        self._building = threading.Lock()
        self._built = False

    def resolve(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """The proxy answer for an event."""
        tokens = (
            (_EVENT, _EVENT.set(self._to_proxy_event(dict(event)))),
            (_LAMBDA, _LAMBDA.set(context)),
            (_STATE, _STATE.set({})),
        )
        try:
            return self._build_response(self._once())
        finally:
            for variable, token in reversed(tokens):
                variable.reset(token)

    def _once(self) -> Any:
        """Powertools builds a route's chain in its first call, without a lock. Here only the
        building is under one: calls that come while the first still runs do not wait for it.
        """
        if not self._built:
            with self._building:
                for route in (*self._static_routes, *self._dynamic_routes):
                    if not route._middleware_stack_built:
                        route._build_middleware_stack(self._router_middlewares, self)
                self._built = True
        return self._resolve()

    def _event(self) -> Any:
        """This call's event."""
        return _EVENT.get()

    def _context(self) -> Any:
        """This call's Lambda context."""
        return _LAMBDA.get()

    def _state(self) -> dict[str, Any]:
        """What Powertools remembers during this call."""
        return _STATE.get({})

    def _forget(self, value: object) -> None:
        """The base class's constructor sets it, to nothing."""

    # Attributes there; here they must not be one for all calls.
    current_event = property(_event)
    lambda_context = property(_context)
    context = property(_state, _forget)

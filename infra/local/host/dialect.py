"""What the host needs of a dialect: a vendor's wire API as an application, and its error words."""

from __future__ import annotations

from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from infra.local.host.calls import Call
from infra.local.host.config import Account
from infra.local.host.engine import Engine
from infra.local.host.faults import Fault


class Dialect(Protocol):
    """A vendor's API over the engine; an ASGI application mounted under the dialect's name."""

    def __init__(self, engine: Engine, accounts: tuple[Account, ...]) -> None: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; `scope["host.call"]` is its entry in the call log."""

    def classify(self, scope: Scope) -> Call:
        """Say whose call a request is and what it asks for, before it is served."""

    def refusal(self, fault: Fault, call: Call) -> Response:
        """Say a fault in the vendor's own words."""

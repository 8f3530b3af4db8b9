"""The gate before every dialect: logs each call and carries out the fault that hits it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from infra.local.host.calls import Call, CallLog
from infra.local.host.dialect import Dialect
from infra.local.host.faults import Effect, Fault, Faults
from infra.local.host.server import cut

_HUGE = 64 * 1024 * 1024
_CHUNK = 64 * 1024
_LATE_ANSWER_SECONDS = 1.0
# Nothing listens there: the client must not get that far.
_ELSEWHERE = "http://127.0.0.1:9/"

Effects = Callable[["Gate", Fault, "Exchange"], Awaitable[None]]


class Exchange:
    """One HTTP exchange on its way through the gate."""

    def __init__(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        self.call = call
        self.scope = scope
        self.receive = receive
        self._send = send

    async def send(self, message: Message) -> None:
        """Send to the client and note the status in the log."""
        if message["type"] == "http.response.start":
            self.call.status = message["status"]
        await self._send(message)

    async def answer(self, response: Response) -> None:
        """Answer the client instead of the dialect."""
        await response(self.scope, self.receive, self.send)

    async def hold_body(self) -> None:
        """Read the request's body whole, to hand it on later, when the client may be gone."""
        parts = []
        more = True
        while more:
            message = await self.receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        messages: list[Message] = [{"type": "http.request", "body": b"".join(parts)}]

        async def replay() -> Message:
            if messages:
                return messages.pop()
            await asyncio.Event().wait()  # the client's leaving must not undo the effect
            raise AssertionError("unreachable")

        self.receive = replay


async def _discard(_: Message) -> None:
    """Send nothing."""


class Gate:
    """ASGI application around one dialect."""

    def __init__(self, app: ASGIApp, dialect: Dialect, faults: Faults, log: CallLog) -> None:
        self._app = app
        self._dialect = dialect
        self._faults = faults
        self._log = log
        self._later: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Log the call, then let it through or do what its fault says."""
        call = self._dialect.classify(scope)
        self._log.add(call)
        scope["host.call"] = call
        exchange = Exchange(call, scope, receive, send)
        fault = self._faults.match(call.account, call.op)
        if fault is None:
            await self._app(scope, receive, exchange.send)
            return
        call.fault = fault.fault
        await _EFFECTS[fault.effect](self, fault, exchange)

    async def _through(self, exchange: Exchange) -> None:
        await self._app(exchange.scope, exchange.receive, exchange.send)

    async def _effect_only(self, exchange: Exchange) -> None:
        await exchange.hold_body()
        await self._app(exchange.scope, exchange.receive, _discard)

    async def _refused(self, fault: Fault, exchange: Exchange) -> None:
        await exchange.hold_body()
        await exchange.answer(self._dialect.refusal(fault, exchange.call))

    async def _made(self, fault: Fault, exchange: Exchange) -> None:
        await self._effect_only(exchange)
        await exchange.answer(self._dialect.refusal(fault, exchange.call))

    async def _lost(self, fault: Fault, exchange: Exchange) -> None:
        await self._effect_only(exchange)
        await cut(exchange.scope)

    async def _cut(self, fault: Fault, exchange: Exchange) -> None:
        await cut(exchange.scope)

    async def _late(self, fault: Fault, exchange: Exchange) -> None:
        loop = asyncio.get_running_loop()
        arrived = loop.time()
        await exchange.hold_body()

        receive = exchange.receive
        # A scope of its own: the client's connection serves other requests by then.
        scope = dict(exchange.scope)

        async def effect() -> None:
            await asyncio.sleep(max(0.0, arrived + fault.seconds - loop.time()))
            await self._app(scope, receive, _discard)

        task = asyncio.create_task(effect())
        self._later.add(task)
        task.add_done_callback(self._later.discard)
        await asyncio.sleep(min(_LATE_ANSWER_SECONDS, fault.seconds / 2))
        exchange.receive = _silence
        await exchange.answer(self._dialect.refusal(fault, exchange.call))

    async def _slow(self, fault: Fault, exchange: Exchange) -> None:
        await exchange.hold_body()
        await asyncio.sleep(fault.seconds)
        await self._through(exchange)

    async def _hang(self, fault: Fault, exchange: Exchange) -> None:
        await asyncio.sleep(fault.seconds)
        await cut(exchange.scope)

    async def _redirect(self, fault: Fault, exchange: Exchange) -> None:
        await exchange.hold_body()
        path = exchange.scope["path"].lstrip("/")
        await exchange.answer(RedirectResponse(_ELSEWHERE + path, status_code=307))

    async def _garbage(self, fault: Fault, exchange: Exchange) -> None:
        await exchange.hold_body()
        await exchange.answer(HTMLResponse("<html><body>It works!</body></html>"))

    async def _huge(self, fault: Fault, exchange: Exchange) -> None:
        await exchange.hold_body()
        await exchange.answer(StreamingResponse(_huge_body(), media_type="application/json"))

    async def _lag(self, fault: Fault, exchange: Exchange) -> None:
        exchange.scope["host.list_lag"] = fault.seconds
        await self._through(exchange)

    async def _unready(self, fault: Fault, exchange: Exchange) -> None:
        exchange.scope["host.capture_seconds"] = fault.seconds
        await self._through(exchange)

    async def _unmade(self, fault: Fault, exchange: Exchange) -> None:
        exchange.scope["host.capture_fails"] = True
        await self._through(exchange)


async def _silence() -> Message:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def _huge_body() -> AsyncIterator[bytes]:
    yield b'{"message": "'
    for _ in range(_HUGE // _CHUNK):
        yield b"x" * _CHUNK
        await asyncio.sleep(0)
    yield b'"}'


_EFFECTS: dict[Effect, Effects] = {
    Effect.REFUSED: Gate._refused,
    Effect.MADE: Gate._made,
    Effect.LOST: Gate._lost,
    Effect.CUT: Gate._cut,
    Effect.LATE: Gate._late,
    Effect.SLOW: Gate._slow,
    Effect.HANG: Gate._hang,
    Effect.REDIRECT: Gate._redirect,
    Effect.GARBAGE: Gate._garbage,
    Effect.HUGE: Gate._huge,
    Effect.LAG: Gate._lag,
    Effect.UNREADY: Gate._unready,
    Effect.UNMADE: Gate._unmade,
}

"""Wishes: destroy, pause, resume, extend, look, labels. Stored first, then the one verb answers."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.failure import (
    BY_CODE,
    Failure,
    Invalid,
    NotFound,
    NotRunning,
    NotRunningYet,
    Unsupported,
)
from ..model.record import Wish
from ..model.sandbox import Sandbox, State
from ..ports import Extends, Ids, Pauses, Pools
from ..store import Entry
from .advance import Lifecycle, queue_of
from .lasting import profile_of

IDLE_PARTS = 20
"""A use is written down when the last one is older than this part of the idle time."""
ON_THE_WAY = frozenset({State.STARTING, State.RESUMING})


def must_be(box: Sandbox, *states: State) -> None:
    """Raise NotRunning or NotRunningYet unless the sandbox is in one of the states."""
    if box.state in states:
        return
    cls = NotRunningYet if box.state in ON_THE_WAY else NotRunning
    raise cls(f"the sandbox is {box.state}", retry_after=1 if cls is NotRunningYet else None)


class Wishes:
    """Everything a client may wish of a sandbox it may see. Raises ProviderFailure classes."""

    def __init__(self, lifecycle: Lifecycle[Sandbox], pools: Pools, ids: Ids) -> None:
        self._lifecycle, self._pools, self._ids = lifecycle, pools, ids
        self._store, self._clock = lifecycle.store, lifecycle.clock

    def destroy(self, box: Sandbox, reason: str = "client") -> Sandbox:
        """Acknowledged once stored; the record after what could be done at once."""
        if box.state.terminal:
            return box
        if box.wish_destroy is None:
            return self._asked(box, "wish_destroy", self._wish(reason))
        return self._advanced(box)

    def pause(self, box: Sandbox, keep: str) -> Sandbox:
        """Paused, keeping memory or disk."""
        must_be(box, State.RUNNING, State.PAUSED)
        profile = profile_of(self._pools, self._pool_id(box))
        if not isinstance(self._provider(box), Pauses):
            raise Unsupported("this provider cannot pause")
        if keep not in (profile.detail("pause", "keeps") or ()):
            raise Unsupported(f"this provider cannot keep {keep}", fields=(("keep", keep),))
        if box.state is State.PAUSED:
            return box
        return self._granted(box, "wish_power", self._wish("pause", keep))

    def resume(self, box: Sandbox) -> Sandbox:
        """Running again, with what was kept."""
        must_be(box, State.PAUSED, State.RUNNING)
        if box.state is State.RUNNING:
            return box
        return self._granted(box, "wish_power", self._wish("resume"))

    def extend(self, box: Sandbox, ttl_seconds: int, *, shorten: bool) -> Sandbox:
        """Another deadline, `ttl_seconds` from now: the provider's limit first, then ours."""
        must_be(box, State.RUNNING, State.PAUSED)
        until = self._clock.now() + ttl_seconds * 1000
        if until < box.expires_at and not shorten:
            raise Invalid(fields=(("ttl_seconds", 'ends earlier than now; say "shorten": true'),))
        pool = self._pools.pool(self._pool_id(box))
        if pool.ttl_cap is not None and ttl_seconds > pool.ttl_cap:
            reason = f"this pool allows at most {pool.ttl_cap}"
            raise Unsupported(reason, fields=(("ttl_seconds", reason),))
        if until > box.expires_at and not isinstance(self._provider(box), Extends):
            raise Unsupported("this provider cannot extend", fields=(("ttl_seconds", "fixed"),))
        return self._granted(box, "wish_expiry", self._wish("extend", value=until))

    def look(self, box: Sandbox) -> Sandbox:
        """The record after a look at the provider."""
        if box.state not in (State.RUNNING, State.PAUSED):
            return self._advanced(box)
        return self._asked(box, "wish_look", self._wish("look"))

    def look_soon(self, box: Sandbox) -> None:
        """Have a worker look at the provider: the caller has no time left for it."""
        wish = self._wish("look")
        self._store.wish(box, "wish_look", wish, Entry(wish.at, "wish.look", box.state))
        self._lifecycle.queue.send(queue_of(box), box.id)

    def relabel(self, box: Sandbox, labels: Mapping[str, str]) -> Sandbox:
        """Other labels; they live in our record, whatever the provider retains."""
        if box.state.terminal:
            must_be(box, State.RUNNING)
        return self._amended(box, {"labels": dict(labels)}, "labels")

    def idle(self, box: Sandbox, seconds: int) -> Sandbox:
        """Another idle time, from now."""
        must_be(box, State.RUNNING, State.PAUSED, State.STARTING)
        idle = {"idle_seconds": seconds, "active_at": self._clock.now()}
        return self._advanced(self._amended(box, idle, "idle", news=True))

    def touch(self, box: Sandbox) -> None:
        """A call through us is a use; written down only when that could matter."""
        if box.idle_seconds is None:
            return
        if self._clock.now() - box.active_at >= box.idle_seconds * 1000 // IDLE_PARTS:
            self._store.touch(box)

    def _amended(
        self, box: Sandbox, attributes: Mapping[str, object], event: str, *, news: bool = False
    ) -> Sandbox:
        entry = Entry(self._clock.now(), event, box.state)
        self._store.amend(box, attributes, entry, news=news)
        return self._load(box)

    def _wish(self, verb: str, keep: str = "memory", value: int = 0) -> Wish:
        return Wish(self._ids.nonce(), self._clock.now(), verb, keep, value)

    def _asked(self, box: Sandbox, attr: str, wish: Wish) -> Sandbox:
        entry = Entry(wish.at, f"wish.{wish.verb}", box.state)
        self._store.wish(box, attr, wish, entry)
        return self._advanced(box)

    def _advanced(self, box: Sandbox) -> Sandbox:
        work = self._lifecycle.advance(box.id)
        return box if work is None else work.stored

    def _granted(self, box: Sandbox, attr: str, wish: Wish) -> Sandbox:
        """The record after the wish; raises the failure this very wish was answered with."""
        after = self._asked(box, attr, wish)
        answers = {
            after.answered_power: after.power_code,
            after.answered_expiry: after.expiry_code,
        }
        code = answers.get(wish.id)
        if code is not None:
            raise BY_CODE.get(code, Failure)()
        return after

    def _load(self, box: Sandbox) -> Sandbox:
        fresh = self._lifecycle.load(box.id)
        if fresh is None:
            raise NotFound
        return fresh

    def _pool_id(self, box: Sandbox) -> str:
        assert box.server is not None
        return box.server.pool_id

    def _provider(self, box: Sandbox) -> object:
        return self._pools.provider(self._pool_id(box))

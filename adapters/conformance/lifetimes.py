"""Cases: the provider's own limit on a life, pause and resume."""

from __future__ import annotations

import time

from sandbox_router.model.failure import Gone, ProviderFailure
from sandbox_router.ports import Instance, Ref

from .case import Bench, Missing, case, check, letters, refused, until

MARK = "/tmp/conformance-mark"


@case("R-LIFE-01", "extend")
def extends(bench: Bench) -> None:
    """Extend moves the limit."""
    provider = bench.extends
    made = bench.create(bench.order(lifetime_seconds=120))
    provider.extend(made.id, 1200)
    left = _left(bench, made)
    check(1100 < left < 1300, f"{left:.0f} s are left instead of 1200")
    provider.extend(made.id, 60)
    left = _left(bench, made)
    check(left < 120, f"{left:.0f} s are left instead of 60")


@case("R-LIFE-02")
def ends(bench: Bench) -> None:
    """An instance ends at its limit without anybody asking."""
    least = max(2, bench.profile.lifetime.min_ttl)
    made = bench.create(bench.order(lifetime_seconds=least))
    if least > 2:
        bench.extends.extend(made.id, 2)
    until(lambda: bench.provider.get(made.id) is None, 30, "it lives on")


@case("R-LIFE-03", "extend")
def extends_nothing(bench: Bench) -> None:
    """What is gone cannot be extended."""
    refused(Gone, lambda: bench.extends.extend(f"i{letters(19)}", 60))


@case("R-LIFE-04", "extend", "pause")
def extends_paused(bench: Bench) -> None:
    """A paused instance is not taken for gone when it is extended."""
    made = bench.create()
    bench.pauses.pause(made.id, _keeps(bench)[0])
    try:
        bench.extends.extend(made.id, 600)
    except Gone:
        check(False, "extend says that it is gone")
    except ProviderFailure:
        pass  # a provider may refuse, truthfully
    check(bench.provider.get(made.id) is not None, "it is gone")


@case("R-PAUSE-01", "pause", "exec")
def keeps_memory(bench: Bench) -> None:
    """Pause keeps memory and disk, resume goes on."""
    if "memory" not in _keeps(bench):
        raise Missing("pause that keeps memory")
    made = bench.create()
    ref = Ref(made.id, made.access)
    pid = bench.shell(
        ref, f"echo kept > {MARK}; sleep 600 < /dev/null > /dev/null 2>&1 & echo $!"
    ).stdout
    resumed = _around(bench, made, "memory")
    ran = bench.shell(resumed, f"cat {MARK}; kill -0 {pid.decode().strip()} && echo alive")
    check(ran.stdout == b"kept\nalive\n", "the file or the process is gone")


@case("R-PAUSE-02", "pause", "exec")
def keeps_disk(bench: Bench) -> None:
    """Pause that keeps only the disk keeps the disk."""
    if "disk" not in _keeps(bench):
        raise Missing("pause that keeps the disk")
    made = bench.create()
    bench.shell(Ref(made.id, made.access), f"echo kept > {MARK}; sync")
    ran = bench.shell(_around(bench, made, "disk"), f"cat {MARK}")
    check(ran.stdout == b"kept\n", "the file is gone")


@case("R-PAUSE-03", "pause")
def repeats(bench: Bench) -> None:
    """Pause and resume may be repeated, also after a lost answer."""
    provider = bench.pauses
    made, keep = bench.create(), _keeps(bench)[0]
    for _ in range(2):
        provider.pause(made.id, keep)
    _state(bench, made, "paused")
    for _ in range(2):
        resumed = provider.resume(made.id, 300)
        check(resumed.id == made.id and resumed.state == "running", "it does not run")
    if bench.faults is not None:
        bench.broken("pause", "lost_answer")
        refused(ProviderFailure, lambda: provider.pause(made.id, keep))
        provider.pause(made.id, keep)
        _state(bench, made, "paused")


@case("R-PAUSE-04", "pause")
def paused_is_there(bench: Bench) -> None:
    """A paused instance is found, listed and destroyed."""
    order = bench.order()
    made = bench.create(order)
    bench.pauses.pause(made.id, _keeps(bench)[0])
    found = bench.provider.find(order.tags)
    check(found is not None and found.state == "paused", "find does not show it paused")
    bench.provider.destroy(made.id)
    check(bench.provider.get(made.id) is None, "it cannot be destroyed")


@case("R-PAUSE-05", "pause")
def pauses_nothing(bench: Bench) -> None:
    """What is gone can be neither paused nor resumed."""
    provider = bench.pauses
    refused(Gone, lambda: provider.pause(f"i{letters(19)}", _keeps(bench)[0]))
    refused(Gone, lambda: provider.resume(f"i{letters(19)}", 60))


@case("R-PAUSE-06", "pause")
def does_not_shorten(bench: Bench) -> None:
    """Resuming what runs does not shorten its life."""
    made = bench.create(bench.order(lifetime_seconds=900))
    bench.pauses.resume(made.id, 60)
    left = _left(bench, made)
    check(left > 600, f"{left:.0f} s are left of 900")


def _around(bench: Bench, made: Instance, keep: str) -> Ref:
    """Pause, look, resume."""
    provider = bench.pauses
    provider.pause(made.id, keep)
    _state(bench, made, "paused")
    resumed = provider.resume(made.id, 300)
    _state(bench, made, "running")
    return Ref(resumed.id, resumed.access)


def _state(bench: Bench, made: Instance, state: str) -> None:
    seen = bench.provider.get(made.id)
    check(seen is not None, "it is gone")
    check(seen is not None and seen.state == state, f"it is not {state}")


def _left(bench: Bench, made: Instance) -> float:
    seen = bench.provider.get(made.id)
    if seen is None or seen.ends_at is None:
        raise Missing("end in the provider's answer")
    return seen.ends_at / 1000 - time.time()


def _keeps(bench: Bench) -> list[str]:
    return list(bench.profile.detail("pause", "keeps") or ["disk"])

"""Cases: captures of an instance, their own life, and instances made of them."""

from __future__ import annotations

from dataclasses import replace

from sandbox_router.model import failure as fail
from sandbox_router.model.failure import Conflicted, Gone, ProviderFailure, Rejected
from sandbox_router.ports import Capture, Instance, Order, Ref

from .case import Bench, Missing, case, check, letters, refused, until

PATH, MARK = "/tmp/conformance-kept", b"as it was"
SECONDS = 60.0
PAGES = 100


@case("R-SNAP-01", "snapshots", "files")
def lives(bench: Bench) -> None:
    """A capture gets ready, is listed under its name, makes an instance, and is gone at its end."""
    source, name = bench.create(), _name()
    _write(bench, source)
    capture = _ready(bench, _take(bench, source, name))
    check(_listed(bench).get(capture.id) == name, "it is not listed under its name")
    restored = bench.create(_order(bench, capture))
    check(_read(bench, restored) == MARK, "the file is another one")
    bench.provider.destroy(restored.id)
    bench.snapshots.destroy_capture(capture.id)
    check(bench.snapshots.get_capture(capture.id) is None, "get still shows it")
    check(bench.snapshots.find_capture(source.id, name) is None, "find still shows it")
    check(capture.id not in _listed(bench), "the list still shows it")
    bench.snapshots.destroy_capture(capture.id)


@case("R-SNAP-02", "snapshots", "files")
def contents(bench: Bench) -> None:
    """Everything that is said to be captured can be."""
    source = bench.create()
    _write(bench, source)
    for kept in bench.profile.detail("snapshots", "contents"):
        capture = _ready(bench, _take(bench, source, _name(), kept))
        restored = bench.create(_order(bench, capture))
        check(_read(bench, restored) == MARK, f"{kept}: the file is another one")


@case("R-SNAP-03", "snapshots", "files")
def outlives(bench: Bench) -> None:
    """A capture outlives its source, and is not changed by it."""
    source = bench.create()
    _write(bench, source)
    capture = _ready(bench, _take(bench, source, _name()))
    _write(bench, source, b"changed")
    bench.provider.destroy(source.id)
    check(_read(bench, bench.create(_order(bench, capture))) == MARK, "the file is another one")


@case("R-SNAP-04", "snapshots")
def finds(bench: Bench) -> None:
    """A capture is found by its instance and its name, and by nothing else."""
    source, other, name = bench.create(), bench.create(), _name()
    capture = _ready(bench, _take(bench, source, name))
    _take(bench, other, f"{name}-1")
    _found(bench, source, name, capture.id)
    for box, text in ((source, f"{name}-1"), (other, name), (source, name[:-1])):
        found = bench.snapshots.find_capture(box.id, text)
        check(found is None, "another one is found")


@case("R-SNAP-05", "snapshots")
def lost(bench: Bench) -> None:
    """A capture whose answer was lost is unknown, and found afterwards, once."""
    source = bench.create()
    for fault in ("lost_answer", "made_503"):
        name = _name()
        bench.broken("snapshot", fault)
        refused(fail.Unknown, lambda name=name: _take(bench, source, name))  # type: ignore[misc]
        found = _found(bench, source, name)
        check(_ready(bench, found).name == name, f"{fault}: it has another name")
        named = [one for one, text in _listed(bench).items() if text == name]
        check(named == [found.id], f"{fault}: {len(named)} have its name")


@case("R-SNAP-06", "snapshots")
def repeats(bench: Bench) -> None:
    """A repeat under one name finds the first."""
    if not bench.profile.detail("snapshots", "idempotent"):
        raise Missing("idempotent captures")
    source, name = bench.create(), _name()
    first, second = (_take(bench, source, name) for _ in range(2))
    check(first.id == second.id, "it made another one")


@case("R-SNAP-07", "snapshots")
def gone(bench: Bench) -> None:
    """What is gone cannot be captured."""
    source = bench.create()
    bench.provider.destroy(source.id)
    refused(Gone, lambda: _take(bench, source, _name()))


@case("R-SNAP-08", "snapshots", "pause")
def paused(bench: Bench) -> None:
    """A paused instance is not taken for gone when it is captured."""
    source = bench.create()
    bench.pauses.pause(source.id, bench.profile.detail("pause", "keeps")[0])
    try:
        _take(bench, source, _name())
    except Gone:
        check(False, "capture says that it is gone")
    except ProviderFailure:
        pass  # a provider may refuse, truthfully
    check(bench.provider.get(source.id) is not None, "it is gone")


@case("R-SNAP-09", "snapshots")
def never_was(bench: Bench) -> None:
    """A capture that never was is gone, and its destroy succeeds."""
    nothing = f"c{letters(19)}"
    check(bench.snapshots.get_capture(nothing) is None, "something is there")
    bench.snapshots.destroy_capture(nothing)


@case("R-SNAP-10", "snapshots")
def makes_nothing(bench: Bench) -> None:
    """An instance of a capture that is not there is refused for good, and leaves nothing."""
    order = _order(bench, Capture(f"c{letters(19)}", "ready"))
    refused(Rejected, lambda: bench.create(order))
    check(bench.provider.find(order.tags) is None, "it left an instance")


@case("R-SNAP-11", "snapshots")
def interrupts(bench: Bench) -> None:
    """A capture does to its source what is declared, and no more."""
    source = bench.create()
    _ready(bench, _take(bench, source, _name()))
    seen = bench.provider.get(source.id)
    if bench.profile.detail("snapshots", "interrupts") == "stop":
        check(seen is None or seen.state != "running", "it runs on")
        return
    check(seen is not None and seen.state == "running", "it does not run on")
    if bench.profile.can("exec"):
        ran = bench.shell(Ref(source.id, source.access), "echo ok")
        check(ran.stdout == b"ok\n", "no command runs in it")


@case("R-SNAP-12", "snapshots")
def in_use(bench: Bench) -> None:
    """A capture that something was made of goes at once, or as soon as that is gone."""
    capture = _ready(bench, _take(bench, bench.create(), _name()))
    user = bench.create(_order(bench, capture))
    try:
        bench.snapshots.destroy_capture(capture.id)
    except Conflicted:
        check(bench.snapshots.get_capture(capture.id) is not None, "a refused destroy destroyed")
        bench.provider.destroy(user.id)
        bench.snapshots.destroy_capture(capture.id)
    check(bench.snapshots.get_capture(capture.id) is None, "get still shows it")


@case("R-SNAP-13", "snapshots")
def destroys_again(bench: Bench) -> None:
    """A destroy whose answer was lost has happened, and may be repeated; a refused one has not."""
    capture = _ready(bench, _take(bench, bench.create(), _name()))
    for fault in ("error_500", "cut", "conflict", "rate_limited", "garbage", "redirect"):
        bench.broken("snapshot_destroy", fault)
        refused(ProviderFailure, lambda: bench.snapshots.destroy_capture(capture.id))
    check(bench.snapshots.get_capture(capture.id) is not None, "a refused destroy destroyed")
    bench.broken("snapshot_destroy", "lost_answer")
    refused(ProviderFailure, lambda: bench.snapshots.destroy_capture(capture.id))
    bench.snapshots.destroy_capture(capture.id)
    check(bench.snapshots.get_capture(capture.id) is None, "get still shows it")


@case("R-SNAP-14", "snapshots")
def looks(bench: Bench) -> None:
    """A look whose answer is no good is not a look that says gone."""
    source, name = bench.create(), _name()
    capture = _ready(bench, _take(bench, source, name))
    for fault in ("error_500", "error_503", "cut", "garbage", "huge", "redirect", "unauthorized"):
        bench.broken("snapshot_get", fault)
        refused(ProviderFailure, lambda: bench.snapshots.get_capture(capture.id))
        bench.broken("snapshot_list", fault)
        refused(ProviderFailure, lambda: bench.snapshots.find_capture(source.id, name))
        bench.broken("snapshot_list", fault)
        refused(ProviderFailure, lambda: bench.snapshots.captures(None))


REFUSALS: dict[str, type[ProviderFailure]] = {
    "capacity": fail.Refused,  # "the node is busy" here, "no room" there
    "rate_limited": fail.RateLimited,
    "quota": fail.Quota,
    "unauthorized": fail.BrokenPool,
    "forbidden": fail.Permission,
    "policy": fail.Policy,
    "invalid": fail.Rejected,
    "conflict": fail.Conflicted,
    "error_500": fail.Unknown,
    "error_503": fail.Unknown,
    "cut": fail.Unknown,
    "garbage": fail.ProtocolBroken,
    "huge": fail.ProtocolBroken,
    "redirect": fail.ProtocolBroken,
}


@case("R-SNAP-15", "snapshots")
def refusals(bench: Bench) -> None:
    """Each refusal of a capture has its class, and none leaves a capture."""
    source, name = bench.create(), _name()
    for fault, kind in REFUSALS.items():
        bench.broken("snapshot", fault)
        failure = refused(kind, lambda: _take(bench, source, name))
        fits = type(failure) is kind or (kind is fail.Refused and failure.temporary)
        check(fits, f"{fault}: {type(failure).__name__}")
        check(bench.snapshots.find_capture(source.id, name) is None, f"{fault} left a capture")


@case("R-SNAP-16", "snapshots")
def too_early(bench: Bench) -> None:
    """What is not ready makes nothing yet, and can be used when it is."""
    bench.broken("snapshot", "slow_capture")
    capture = _take(bench, bench.create(), _name())
    if capture.state != "creating":
        raise Missing("captures that are ready later")
    refused(Conflicted, lambda: bench.create(_order(bench, capture)))
    refused(Conflicted, lambda: bench.snapshots.destroy_capture(capture.id))
    bench.create(_order(bench, _ready(bench, capture)))


@case("R-SNAP-17", "snapshots")
def fails(bench: Bench) -> None:
    """A capture that fails is never called ready, and can be destroyed."""
    source, name = bench.create(), _name()
    bench.broken("snapshot", "failed_capture")
    try:
        capture = _take(bench, source, name)
    except ProviderFailure:
        check(bench.snapshots.find_capture(source.id, name) is None, "it is there")
        return
    until(lambda: _state(bench, capture) != "creating", SECONDS, "it stays `creating`")
    check(_state(bench, capture) in ("failed", None), "it is called ready")
    bench.snapshots.destroy_capture(capture.id)
    check(_state(bench, capture) is None, "it is still there")


def _name() -> str:
    """As long as the longest of the Router's."""
    return f"snap-{letters(26)}-{letters(20)}"


def _take(bench: Bench, source: Instance, name: str, contents: str | None = None) -> Capture:
    kept = contents or bench.profile.detail("snapshots", "contents")[0]
    timeout = bench.profile.timeouts.create
    capture = bench.snapshots.capture(source.id, name, kept, timeout=timeout)
    bench.taken.add(capture.id)
    return capture


def _ready(bench: Bench, capture: Capture) -> Capture:
    until(lambda: _state(bench, capture) != "creating", SECONDS, "it stays `creating`")
    found = bench.snapshots.get_capture(capture.id)
    check(found is not None and found.state == "ready", "it is not ready")
    return found or capture


def _state(bench: Bench, capture: Capture) -> str | None:
    found = bench.snapshots.get_capture(capture.id)
    return None if found is None else found.state


def _found(bench: Bench, source: Instance, name: str, capture_id: str | None = None) -> Capture:
    seen: list[Capture | None] = []

    def look() -> bool:
        seen.append(bench.snapshots.find_capture(source.id, name))
        return seen[-1] is not None

    until(look, bench.profile.naming.list_lag + 10, "it is not found")
    found = seen[-1]
    assert found is not None
    bench.taken.add(found.id)
    check(capture_id in (None, found.id), "another one is found")
    return found


def _listed(bench: Bench) -> dict[str, str | None]:
    listed: dict[str, str | None] = {}
    cursor: str | None = None
    for _ in range(PAGES):
        page = bench.snapshots.captures(cursor)
        for one in page.captures:
            check(one.id not in listed, "a capture is there twice")
            listed[one.id] = one.name
        if (cursor := page.cursor) is None:
            return listed
    check(False, f"no end after {PAGES} pages")
    return listed


def _order(bench: Bench, capture: Capture) -> Order:
    return replace(bench.order(), reference=capture.id, from_capture=True)


def _write(bench: Bench, box: Instance, data: bytes = MARK) -> None:
    bench.write(Ref(box.id, box.access), PATH, data)


def _read(bench: Bench, box: Instance) -> bytes:
    return bench.read(Ref(box.id, box.access), PATH, 64)

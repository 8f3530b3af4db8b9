"""Cases that need a provider that can be broken: each refusal by its class, each bad answer."""

from __future__ import annotations

from sandbox_router.model import failure as fail
from sandbox_router.model.failure import ProviderFailure

from .case import Bench, case, check, refused

CREATES: dict[str, type[ProviderFailure]] = {
    "capacity": fail.Capacity,
    "rate_limited": fail.RateLimited,
    "quota": fail.Quota,
    "unauthorized": fail.BrokenPool,
    "forbidden": fail.Permission,
    "policy": fail.Policy,
    "invalid": fail.Rejected,
    "error_500": fail.Unknown,
    "error_503": fail.Unknown,
    "cut": fail.Unknown,
    "garbage": fail.ProtocolBroken,
    "huge": fail.ProtocolBroken,
    "redirect": fail.ProtocolBroken,
}


@case("R-REFUSE-01")
def creates(bench: Bench) -> None:
    """Each refusal of a create has its class, and none leaves an instance."""
    for fault, kind in CREATES.items():
        order = bench.order()
        bench.broken("create", fault)
        failure = refused(kind, lambda order=order: bench.create(order))  # type: ignore[misc]
        check(type(failure) is kind, f"{fault}: {type(failure).__name__}")
        check(bench.provider.find(order.tags) is None, f"{fault} left an instance")


@case("R-REFUSE-02")
def looks(bench: Bench) -> None:
    """A look whose answer is no good is not a look that says gone."""
    made = bench.create()
    for fault in ("error_500", "error_503", "cut", "garbage", "huge", "redirect", "unauthorized"):
        bench.broken("get", fault)
        refused(ProviderFailure, lambda: bench.provider.get(made.id))
        bench.broken("list", fault)
        refused(ProviderFailure, lambda: bench.provider.find(made.tags))
        bench.broken("list", fault)
        refused(ProviderFailure, lambda: bench.provider.instances(None))


@case("R-REFUSE-03")
def destroys(bench: Bench) -> None:
    """A refused destroy says so, and the instance is still there."""
    made = bench.create()
    for fault in ("error_500", "cut", "conflict", "rate_limited", "garbage", "redirect"):
        bench.broken("delete", fault)
        refused(ProviderFailure, lambda: bench.provider.destroy(made.id))
    check(bench.provider.get(made.id) is not None, "it is gone")


@case("R-REFUSE-04")
def lags(bench: Bench) -> None:
    """An instance the list does not show yet is shown by get."""
    order = bench.order()
    bench.broken("list", "list_lag")
    made = bench.create(order)
    bench.provider.find(order.tags)  # may be None: lists are hints
    check(bench.provider.get(made.id) is not None, "get does not show it")

"""Cases: finding, listing, destroying, and the cheap look that checks a credential."""

from __future__ import annotations

from sandbox_router.model.failure import (
    BrokenPool,
    Outage,
    Permission,
    ProviderFailure,
    RateLimited,
)
from sandbox_router.ports import Ref

from .case import Bench, Missing, case, check, letters, refused


@case("R-VERIFY-01")
def verifies(bench: Bench) -> None:
    """The credential is accepted."""
    bench.provider.verify()


@case("R-VERIFY-02")
def stranger(bench: Bench) -> None:
    """A credential nobody knows is a broken pool."""
    if bench.stranger is None:
        raise Missing("second, wrong credential")
    refused(BrokenPool, bench.stranger.verify)


@case("R-VERIFY-03")
def told_apart(bench: Bench) -> None:
    """401, 403, 429 and unavailable are told apart."""
    kinds: dict[str, type[ProviderFailure]] = {
        "unauthorized": BrokenPool,
        "forbidden": Permission,
        "rate_limited": RateLimited,
        "error_503": Outage,
        "cut": Outage,
    }
    for fault, kind in kinds.items():
        bench.broken("list", fault)
        failure = refused(kind, bench.provider.verify)
        check(
            (failure.retry_after is not None) == (kind is RateLimited),
            f"{fault}: retry after {failure.retry_after}",
        )


@case("R-FIND-01")
def finds(bench: Bench) -> None:
    """Identity tags find the instance, ready to be used."""
    order = bench.order()
    made = bench.create(order)
    identity = {k: order.tags[k] for k in ("constal-sandbox-id", "constal-sandbox")}
    found = bench.provider.find(identity)
    if found is None:
        raise Missing("list without lag")
    check(found.id == made.id, "another instance")
    check(dict(found.tags) == dict(order.tags), "other tags")
    if bench.profile.can("exec"):
        ran = bench.shell(Ref(found.id, found.access), "echo ok")
        check(ran.stdout == b"ok\n", "no command runs in what was found")


@case("R-FIND-02")
def differs(bench: Bench) -> None:
    """One tag that differs, or is missing, is no match."""
    order = bench.order({"a": "1"})
    bench.create(order)
    for tags in ({**order.tags, "a": "2"}, {**order.tags, "b": "1"}, {"constal-sandbox": "r-"}):
        check(bench.provider.find(tags) is None, "an instance with other tags is found")


@case("R-FIND-03")
def characters(bench: Bench) -> None:
    """Characters with a meaning in URLs do not change what is looked for."""
    if bench.profile.labels.value_pattern is not None:
        raise Missing("free label values")
    value = "a&b=c%20d+e /?#ü"
    order = bench.order({"odd/key": value})
    made = bench.create(order)
    found = bench.provider.find({"odd/key": value, **order.tags})
    check(found is not None and found.id == made.id, "it is not found")


@case("R-FIND-04")
def nothing(bench: Bench) -> None:
    """Tags nobody has find nothing."""
    check(
        bench.provider.find({"constal-sandbox": f"r-{letters(38)}"}) is None, "it found something"
    )


@case("R-LIST-01")
def lists(bench: Bench) -> None:
    """The list shows every instance once, with its tags, and ends."""
    orders = [bench.order() for _ in range(3)]
    made = {bench.create(order).id: dict(order.tags) for order in orders}
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(100):
        page = bench.provider.instances(cursor)
        seen += [instance.id for instance in page.instances]
        for instance in page.instances:
            tags = made.get(instance.id)
            check(tags in (None, dict(instance.tags)), "the tags differ")
        if (cursor := page.cursor) is None:
            break
    check(cursor is None, "no end after 100 pages")
    check(len(seen) == len(set(seen)), "an instance is there twice")
    check(set(made) <= set(seen), "an instance is missing")


@case("R-GET-01")
def never_was(bench: Bench) -> None:
    """An instance that never was is gone."""
    check(bench.provider.get(f"i{letters(19)}") is None, "something is there")


@case("R-DESTROY-01")
def destroys(bench: Bench) -> None:
    """A destroyed instance is gone for get, find and list, and again."""
    order = bench.order()
    made = bench.create(order)
    bench.provider.destroy(made.id)
    check(bench.provider.get(made.id) is None, "get still shows it")
    bench.provider.destroy(made.id)
    check(bench.provider.find(order.tags) is None, "find still shows it")


@case("R-DESTROY-02")
def destroys_nothing(bench: Bench) -> None:
    """Destroying what never was succeeds."""
    bench.provider.destroy(f"i{letters(19)}")


@case("R-DESTROY-03")
def destroys_again(bench: Bench) -> None:
    """A destroy whose answer was lost has happened, and may be repeated."""
    made = bench.create()
    bench.broken("delete", "lost_answer")
    refused(ProviderFailure, lambda: bench.provider.destroy(made.id))
    bench.provider.destroy(made.id)
    check(bench.provider.get(made.id) is None, "get still shows it")

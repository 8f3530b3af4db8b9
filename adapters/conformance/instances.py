"""Cases: what a create promises, and what declared abilities are."""

from __future__ import annotations

import time

from sandbox_router.model.failure import Conflicted, Rejected, Unknown
from sandbox_router.ports import (
    Extends,
    HoldsFiles,
    OpensPorts,
    Pauses,
    Provider,
    Ref,
    RunsCommands,
)

from .case import Bench, Missing, case, check, letters, refused

ABILITIES: dict[str, type] = {
    "exec": RunsCommands,
    "files": HoldsFiles,
    "ports": OpensPorts,
    "pause": Pauses,
    "extend": Extends,
}


@case("R-ABILITY-01")
def declared(bench: Bench) -> None:
    """Declared abilities are there, others are absent."""
    for name, protocol in ABILITIES.items():
        there, said = isinstance(bench.provider, protocol), bench.profile.can(name)
        check(there == said, f"{name}: declared {said}, implemented {there}")


@case("R-CREATE-01")
def creates(bench: Bench) -> None:
    """A create answers with an instance that runs."""
    made = bench.create()
    check(made.state == "running", f"its state is {made.state}")
    seen = bench.provider.get(made.id)
    check(seen is not None and seen.state == "running", "get does not show it running")


@case("R-CREATE-02")
def retains(bench: Bench) -> None:
    """21 tags are retained exactly: 256 characters, names like Kubernetes labels."""
    length = min(256, bench.profile.labels.value_length)
    tags = {
        "constal-account": letters(52),
        "app.example.com/Part_of.1": letters(length),
        "empty": "",
        **{f"label-{n}": letters(length) for n in range(16)},
    }
    order = bench.order(tags)
    check(len(order.tags) == 21, "this case itself is wrong")
    seen = bench.provider.get(bench.create(order).id)
    check(seen is not None and dict(seen.tags) == dict(order.tags), "the tags differ")


@case("R-CREATE-03")
def repeats(bench: Bench) -> None:
    """A create repeated under one identity gives the same instance, where that is declared.

    Elsewhere it gives one more, and looking up and destroying in turn ends with none.
    """
    order = bench.order()
    first, second = bench.create(order), bench.create(order)
    if not bench.profile.naming.idempotent:
        check(first.id != second.id, "it is idempotent: declare it")
        for made in (first, second):
            found = bench.provider.find(order.tags)
            check(found is not None and found.id == made.id, "the oldest is not found first")
            bench.provider.destroy(made.id)
        check(bench.provider.find(order.tags) is None, "one is left")
        return
    check(first.id == second.id, "two instances")
    check(dict(first.access) == dict(second.access), "the repeat tells another way in")


@case("R-CREATE-04")
def repeats_after_loss(bench: Bench) -> None:
    """After a lost answer the repeat, or else a look-up, finds what was made."""
    order = bench.order()
    bench.lost(order, "lost_answer")
    idempotent = bench.profile.naming.idempotent
    made = bench.create(order) if idempotent else bench.provider.find(order.tags)
    if made is None:
        raise Missing("list without lag")
    bench.made.add(made.id)
    _only(bench.provider, order.identity, made.id)


@case("R-CREATE-05")
def unknown(bench: Bench) -> None:
    """An answer of 503 after the effect is unknown, and the tags find the instance."""
    order = bench.order()
    bench.broken("create", "made_503")
    refused(Unknown, lambda: bench.create(order))
    found = bench.provider.find(order.tags)
    check(found is not None, "it is not found")
    bench.made.add(found.id if found else "")
    _only(bench.provider, order.identity, found.id if found else "")


@case("R-CREATE-06")
def unknown_image(bench: Bench) -> None:
    """An image the account does not have is rejected."""
    order = bench.order()
    wrong = type(order)(
        order.identity, f"none-{letters(12)}", order.shape, order.tags, order.lifetime_seconds
    )
    refused(Rejected, lambda: bench.create(wrong))
    check(bench.provider.find(order.tags) is None, "it left an instance")


@case("R-CREATE-07", "exec")
def environment(bench: Bench) -> None:
    """Variables of the create reach commands."""
    value = "a b=ü\"'$`\\\n&"
    made = bench.create(bench.order(env={"CONFORMANCE": value}))
    ran = bench.shell(Ref(made.id, made.access), 'printf %s "$CONFORMANCE"')
    check(ran.stdout == value.encode(), "another value arrived")


@case("R-CREATE-08")
def shape(bench: Bench) -> None:
    """The instance has the ordered CPU and memory."""
    seen = bench.provider.get(bench.shared().instance_id)
    if seen is None or seen.shape is None:
        raise Missing("shape in the provider's answer")
    told = (seen.shape.milli_vcpu, seen.shape.memory_mib)
    check(told == (bench.shape.milli_vcpu, bench.shape.memory_mib), f"it is {seen.shape.name}")


@case("R-CREATE-09")
def limit(bench: Bench) -> None:
    """The provider's own limit is set at create."""
    now = time.time()
    seen = bench.provider.get(bench.create(bench.order(lifetime_seconds=120)).id)
    if seen is None or seen.ends_at is None:
        raise Missing("end in the provider's answer")
    left = seen.ends_at / 1000 - now
    check(60 < left < 180, f"it ends {left:.0f} s after the create instead of 120")


@case("R-CREATE-10")
def mismatch(bench: Bench) -> None:
    """One identity with another order conflicts and makes nothing."""
    if not bench.profile.naming.idempotent:
        raise Missing("idempotent create")
    order = bench.order()
    made = bench.create(order)
    other = type(order)(order.identity, order.reference, order.shape, order.tags, 77)
    refused(Conflicted, lambda: bench.create(other))
    _only(bench.provider, order.identity, made.id)


def _only(provider: Provider, identity: str, instance_id: str) -> None:
    """This instance and no other has the identity."""
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(100):
        page = provider.instances(cursor)
        seen += [i.id for i in page.instances if i.tags.get("constal-sandbox") == identity]
        if (cursor := page.cursor) is None:
            break
    check(seen == [instance_id], f"{len(seen)} instances have the identity")

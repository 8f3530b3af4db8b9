"""Conformance of a provider: one list of cases over the port, for stand-ins and for real keys."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from sandbox_router.model.capability import Profile
from sandbox_router.model.size import Shape
from sandbox_router.ports import Provider

from . import commands, files, instances, lifetimes, looking, refusals, snapshots  # their cases
from .case import CASES, Bench, Case, Faults, Result, perform

__all__ = ["CASES", "Bench", "Case", "Faults", "Report", "Result", "perform", "run"]
_ = (instances, looking, lifetimes, commands, files, refusals, snapshots)


@dataclass(frozen=True)
class Report:
    """The results of one run against one account."""

    kind: str
    results: tuple[Result, ...]

    @property
    def passed(self) -> bool:
        """Did no case fail?"""
        return not any(result.outcome == "failed" for result in self.results)

    def document(self) -> dict[str, Any]:
        """The report as JSON writes it."""
        return {
            "kind": self.kind,
            "passed": self.passed,
            "results": [asdict(result) for result in self.results],
        }


def run(
    provider: Provider,
    profile: Profile,
    reference: str,
    shape: Shape,
    *,
    stranger: Provider | None = None,
    only: Collection[str] = (),
) -> Report:
    """Run the cases (or `only` those ids) against a real account, and destroy what they made.

    `reference` is the vendor's name of an image with a POSIX shell and Python; `shape` its size.
    """
    bench = Bench(provider, profile, reference, shape, stranger=stranger)
    try:
        return Report(profile.kind, tuple(_results(bench, only)))
    finally:
        bench.close()


def _results(bench: Bench, only: Collection[str]) -> Iterator[Result]:
    for one in CASES:
        if not only or one.id in only:
            yield perform(one, bench)

"""Seeded faults of the core, each with the promises it breaks and the selection that finds it."""

from tests.sim.mutants import answers, attempts, captures, claims, ends, others, vendors
from tests.sim.mutants.seeding import MUTANTS, Hunt, Mutant

__all__ = [
    "MUTANTS",
    "Hunt",
    "Mutant",
    "answers",
    "attempts",
    "captures",
    "claims",
    "ends",
    "others",
    "vendors",
]

"""Shapes: what a sandbox is made of, and the names people give them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from .failure import Invalid

Sort = Literal["price", "latency", "success"]

_NAME = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)x(\d{1,4}(?:\.\d{1,3})?)(?::([a-z]+))?", re.ASCII)
SUFFIXES: dict[str, Sort] = {"cheap": "price", "fast": "latency", "stable": "success"}
STANDARD = ("1x1", "1x2", "2x2", "2x4", "2x8", "4x8", "4x16", "8x16", "8x32", "16x32", "16x64")


@dataclass(frozen=True)
class Gpu:
    """Accelerators of one type."""

    type: str
    count: int = 1


@dataclass(frozen=True)
class Shape:
    """CPU in thousandths of a vCPU, memory and disk in MiB; `None` means the provider's default."""

    milli_vcpu: int
    memory_mib: int
    disk_mib: int | None = None
    gpu: Gpu | None = None

    @property
    def name(self) -> str:
        """The short name, such as `2x4`."""
        return f"{plain(self.milli_vcpu, 1000)}x{plain(self.memory_mib, 1024)}"

    @classmethod
    def of(
        cls, vcpu: float, memory_gib: float, disk_gib: float | None = None, gpu: Gpu | None = None
    ) -> Shape:
        """A shape from vCPU and GiB."""
        disk = None if disk_gib is None else round(disk_gib * 1024)
        return cls(round(vcpu * 1000), round(memory_gib * 1024), disk, gpu)


def parse(size: str) -> tuple[Shape, Sort | None]:
    """The shape and routing suffix of a name such as `2x4:cheap`; raises Invalid."""
    match = _NAME.fullmatch(size)
    if match is None or (match[3] and match[3] not in SUFFIXES):
        raise Invalid(fields=(("size", "must look like 2x4, 2x4:cheap, 2x4:fast or 2x4:stable"),))
    shape = Shape.of(float(match[1]), float(match[2]))
    if shape.milli_vcpu == 0 or shape.memory_mib == 0:
        raise Invalid(fields=(("size", "must be greater than zero"),))
    return shape, SUFFIXES[match[3]] if match[3] else None


def plain(units: int, per: int) -> int | float:
    """`units / per` as an int when whole, so that JSON says 2 and not 2.0."""
    whole, rest = divmod(units, per)
    return whole if rest == 0 else float(Decimal(units) / Decimal(per))

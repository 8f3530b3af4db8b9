"""What a synthesis is for: the functions' machine, and the switches of a deployment."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

ARCHITECTURES = {"arm64": "aarch64", "x86_64": "x86_64"}
"""Lambda's name -> Linux's, as wheels are tagged."""
_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}[a-z0-9]")
_SWITCH = {"on": True, "off": False}


class BadContext(Exception):
    """A context value nobody can deploy; the text says which."""


@dataclass(frozen=True)
class Target:
    """One deployment's choices. name: begins its stacks' names, so that an account can hold two.

    streaming: exec answers as it happens, on a STREAM method; off, every answer is in one piece.
    """

    name: str = "sandbox-router"
    arch: str = "arm64"
    python: str = "3.13"
    streaming: bool = True
    log_days: int = 30

    @classmethod
    def of(cls, context: Callable[[str], object]) -> Target:
        """The target in a CDK context (`cdk -c arch=x86_64`); raises BadContext."""

        def text(key: str, default: object) -> str:
            value = context(key)
            return str(default) if value is None else str(value)

        name = text("name", cls.name)
        arch, python = text("arch", cls.arch), text("python", cls.python)
        streaming, days = text("streaming", "on"), text("log_days", cls.log_days)
        if not _NAME.fullmatch(name):
            raise BadContext(f"name={name!r} is not lower-case letters, digits and hyphens")
        if arch not in ARCHITECTURES:
            raise BadContext(f"arch={arch!r} is none of {', '.join(ARCHITECTURES)}")
        if not re.fullmatch(r"3\.1[1-9]", python):
            raise BadContext(f"python={python!r} is not 3.11 or newer")
        if streaming not in _SWITCH:
            raise BadContext(f"streaming={streaming!r} is neither on nor off")
        if not re.fullmatch(r"[1-9][0-9]{0,3}", days):
            raise BadContext(f"log_days={days!r} is not a number of days")
        return cls(name, arch, python, _SWITCH[streaming], int(days))

    @property
    def deployment(self) -> str:
        """The part of the deployment's name at providers that an operator chose."""
        return self.name

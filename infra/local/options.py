"""What the environment may say to `python -m infra.local`, checked before anything happens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NETS = frozenset({"queue", "sweep", "reconcile"})
"""Those that can be switched off for a test; the provider's own is the host's. `queue`: messages
that the writers of deadlines send.
"""
DEFAULT_PORT = 8080


class BadOption(Exception):
    """A variable cannot be used; the text says which and why."""


@dataclass(frozen=True)
class Options:
    """Where to listen, where the state is, and what the tests switch off or break.

    crash_at: the port call to die before; 0 only counts them, None does neither.
    """

    port: int
    state: Path
    nets: frozenset[str] = NETS
    crash_at: int | None = None

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Options:
        """The options in these variables; raises BadOption."""
        return cls(
            port=_number(env, "PORT", DEFAULT_PORT, 65_535),
            state=_folder(env.get("STATE", ".state")),
            nets=_nets(env.get("NETS")),
            crash_at=_number(env, "CRASH_AT", 0, 1_000_000) if env.get("CRASH_AT") else None,
        )


def _number(env: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = env.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and int(text[:9]) <= most and len(text) < 9):
        raise BadOption(f"{name}={text!r} is not a number from 0 to {most}")
    return int(text)


def _folder(text: str) -> Path:
    if not text or "\0" in text:
        raise BadOption("STATE is empty: it names the folder for keys and records")
    try:
        path = Path(text).expanduser().absolute()
    except RuntimeError:
        raise BadOption(f"STATE={text!r} names a home that is not known") from None
    if path.exists() and not path.is_dir():
        raise BadOption(f"STATE={text!r} is not a folder")
    if path == Path("/") or path == Path.home():
        raise BadOption(f"STATE={text!r} would become private (mode 0700); name a folder below it")
    return path


def _nets(text: str | None) -> frozenset[str]:
    if text is None:
        return NETS
    named = frozenset(part.strip() for part in text.split(",") if part.strip())
    if not named <= NETS:
        raise BadOption(f"NETS={text!r} may name {', '.join(sorted(NETS))}")
    return named

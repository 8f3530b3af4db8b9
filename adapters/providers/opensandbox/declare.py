"""OpenSandbox's names and limits that a profile cannot say as data.

Facts: opensandbox-server 1.1.1 (services/validators.py, services/constants.py) and
components/execd/pkg/util/pathutil of github.com/opensandbox-group/OpenSandbox at 3bb6fad.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from sandbox_router.model.failure import ProtocolBroken, Rejected

REDUCED = ("constal-tenant", "constal-namespace")
"""Identity tags whose values may be longer than the 63 characters of a label: kept as the 52 of
base32(sha256(value)) in lower case, always, so that the same value is always kept the same way.
The others fit as they are.
"""

ENTRYPOINT = ("tail", "-f", "/dev/null")
"""The workload that keeps a sandbox there until somebody asks: the server's own default."""

AGENT_PORT = 44772

_ID = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_EXPANDED = re.compile(r"\$[A-Za-z0-9_{*#$@!?-]|^~")
_SIGNALS = {
    "hangup": "SIGHUP",
    "interrupt": "SIGINT",
    "quit": "SIGQUIT",
    "illegal instruction": "SIGILL",
    "trace/breakpoint trap": "SIGTRAP",
    "aborted": "SIGABRT",
    "bus error": "SIGBUS",
    "floating point exception": "SIGFPE",
    "killed": "SIGKILL",
    "user defined signal 1": "SIGUSR1",
    "segmentation fault": "SIGSEGV",
    "user defined signal 2": "SIGUSR2",
    "broken pipe": "SIGPIPE",
    "alarm clock": "SIGALRM",
    "terminated": "SIGTERM",
    "CPU time limit exceeded": "SIGXCPU",
    "file size limit exceeded": "SIGXFSZ",
}
"""How Go, which execd is written in, spells signals on Linux."""


def held(tags: Mapping[str, str]) -> dict[str, str]:
    """Identity tags and labels as OpenSandbox holds them."""
    return {name: _reduced(text) if name in REDUCED else text for name, text in tags.items()}


def _reduced(text: str) -> str:
    return b32encode(sha256(text.encode()).digest()).decode().rstrip("=").lower()


def safe_id(value: Any) -> str:
    """An id of an instance or a capture that is safe in a URL's path; raises ProtocolBroken."""
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    raise ProtocolBroken


def path(text: str) -> str:
    """A path that execd takes as it is; raises Rejected for one that it would read otherwise.

    execd expands `$NAME`, `${NAME}` and a leading `~` in every path, and knows no escape.
    """
    if _EXPANDED.search(text):
        raise Rejected("OpenSandbox expands variables in paths, so this one cannot be named")
    return text


def signal(error: str) -> str | None:
    """The signal in Go's words for how a process ended, if there is one."""
    status = re.sub(r"^signal: | \(core dumped\)$", "", error)
    return _SIGNALS.get(status) if error.startswith("signal: ") else None

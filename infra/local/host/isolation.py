"""Isolation tiers: which tools give which walls, found by trying them, and their command lines.

Each tier says truthfully what it gives; the host announces the one in force.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from infra.local.host.spawn import PLAIN_ENV

USER_ID = 1000
HOME = "/home/user"
# pid 1 of a sandbox: ignoring SIGCHLD makes the kernel reap orphans (a shell's trap cannot, and
# dash's `read` ends on any signal); `cat` on the lifeline socket ends when the host dies for
# whatever reason, and the namespace dies with pid 1.
INIT = "echo ready; exec env --ignore-signal=CHLD cat > /dev/null"
# First line on stdout: the command's pid in its own namespace. It is also the group leader.
SHIM = 'echo $$; cd -- "$1" && shift && exec "$@"'

_SYSTEM_DIRS = ("bin", "sbin", "lib", "lib32", "lib64")
_ETC = (
    "alternatives", "bash.bashrc", "ca-certificates", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "pki/ca-trust", "pki/tls/certs", "profile", "profile.d",
    "protocols", "resolv.conf", "services", "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
_DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
# Their owner checks look at the uid outside the namespace, which is root when the host is.
_PROC_COVERED = ("sys", "sysrq-trigger", "irq", "bus")


@dataclass(frozen=True, slots=True)
class Tier:
    """One kind of walls and what it keeps apart."""

    name: str
    isolation: str
    walls: tuple[str, ...]
    cuts_network: bool
    note: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits put on every process of a sandbox (setrlimit: per process)."""

    memory_mib: int
    disk_mib: int
    processes: int = 1024
    files: int = 4096


@dataclass(frozen=True, slots=True)
class Place:
    """The directories of one sandbox on this machine."""

    directory: Path
    etc: Path

    @property
    def home(self) -> Path:
        """The sandbox's home directory."""
        return self.directory / "home"

    @property
    def tmp(self) -> Path:
        """The sandbox's own /tmp."""
        return self.directory / "tmp"


BUBBLEWRAP = Tier(
    "bubblewrap",
    "container",
    ("pid", "mount", "ipc", "uts", "user", "network on request"),
    True,
    "own namespaces by bubblewrap; only system directories, read-only; rlimits per process",
)
UNSHARE = Tier(
    "unshare",
    "container",
    ("pid", "mount", "ipc", "uts", "user", "network on request"),
    True,
    "own namespaces by util-linux unshare; only system directories, read-only; rlimits per process",
)
PROCESS = Tier(
    "process",
    "process",
    (),
    False,
    "no walls: processes of this user with rlimits; they can read what this user can read",
)
TIERS: dict[str, Tier] = {tier.name: tier for tier in (BUBBLEWRAP, UNSHARE, PROCESS)}


def prepare_etc(directory: Path) -> None:
    """Write the few files of /etc that every sandbox shares."""
    directory.mkdir(parents=True, exist_ok=True)
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    files = {
        "passwd": "root:x:0:0:root:/root:/bin/sh\n"
        f"user:x:{USER_ID}:{USER_ID}:user:{HOME}:{shell}\n",
        "group": f"root:x:0:\nuser:x:{USER_ID}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    }
    for name, text in files.items():
        (directory / name).write_text(text, encoding="ascii")


def start_command(tier: Tier, place: Place, *, network: bool) -> list[str]:
    """Return the command that makes a sandbox's namespaces and runs their pid 1."""
    if tier is BUBBLEWRAP:
        return _bubblewrap(place, network=network)
    return _unshare(place, network=network)


def enter_command(tier: Tier, init: int, *, network: bool) -> list[str]:
    """Return the prefix that runs a command inside the namespaces of a pid 1."""
    line = ["nsenter", f"--target={init}", "--user", "--mount", "--pid", "--ipc", "--uts"]
    line += [] if network else ["--net"]
    line += ["--preserve-credentials", "--"]
    if tier is UNSHARE:
        # pid 1 is root of its user namespace there; a command gets a namespace of its own
        # below it, and with it no power over the mounts.
        line += ["unshare", "--user", f"--map-user={USER_ID}", f"--map-group={USER_ID}", "--"]
    return line


def limit_command(limits: Limits) -> list[str]:
    """Return the prefix that puts the rlimits on what follows."""
    return [
        "prlimit",
        # DATA, not AS: runtimes reserve address space far beyond what they use.
        f"--data={limits.memory_mib * 1024 * 1024}",
        f"--fsize={limits.disk_mib * 1024 * 1024}",
        f"--nproc={limits.processes}",
        f"--nofile={limits.files}",
        "--core=0",
        "--",
    ]


def _bubblewrap(place: Place, *, network: bool) -> list[str]:
    line = [
        "bwrap", "--unshare-user", "--uid", str(USER_ID), "--gid", str(USER_ID), "--unshare-pid",
        "--unshare-ipc", "--unshare-uts", "--hostname", "sandbox", "--as-pid-1",
        "--die-with-parent", "--clearenv",
    ]  # fmt: skip
    line += [] if network else ["--unshare-net"]
    line += ["--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM_DIRS:
        path = Path("/", name)
        if path.is_symlink():
            line += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            line += ["--ro-bind", str(path), str(path)]
    for name in _ETC:
        line += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for file in sorted(place.etc.iterdir()):
        line += ["--ro-bind", str(file), f"/etc/{file.name}"]
    line += ["--proc", "/proc"]
    for name in _PROC_COVERED:
        line += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    # Not --dev: its devpts needs a second user namespace, which nsenter could not cross.
    for name in _DEVICES:
        line += ["--dev-bind-try", f"/dev/{name}", f"/dev/{name}"]
    line += ["--symlink", "/proc/self/fd", "/dev/fd", "--tmpfs", "/dev/shm", "--tmpfs", "/run"]
    line += ["--bind", str(place.home), HOME, "--bind", str(place.tmp), "/tmp"]
    return [*line, "--remount-ro", "/", "--chdir", HOME, "--", "/bin/sh", "-c", INIT]


def _unshare(place: Place, *, network: bool) -> list[str]:
    script = Path(__file__).with_name("enter.sh").read_text(encoding="utf-8")
    etc = " ".join(name for name in _ETC if Path("/etc", name).exists())
    settings = [
        str(place.directory), str(place.etc), " ".join(_SYSTEM_DIRS), etc,
        " ".join(_DEVICES), " ".join(_PROC_COVERED), "yes" if network else "no", INIT,
    ]  # fmt: skip
    line = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]
    return [*line, "--", "/bin/sh", "-c", script, "sandbox", *settings]


def detect(scratch: Path, wanted: str | None = None) -> tuple[Tier, str]:
    """Return the strongest tier that works here (or the wanted one) and one line on why."""
    if wanted is not None:
        tier = TIERS[wanted]
        problem = _try(tier, scratch)
        if problem:
            raise RuntimeError(f"isolation {wanted!r} does not work here: {problem}")
        return tier, f"isolation: {tier.name}, as asked ({tier.note})"
    problems: list[str] = []
    for tier in TIERS.values():
        problem = _try(tier, scratch)
        if not problem:
            missing = f"; {'; '.join(problems)}" if problems else ""
            return tier, f"isolation: {tier.name} ({tier.note}){missing}"
        problems.append(f"{tier.name} unavailable: {problem}")
    raise RuntimeError("; ".join(problems))


def _try(tier: Tier, scratch: Path) -> str:
    """Return why a tier does not work here, or an empty string."""
    needed = {"bubblewrap": ("bwrap",), "unshare": ("unshare", "mount"), "process": ()}[tier.name]
    if tier is not PROCESS:
        needed += ("nsenter", "prlimit", "setsid", "env")
    for tool in needed:
        if shutil.which(tool, path=PLAIN_ENV["PATH"]) is None:
            return f"{tool} is not installed"
    if tier is PROCESS:
        return ""
    place = Place(scratch / "try", scratch / "etc")
    prepare_etc(place.etc)
    for directory in (place.home, place.tmp):
        directory.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            start_command(tier, place, network=True),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(PLAIN_ENV),
            timeout=10,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "its trial did not end"
    finally:
        shutil.rmtree(place.directory, ignore_errors=True)
    if done.stdout.startswith(b"ready") and done.returncode == 0:
        return ""
    reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return reason[-1] if reason else f"its trial ended with {done.returncode}"

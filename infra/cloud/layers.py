"""The layers' folders, built without docker: wheels for the target, sources from the tree.

A folder's name is the hash of everything it is made from, so what did not change is not built
again, and an asset changes exactly when its content must.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from infra.cloud import bytecode
from infra.cloud.target import ARCHITECTURES, Target

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build"
LAYERS = ("deps", "core", "adapters", "stream")
LIMITS = {"arm64": 20_000_000, "x86_64": 22_000_000}
"""Bytes of one layer, unpacked, compiled files included. Lambda allows 250 MB for all; ours is a
promise about cold starts: all of it is fetched before the first answer. The one for x86_64 leaves
room for its libsodium, which is 2.5 MB bigger.
"""
GLIBC = ("manylinux2014", "manylinux_2_17", "manylinux_2_26", "manylinux_2_28")
"""Wheels Lambda's Amazon Linux 2023 (glibc 2.34) can load."""

Excluded = tuple[tuple[str, str], ...]
Fill = Callable[[Path], Sequence[Path]]
"""Puts files into an empty folder; returns what of it is to be compiled."""
DEPS_WITHOUT: Excluded = (
    ("aws_lambda_powertools/event_handler/openapi/swagger_ui/*.js", "a page nobody is shown"),
    ("aws_lambda_powertools/event_handler/openapi/swagger_ui/*.css", "a page nobody is shown"),
    ("aws_lambda_powertools/utilities/auth_alpha/*", "keys are looked up by our authorizer"),
    ("aws_lambda_powertools/utilities/circuit_breaker/*", "health of pools is a record of ours"),
    ("aws_lambda_powertools/utilities/data_masking/*", "secrets never enter a log line"),
    ("aws_lambda_powertools/utilities/feature_flags/*", "no AppConfig here"),
    ("aws_lambda_powertools/utilities/idempotency/*", "decision 0010: ours, in the transaction"),
    ("aws_lambda_powertools/utilities/kafka/*", "no Kafka here"),
    ("aws_lambda_powertools/utilities/streaming/*", "reads objects of S3"),
    ("aws_lambda_powertools/utilities/validation/*", "JSON Schema; bodies are models"),
    ("anyio/*", "httpx for asyncio; every call here is synchronous"),
    ("anyio-*", "its metadata"),
    ("pycparser*", "reads C headers for cffi; compiled bindings need none"),
    ("cffi*", "makes bindings; PyNaCl's are made, and need _cffi_backend alone"),
    ("pydantic/v1/*", "the version before"),
    ("pydantic/mypy.py", "a plug-in of a type checker"),
    ("*/tests/*", "tests"),
    ("*.pyi", "for type checkers"),
    ("*/py.typed", "for type checkers"),
    ("*/RECORD", "pip's list of what it installed"),
    ("*/direct_url.json", "where this machine found it"),
    ("bin/*", "command line tools"),
)
ADAPTERS_WITHOUT: Excluded = (
    ("embedded/*", "the backend of one machine"),
    ("conformance/*", "asks providers, from a desk"),
    ("*.md", "for readers"),
)


class TooBig(Exception):
    """A layer is over its limit; the text says by how much."""


@dataclass(frozen=True)
class Built:
    """A finished folder: its asset's hash, and whether its modules are compiled."""

    path: Path
    hash: str
    compiled: bool

    @property
    def size(self) -> int:
        """Bytes, unpacked."""
        return sum(file.stat().st_size for file in files(self.path))


def layer(name: str, target: Target, store: Path = BUILD) -> Built:
    """The folder of a layer, as it is mounted at /opt."""
    recipes: dict[str, tuple[Fill, list[Path]]] = {
        "deps": (lambda at: _deps(at, target), [ROOT / "layers/deps/requirements.txt"]),
        "core": (_core, _modules(ROOT / "layers/core/python")),
        "adapters": (_adapters, _modules(ROOT / "adapters")),
        "stream": (_stream, _modules(ROOT / "layers/stream")),
    }
    fill, inputs = recipes[name]
    built = build(name, target, fill, inputs, "/opt", store)
    if built.size > LIMITS[target.arch]:
        raise TooBig(f"layer {name} has {built.size} bytes, at most {LIMITS[target.arch]}")
    return built


def build(
    name: str,
    target: Target,
    fill: Fill,
    inputs: Iterable[Path],
    mounted: str,
    store: Path = BUILD,
) -> Built:
    """A folder with what `fill` puts there, compiled where this machine can."""
    python = bytecode.interpreter(target.python)
    digest = _hash(name, target, inputs, compiled=python is not None)
    built = Built(store / f"{name}-{digest[:16]}", digest, python is not None)
    if built.path.exists():
        return built
    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store, prefix=f".{name}-") as draft:
        fresh = Path(draft) / "tree"
        fresh.mkdir()
        parts = fill(fresh)
        if python is not None:
            bytecode.compile_tree(python, fresh, mounted, parts)
        _open_to_all(fresh)
        try:
            fresh.rename(built.path)
        except OSError:  # another synthesis was here first, with the same bytes
            assert built.path.is_dir()
    return built


def _open_to_all(tree: Path) -> None:
    """Lambda reads as another user than the one who built, whatever that one's umask."""
    for path in [tree, *tree.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def files(root: Path) -> list[Path]:
    """Every file below, in one order everywhere."""
    return sorted(path for path in root.rglob("*") if path.is_file())


def copy(source: Path, to: Path, without: Excluded = ()) -> None:
    """Copy a tree of sources: no compiled files, nothing excluded."""
    for file in _modules(source):
        inner = file.relative_to(source)
        if not _excluded(inner, without):
            (to / inner).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, to / inner)  # with its mode, without its times


def _excluded(inner: Path, without: Excluded) -> bool:
    return any(fnmatchcase(inner.as_posix(), pattern) for pattern, _ in without)


def _modules(root: Path) -> list[Path]:
    return [file for file in files(root) if "__pycache__" not in file.parts]


def _hash(name: str, target: Target, inputs: Iterable[Path], *, compiled: bool) -> str:
    """Over what goes in and how it is made; compiled bytes may differ where they mean the same."""
    recipe = [Path(__file__), Path(bytecode.__file__)]
    digest = hashlib.sha256(f"{name} {target.arch} {target.python} {compiled}".encode())
    for file in [*recipe, *inputs]:
        data = file.read_bytes()
        place = file.relative_to(ROOT).as_posix()
        digest.update(f"\0{place}\0{file.stat().st_mode & 0o111:o}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def _deps(at: Path, target: Target) -> list[Path]:
    platforms = [f"--platform={glibc}_{ARCHITECTURES[target.arch]}" for glibc in GLIBC]
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"),
            *("--no-input", "--no-compile", "--no-deps", "--require-hashes"),
            *("--only-binary", ":all:", "--implementation", "cp"),
            *("--python-version", target.python, *platforms, "--target", str(at / "python")),
            *("-r", str(ROOT / "layers/deps/requirements.txt")),
        ],
        check=True,
    )
    for file in files(at / "python"):
        if _excluded(file.relative_to(at / "python"), DEPS_WITHOUT):
            file.unlink()
    for folder in sorted((p for p in at.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    return [at]


def _core(at: Path) -> list[Path]:
    copy(ROOT / "layers/core/python", at / "python")
    return [at]


def _adapters(at: Path) -> list[Path]:
    copy(ROOT / "adapters", at / "python/adapters", ADAPTERS_WITHOUT)
    return [at]


def _stream(at: Path) -> list[Path]:
    copy(ROOT / "layers/stream", at)
    return [at]

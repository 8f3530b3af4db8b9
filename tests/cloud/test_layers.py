"""What is shipped: small, complete, the same every time, and compiled where it can be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from functions.catalog import FUNCTIONS, http
from infra.cloud import bytecode, layers, sources
from infra.cloud.target import BadContext, Target
from tests.cloud.synthesis import Assembly

IMPORTS = Path(__file__).with_name("imports.py")
OURS = ("core", "adapters", "stream")


@pytest.fixture
def target() -> Target:
    """A target this machine's Python compiles for."""
    return Target(**Assembly.here())  # type: ignore[arg-type]


def names(root: Path) -> list[str]:
    return [file.relative_to(root).as_posix() for file in layers.files(root)]


@pytest.mark.parametrize("name", OURS)
def test_the_same_sources_make_the_same_folder(tmp_path: Path, target: Target, name: str) -> None:
    first = layers.layer(name, target, tmp_path / "a")
    second = layers.layer(name, target, tmp_path / "b")
    assert (first.hash, names(first.path)) == (second.hash, names(second.path))
    assert first.path.name == second.path.name


def test_what_goes_in_decides_the_hash(tmp_path: Path, target: Target) -> None:
    made = {layers.layer("core", one, tmp_path).hash for one in (target, Target(python="3.19"))}
    made |= {layers.layer(name, target, tmp_path).hash for name in OURS}
    made |= {sources.function(http("get_health"), target, tmp_path).hash}
    made |= {sources.function(http("get_sandbox"), target, tmp_path).hash}
    assert len(made) == 6


def test_a_finished_folder_is_not_made_again(tmp_path: Path, target: Target) -> None:
    built = layers.layer("stream", target, tmp_path)
    (built.path / "mark").touch()
    assert (layers.layer("stream", target, tmp_path).path / "mark").exists()


def test_the_core_and_the_adapters_are_complete_and_nothing_else(
    tmp_path: Path, target: Target
) -> None:
    core = names(layers.layer("core", target, tmp_path).path)
    assert "python/sandbox_router/router.py" in core
    adapters = names(layers.layer("adapters", target, tmp_path).path)
    assert "python/adapters/providers/e2b/profile.json" in adapters
    assert [n for n in adapters if "/embedded/" in n or "/conformance/" in n] == []
    stream = layers.layer("stream", target, tmp_path).path
    assert (stream / "bin/stream-bootstrap").stat().st_mode & 0o111 == 0o111


def test_a_function_has_its_module_the_edge_and_no_other_function(
    tmp_path: Path, target: Target
) -> None:
    built = names(sources.function(http("get_openapi"), target, tmp_path).path)
    modules = [n for n in built if n.endswith(".py") and "/edge/" not in n]
    assert modules == [
        *("functions/__init__.py", "functions/api/__init__.py", "functions/api/get_openapi.py"),
        "functions/catalog.py",
    ]
    assert "infra/openapi.json" in built
    assert "functions/edge/wiring.py" in built


def test_modules_are_compiled_for_the_target_or_not_at_all(tmp_path: Path, target: Target) -> None:
    here = layers.layer("stream", target, tmp_path)
    assert here.compiled
    tag = f"cpython-{target.python.replace('.', '')}"
    assert f"python/__pycache__/stream_runtime.{tag}.pyc" in names(here.path)
    code = (here.path / f"python/__pycache__/stream_runtime.{tag}.pyc").read_bytes()
    assert code[4:8] == b"\x01\x00\x00\x00"  # by hash, and never checked
    assert b"/opt/python/stream_runtime.py" in code
    absent = layers.layer("stream", Target(python="3.19"), tmp_path)
    assert not absent.compiled
    assert [n for n in names(absent.path) if n.endswith(".pyc")] == []


@pytest.mark.parametrize(
    "script",
    ["echo 'no such version' >&2; exit 127", "echo 3.18 cpython", "echo 3.19 pypy", "sleep 60"],
)
def test_a_stand_in_on_path_is_no_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(bytecode, "SECONDS", 1.0)
    _program(tmp_path / "false", script)
    real = _program(tmp_path / "real", "echo 3.19 cpython")
    monkeypatch.delenv(bytecode.OVERRIDE, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'false'}:/usr/bin:/bin")
    assert bytecode.interpreter.__wrapped__("3.19") is None
    monkeypatch.setenv("PATH", f"{tmp_path / 'false'}:{tmp_path / 'real'}:/usr/bin:/bin")
    assert bytecode.interpreter.__wrapped__("3.19") == str(real)


def _program(folder: Path, script: str) -> Path:
    folder.mkdir()
    path = folder / "python3.19"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_every_exclusion_has_a_reason_and_none_is_said_twice() -> None:
    for table in (layers.DEPS_WITHOUT, layers.ADAPTERS_WITHOUT):
        patterns = [pattern for pattern, _ in table]
        assert len(set(patterns)) == len(patterns)
        assert all(reason for _, reason in table)


def test_the_locks_markers_do_not_depend_on_who_builds() -> None:
    """pip asks them of the interpreter it runs in, not of the target."""
    lock = (layers.ROOT / "layers/deps/requirements.txt").read_text()
    marked = [line.partition(";")[2] for line in lock.splitlines() if ";" in line]
    assert [m for m in marked if "python_version" in m or "sys_platform" in m] == []


def test_layers_are_small_and_their_wheels_are_the_targets(assembly: Assembly) -> None:
    assert assembly.functions  # which has built them
    target = Target()
    for name in layers.LAYERS:
        assert layers.layer(name, target).size <= layers.LIMITS[target.arch]
    libraries = [n for n in names(layers.layer("deps", target).path) if n.endswith(".so")]
    assert libraries
    assert {n for n in libraries if "aarch64" not in n and ".abi3." not in n} == set()


def test_functions_import_with_their_layers_and_nothing_else(buffered: Assembly) -> None:
    """Powertools' and pydantic's cut parts are really not needed, nor another function's file."""
    assert buffered.functions
    target = Target(**Assembly.here())  # type: ignore[arg-type]
    opt = [str(layers.layer(name, target).path / "python") for name in layers.LAYERS]
    made = {row.module: str(sources.function(row, target).path) for row in FUNCTIONS}
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(IMPORTS), json.dumps([opt, made])],
        capture_output=True,
        text=True,
        timeout=120,
        env={},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == sorted(made)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("arch", "arm"),
        ("python", "3.9"),
        ("streaming", "yes"),
        ("name", "A"),
        ("log_days", "forever"),
    ],
)
def test_a_context_nobody_can_deploy_is_refused(key: str, value: str) -> None:
    with pytest.raises(BadContext, match=key):
        Target.of({key: value}.get)

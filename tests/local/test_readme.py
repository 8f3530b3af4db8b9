"""What the README says to type works, and answers what it shows."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.edge import wiring
from functions.edge.settings import Settings
from infra.local import pools
from infra.local.hosting import Host
from infra.local.process import Process
from infra.local.state import Card, State
from tests.architecture.tree import ROOT
from tests.local.acceptance.deployment import eventually

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
# `setup` is left out: it would make this venv anew, in the middle of the tests that run in it.
MAKE = f'make() {{ command make --no-print-directory -C "{ROOT}" -o setup "$@"; }}'


def lines(block: str) -> Iterator[tuple[str, list[str]]]:
    """Every command, with what must be in its output (`#> ...`)."""
    command, shown = "", list[str]()
    for line in block.splitlines():
        if line.startswith("#> "):
            shown.append(line[3:])
        elif line.strip() and not line.startswith("#"):
            if command:
                yield command, shown
            command, shown = line, []
    yield command, shown


@pytest.mark.slow
def test_the_readme_can_be_typed(tmp_path: Path) -> None:
    start_and_stop, story = BLOCKS
    run, stop = (command for command, _ in lines(start_and_stop))
    state = tmp_path / ".state"
    env = {**os.environ, "PORT": "0", "STATE": str(state)}

    def bash(script: str) -> subprocess.Popen[str]:
        command = ["bash", "-c", f"set -eo pipefail\n{MAKE}\n{script}"]
        out = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=tmp_path, env=env, stdout=out, stderr=subprocess.STDOUT, text=True
        )

    router = bash(run)
    try:
        card = eventually(lambda: Card.read(state / "router.json"), 20)
        typed = story.replace("http://127.0.0.1:8080", card.url)
        assert typed != story
        script, marks = "", []
        for command, shown in lines(typed):
            script += f"{command}\nprintf '\\n--end--\\n'\n"
            marks.append((command, shown))
        out, _ = (shell := bash(script)).communicate(timeout=60)
        assert shell.returncode == 0, out
        outputs = out.split("\n--end--\n")
        for (command, shown), output in zip(marks, outputs, strict=False):
            for text in shown:
                assert text in output, (command, output)
        out, _ = (again := bash(typed)).communicate(timeout=60)
        assert again.returncode == 0, out
    finally:
        stopped = bash(stop)
        said, _ = stopped.communicate(timeout=60)
    assert stopped.returncode == 0, said
    assert "Nothing runs any more" in said
    router.communicate(timeout=20)
    assert router.returncode == 0


def test_the_example_with_a_real_provider_is_a_valid_pools_file(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```json\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    state = State(tmp_path)
    state.pools.write_text(example)
    pools.prepare(state)
    me = Process.of(os.getpid())
    assert me is not None
    path = pools.resolved(state, Host(me, "http://127.0.0.1:1", "bubblewrap", "container"))
    settings = Settings(state=tmp_path, pools=path, variables={"E2B_API_KEY": "e2b_" + "0" * 40})
    found = wiring.ConfiguredPools(settings).all()
    assert [(pool.id, str(pool.isolation)) for pool in found] == [
        ("e2b-main", "microvm"),
        ("alpha", "container"),
    ]


def test_make_help_is_a_table_and_names_what_is_not_built() -> None:
    make = ["make", "--no-print-directory", "-C", str(ROOT)]
    shown = subprocess.run([*make, "help"], capture_output=True, text=True, check=True).stdout
    rows = [re.fullmatch(r"(  make [a-z0-9-]+ +)\S.*", line) for line in shown.splitlines()]
    assert len({len(row[1]) if row else 0 for row in rows}) == 1, shown
    bench = subprocess.run([*make, "bench"], capture_output=True, text=True, check=False)
    assert (bench.returncode, "not built yet" in bench.stderr) == (2, True)


def test_the_readme_is_short_and_names_files_that_exist() -> None:
    assert README.count("\n") <= 150
    table = README[README.index("|---|") : README.index("`make test` shows")]
    kept = re.findall(r"`([\w/]+(?:\.py|/))`", table)
    assert len(kept) >= 9
    for name in kept:
        assert (ROOT / "layers/core/python/sandbox_router" / name).exists(), name
    for name in re.findall(r"`((?:infra|tests)/[\w./]+)`", README):
        assert (ROOT / name).exists(), name

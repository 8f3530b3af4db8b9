"""What the README says to type works, and answers what it shows."""

from __future__ import annotations

import os
import re
import subprocess
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
from tests.local.readme import README, START_AND_STOP, STORY, bash, lines, typed

# `setup` is left out: it would make this venv anew, in the middle of the tests that run in it.
MAKE = f'make() {{ command make --no-print-directory -C "{ROOT}" -o setup "$@"; }}\n'


@pytest.mark.slow
def test_the_readme_can_be_typed(tmp_path: Path) -> None:
    run, stop = (each.command for each in lines(START_AND_STOP))
    state = tmp_path / ".state"
    env = {**os.environ, "PORT": "0", "STATE": str(state), "KEY": ""}
    router = bash(MAKE + run, tmp_path, env)
    try:
        card = eventually(lambda: Card.read(state / "router.json"), 20)
        typed(STORY, tmp_path, env | {"API": card.url})
        again = bash(f"set -eo pipefail\n{STORY}", tmp_path, env | {"API": card.url})
        out, _ = again.communicate(timeout=60)
        assert again.returncode == 0, out
    finally:
        said, _ = (stopped := bash(MAKE + stop, tmp_path, env)).communicate(timeout=60)
    assert stopped.returncode == 0, said
    assert "Nothing runs any more" in said
    router.communicate(timeout=20)
    assert router.returncode == 0


def test_what_is_not_shown_as_the_readme_shows_it_is_found(tmp_path: Path) -> None:
    typed("echo one\n#> one\necho two\n", tmp_path, os.environ)
    for block in ("echo one\n#> two\n", "false\necho one\n"):
        with pytest.raises(AssertionError):
            typed(block, tmp_path, os.environ)


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

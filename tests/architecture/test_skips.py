"""CI may skip only what its machine lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import conftest

SKIPS = {
    "call": "import pytest\ndef test_it(): pytest.skip({reason!r})",
    "mark": "import pytest\n@pytest.mark.skip(reason={reason!r})\ndef test_it(): ...",
    "module": "import pytest\npytest.skip({reason!r}, allow_module_level=True)",
}


def _run(folder: Path, body: str, strict: str) -> int:
    (folder / "conftest.py").write_text(Path(conftest.__file__).read_text())
    (folder / "test_sample.py").write_text(body + "\ndef test_other(): ...\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(
        command, cwd=folder, env={"CI_STRICT_SKIPS": strict}, capture_output=True, timeout=60
    )
    return done.returncode


@pytest.mark.parametrize("how", SKIPS)
def test_a_skip_without_a_missing_thing_fails_in_ci(tmp_path: Path, how: str) -> None:
    assert _run(tmp_path, SKIPS[how].format(reason="flaky"), strict="1") == 1 + (how == "module")


def test_a_skip_for_what_the_machine_lacks_is_accepted_in_ci(tmp_path: Path) -> None:
    body = SKIPS["call"].format(reason="not on this machine: a GPU")
    assert _run(tmp_path, body, strict="1") == 0


def test_a_skip_is_a_skip_outside_ci(tmp_path: Path) -> None:
    assert _run(tmp_path, SKIPS["call"].format(reason="flaky"), strict="") == 0


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    body = "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_it(): assert False"
    assert _run(tmp_path, body, strict="1") == 0

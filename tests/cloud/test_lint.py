"""The templates against AWS's own schema."""

from __future__ import annotations

import subprocess

from tests.cloud.synthesis import ROOT, Assembly

WITHOUT = "W3005"  # CDK says every dependency, also one that a reference says already


def test_cfn_lint_finds_nothing(assembly: Assembly) -> None:
    templates = [str(path) for path in assembly.folder.glob("*.template.json")]
    done = subprocess.run(
        [str(ROOT / ".venv-deploy/bin/cfn-lint"), "--ignore-checks", WITHOUT, "--", *templates],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "")

"""What is committed: no machine's paths, no registry, locks that are complete, short decisions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, shipped

LOCKS = ("layers/deps", "infra/local", "infra/cloud/console", "tests")
APART = ("infra/cloud", "tests/cloud/ministack")
"""Locks of environments that nothing else shares: their versions agree with nobody's."""
# The classes keep this file from matching itself. /home/user is a vendor's guest, not a machine.
LEAKS = re.compile(
    r"/w[o]rk/|/f[a]rm/|/r[o]ot/|/h[o]me/(?!user\b)[a-z]|/U[s]ers/[a-z]"
    r"|py[p]i\.org|pythonh[o]sted|npm[j]s\.org|deb[i]an\.org"
)
DECISION_LINES = 40
DECISION_PARTS = ["## Context", "## Decision", "## Consequences"]


def leaks(root: Path, files: list[Path]) -> list[str]:
    return [
        f"{file}:{number}: {found.group()}"
        for file in files
        for number, line in enumerate((root / file).read_text(errors="replace").splitlines(), 1)
        if (found := LEAKS.search(line))
    ]


def pins(lock: str) -> dict[str, str]:
    """Name and version of every requirement of a lock, each with a hash and no address."""
    assert "://" not in lock
    assert "file:" not in lock
    found = {}
    for entry in lock.replace("\\\n", " ").splitlines():
        match = re.match(r"([A-Za-z0-9._-]+)==(\S+)", entry)
        assert match, f"no exact version: {entry[:80]}"
        assert " --hash=sha256:" in entry, f"no hash: {match.group()}"
        found[_name(match[1])] = match[2]
    return found


def wanted(text: str) -> set[str]:
    """The names an .in file asks for, each with its reason on the same line."""
    names = set()
    for line in text.splitlines():
        if line and not line.startswith(("#", "-c ")):
            name, _, reason = line.partition("#")
            assert reason.strip(), f"no reason: {line}"
            names.add(_name(name.partition("==")[0].partition("[")[0]))
    return names


def decision_faults(folder: Path) -> list[str]:
    faults = []
    for number, path in enumerate(sorted(folder.iterdir()), 1):
        lines = path.read_text().splitlines()
        if not re.fullmatch(rf"{number:04}-[a-z0-9-]+\.md", path.name):
            faults.append(f"{path.name}: not {number:04}-title.md")
        if not lines or not lines[0].startswith(f"# {number:04} "):
            faults.append(f"{path.name}: the heading is not '# {number:04} Title'")
        if len(lines) > DECISION_LINES:
            faults.append(f"{path.name}: {len(lines)} lines, at most {DECISION_LINES}")
        if [line for line in lines if line.startswith("## ")] != DECISION_PARTS:
            faults.append(f"{path.name}: its parts are not {DECISION_PARTS}")
    return faults


def _name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text.strip().lower())


def test_nothing_committed_names_a_machine_or_a_registry() -> None:
    assert leaks(ROOT, shipped()) == []


@pytest.mark.parametrize(
    "text", ["cd /" + "root/x", "/" + "work/main", "/home/" + "anna/x", "https://py" + "pi.org"]
)
def test_a_leak_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.md").write_text(f"fine\n{text}\n/home/user/x is E2B's\n")
    assert len(leaks(tmp_path, [Path("a.md")])) == 1


def test_the_locks_agree_and_hold_what_was_asked_for() -> None:
    known: dict[str, str] = {}
    for folder in LOCKS:
        found = pins((ROOT / folder / "requirements.txt").read_text())
        assert wanted((ROOT / folder / "requirements.in").read_text()) <= set(found)
        assert {n: v for n, v in found.items() if known.get(n, v) != v} == {}
        known |= found


@pytest.mark.parametrize("folder", APART)
def test_a_lock_of_its_own_is_complete(folder: str) -> None:
    found = pins((ROOT / folder / "requirements.txt").read_text())
    assert wanted((ROOT / folder / "requirements.in").read_text()) <= set(found)


def test_what_npm_installs_is_pinned_by_hash_and_names_no_registry() -> None:
    lock = json.loads((ROOT / "infra/cloud/package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert {name: e for name, e in packages.items() if "resolved" in e} == {}
    assert {name for name, e in packages.items() if "integrity" not in e} == set()


@pytest.mark.parametrize(
    "lock",
    [
        "a>=1 --hash=sha256:1",
        "a==1",
        "a==1 --hash=md5:1",
        "--index-url https://example.test/simple",
        "a @ file:///tmp/a.whl --hash=sha256:1",
    ],
)
def test_a_loose_lock_is_found(lock: str) -> None:
    with pytest.raises(AssertionError):
        pins(lock)


def test_a_requirement_without_a_reason_is_found() -> None:
    with pytest.raises(AssertionError, match="no reason: httpx"):
        wanted("# title\npydantic  # models\nhttpx\n")


def test_decisions_are_numbered_short_and_complete() -> None:
    folder = ROOT / "infra/decisions"
    assert any(folder.iterdir())
    assert decision_faults(folder) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("0002-a.md", "# 0001 A\n## Context\n## Decision\n## Consequences"),
        ("0001-a.md", "# A\n## Context\n## Decision\n## Consequences"),
        ("0001-a.md", "# 0001 A\n## Decision\n## Consequences"),
        ("0001-a.md", "# 0001 A\n## Context\n## Decision\n## Consequences" + "\n-" * 40),
    ],
)
def test_a_faulty_decision_is_found(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert len(decision_faults(tmp_path)) == 1

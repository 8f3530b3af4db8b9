"""What the README says to type: its blocks, line by line, and what must then be shown."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.tree import ROOT

README = (ROOT / "README.md").read_text()
BLOCKS: list[str] = re.findall(r"^```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
START_AND_STOP, STORY, *_ = BLOCKS
END = "\n--end--\n"
SECONDS = 120.0


@dataclass(frozen=True)
class Typed:
    """A command, what the README shows of its output (`#> ...`), and the output."""

    command: str
    shown: tuple[str, ...]
    output: str = ""


def lines(block: str) -> Iterator[Typed]:
    """Every command of a block, not yet typed."""
    command, shown = "", list[str]()
    for line in block.splitlines():
        if line.startswith("#> "):
            shown.append(line[3:])
        elif line.strip() and not line.startswith("#"):
            if command:
                yield Typed(command, tuple(shown))
            command, shown = line, []
    yield Typed(command, tuple(shown))


def typed(block: str, folder: Path, env: Mapping[str, str]) -> list[Typed]:
    """Type a block into one shell, and check that each line showed what it should."""
    commands = list(lines(block))
    script = "".join(f"{each.command}\nprintf '{END}'\n" for each in commands)
    done = bash(f"set -eo pipefail\n{script}", folder, env)
    out, _ = done.communicate(timeout=SECONDS)
    assert done.returncode == 0, out
    outputs = out.split(END)
    found = [
        Typed(each.command, each.shown, output)
        for each, output in zip(commands, outputs, strict=False)
    ]
    for each in found:
        for text in each.shown:
            assert text in each.output, each
    return found


def bash(script: str, folder: Path, env: Mapping[str, str]) -> subprocess.Popen[str]:
    """A shell at work on a script; its errors are part of its output."""
    return subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

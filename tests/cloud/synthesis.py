"""The CDK app run for the tests, in its own environment."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-deploy/bin/python"
CDK = ROOT / ".venv-deploy/node_modules/.bin/cdk"
NODE = 20
SECONDS = 240
Resource = dict[str, Any]


class Missing(Exception):
    """What this machine lacks to synthesise."""


@dataclass(frozen=True)
class Assembly:
    """A folder `cdk deploy --app` takes, and its templates."""

    folder: Path

    @staticmethod
    def here() -> dict[str, str]:
        """The context for functions that run on this machine, in this Python."""
        arch = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
        return {"arch": arch, "python": f"{sys.version_info[0]}.{sys.version_info[1]}"}

    @property
    def name(self) -> str:
        """How the stacks' names begin."""
        (file,) = self.folder.glob("*-data.template.json")
        return file.name.removesuffix("-data.template.json")

    @cached_property
    def stacks(self) -> dict[str, dict[str, Any]]:
        """The templates by the last word of the stacks' names."""
        found = sorted(self.folder.glob("*.template.json"))
        names = [file.name.removesuffix(".template.json").rpartition("-")[2] for file in found]
        return {name: json.loads(f.read_text()) for name, f in zip(names, found, strict=True)}

    def of_type(self, kind: str, stack: str | None = None) -> dict[str, Resource]:
        """Properties of all resources of a type, by logical id."""
        return {
            id: resource.get("Properties", {})
            for name, template in self.stacks.items()
            if stack in (None, name)
            for id, resource in template["Resources"].items()
            if resource["Type"] == kind
        }

    @cached_property
    def functions(self) -> dict[str, Resource]:
        """The Lambda functions by the name of their row."""
        found = self.of_type("AWS::Lambda::Function").values()
        return {resource["Handler"].split(".")[2]: resource for resource in found}

    def statements(self, function: str) -> list[dict[str, Any]]:
        """Everything the role of a function allows."""
        role = self.of_type("AWS::IAM::Role")[self.functions[function]["Role"]["Fn::GetAtt"][0]]
        return [
            statement
            for policy in role["Policies"]
            for statement in policy["PolicyDocument"]["Statement"]
        ]


def listed(value: Any) -> list[Any]:
    """IAM writes a list of one as its element."""
    return value if isinstance(value, list) else [value]


def need_node() -> None:
    """Raise Missing without a Node that CDK runs on."""
    node = shutil.which("node")
    if node is None:
        raise Missing("Node, which CDK runs on")
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    if int(version.lstrip("v").partition(".")[0] or 0) < NODE:
        raise Missing(f"Node {NODE} or newer; it is {version}")


def synthesise(out: Path, *, cli: bool = False, **context: str) -> Assembly:
    """Run the app with this context, by CDK's command line or by itself; raises Missing."""
    need_node()
    if not PYTHON.exists():
        raise Missing("CDK in .venv-deploy (`make setup-deploy` puts it there)")
    if cli:
        given = [word for key, value in context.items() for word in ("-c", f"{key}={value}")]
        _run([str(CDK), "synth", "--quiet", "--output", str(out), *given], ROOT / "infra/cloud")
    else:
        named = {"CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": json.dumps(context)}
        _run([str(PYTHON), "-m", "infra.cloud"], ROOT, **named)
    return Assembly(out)


def _run(command: list[str], cwd: Path, **env: str) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "CDK_DISABLE_CLI_TELEMETRY": "1", **env},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]

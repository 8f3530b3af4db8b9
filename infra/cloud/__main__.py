"""The CDK app: `cdk synth`, `cdk deploy`. Context: name, arch, python, streaming, log_days."""

from __future__ import annotations

import sys

from aws_cdk import App, Tags

from infra.cloud import bytecode
from infra.cloud.api import ApiStack
from infra.cloud.data import DataStack
from infra.cloud.layers import TooBig
from infra.cloud.target import BadContext, Target
from infra.cloud.workers import WorkersStack


def build(app: App, target: Target) -> None:
    """Every stack; each needs the ones before it."""
    name = target.name
    data = DataStack(app, f"{name}-data", target, termination_protection=True)
    workers = WorkersStack(app, f"{name}-workers", data.ground)
    ApiStack(app, f"{name}-api", workers.ground)
    Tags.of(app).add("project", name)


def main() -> int:
    """Synthesise; the exit code."""
    app = App()
    try:
        target = Target.of(app.node.try_get_context)
        build(app, target)
    except (BadContext, TooBig) as error:
        print(f"cloud: {error}", file=sys.stderr)
        return 2
    if bytecode.interpreter(target.python) is None:
        print(
            f"cloud: built without compiled files: no Python {target.python} on PATH runs"
            f" ({bytecode.OVERRIDE}=... names one); cold starts take longer",
            file=sys.stderr,
        )
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())

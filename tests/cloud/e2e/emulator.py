"""AWS on this machine: ministack behind our launcher, on loopback, with nothing of our environment.

Functions inherit the emulator's whole environment, so it gets a short list of variables; its
temporary files, and theirs, are in a folder that goes with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]

from tests.cloud.e2e.faults import Faults
from tests.cloud.e2e.processes import Child, free_port, listening
from tests.cloud.ministack import fixups
from tests.cloud.synthesis import CDK, ROOT, Assembly, Missing, need_node

PYTHON = ROOT / ".venv-ministack/bin/python"
LAUNCHER = ROOT / "tests/cloud/ministack/launcher.py"
REGION, ACCOUNT = "us-east-1", "000000000000"
CONCURRENCY = 16
"""Functions at once; each is a process of 30 to 55 MB."""
START_SECONDS, CDK_SECONDS = 30.0, 180.0


class Emulator:
    """One emulator, what was deployed to it, and its folder.

    enforced: after the deployment roles are; then functions call it without the proxy of `faults`,
    which would break their signatures.
    """

    def __init__(self, root: Path, *, enforced: bool = False) -> None:
        if not PYTHON.exists() or not CDK.exists():
            raise Missing("the emulator of AWS (`make setup-e2e` puts it there)")
        need_node()
        self.root, self.enforced = root, enforced
        self.temporary = root / "tmp"
        self.temporary.mkdir(parents=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.outputs = root / "outputs.json"
        self.faults = Faults(PYTHON, self.url, self.environment, root)
        settings = {
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "LAMBDA_ACCOUNT_CONCURRENCY": str(CONCURRENCY),
            # the functions', which inherit it
            "AWS_ENDPOINT_URL": self.url if enforced else self.faults.url,
            "AWS_ENDPOINT_URL_S3": self.url,  # the proxy loses a body's length, and a signed host
        }
        command = [str(PYTHON), str(LAUNCHER)]
        self.process = Child(command, self.environment | settings, root, root / "emulator.log")
        listening(self.port, self.process, START_SECONDS)

    @property
    def environment(self) -> dict[str, str]:
        """Everything a process beside the emulator is told of this machine."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.temporary),
            "TMPDIR": str(self.temporary),
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
        }

    @cache  # noqa: B019 - lives as long as the session
    def client(self, service: str) -> Any:
        """A client of the emulator."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 2}, read_timeout=60, proxies={}),
        )

    def cdk(self, *arguments: str) -> str:
        """Run CDK's command line against the emulator."""
        env = self.environment | {
            "AWS_ENDPOINT_URL": self.url,
            "CDK_DISABLE_CLI_TELEMETRY": "1",
            "NO_COLOR": "1",
        }
        done = subprocess.run(
            [str(CDK), *arguments],
            cwd=self.root,
            env=env,
            capture_output=True,
            text=True,
            timeout=CDK_SECONDS,
        )
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout + done.stderr

    def deploy(self, assembly: Assembly) -> None:
        """Bootstrap the account, deploy every stack, and set what CloudFormation here drops."""
        app = str(assembly.folder)
        self.cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", app)
        outputs = ("--outputs-file", str(self.outputs))
        self.cdk("deploy", "--all", "--require-approval", "never", "--app", app, *outputs)
        for name, template in assembly.stacks.items():
            fixups.apply(self.client, f"{assembly.name}-{name}", template)
        if self.enforced:
            os.kill(self.process.pid, signal.SIGUSR1)

    def end(self) -> None:
        """End it with its functions; of its files only the logs stay."""
        self.process.end()
        self.faults.end()
        shutil.rmtree(self.temporary)
        assert self.process.children() == {}

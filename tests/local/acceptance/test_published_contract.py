"""The published document against the running gateway: that is answered, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.local.acceptance.conftest import Deploy

pytestmark = pytest.mark.slow
EXAMPLES = 12
LEFT_OUT = {
    "unsupported_method": "API Gateway knows no 405: an unknown method is an unknown path, so 404",
    "use_after_free": "a destroyed sandbox keeps its record for 30 days",
    "positive_data_acceptance": "some rules no schema can say: a size or a shape, not both",
}
CONFIG = """\
[checks.not_a_server_error]
# 502: the provider's own 5xx, for a path its system forbids; the client is told it is unknown.
expected-statuses = ["2xx", "3xx", "4xx", 502]
"""


def test_the_running_gateway_is_what_its_document_says(deploy: Deploy, tmp_path: Path) -> None:
    deployment = deploy().start()
    key = (deployment.state / "key").read_text().strip()
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run"),
            f"{str(deployment.api.base_url).rstrip('/')}/v1/openapi.json",
            *("--header", f"Authorization: Bearer {key}"),
            *("--exclude-checks", ",".join(LEFT_OUT)),
            *("--max-examples", str(EXAMPLES), "--seed", "1", "--generation-deterministic"),
            *("--request-timeout", "40", "--no-shrink"),
            *("--workers", "1"),  # Python 3.11 cannot parse source in two threads
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]

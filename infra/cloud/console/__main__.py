"""The operator of a deployment on AWS: python -m infra.cloud.console key|pools

The environment says of what: OUTPUTS, the file `make deploy` wrote; for `key` TENANT and SCOPES;
for `pools` FILE. Credentials are AWS's own variables and profiles, the region is the deployment's.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from functions.edge.settings import BadSetting
from infra.cloud.console import keys, pools
from infra.cloud.console.deployed import Deployed, NotDeployed
from sandbox_router.model.failure import Failure

OUTPUTS = ".build/outputs.json"
FAILED, UNUSABLE = 1, 2


def key(deployed: Deployed, env: Mapping[str, str]) -> None:
    """Print a new key, alone on standard output; what else there is to say goes beside it."""
    tenant = env.get("TENANT", "default")
    scopes = env.get("SCOPES", " ".join(keys.SCOPES)).split()
    key_id, made = keys.make(deployed, tenant, scopes)
    print(made.reveal())
    about = f"{key_id} of tenant {tenant!r} with {' '.join(scopes)}; it is shown this once."
    print(f"{about}\nUse it at API={deployed.api}", file=sys.stderr)


def put(deployed: Deployed, env: Mapping[str, str]) -> None:
    """Put the file's pools into the deployment."""
    if not env.get("FILE"):
        raise BadSetting("FILE= names the file with the pools")
    changed = pools.put(deployed, Path(env["FILE"]), env)
    print(f"Pools: {', '.join(changed.now) or 'none'}.")
    print("A function at work uses them within 5 minutes.")
    if changed.gone:
        print(f"No longer there, so nobody can end what runs in: {', '.join(changed.gone)}")


COMMANDS: Mapping[str, Callable[[Deployed, Mapping[str, str]], None]] = {"key": key, "pools": put}


def main(words: list[str], env: Mapping[str, str]) -> int:
    """Do what the command says; the exit code."""
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

    parser = argparse.ArgumentParser(prog="python -m infra.cloud.console", description=__doc__)
    parser.add_argument("command", choices=sorted(COMMANDS))
    command = COMMANDS[parser.parse_args(words).command]
    region = ""
    try:
        deployed = Deployed.read(Path(env.get("OUTPUTS") or OUTPUTS))
        os.environ["AWS_DEFAULT_REGION"] = region = deployed.region
        command(deployed, env)
    except (NotDeployed, BadSetting) as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    except (BotoCoreError, ClientError, Failure) as error:
        print(f"{region}: {_reason(error)}; are the credentials its account's?", file=sys.stderr)
        return FAILED
    return 0


def _reason(error: Exception) -> str:
    """An error's code where AWS gave one."""
    answer = getattr(error, "response", None) or {}
    return str(answer.get("Error", {}).get("Code") or f"no usable answer ({type(error).__name__})")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], dict(os.environ)))

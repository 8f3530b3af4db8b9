"""What `make deploy` said it made, as the variables its functions are told."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from functions.edge.settings import QUEUES, SECRETS

NAMES = {
    "TABLE_NAME": "TableName",
    "BUCKET_NAME": "BucketName",
    "EVENT_BUS_NAME": "EventBusName",
    **{f"{name.upper()}_SECRET_ARN": f"{name.capitalize()}SecretArn" for name in SECRETS},
    **{f"{name.upper()}_QUEUE_URL": f"{name.capitalize()}QueueUrl" for name in QUEUES},
}
"""A function's variable -> the output of a stack."""


class NotDeployed(Exception):
    """The file says of no deployment; the text says why."""


@dataclass(frozen=True)
class Deployed:
    """One deployment. api: where it answers; variables: what its functions are told."""

    api: str
    variables: dict[str, str]
    region: str

    @classmethod
    def read(cls, path: Path) -> Deployed:
        """The deployment in CDK's file of outputs; raises NotDeployed."""
        outputs = _outputs(path)
        missing = sorted({*NAMES.values(), "ApiUrl"} - set(outputs))
        if missing:
            raise NotDeployed(f"{path}: no {missing[0]} in it; did `make deploy` finish?")
        named = {name: outputs[output] for name, output in NAMES.items()}
        api = outputs["ApiUrl"].rstrip("/")
        return cls(api, {"BACKEND": "aws", **named}, _region(api, path))


def _region(api: str, path: Path) -> str:
    """Of the API's name, not of the environment: credentials may be set up for another region."""
    found = re.match(r"https://[^.]+\.execute-api\.([^.]+)\.", api)
    if found is None:
        raise NotDeployed(f"{path}: ApiUrl is none of API Gateway's: {api}")
    return found[1]


def _outputs(path: Path) -> dict[str, str]:
    """The outputs of all stacks by name."""
    try:
        stacks: Any = json.loads(path.read_text(encoding="utf-8"))
        found = [pair for outputs in stacks.values() for pair in outputs.items()]
    except FileNotFoundError:
        raise NotDeployed(f"{path} is not there; `make deploy` writes it") from None
    except (OSError, ValueError, AttributeError):
        raise NotDeployed(f"{path} cannot be read as the outputs of `make deploy`") from None
    return {str(name): str(value) for name, value in found}

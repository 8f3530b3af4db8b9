"""README's own calls, typed line by line at the deployed stacks and at `make run`."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cloud.e2e.deployment import Cloud
from tests.cloud.e2e.test_same_answers import alike
from tests.local.acceptance.deployment import Deployment
from tests.local.readme import STORY, Typed, typed

PARTS = re.compile(r'"(instance_id|duration_ms)":("[^"]*"|\d+)')


def said(lines: list[Typed]) -> list[tuple[str, Any]]:
    """Each command and what it showed, without what differs between any two calls."""
    return [(line.command, _alike(line.output)) for line in lines]


def _alike(output: str) -> Any:
    try:
        return alike(json.loads(output))
    except ValueError:
        return alike(PARTS.sub(r'"\1":…', output))


def story(folder: Path, api: httpx.Client, state: Path) -> list[tuple[str, Any]]:
    """README's block in a shell that knows this API, its key and its provider host."""
    folder.mkdir()
    (folder / ".state").symlink_to(state)
    key = api.headers["authorization"].removeprefix("Bearer ")
    url = str(api.base_url).rstrip("/")
    env = {"PATH": os.environ["PATH"], "API": url, "KEY": key, "TMPDIR": str(folder)}
    return said(typed(STORY, folder, env))


def test_the_readme_can_be_typed_at_the_emulated_cloud_and_shows_the_same(
    cloud: Cloud, local: Deployment, tmp_path: Path
) -> None:
    cloud.rested()
    there = story(tmp_path / "there", cloud.api, cloud.state.path)
    here = story(tmp_path / "here", local.api, local.state)
    assert len(there) == len(here) >= 12
    for one, other in zip(there, here, strict=True):
        assert one == other
    for box in cloud.api.get("/v1/sandboxes").json()["data"]:
        cloud.destroy(box["id"])


@pytest.mark.parametrize(
    ("output", "other", "same"),
    [
        ('{"id":"sbx-' + "a" * 26 + '","n":1}', '{"n":1,"id":"sbx-' + "b" * 26 + '"}', True),
        ('{"state":"running"}', '{"state":"starting"}', False),
        ('"attempts":[{"n":1}]', '"attempts":[{"n":2}]', False),
        ("204\n", "202\n", False),
        ("a note", "a note\n", False),
    ],
)
def test_only_what_must_differ_may_differ(output: str, other: str, same: bool) -> None:
    one, two = (said([Typed("curl", (), text)]) for text in (output, other))
    assert (one == two) is same

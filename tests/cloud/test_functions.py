"""Every row of the catalog is one function of the stacks, made as its row says."""

from __future__ import annotations

from typing import Any

import pytest

from functions.catalog import FUNCTIONS, HTTP, Http, Worker
from tests.cloud.synthesis import Assembly

rows = pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.name)
RESOURCES = 400
BUFFERED_SECONDS = 29


def test_the_functions_are_the_catalogs(assembly: Assembly) -> None:
    assert sorted(assembly.functions) == sorted(row.name for row in FUNCTIONS)


@rows
def test_a_function_is_made_as_its_row_says(assembly: Assembly, row: Http | Worker) -> None:
    made = assembly.functions[row.name]
    assert made["Handler"] == f"{row.module}.handler"
    assert (made["Runtime"], made["Architectures"]) == ("python3.13", ["arm64"])
    assert made["MemorySize"] == row.memory
    stream = isinstance(row, Http) and row.stream
    most = BUFFERED_SECONDS if isinstance(row, Http) and not stream else row.timeout
    assert made["Timeout"] == min(row.timeout, most)
    assert made["TracingConfig"] == {"Mode": "Active"}
    assert "ReservedConcurrentExecutions" not in made
    assert "VpcConfig" not in made


@rows
def test_a_function_logs_json_into_its_own_group_for_a_time(
    assembly: Assembly, row: Http | Worker
) -> None:
    logging = assembly.functions[row.name]["LoggingConfig"]
    assert logging["LogFormat"] == "JSON"
    group = assembly.of_type("AWS::Logs::LogGroup")[logging["LogGroup"]["Ref"]]
    assert group["RetentionInDays"] == 30


def test_no_two_functions_share_a_role_or_a_log_group(assembly: Assembly) -> None:
    made = assembly.functions.values()
    assert len({str(one["Role"]) for one in made}) == len(made)
    assert len({one["LoggingConfig"]["LogGroup"]["Ref"] for one in made}) == len(made)


@rows
def test_a_function_is_told_names_and_no_secrets(assembly: Assembly, row: Http | Worker) -> None:
    told = variables(assembly, row.name)
    told.pop("AWS_LAMBDA_EXEC_WRAPPER", None)
    if not row.may:
        assert told == {}
        return
    assert (told["BACKEND"], told["STREAMING"]) == ("aws", "on")
    assert {name for name, value in told.items() if isinstance(value, str)} == {
        "BACKEND",
        "STREAMING",
    }


def variables(assembly: Assembly, name: str) -> dict[str, Any]:
    found: dict[str, Any] = assembly.functions[name].get("Environment", {}).get("Variables", {})
    return dict(found)


def layers(assembly: Assembly, name: str) -> list[str]:
    """The first word of each layer's logical id."""
    return [layer["Ref"].partition("Layer")[0] for layer in assembly.functions[name]["Layers"]]


@pytest.mark.parametrize("row", HTTP, ids=lambda row: row.name)
def test_only_what_streams_has_the_streaming_layer(assembly: Assembly, row: Http) -> None:
    wrapper = variables(assembly, row.name).get("AWS_LAMBDA_EXEC_WRAPPER")
    assert (wrapper == "/opt/bin/stream-bootstrap") is row.stream
    assert layers(assembly, row.name) == ["Deps", "Core", "Adapters", *(["Stream"] * row.stream)]


def test_without_streaming_nothing_streams_and_functions_know(buffered: Assembly) -> None:
    for row in HTTP:
        assert "Stream" not in layers(buffered, row.name)
        assert "AWS_LAMBDA_EXEC_WRAPPER" not in variables(buffered, row.name)
        assert buffered.functions[row.name]["Timeout"] <= BUFFERED_SECONDS
        assert variables(buffered, row.name).get("STREAMING", "off") == "off"
    here = Assembly.here()
    assert {(f["Runtime"], *f["Architectures"]) for f in buffered.functions.values()} == {
        (f"python{here['python']}", here["arch"])
    }


def test_every_stack_has_room(assembly: Assembly) -> None:
    counts = {name: len(t["Resources"]) for name, t in assembly.stacks.items()}
    assert set(counts) == {"data", "workers", "api"}
    assert {name: n for name, n in counts.items() if n > RESOURCES} == {}

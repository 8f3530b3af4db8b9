"""The OpenAPI document, made from the catalog and the handlers: `python -m infra.openapi`.

`--write` renews `infra/openapi.json`, `--check` fails when it is not what would be written,
neither prints it.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections.abc import Mapping
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from functions.catalog import HTTP, Http
from functions.edge import bodies, replies, sse
from functions.edge.api import BYTES, JSON, PROBLEM, Operation
from functions.edge.fields import KIND, SANDBOX_ID, SNAPSHOT_ID, UPLOAD_ID
from sandbox_router.model.failure import BY_CODE

FILE = Path(__file__).with_name("openapi.json")
REFERENCE = "#/components/schemas/{model}"
Json = dict[str, Any]

DESCRIPTION = """One HTTP API and one spec for code sandboxes on many providers.

Errors are RFC 9457 problem documents: branch on `code` and `class`, repeat what is `retryable`, and
look at `outcome`: may the effect have happened? Fields of later versions (such as `egress` other
than `{"mode": "allow_all"}`, `ports`, `tty`, `detach`) answer 422 `unsupported`: nothing you set is
ever dropped. Unknown fields and parameters answer 400.
"""
TAGS = {
    "Sandboxes": "Create, look at, change and destroy sandboxes.",
    "Commands": "Run commands in a sandbox.",
    "Files": "Files in a sandbox, byte for byte.",
    "Ports": "Preview URLs of ports in a sandbox.",
    "Snapshots": "What a sandbox holds, kept for later: a sandbox can be created from one.",
    "Catalog": "What can be asked for, and who serves it.",
    "Meta": "Liveness and this document.",
}
RENAMED = {413: "Content Too Large", 422: "Unprocessable Content"}
"""What RFC 9110 calls them, and Python's own table only since 3.13."""
PATH_PARAMETERS: Mapping[str, Json] = {
    "id": {"type": "string", "pattern": SANDBOX_ID},
    "kind": {"type": "string", "pattern": KIND},
    "port": {"type": "integer", "minimum": 1, "maximum": 65_535},
    "snapshot_id": {"type": "string", "pattern": SNAPSHOT_ID},
    "upload_id": {"type": "string", "pattern": UPLOAD_ID},
}
_TEXT: Json = {"type": "string"}
HEADERS: Mapping[str, tuple[str, Json]] = {
    "RequestId": ("The id of this request", _TEXT),
    "RouterOverheadMs": (
        "Milliseconds in the Router: all but the wait for the provider; on calls that may wait",
        {"type": "number", "minimum": 0},
    ),
    "RetryAfter": ("Seconds to wait first", {"type": "integer", "minimum": 0}),
    "Location": ("Path of what is made", _TEXT),
    "IdempotentReplayed": ("An earlier answer to the same key", {"const": "true"}),
    "PreferenceApplied": ("The `Prefer` that was followed", _TEXT),
    "WwwAuthenticate": ("`Bearer`", _TEXT),
}
MADE = {"create_sandbox": "id", "take_snapshot": "snapshot_id"}
"""Operation -> the path parameter that names what it makes."""
CREATED = {
    "Location": "Location",
    "Idempotent-Replayed": "IdempotentReplayed",
    "Preference-Applied": "PreferenceApplied",
}


def document() -> Json:
    """The whole document."""
    operations: dict[Http, Operation] = {row: import_module(row.module).handler for row in HTTP}
    schemas = _schemas(operations.values())
    failures = {s for row, operation in operations.items() for s in _failures(row, operation)}
    paths: dict[str, Json] = {}
    for row, operation in operations.items():
        paths.setdefault(row.path, {})[row.method.lower()] = _described(row, operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sandbox Router", "version": "1.0.0", "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {f"Problem{s}": _problem(s) for s in sorted(failures)},
            "headers": {
                name: {"description": text, "schema": schema}
                for name, (text, schema) in HEADERS.items()
            },
            "links": {name: link for maker in MADE for name, link in _links(maker).items()},
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key; `admin` holds every scope",
                }
            },
        },
    }


def text() -> str:
    """The document as the file has it."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def _schemas(operations: Any) -> Json:
    """Every named type of bodies and answers, problems included."""
    types: dict[str, Any] = {"Problem": replies.Problem}
    for operation in operations:
        named = [*operation.replies.values(), operation.models.get("body")]
        named += operation.documented.get("events", {}).values()
        types |= {t.__name__: t for t in named if t not in (None, bytes, dict)}
    adapters = [(name, "validation", TypeAdapter(kind)) for name, kind in types.items()]
    _, found = TypeAdapter.json_schemas(adapters, ref_template=REFERENCE)  # type: ignore[arg-type]
    schemas: Json = {name: tidy(schema) for name, schema in found["$defs"].items()}
    schemas["Problem"]["properties"]["code"]["enum"] = sorted(BY_CODE)
    return dict(sorted(schemas.items()))


def tidy(schema: Any) -> Any:
    """Without the titles pydantic makes from names, and with maps closed."""
    if isinstance(schema, list):
        return [tidy(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {k: tidy(value) for k, value in schema.items() if k not in ("title", "properties")}
    if "properties" in schema:
        found["properties"] = {key: tidy(value) for key, value in schema["properties"].items()}
    if "patternProperties" in found:  # pydantic's way to say what keys must look like
        ((pattern, value),) = found.pop("patternProperties").items()
        found["propertyNames"] = {"pattern": pattern, **found.get("propertyNames", {})}
        found["additionalProperties"] = value
    return found


def _described(row: Http, operation: Operation) -> Json:
    doc = inspect.cleandoc(operation.function.__doc__ or "")
    described: Json = {
        "operationId": row.operation_id,
        "summary": row.summary,
        "description": re.sub(r"(?<!\n)\n(?!\n)", " ", doc),
        "tags": [row.tag],
        "security": [] if row.scope is None else [{"bearer": [row.scope]}],
    }
    if parameters := _parameters(row, operation):
        described["parameters"] = parameters
    if (model := operation.models.get("body")) is not None:
        described["requestBody"] = _body(model)
    described["responses"] = _responses(row, operation)
    return described


def _parameters(row: Http, operation: Operation) -> list[Json]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": dict(PATH_PARAMETERS[name])}
        for name in re.findall(r"{(\w+)}", row.path)
    ]
    for where, place in (("query", "query"), ("headers", "header")):
        model = operation.models.get(where)
        if model is None:
            continue
        schema = model.model_json_schema(by_alias=True)
        for name, one in schema.get("properties", {}).items():
            found.append(_parameter(name, place, one, name in schema.get("required", ())))
    return found


def _parameter(name: str, place: str, schema: Json, required: bool) -> Json:
    """A parameter is there or not; it cannot be null."""
    described = dict(tidy(schema))
    parameter: Json = {"name": name, "in": place, "required": required}
    if text := described.pop("description", None):
        parameter["description"] = text
    options = [one for one in described.pop("anyOf", ()) if one != {"type": "null"}]
    described |= options[0] if options else {}
    if described.get("default") is None:
        described.pop("default", None)
    if described.get("type") == "array":
        described.pop("default", None)
        parameter |= {"style": "form", "explode": True}
    parameter["schema"] = described
    return parameter


def _body(model: Any) -> Json:
    if model is bytes:
        content: Json = {BYTES: {"schema": {"type": "string", "format": "binary"}}}
        return {"required": False, "content": content}
    schema = {"$ref": REFERENCE.format(model=model.__name__)}
    return {"required": not model.OPTIONAL, "content": {JSON: {"schema": schema}}}


def _responses(row: Http, operation: Operation) -> Json:
    details = operation.documented.get("detail", {})
    found: dict[int, Json] = {}
    for status, kind in operation.replies.items():
        answer: Json = {"description": details.get(status, phrase(status))}
        answer["headers"] = _headers(row, status)
        if content := _content(kind):
            answer["content"] = content
        if events := operation.documented.get("events"):
            answer["content"][sse.KIND] = _events(events)
        if names := _links(row.name):
            answer["links"] = {name: {"$ref": f"#/components/links/{name}"} for name in names}
        found[status] = answer
    for status in _failures(row, operation):
        found[status] = {"$ref": f"#/components/responses/Problem{status}"}
    return {str(status): found[status] for status in sorted(found)}


def _problem(status: int) -> Json:
    names = {"X-Request-Id": "RequestId", "X-Router-Overhead-Ms": "RouterOverheadMs"}
    if status in (409, 503):
        names["Retry-After"] = "RetryAfter"
    if status == 401:
        names["WWW-Authenticate"] = "WwwAuthenticate"
    return {
        "description": phrase(status),
        "headers": _referred(names),
        "content": {PROBLEM: {"schema": {"$ref": REFERENCE.format(model="Problem")}}},
    }


def _content(kind: Any) -> Json | None:
    if kind is None:
        return None
    if kind is bytes:
        return {BYTES: {"schema": {"type": "string", "format": "binary"}}}
    if kind is dict:
        return {JSON: {"schema": {"type": "object"}}}
    return {JSON: {"schema": {"$ref": REFERENCE.format(model=kind.__name__)}}}


def _events(events: Mapping[str, Any]) -> Json:
    """OpenAPI 3.1 has no word for the items of a stream: `x-events` has the schema of each."""
    kinds = {name: {"$ref": REFERENCE.format(model=kind.__name__)} for name, kind in events.items()}
    schema = {"type": "string", "x-events": kinds}
    return {"schema": schema, "example": replies.EVENTS_EXAMPLE}


def _headers(row: Http, status: int) -> Json:
    names = {"X-Request-Id": "RequestId"}
    if row.routed:
        names["X-Router-Overhead-Ms"] = "RouterOverheadMs"
    if row.name in MADE:
        names |= CREATED
        if status == 202:
            names["Retry-After"] = "RetryAfter"
    return _referred(names)


def _referred(names: Mapping[str, str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{kind}"} for name, kind in names.items()}


def _links(maker: str) -> Json:
    """What can be done with what an operation makes."""
    parameter = MADE.get(maker)
    return {
        row.operation_id: {
            "operationId": row.operation_id,
            "parameters": {parameter: "$response.body#/id"},
        }
        for row in HTTP
        if parameter and re.findall(r"{(\w+)}", row.path) == [parameter]
    }


def phrase(status: int) -> str:
    """A status in words, the same with every Python."""
    return RENAMED.get(status) or HTTPStatus(status).phrase


def _failures(row: Http, operation: Operation) -> set[int]:
    """Statuses of failure this operation may answer, the gateway's own included."""
    found = {400, 500}
    model = operation.models.get("body")
    if row.scope is not None:
        found |= {401, 403, 502, 503, 504}
    if "{" in row.path:
        found.add(404)
    if row.routed:
        found |= {409, 422}
    found |= {501} if operation.documented.get("events") else set()
    if row.body_bytes or row.name in ("read_file", "list_directory"):
        found.add(413)
    if isinstance(model, type) and issubclass(model, bodies.Body):
        found |= {415, 422} if model.LATER else {415}
        found |= {409} if issubclass(model, bodies.SpecBody) else set()  # a snapshot not ready
    return found


def main() -> int:
    """Print, write or check."""
    parser = argparse.ArgumentParser(prog="python -m infra.openapi", description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--write", action="store_true")
    choice.add_argument("--check", action="store_true")
    asked, made = parser.parse_args(), text()
    if asked.write:
        FILE.write_text(made, encoding="utf-8")
    elif not asked.check:
        sys.stdout.write(made)
    elif not FILE.exists() or FILE.read_text(encoding="utf-8") != made:
        print("infra/openapi.json is out of date: make openapi", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What no module may contain: the environment, the clock, oversize, drawers, other words."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import Source, sample, sources, under

SOURCE_LINES, TEST_LINES, FUNCTION_LINES = 350, 400, 50
DRAWERS = {"utils", "util", "common", "helpers", "helper", "misc", "shared", "tools"}
ENVIRONMENT = ("os.environ", "os.environb", "os.getenv", "os.getenvb")
READS_ENVIRONMENT = ("functions.edge.settings", "infra", "tests")
WORLD = (  # time, chance and the machine come through Clock, Ids and the other ports
    *("time", "random", "secrets", "uuid", "os", "socket", "ssl", "subprocess", "tempfile"),
    *("http", "urllib.request", "sqlite3", "asyncio", "shutil"),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "datetime.date.today",
)
OTHER_WORDS = re.compile(
    r"(delete|remove|kill|stop|start|suspend|hibernate|shutdown)_(sandbox|instance)"
    r"|(^|_)(terminat(e|ed|es|ing|ion)|kill(ed|s|ing)?)(_|$)",
)

Rule = Callable[[list[Source]], list[str]]


def the_environment_is_read_in_one_place(found: list[Source]) -> list[str]:
    return _uses((s for s in found if not s.within(*READS_ENVIRONMENT)), ENVIRONMENT)


def the_core_does_not_touch_the_world(found: list[Source]) -> list[str]:
    return _uses((s for s in found if s.within("sandbox_router")), WORLD)


def _uses(found: Iterator[Source], banned: tuple[str, ...]) -> list[str]:
    return [
        f"{source.at(line)}: {name}"
        for source in found
        for line, name in sorted(set(source.uses()))
        if any(under(name, one) for one in banned)
    ]


def there_is_no_drawer(found: list[Source]) -> list[str]:
    return [s.at(1) for s in found if DRAWERS & {part.strip("_") for part in s.module.split(".")}]


def files_are_short(found: list[Source]) -> list[str]:
    def check() -> Iterator[str]:
        for source in found:
            limit, lines = TEST_LINES if source.is_test else SOURCE_LINES, source.text.count("\n")
            if lines > limit:
                yield f"{source.at(1)}: {lines} lines, at most {limit}"

    return list(check())


def functions_are_short(found: list[Source]) -> list[str]:
    def check() -> Iterator[str]:
        for source in (s for s in found if not s.is_test):
            for node in ast.walk(source.tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines = (node.end_lineno or node.lineno) - node.lineno + 1
                    if lines > FUNCTION_LINES:
                        yield f"{source.at(node.lineno)}: {node.name} has {lines} lines"

    return list(check())


def abilities_are_declared_not_raised(found: list[Source]) -> list[str]:
    return [
        f"{source.at(node.lineno)}: NotImplementedError"
        for source in found
        if not source.is_test
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Name) and node.id == "NotImplementedError"
    ]


def one_word_per_thing(found: list[Source]) -> list[str]:
    """Ours are destroyed, paused, resumed: in the core, the functions and the operation ids."""
    return [
        f"{source.at(line)}: {name}"
        for source in found
        if source.within("sandbox_router", "functions")
        for line, name in _names(source.tree)
        if OTHER_WORDS.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
    ]


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name) | ast.alias(name=name):
                yield node.lineno, name
            case ast.Constant(value=str(text)) if text.isidentifier():
                yield node.lineno, text


RULES: list[Rule] = [
    the_environment_is_read_in_one_place,
    the_core_does_not_touch_the_world,
    there_is_no_drawer,
    files_are_short,
    functions_are_short,
    abilities_are_declared_not_raised,
    one_word_per_thing,
]
CORE = "layers/core/python/sandbox_router"
LONG_BODY = "def f():\n" + "    x = 1\n" * FUNCTION_LINES
BREACHES = [
    (the_environment_is_read_in_one_place, "functions/api/a.py", "import os\nx = os.environ['A']"),
    (the_environment_is_read_in_one_place, "functions/edge/wiring.py", "from os import getenv"),
    (the_environment_is_read_in_one_place, "adapters/aws/a.py", "import os as o\no.getenv('A')"),
    (the_core_does_not_touch_the_world, f"{CORE}/a.py", "import time"),
    (the_core_does_not_touch_the_world, f"{CORE}/a.py", "from uuid import uuid4"),
    (the_core_does_not_touch_the_world, f"{CORE}/a.py", "def f():\n    import random"),
    (the_core_does_not_touch_the_world, f"{CORE}/a.py", "import datetime\ndatetime.date.today()"),
    (
        the_core_does_not_touch_the_world,
        f"{CORE}/a.py",
        "from datetime import datetime as moment, UTC\nmoment.now(UTC)",
    ),
    (there_is_no_drawer, "functions/edge/utils.py", ""),
    (there_is_no_drawer, f"{CORE}/common/a.py", ""),
    (files_are_short, "infra/a.py", "\n" * (SOURCE_LINES + 1)),
    (files_are_short, "tests/unit/test_a.py", "\n" * (TEST_LINES + 1)),
    (functions_are_short, "adapters/a.py", LONG_BODY),
    (functions_are_short, "adapters/a.py", f"class A:\n  async {LONG_BODY}"),
    (abilities_are_declared_not_raised, "adapters/a.py", "def f():\n    raise NotImplementedError"),
    (one_word_per_thing, f"{CORE}/a.py", "def delete_sandbox(): ..."),
    (one_word_per_thing, f"{CORE}/a.py", "class Terminated: ..."),
    (one_word_per_thing, "functions/api/a.py", "def f(kill): ..."),
    (one_word_per_thing, "functions/api/a.py", "OPERATION = 'deleteSandbox'"),
    (one_word_per_thing, "functions/catalog.py", "x = y.startInstance"),
]
ALLOWED = {
    "functions/edge/settings.py": "import os\nREAD = os.environ",
    "infra/local/__main__.py": "import os\nREAD = os.getenv('PORT')",
    f"{CORE}/store.py": "from datetime import datetime\ndef f(clock): return clock.now()",
    f"{CORE}/model/sandbox.py": "TERMINAL = 1\ndef delete_snapshot(skill, terminal): ...",
    "functions/api/destroy_sandbox.py": '"""Never kill a sandbox."""\n' + "\n" * 300,
    "tests/unit/test_a.py": LONG_BODY + "\n" * 300,
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Rule) -> None:
    assert rule(sources()) == []


@pytest.mark.parametrize(("rule", "path", "code"), BREACHES)
def test_a_breach_is_found(tmp_path: Path, rule: Rule, path: str, code: str) -> None:
    assert rule(sample(tmp_path, {path: code})) != []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_the_design_allows_is_no_breach(tmp_path: Path, rule: Rule) -> None:
    assert rule(sample(tmp_path, ALLOWED)) == []

"""Public fault reports of this field, and that each has a test here which shows it is not ours.

`pytest -m case` runs them all. A test is marked `@pytest.mark.case("A7")`; a case is shown at the
lowest level where it can be seen, and over HTTP, against real processes, where it has such a form.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.architecture.tree import Source, sample, sources

CASES: Mapping[str, str] = {
    "A1": "a create's answer is lost: the retry makes a second sandbox",
    "A2": "a 503 on create is taken as 'not processed'",
    "A3": "a list that shows the dead brings a destroyed sandbox back",
    "A4": "any error of a destroy counts as destroyed",
    "A5": "what is still starting cannot be destroyed, and is given up",
    "A6": "the record says destroyed, the instance lives on",
    "A7": "orphans without a record run on, or a stranger's instance is destroyed",
    "A8": "a resume resets the provider's lifetime to its default",
    "A9": "a policy refusal is gone round by asking the next pool",
    "A10": "candidates that failed over are asked again by the next create",
    "A11": "an in-progress record without an end blocks its key for ever",
    "A12": "the same key with another body is answered with the first result",
    "A13": "the loser of two parallel first requests gets a 5xx",
    "A14": "one bad message fails its whole batch, or raises",
    "A15": "a sub-resource's path lands in its parent: a sandbox is destroyed",
    "A16": "a content type with a charset is refused",
    "A17": "a credential follows a redirect to another host",
    "A18": "values of env show in logs, answers or stored items",
    "A19": "an exec's timeout fires only when the command has ended",
    "A20": "a character cut by the border of a chunk is broken",
    "A21": "a cancellation skips the clean-up, and what was made stays",
    "A22": "a list is read to its first page only, or without end",
}
OVER_HTTP = CASES.keys() - {
    "A7",  # an orphan is destroyed when it is older than ten minutes
    "A11",  # the end of a lease is nobody's to see; a crash at every call is A21
    "A14",  # a queue's batch
    "A22",  # 250 instances
}
HTTP_FOLDERS = ("tests.local.acceptance", "tests.security")


def marked(found: Iterable[Source]) -> Mapping[str, list[str]]:
    """Case -> the tests marked with it, by module and name."""
    tests: defaultdict[str, list[str]] = defaultdict(list)
    for source in found:
        if not source.path.name.startswith("test_"):
            continue
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for case in filter(None, map(_case, node.decorator_list)):
                    tests[case].append(f"{source.module}.{node.name}")
    return tests


def _case(node: ast.expr) -> str | None:
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "pytest.mark.case":
        return None
    return str(ast.literal_eval(node.args[0])) if len(node.args) == 1 else ""


@pytest.fixture(scope="module")
def tests() -> Mapping[str, list[str]]:
    return marked(source for source in sources() if source.is_test)


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_a_test(case: str, tests: Mapping[str, list[str]]) -> None:
    assert tests.get(case)


@pytest.mark.parametrize("case", sorted(OVER_HTTP))
def test_what_can_be_seen_over_http_is_shown_over_http(
    case: str, tests: Mapping[str, list[str]]
) -> None:
    assert [name for name in tests.get(case, []) if name.startswith(HTTP_FOLDERS)]


def test_no_test_is_marked_with_a_case_that_is_none(tests: Mapping[str, list[str]]) -> None:
    assert set(tests) == set(CASES)


def test_a_mark_is_found_only_where_pytest_would_collect_it(tmp_path: Path) -> None:
    text = '@pytest.mark.case("A1")\ndef {name}(): ...\n@pytest.mark.slow\ndef test_y(): ...\n'
    found = sample(
        tmp_path,
        {
            "tests/unit/test_a.py": text.format(name="test_x"),
            "tests/unit/other.py": text.format(name="test_x"),
            "tests/unit/test_b.py": text.format(name="helper"),
        },
    )
    assert marked(found) == {"A1": ["tests.unit.test_a.test_x"]}

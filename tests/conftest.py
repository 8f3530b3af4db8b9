"""What every test shares: the options, the vendors' specs, and no silent skips in CI."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

MISSING_HERE = "not on this machine:"
"""How the reason of a skip begins when the machine lacks something; CI accepts no other."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests marked `long` too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        _name_groups(items)
    if config.getoption("--long"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def _name_groups(items: list[pytest.Item]) -> None:
    """Put each test's group into its id, where xdist's scheduler looks for it: xdist 3.8 writes it
    to an attribute that pytest 9.2 has no more, and scattered every group without a word.
    """
    for item in items:
        group = item.get_closest_marker("xdist_group")
        if group is not None and hasattr(item, "_id"):
            item._id = type(item._id).parse(f"{item.nodeid}@{group.args[0]}")


@pytest.fixture(scope="session")
def vendor_specs() -> Path:
    """The folder with the vendors' published specs, one folder a vendor."""
    named = os.environ.get("VENDOR_SPECS", "")
    if not named or not Path(named).is_dir():
        pytest.skip(f"{MISSING_HERE} the vendors' specs; VENDOR_SPECS={named!r} is no folder")
    return Path(named)


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """With CI_STRICT_SKIPS=1 a skip that does not say what this machine lacks is a failure."""
    if not report.skipped or hasattr(report, "wasxfail") or not os.environ.get("CI_STRICT_SKIPS"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not reason.startswith(MISSING_HERE):
        report.outcome = "failed"
        report.longrepr = f"CI skips only with {MISSING_HERE!r}, not with: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report

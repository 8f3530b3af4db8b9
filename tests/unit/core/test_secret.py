"""A secret shows itself to nobody who does not ask."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
from dataclasses import asdict, dataclass

import pytest

from sandbox_router.lifecycle.create import CreateRequest
from sandbox_router.model.secret import Secret
from sandbox_router.model.spec import Cargo, Spec
from sandbox_router.ports import Command, Endpoint, Instance, Order, Ref
from tests.unit.core.build import SHAPE

CANARY = "CANARY-secret-value"
SECRET = Secret(CANARY)
CARGO = Cargo({"TOKEN": SECRET})


@dataclass(frozen=True)
class Holder:
    value: Secret


@pytest.mark.parametrize(
    "shown",
    [
        repr(SECRET),
        str(SECRET),
        f"{SECRET}",
        f"{SECRET!s} {SECRET!r} {SECRET!a}",
        "{}".format(SECRET),  # noqa: UP032 - the other way to format
        "%s %r" % (SECRET, SECRET),  # noqa: UP031
        repr(Holder(SECRET)),
        repr([SECRET]),
        repr({"a": SECRET}),
        repr(CARGO),
        repr(CreateRequest(Spec(SHAPE), CANARY.encode(), "req-1", CARGO)),
        repr(Order("r", "base", SHAPE, {}, 60, CARGO)),
        repr(Instance("i", "running", access={"t": SECRET})),
        repr(Ref("i", {"t": SECRET})),
        repr(Command(argv=(CANARY,), env={"A": SECRET})),
        repr(Command(shell=CANARY, stdin=CANARY.encode())),
        repr(Endpoint("https://x", {"t": CANARY})),
    ],
)
def test_no_way_to_print_it_shows_it(shown: str) -> None:
    assert CANARY not in shown


def test_it_is_shown_when_asked() -> None:
    assert SECRET.reveal() == CANARY


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_cannot_be_pickled(protocol: int) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(SECRET, protocol)


def test_it_cannot_be_copied_into_plain_data_or_json() -> None:
    with pytest.raises(TypeError):
        copy.deepcopy(SECRET)
    with pytest.raises(TypeError):
        json.dumps({"a": SECRET})
    with pytest.raises(TypeError):
        asdict(Holder(SECRET))


def test_it_equals_its_like_and_nothing_else() -> None:
    assert Secret(CANARY) == SECRET
    assert Secret("other") != SECRET
    assert SECRET != CANARY


def test_it_is_no_key_of_a_mapping() -> None:
    with pytest.raises(TypeError):
        hash(SECRET)


def test_it_has_no_attributes_to_list() -> None:
    assert not hasattr(SECRET, "__dict__")


def test_an_exception_that_carries_it_does_not_show_it() -> None:
    error = ValueError(SECRET, {"env": SECRET})
    assert CANARY not in "".join(traceback.format_exception(error))

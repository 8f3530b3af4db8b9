"""A lease outlasts every effect: profiles keep within it, and adapters within their profile."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest

from adapters import providers
from adapters.providers.e2b.provider import E2B
from adapters.providers.opensandbox.provider import OpenSandbox
from sandbox_router.lifecycle.advance import LEASE_MS
from sandbox_router.model.failure import ProviderFailure
from sandbox_router.model.secret import Secret

CALL_SECONDS, PAGE_SECONDS = 0.2, 0.05
TAGS = {"constal-sandbox": "r-x"}
_numbers = itertools.count(1)


def slowly(answer: Callable[[httpx.Request], httpx.Response]) -> httpx.MockTransport:
    """Pages without end, each a while in coming."""

    def page(request: httpx.Request) -> httpx.Response:
        time.sleep(PAGE_SECONDS)
        return answer(request)

    return httpx.MockTransport(page)


def e2b(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json=[], headers={"x-next-token": f"t{next(_numbers)}"})


def opensandbox(request: httpx.Request) -> httpx.Response:
    number = int(request.url.params["page"])
    item = {"id": "i-1", "status": {"state": "Running"}, "createdAt": "2026-01-01T00:00:00Z"}
    about = {"page": number, "hasNextPage": True}
    return httpx.Response(200, json={"items": [item], "pagination": about})


def account(kind: str) -> E2B | OpenSandbox:
    profile = providers.profile(kind)
    profile = replace(profile, timeouts=replace(profile.timeouts, call=CALL_SECONDS))
    if kind == "e2b":
        return E2B(profile, Secret("key"), transport=slowly(e2b))
    return OpenSandbox(profile, Secret("key"), "https://a.test", transport=slowly(opensandbox))


@pytest.mark.parametrize("kind", providers.KINDS)
def test_what_a_step_may_take_fits_in_a_lease(kind: str) -> None:
    timeouts = providers.profile(kind).timeouts
    assert 1000 * max(timeouts.create, 2 * timeouts.call) < LEASE_MS


@pytest.mark.parametrize("kind", providers.KINDS)
def test_a_look_up_over_pages_without_end_takes_the_time_of_one_call(kind: str) -> None:
    started = time.monotonic()
    with pytest.raises(ProviderFailure):
        account(kind).find(TAGS)
    assert time.monotonic() - started < CALL_SECONDS + 2 * PAGE_SECONDS

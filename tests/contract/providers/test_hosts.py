"""Whom a credential may be shown: host rules, private addresses, values that are no header."""

from __future__ import annotations

import socket

import httpcore
import httpx
import pytest

from adapters.providers import transport
from adapters.providers.http import Call, Credential, Http
from sandbox_router.model import failure as fail
from sandbox_router.model.capability import HostRule
from sandbox_router.model.secret import Secret

RULES = (HostRule("api.good.dev", "account"), HostRule("*.good.dev", "sandbox"))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
        *("0.0.0.0", "::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
        *("224.0.0.1", "255.255.255.255", "ff02::1"),
    ],
)
def test_a_providers_name_leads_to_no_private_address(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    connections: list[str] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", (address, 443))])
    monkeypatch.setattr(
        httpcore.SyncBackend, "connect_tcp", lambda *a, **_: connections.append(a[1])
    )
    with pytest.raises(fail.Outage):
        Http(RULES).call(Call("GET", "https://api.good.dev/", "account", 2))
    assert connections == []


def test_public_addresses_are_public() -> None:
    assert transport.public("8.8.8.8")
    assert transport.public("2606:4700::1111")


HOSTS: list[tuple[str, Credential, bool]] = [
    ("https://api.good.dev/v1", "account", True),
    ("https://api.good.dev:443/v1", "account", True),
    ("https://API.Good.dev/", "account", True),
    ("https://api.good.dev/", "sandbox", False),
    ("https://8080-abc.good.dev/", "sandbox", True),
    ("https://8080-abc.good.dev/", "account", False),
    ("https://a.b.good.dev/", "sandbox", False),
    ("https://good.dev/", "sandbox", False),
    ("https://.good.dev/", "sandbox", False),
    ("https://x.good.dev.evil.org/", "sandbox", False),
    ("https://xgood.dev/", "sandbox", False),
    ("https://good.dev@evil.org/", "sandbox", False),
    ("https://x.good.dev@evil.org/", "sandbox", False),
    ("https://evil.org#.good.dev/", "sandbox", False),
    ("https://evil.org/x.good.dev", "sandbox", False),
    ("https://evil.org?x.good.dev", "sandbox", False),
    ("https://evil.org\\x.good.dev/", "sandbox", False),
    ("https://user:pass@x.good.dev/", "sandbox", False),
    ("https://x.good.dev./", "sandbox", False),
    ("https://x.good.dev:8443/", "sandbox", False),
    ("https://x.good.dev\n/", "sandbox", False),
    ("https://x%2egood.dev/", "sandbox", False),
    ("http://x.good.dev/", "sandbox", False),
    ("ftp://x.good.dev/", "sandbox", False),
    ("http://169.254.169.254/", "sandbox", False),
    ("http://[::ffff:127.0.0.1]/", "sandbox", False),
    ("http://2130706433/", "sandbox", False),
    ("http://0x7f.1/", "sandbox", False),
    ("https://127.0.0.1/", "sandbox", False),
    ("http://127.0.0.1:8080/e2b/sandbox", "sandbox", True),
    ("http://127.0.0.1:8080/e2b", "account", False),
    ("http://127.0.0.1:8081/e2b", "sandbox", False),
    ("http://localhost:8080/e2b", "sandbox", False),
    ("https://own.corp:8443/api", "account", True),
    ("http://plain.corp/api", "account", False),
    ("file:///etc/passwd", "sandbox", False),
    ("//x.good.dev/", "sandbox", False),
    ("", "sandbox", False),
]


@pytest.mark.parametrize(("url", "credential", "allowed"), HOSTS)
def test_a_credential_goes_only_to_hosts_that_may_have_it(
    url: str, credential: Credential, allowed: bool
) -> None:
    http = Http(
        RULES,
        {
            "http://127.0.0.1:8080/e2b": "sandbox",
            "https://own.corp:8443/api": "account",
            "http://plain.corp/api": "account",  # not loopback: never in clear
        },
        httpx.MockTransport(lambda request: httpx.Response(200)),
    )
    assert http.permits(url, credential) is allowed
    if not allowed:
        with pytest.raises(fail.ProtocolBroken):
            http.call(Call("GET", url, credential, 1))


@pytest.mark.parametrize("value", ["a\r\nX: b", "a\x00", "ü", "", " a"])
def test_a_credential_that_is_no_header_value_is_not_sent(value: str) -> None:
    sent: list[httpx.Request] = []

    def send(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200)

    http = Http(RULES, transport=httpx.MockTransport(send))
    with pytest.raises(fail.BrokenPool):
        http.call(Call("GET", "https://api.good.dev/", "account", 1, headers={"k": Secret(value)}))
    assert sent == []

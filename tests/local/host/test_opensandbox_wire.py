"""OpenSandbox's wire API on the host: what the SDK does not show."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from infra.local.host.dialects.opensandbox.lines import Lines
from tests.local.host.hosting import Host, until
from tests.local.host.opensandbox import CONFIG, Client, events_of, told

pytestmark = pytest.mark.xdist_group("opensandbox-host")


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    made = Host(config=CONFIG).started()
    yield made
    made.close()


@pytest.fixture
def gamma(host: Host) -> Iterator[Client]:
    client = Client(host)
    yield client
    client.http.close()
    host.http.delete("/_host/faults")


@pytest.fixture
def box(gamma: Client) -> str:
    return gamma.made(env={"HERE": "/tmp"})


def code(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()
    return answer.status_code, body.get("code", "of the framework")


def test_the_same_paths_are_served_with_and_without_the_version(host: Host, gamma: Client) -> None:
    bare = f"{host.url}/opensandbox"
    headers = dict(gamma.http.headers)
    box = gamma.made()
    assert httpx.get(f"{bare}/sandboxes/{box}", headers=headers).json()["id"] == box
    address = httpx.get(f"{bare}/sandboxes/{box}/endpoints/8080", headers=headers).json()
    assert address == {"endpoint": f"{bare.partition('//')[2]}/sandboxes/{box}/proxy/8080"}
    address = gamma.http.get(f"/sandboxes/{box}/endpoints/8080?use_server_proxy=true").json()
    assert address == {"endpoint": f"{bare.partition('//')[2]}/v1/sandboxes/{box}/proxy/8080"}
    assert httpx.get(f"{bare}/health").json() == {"status": "healthy"}


def test_a_key_is_wanted_for_all_but_the_proxy_path(host: Host, gamma: Client, box: str) -> None:
    url = f"{host.url}/opensandbox/v1"
    assert code(httpx.get(f"{url}/sandboxes")) == (401, "MISSING_API_KEY")
    wrong = {"OPEN-SANDBOX-API-KEY": "wrong"}
    assert code(httpx.get(f"{url}/sandboxes/{box}", headers=wrong)) == (401, "INVALID_API_KEY")
    assert httpx.get(f"{url}/sandboxes/{box}/proxy/44772/ping").status_code == 200
    delta = Client(host, "delta")
    assert code(delta.http.get(f"/sandboxes/{box}")) == (404, "DOCKER::SANDBOX_NOT_FOUND")
    assert box not in delta.listed()
    delta.http.close()


def test_a_create_answers_202_and_two_of_them_make_two(gamma: Client) -> None:
    first = gamma.create(metadata={"constal-sandbox": "r-1"})
    assert first.status_code == 202
    body = first.json()
    assert (body["status"]["state"], body["metadata"]) == ("Running", {"constal-sandbox": "r-1"})
    assert "image" not in body
    assert first.headers["x-request-id"]
    second = gamma.made(metadata={"constal-sandbox": "r-1"})
    assert set(gamma.listed(metadata="constal-sandbox=r-1")) == {body["id"], second}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metadata": {"k": "v" * 64}}, (400, "SANDBOX::INVALID_METADATA_LABEL")),
        ({"metadata": {"k": "-v"}}, (400, "SANDBOX::INVALID_METADATA_LABEL")),
        ({"metadata": {"k": "a b"}}, (400, "SANDBOX::INVALID_METADATA_LABEL")),
        ({"metadata": {"k" * 64: "v"}}, (400, "SANDBOX::INVALID_METADATA_LABEL")),
        ({"metadata": {"UPPER/k": "v"}}, (400, "SANDBOX::INVALID_METADATA_LABEL")),
        ({"metadata": {"opensandbox.io/id": "v"}}, (400, "SANDBOX::INVALID_METADATA_LABEL")),
        ({"image": {"uri": "no/such:1"}}, (500, "DOCKER::SANDBOX_IMAGE_PULL_FAILED")),
        ({"image": {}}, (422, "of the framework")),
        ({"timeout": 59}, (422, "of the framework")),
        ({"resourceLimits": {"cpu": "0"}}, (400, "SANDBOX::INVALID_PARAMETER")),
        ({"resourceLimits": {"memory": "lots"}}, (400, "SANDBOX::INVALID_PARAMETER")),
        ({"resourceLimits": {"gpu": "1"}}, (400, "SANDBOX::INVALID_PARAMETER")),
        ({"networkPolicy": {"defaultAction": "deny"}}, (400, "SANDBOX::INVALID_PARAMETER")),
        ({"entrypoint": ["python", "x.py"]}, (400, "SANDBOX::INVALID_PARAMETER")),
        ({"snapshotId": "s"}, (422, "of the framework")),
        ({"secureAccess": True}, (400, "SANDBOX::INVALID_PARAMETER")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    gamma: Client, changes: dict[str, Any], expected: tuple[int, str]
) -> None:
    before = gamma.listed(pageSize=200)
    assert code(gamma.create(**changes)) == expected
    assert gamma.listed(pageSize=200) == before


def test_labels_may_be_empty_and_63_long_under_a_domain(gamma: Client) -> None:
    labels = {"empty": "", "app.example.com/Part_of.1": "v" * 63}
    assert gamma.http.get(f"/sandboxes/{gamma.made(metadata=labels)}").json()["metadata"] == labels


def test_an_account_has_only_so_many(host: Host) -> None:
    delta = Client(host, "delta")
    box = delta.made()
    assert code(delta.create()) == (403, "KUBERNETES::QUOTA_EXCEEDED")
    assert delta.http.delete(f"/sandboxes/{box}").status_code == 204
    assert code(delta.http.delete(f"/sandboxes/{box}")) == (404, "DOCKER::SANDBOX_NOT_FOUND")
    delta.made()
    delta.http.close()


@pytest.mark.parametrize(
    "query", ["page=0", "pageSize=201", "pageSize=x", "metadata=broken", "metadata=a%3D1%26b"]
)
def test_a_list_that_cannot_be_read_is_refused(gamma: Client, query: str) -> None:
    assert gamma.http.get(f"/sandboxes?{query}").status_code in (400, 422)


def test_states_filter_and_the_newest_comes_first(gamma: Client) -> None:
    first, second = gamma.made(metadata={"t": "s"}), gamma.made(metadata={"t": "s"})
    gamma.http.post(f"/sandboxes/{first}/pause")
    assert gamma.listed(metadata="t=s") == [second, first]
    assert gamma.listed(metadata="t=s", state="Paused") == [first]
    assert gamma.listed(metadata="t=s", state=["paused", "RUNNING"]) == [second, first]


def test_a_pause_conflicts_with_itself_and_stops_no_clock(gamma: Client) -> None:
    box = gamma.made()
    path = f"/sandboxes/{box}"
    assert code(gamma.http.post(path + "/resume")) == (409, "DOCKER::SANDBOX_NOT_PAUSED")
    assert gamma.http.post(path + "/pause").status_code == 202
    assert code(gamma.http.post(path + "/pause")) == (409, "DOCKER::SANDBOX_NOT_RUNNING")
    assert code(gamma.agent(box, "GET", "/ping")) == (504, "BACKEND_TIMEOUT")
    soon = (datetime.now(UTC) + timedelta(seconds=1.5)).isoformat()
    renewed = gamma.http.post(path + "/renew-expiration", json={"expiresAt": soon})
    assert renewed.status_code == 200
    until(lambda: gamma.http.get(path).status_code == 404, 8)
    assert gamma.host.instance(box)["gone_reason"] == "lifetime"


def test_a_resume_leaves_the_end_where_it_was(gamma: Client) -> None:
    path = f"/sandboxes/{gamma.made(timeout=600)}"
    ends = gamma.http.get(path).json()["expiresAt"]
    gamma.http.post(path + "/pause")
    time.sleep(0.2)
    gamma.http.post(path + "/resume")
    after = gamma.http.get(path).json()["expiresAt"]
    moments = [datetime.fromisoformat(text.replace("Z", "+00:00")) for text in (ends, after)]
    assert abs((moments[1] - moments[0]).total_seconds()) < 0.1


def test_a_renewal_needs_a_future_and_an_end(gamma: Client) -> None:
    path = f"/sandboxes/{gamma.made(timeout=None)}/renew-expiration"
    past = {"expiresAt": "2001-01-01T00:00:00Z"}
    assert code(gamma.http.post(path, json=past)) == (400, "DOCKER::INVALID_EXPIRATION")
    future = {"expiresAt": "2099-01-01T00:00:00Z"}
    assert code(gamma.http.post(path, json=future)) == (409, "DOCKER::INVALID_EXPIRATION")


def test_nothing_but_the_agent_is_reached_through_the_proxy(gamma: Client, box: str) -> None:
    url = f"{gamma.http.base_url}sandboxes/{box}/proxy/22/x"
    assert code(httpx.get(url)) == (502, "BACKEND_CONNECTION_FAILED")
    gamma.http.delete(f"/sandboxes/{box}")
    assert code(gamma.agent(box, "GET", "/ping")) == (404, "DOCKER::SANDBOX_NOT_FOUND")


def test_signed_routes_and_ports_that_are_none_are_refused(gamma: Client, box: str) -> None:
    path = f"/sandboxes/{box}/endpoints"
    signed = gamma.http.get(f"{path}/80?expires=4070908800")
    assert code(signed) == (400, "SANDBOX::API_NOT_SUPPORTED")
    for port in ("0", "65536", "x"):
        assert code(gamma.http.get(f"{path}/{port}")) == (400, "DOCKER::INVALID_PORT")


def test_foreground_output_is_text_by_lines_with_a_verdict(gamma: Client, box: str) -> None:
    events = gamma.run(box, r"printf 'a\r\n\nb\xff\rc'; echo e >&2; exit 3")
    assert told(events) == ["a", "\n", "b\ufffd", "c"]
    assert told(events, "stderr") == ["e"]
    assert (events[0]["type"], events[-1]["type"]) == ("init", "error")
    error = {"ename": "CommandExecError", "evalue": "3", "traceback": ["exit status 3"]}
    assert events[-1]["error"] == error
    assert gamma.run(box, "true")[-1]["type"] == "execution_complete"


def test_background_output_is_bytes_of_both_streams(gamma: Client, box: str) -> None:
    script = r"printf 'a\xff\r\n'; printf b >&2; kill -9 $$"
    started = gamma.agent(box, "POST", "/command", json={"command": script, "background": True})
    run = events_of(started)[0]["text"]
    status = f"/command/status/{run}"
    until(lambda: not gamma.agent(box, "GET", status).json()["running"])
    shown = gamma.agent(box, "GET", status).json()
    assert (shown["exit_code"], shown["error"]) == (-1, "signal: killed")
    logs = gamma.agent(box, "GET", f"/command/{run}/logs")
    assert (logs.content, logs.headers["execd-commands-tail-cursor"]) == (b"a\xff\r\nb", "5")
    rest = gamma.agent(box, "GET", f"/command/{run}/logs?cursor=4")
    assert rest.content == b"b"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"command": ""},
        {"command": "true", "argv": ["true"]},
        {"command": "true", "cwd": "/nowhere"},
        {"command": "true", "timeout": -1},
        {"command": "true", "uid": 0},
        {"command": "true", "envs": {"a=b": "c"}},
        {"argv": ["a\0b"]},
    ],
    ids=str,
)
def test_a_command_that_cannot_be_is_refused(gamma: Client, box: str, body: dict[str, Any]) -> None:
    answer = gamma.agent(box, "POST", "/command", json=body)
    assert code(answer) == (400, "INVALID_REQUEST_BODY")


def test_paths_are_expanded_as_execd_does(gamma: Client, box: str) -> None:
    assert told(gamma.run(box, "pwd", cwd="${HERE}")) == ["/tmp"]
    parts = {"metadata": ("metadata", b'{"path": "$HERE/x$(id)"}'), "file": ("f", b"1")}
    assert gamma.agent(box, "POST", "/files/upload", files=parts).status_code == 200
    info = gamma.agent(box, "GET", "/files/info", params={"path": "/tmp/x$(id)"})
    assert info.json()["/tmp/x$(id)"]["size"] == 1
    unset = gamma.agent(box, "GET", "/files/info", params={"path": "/tmp/$NOT_SET"})
    assert code(unset) == (500, "RUNTIME_ERROR")


def test_a_part_of_a_file_is_served(gamma: Client, box: str) -> None:
    parts = {
        "metadata": ("metadata", b'{"path": "/tmp/f", "mode": 600}'),
        "file": ("f", b"0123456789"),
    }
    gamma.agent(box, "POST", "/files/upload", files=parts)
    query = {"path": "/tmp/f"}
    part = gamma.agent(box, "GET", "/files/download", params=query, headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content) == (206, b"234")
    assert part.headers["content-range"] == "bytes 2-4/10"
    rest = gamma.agent(box, "GET", "/files/download", params=query, headers={"Range": "bytes=8-"})
    assert rest.content == b"89"
    none = gamma.agent(box, "GET", "/files/download", params=query, headers={"Range": "bytes=20-"})
    assert none.status_code == 416


def test_removing_a_file_is_silent_and_spares_directories(gamma: Client, box: str) -> None:
    gone = gamma.agent(box, "DELETE", "/files", params={"path": "/tmp/none"})
    assert gone.status_code == 200
    gamma.run(box, "mkdir /tmp/d; ln -s /tmp/d /tmp/l; touch /tmp/d/f")
    for path in ("/tmp/d", "/tmp/l"):
        answer = gamma.agent(box, "DELETE", "/files", params={"path": path})
        assert code(answer) == (500, "RUNTIME_ERROR")
    link = gamma.agent(box, "GET", "/directories/list", params={"path": "/tmp/l"})
    assert code(link) == (400, "INVALID_REQUEST_BODY")
    gamma.agent(box, "DELETE", "/directories", params={"path": "/tmp/l"})
    assert told(gamma.run(box, "ls /tmp/d")) == ["f"]


@pytest.mark.parametrize(
    ("op", "call"),
    [
        ("get", lambda c, box: c.http.get(f"/sandboxes/{box}")),
        ("list", lambda c, box: c.http.get("/sandboxes")),
        ("delete", lambda c, box: c.http.delete(f"/sandboxes/{box}")),
        ("pause", lambda c, box: c.http.post(f"/sandboxes/{box}/pause")),
        ("resume", lambda c, box: c.http.post(f"/sandboxes/{box}/resume")),
        ("timeout", lambda c, box: c.http.post(f"/sandboxes/{box}/renew-expiration", json={})),
        ("exec", lambda c, box: c.agent(box, "POST", "/command", json={"command": "true"})),
        ("files", lambda c, box: c.agent(box, "GET", "/files/download?path=/x")),
        ("files", lambda c, box: c.agent(box, "GET", "/directories/list?path=/")),
        ("create", lambda c, box: c.create()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_operation_is_known_by_its_name_and_account(
    host: Host, gamma: Client, box: str, op: str, call: Any
) -> None:
    host.order(fault="conflict", op=op, account="gamma", times=1)
    assert code(call(gamma, box)) == (409, "SANDBOX::CONFLICT")
    log = host.http.get("/_host/calls", params={"op": op, "account": "gamma"}).json()["calls"]
    assert (log[-1]["fault"], log[-1]["status"]) == ("conflict", 409)
    assert op in ("list", "create") or log[-1]["instance_id"] == box


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        ([b"a\nb"], ["a", "b"]),
        ([b"a\r\nb\r"], ["a", "b"]),
        ([b"a\r", b"\nb"], ["a", "b"]),
        ([b"\n\r\n\r"], ["\n", "\n", "\n"]),
        ([b"a", b"b", b"\n\n"], ["ab", "\n"]),
        ([b"\xc3", b"\xbc\xff"], ["ü\ufffd"]),
        ([b""], []),
    ],
    ids=str,
)
def test_lines_end_as_execd_ends_them(data: list[bytes], lines: list[str]) -> None:
    splitter = Lines()
    found = [line for chunk in data for line in splitter.feed(chunk)]
    assert [*found, *splitter.flush()] == lines

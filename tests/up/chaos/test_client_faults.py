"""What clients meet when faults of the gateway strike them: over HTTPS, in a cluster whose clock stands still."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib import parse

import pytest

from kemu.lab.up import embedded
from kemu.lab.up.chaos import scripts

MAPS = "/api/v1/namespaces/default/configmaps"


class Http:
    """A client with an agent of its own, and one connection at a time."""

    def __init__(self, cluster: embedded.Cluster, agent: str) -> None:
        self.cluster = cluster
        self.agent = agent
        self._tls = ssl._create_unverified_context()
        self._open: list[http.client.HTTPSConnection] = []

    def open(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        place = parse.urlsplit(self.cluster.url)
        assert place.hostname is not None
        connection = http.client.HTTPSConnection(place.hostname, place.port, context=self._tls, timeout=20)
        self._open.append(connection)
        headers = {
            "Authorization": f"Bearer {self.cluster.token}",
            "User-Agent": f"{self.agent} (linux)",
            "Content-Type": kind,
        }
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection.getresponse()

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> tuple[int, Any]:
        try:
            response = self.open(method, path, body, kind)
            return response.status, json.loads(response.read())
        finally:
            self._open.pop().close()

    def close(self) -> None:
        for connection in self._open:
            connection.close()

    def make(self, name: str, **data: str) -> dict[str, Any]:
        code, found = self.call("POST", MAPS, {"metadata": {"name": name}, "data": data})
        assert code == 201, found
        return dict(found)

    def patch(self, name: str, **data: str) -> tuple[int, Any]:
        return self.call("PATCH", f"{MAPS}/{name}", {"data": data}, "application/merge-patch+json")


@pytest.fixture(scope="module")
def cluster() -> Iterator[embedded.Cluster]:
    with embedded.up(nodes=1) as found:
        yield found


@pytest.fixture
def client(cluster: embedded.Cluster, request: pytest.FixtureRequest) -> Iterator[Http]:
    found = Http(cluster, f"{request.node.name.replace('[', '-').replace(']', '')}/1.0")
    yield found
    found.close()


def _hits(cluster: embedded.Cluster, fault: str) -> int:
    cluster.step(0)
    return next(int(each["hits"]) for each in cluster.faults() if each["id"] == fault)


def test_the_third_patch_of_a_client_meets_a_conflict(cluster: embedded.Cluster, client: Http) -> None:
    client.make("third", a="0")
    fault = cluster.chaos({"refuse": {"code": 409, "agent": client.agent, "verb": "patch", "nth": 3}})
    codes = [client.patch("third", a=str(number))[0] for number in range(1, 6)]
    assert codes == [200, 200, 409, 200, 200]
    other = Http(cluster, "other/1.0")
    assert [other.patch("third", a="x")[0] for _ in range(4)] == [200] * 4
    assert _hits(cluster, fault) == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (409, "Conflict"),
        (410, "Expired"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
    ],
)
def test_a_refusal_is_a_status_and_changes_nothing(
    cluster: embedded.Cluster, client: Http, code: int, reason: str
) -> None:
    name = f"refused-{code}"
    client.make(name, a="0")
    fault = cluster.chaos(
        {"refuse": {"code": code, "retryAfter": "7s", "agent": client.agent, "name": name, "times": 1}}
    )
    response = client.open("PATCH", f"{MAPS}/{name}", {"data": {"a": "1"}}, "application/merge-patch+json")
    assert response.status == code
    assert response.headers["Retry-After"] == "7"
    status = json.loads(response.read())
    assert (status["kind"], status["reason"], status["code"]) == ("Status", reason, code)
    assert status["details"] == {"name": name, "kind": "configmaps", "retryAfterSeconds": 7}
    assert client.call("GET", f"{MAPS}/{name}")[1]["data"] == {"a": "0"}
    cluster.heal(fault)


def test_a_lost_answer_leaves_the_write(cluster: embedded.Cluster, client: Http) -> None:
    cluster.chaos({"loseAnswers": {"agent": client.agent, "verb": "create", "nth": 1}})
    cluster.chaos({"loseAnswers": {"how": "timeout", "agent": client.agent, "verb": "create", "nth": 2}})
    with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
        client.make("lost-1")
    code, found = client.call("POST", MAPS, {"metadata": {"name": "lost-2"}})
    assert (code, found["reason"]) == (504, "Timeout")
    for name in ("lost-1", "lost-2"):
        code, found = client.call("POST", MAPS, {"metadata": {"name": name}})
        assert (code, found["reason"]) == (409, "AlreadyExists")


def test_answers_from_the_past(cluster: embedded.Cluster, client: Http) -> None:
    client.make("past", a="old")
    cluster.step(30)
    client.patch("past", a="new")
    client.make("past-2")
    cluster.step(5)
    fault = cluster.chaos({"staleAnswers": {"by": "20s", "agent": client.agent}})
    code, found = client.call("GET", f"{MAPS}/past")
    assert (code, found["kind"], found["data"]) == (200, "ConfigMap", {"a": "old"})
    assert client.call("GET", f"{MAPS}/past-2")[0] == 404
    listed = client.call("GET", f"{MAPS}?limit=500")[1]
    names = {each["metadata"]["name"]: each.get("data") for each in listed["items"]}
    assert names["past"] == {"a": "old"}
    assert "past-2" not in names
    # A write on that ground is refused by the cluster itself.
    code, refused = client.call("PUT", f"{MAPS}/past", found | {"data": {"a": "mine"}})
    assert (code, refused["reason"]) == (409, "Conflict")
    cluster.heal(fault)
    assert client.call("GET", f"{MAPS}/past")[1]["data"] == {"a": "new"}


def test_slow_answers_wait_for_virtual_time(cluster: embedded.Cluster, client: Http) -> None:
    client.make("slow")
    cluster.chaos({"slowAnswers": {"by": "40s", "agent": client.agent, "times": 1}})
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(client.call("GET", f"{MAPS}/slow")[0]))
    thread.start()
    deadline = time.monotonic() + 10
    while not [each for each in cluster.faults() if each["what"] == "slowAnswers" and each["hits"]]:
        assert time.monotonic() < deadline
        cluster.step(0)
    cluster.step(39)
    assert found == []
    cluster.step(2)
    thread.join(10)
    assert found == [200]


def _watch(client: Http, query: str = "") -> Any:
    return client.open("GET", f"{MAPS}?watch=true&allowWatchBookmarks=true{query}")


def _events(response: Any) -> list[Mapping[str, Any]]:
    """Until the stream ends. Raises what the connection raises."""
    found = []
    while line := response.readline():
        found.append(json.loads(line))
    return found


def test_watches_are_cut_cleanly_or_with_410(cluster: embedded.Cluster, client: Http) -> None:
    client.make("cut")
    open_watch = _watch(client)
    fault = cluster.chaos({"cutStreams": {"agent": client.agent}})
    assert any(event["object"]["metadata"].get("name") == "cut" for event in _events(open_watch))
    cluster.heal(fault)
    cluster.chaos({"cutStreams": {"how": "expired", "agent": client.agent, "fresh": True, "events": 1}})
    events = _events(_watch(client))
    assert [event["type"] for event in events] == ["ADDED", "ERROR"]
    assert (events[-1]["object"]["reason"], events[-1]["object"]["code"]) == ("Expired", 410)


@pytest.mark.parametrize(("how", "ends"), [("clean", True), ("midLine", False), ("reset", False)])
def test_watches_that_are_cut_rudely_have_no_end(cluster: embedded.Cluster, client: Http, how: str, ends: bool) -> None:
    client.make(f"rude-{how.lower()}")
    cluster.chaos({"cutStreams": {"how": how, "agent": client.agent, "events": 1}})
    response = _watch(client)
    received = b""
    with contextlib.suppress(OSError):  # a reset, which Python's TLS may take for an end
        while piece := response.fp.read1(65536):
            received += piece
            if received.endswith(b"0\r\n\r\n"):
                break
    assert received.count(b'"type":"ADDED"') >= 1
    assert received.endswith(b"0\r\n\r\n") is ends
    assert (b'{"type":"MODIFIED","object":{"kind":\r' in received) is (how == "midLine")


def test_a_watch_is_cut_after_a_revision(cluster: embedded.Cluster, client: Http) -> None:
    revision = int(client.make("revision", n="0")["metadata"]["resourceVersion"])
    watch = _watch(client, f"&resourceVersion={revision}")
    cluster.chaos({"cutStreams": {"agent": client.agent, "revision": revision + 2}})
    for number in range(1, 6):
        client.patch("revision", n=str(number))
    seen = [int(event["object"]["metadata"]["resourceVersion"]) for event in _events(watch)]
    assert seen[:2] == [revision + 1, revision + 2]
    assert len(seen) == 3


def test_bookmarks_come_twice_or_not_at_all(cluster: embedded.Cluster, client: Http) -> None:
    initial = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    twice = cluster.chaos({"wrongBookmarks": {"how": "twice", "agent": client.agent}})
    watch = _watch(client, initial)
    types = []
    while len([one for one in types if one == "BOOKMARK"]) < 2:
        types.append(json.loads(watch.readline())["type"])
    cluster.heal(twice)
    cluster.chaos({"wrongBookmarks": {"how": "missing", "initial": True, "agent": client.agent}})
    watch = _watch(client, initial)
    cluster.step(1)
    cluster.chaos({"cutStreams": {"agent": client.agent}})
    assert {event["type"] for event in _events(watch)} == {"ADDED"}


def test_objects_carry_faults(cluster: embedded.Cluster, client: Http) -> None:
    def in_force() -> set[str]:
        return {each["what"] for each in cluster.faults() if each["ended_s"] is None and "annotated" in each["id"]}

    name = "annotated"
    client.make(name)
    merge = "application/merge-patch+json"
    carried = {"metadata": {"annotations": {"kemu.dev/chaos": "{refuse: {code: 409, verb: update}}"}}}
    assert client.call("PATCH", f"{MAPS}/{name}", carried, merge)[0] == 200
    found = client.call("GET", f"{MAPS}/{name}")[1]
    assert client.call("PUT", f"{MAPS}/{name}", found)[0] == 409
    client.make("other-annotated")
    assert client.call("PUT", f"{MAPS}/other-annotated", {"metadata": {"name": "other-annotated"}})[0] == 200
    assert client.call("DELETE", f"{MAPS}/{name}")[0] == 200
    cluster.step(1)
    assert in_force() == set()
    node = {"metadata": {"annotations": {"kemu.dev/chaos": "{pause: {}, for: 50s}"}}}
    assert client.call("PATCH", "/api/v1/nodes/node-1", node, merge)[0] == 200
    cluster.step(until="node/node-1 NotReady")
    assert in_force() == {"pause"}
    cluster.step(until="node/node-1 Ready")
    assert in_force() == set()


def test_what_struck_is_written_down_and_strikes_again() -> None:
    def work(cluster: embedded.Cluster) -> list[int]:
        client = Http(cluster, "controller/1.0")
        client.make("again", n="0")
        codes = [client.patch("again", n=str(number))[0] for number in range(12)]
        cluster.step(0)
        return codes

    with embedded.up(nodes=1) as cluster:
        cluster.chaos({"refuse": {"code": 429, "verb": "patch", "agent": "controller/*", "probability": 0.4}})
        cluster.chaos({"pause": {"actor": "kubelet/node-1"}, "for": "10s"})
        cluster.step(20)
        codes = work(cluster)
        script = cluster.script()
    assert 0 < codes.count(429) < 12
    faults = scripts.read(script, "chaos.yaml")
    assert [next(iter(set(each) - {"id", "at", "for"})) for each in faults].count("pause") == 1
    with embedded.up(nodes=1, chaos=faults) as cluster:
        cluster.step(20)
        assert work(cluster) == codes
        assert [each["hits"] for each in cluster.faults() if each["what"] == "refuse"] == [1] * codes.count(429)

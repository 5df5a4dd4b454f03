"""An API server of somebody else behind an APIService: a process of this test stands for its Service."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from kemu.emulated.gateway import aggregation
from kemu.emulated.gateway.authentication.certificates import Authority
from kemu.lab.up import embedded
from kemu.lab.up.embedded import Cluster

GROUP, VERSION = "things.example.com", "v1"
ROOT = f"/apis/{GROUP}/{VERSION}"
THINGS = f"{ROOT}/namespaces/default/things"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = f"{VERSION}.{GROUP}"
RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/{VERSION}",
    "resources": [
        {
            "name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "shortNames": ["th"],
            "verbs": ["create", "get", "list", "watch"],
        },
        {"name": "things/status", "singularName": "", "namespaced": True, "kind": "Thing", "verbs": ["get"]},
    ],
}  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Things

    def do_GET(self) -> None:
        subject = dict(part[0] for part in (self.connection.getpeercert() or {}).get("subject", ()))  # type: ignore[attr-defined]
        if subject.get("commonName") != "front-proxy-client":
            self.answer(401, {"message": f"who is {subject}?"})
        elif self.server.hangs:
            self.server.more.wait(20)
        elif not self.server.works:
            self.answer(500, {})
        elif self.path == ROOT:
            self.answer(200, RESOURCES)
        elif self.path == "/openapi/v3":
            self.answer(200, {"paths": {ROOT[1:]: {"serverRelativeURL": f"/openapi/v3{ROOT}?hash=1"}}})
        elif self.path == f"/openapi/v3{ROOT}?hash=1":
            self.answer(200, {"openapi": "3.0.0"})
        elif "watch=1" in self.path:
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for kind in ("ADDED", "MODIFIED"):
                data = json.dumps({"type": kind}).encode() + b"\n"
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
                self.server.more.wait(20)
            self.wfile.write(b"0\r\n\r\n")
        elif self.path.startswith(ROOT):
            self.answer(200, self.asked())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.answer(201, {**self.asked(), "body": body})

    def asked(self) -> dict[str, Any]:
        headers = {name.lower(): self.headers.get_all(name) for name in self.headers}
        return {"path": self.path, "headers": headers}

    def answer(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


class Things(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.works = True
        self.hangs = False
        self.more = threading.Event()
        self.authority = Authority.make()
        pair = self.authority.server(["things.default.svc"])
        file = folder / "server.pem"
        file.write_bytes(pair.certificate + pair.key)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(file)
        self.context.verify_mode = ssl.CERT_OPTIONAL

    def get_request(self) -> Any:
        connection, address = self.socket.accept()
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # who does not trust the certificate hangs up


class Client:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        self.http = httpx.Client(
            base_url=cluster.url,
            verify=ssl.create_default_context(cadata=authority),
            headers={"authorization": f"Bearer {cluster.token}"},
        )

    def condition(self, reason: str) -> dict[str, str]:
        """The condition of the APIService, once it has that reason."""
        found = {}
        for _ in range(200):
            conditions = self.http.get(f"{SERVICES}/{NAME}").json().get("status", {}).get("conditions", [{}])
            found = conditions[0]
            if found.get("reason") == reason:
                return found
            self.cluster.step(0.1)
            time.sleep(0.05)
        raise AssertionError(found)


@pytest.fixture
def things(tmp_path: Path) -> Iterator[Things]:
    with Things(tmp_path) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.more.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def client(things: Things) -> Iterator[Client]:
    services = {"default/things": things.server_address[1]}
    with embedded.up(nodes=1, settings={"apiServers": {"services": services}}) as cluster:
        found = Client(cluster)
        published = found.http.get(f"/api/v1/namespaces/kube-system/configmaps/{aggregation.AUTHENTICATION}").json()[
            "data"
        ]
        assert published["requestheader-allowed-names"] == '["front-proxy-client"]'
        things.context.load_verify_locations(cadata=published["requestheader-client-ca-file"])
        yield found
        found.http.close()


def register(client: Client, **trust: Any) -> None:
    spec = {"group": GROUP, "version": VERSION, "groupPriorityMinimum": 9, "versionPriority": 9, **trust}
    body = {"metadata": {"name": NAME}, "spec": {**spec, "service": {"namespace": "default", "name": "things"}}}
    answer = client.http.post(SERVICES, json=body)
    assert answer.status_code == 201, answer.text


def serve(client: Client) -> None:
    body = {"metadata": {"name": "things"}, "spec": {"ports": [{"port": 443}]}}
    assert client.http.post("/api/v1/namespaces/default/services", json=body).status_code == 201


def test_requests_go_to_the_other_server_as_their_user(client: Client, things: Things) -> None:
    register(client, caBundle=base64.b64encode(things.authority.certificate).decode())
    assert client.condition("ServiceNotFound")["status"] == "False"
    assert client.http.get(THINGS).status_code == 503
    serve(client)
    assert client.condition("Passed")["status"] == "True"

    answer = client.http.get(f"{THINGS}?limit=5")
    assert answer.status_code == 200, answer.text
    asked = answer.json()
    assert asked["path"] == f"{THINGS}?limit=5"
    assert asked["headers"]["host"] == ["things.default.svc"]
    assert asked["headers"]["x-remote-user"] == ["kubernetes-admin"]
    assert asked["headers"]["x-remote-group"] == ["system:masters", "system:authenticated"]
    assert "authorization" not in asked["headers"]
    forged = {"x-remote-user": "root", "x-remote-group": "everything"}
    made = client.http.post(THINGS, json={"kind": "Thing"}, headers=forged)
    assert (made.status_code, made.json()["body"]) == (201, {"kind": "Thing"})
    assert made.json()["headers"]["x-remote-user"] == ["kubernetes-admin"]
    acting = {"impersonate-user": "alice", "impersonate-group": "system:authenticated"}
    assert client.http.get(THINGS, headers=acting).status_code == 403, "the gateway authorises"
    # What discovery documents say that everybody may read is asked as that user.
    assert client.http.get(ROOT, headers=acting).json() == RESOURCES

    with client.http.stream("GET", f"{THINGS}?watch=1") as watch:
        lines = watch.iter_lines()
        assert json.loads(next(lines)) == {"type": "ADDED"}, "it comes before the watch is over"
        things.more.set()
        assert [json.loads(line) for line in lines] == [{"type": "MODIFIED"}]


def test_discovery_tells_of_the_other_server_and_that_it_is_gone(client: Client, things: Things) -> None:
    serve(client)
    register(client, insecureSkipTLSVerify=True)
    client.condition("Passed")
    groups = [one["name"] for one in client.http.get("/apis").json()["groups"]]
    assert GROUP in groups
    assert client.http.get(f"/apis/{GROUP}").json()["preferredVersion"]["version"] == VERSION
    assert client.http.get(ROOT).json() == RESOURCES
    aggregated = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}

    def told() -> Any:
        items = client.http.get("/apis", headers=aggregated).json()["items"]
        (found,) = [one for one in items if one["metadata"]["name"] == GROUP]
        return found["versions"][0]

    (thing,) = told()["resources"]
    assert (thing["resource"], thing["shortNames"], thing["scope"]) == ("things", ["th"], "Namespaced")
    assert [one["subresource"] for one in thing["subresources"]] == ["status"]
    assert told()["freshness"] == "Current"
    schema = client.http.get("/openapi/v3").json()["paths"][ROOT[1:]]["serverRelativeURL"]
    assert client.http.get(schema).json() == {"openapi": "3.0.0"}

    things.works = False
    condition = client.condition("FailedDiscoveryCheck")
    assert condition["message"].endswith(f"{ROOT}: 500")
    assert told()["freshness"] == "Stale"
    answer = client.http.get(THINGS)
    assert (answer.status_code, answer.text) == (503, "service unavailable\n")
    things.works = True
    client.condition("Passed")
    assert client.http.delete(f"{SERVICES}/{NAME}").status_code == 200
    assert client.http.get(THINGS).status_code == 404


def test_nobody_waits_for_a_server_that_hangs(client: Client, things: Things) -> None:
    things.hangs = True
    serve(client)
    begin = time.monotonic()
    register(client, insecureSkipTLSVerify=True)
    assert client.http.get("/api/v1/nodes").status_code == 200
    assert client.http.get(THINGS).status_code == 503
    assert time.monotonic() - begin < aggregation.CHECK_S
    assert client.condition("FailedDiscoveryCheck")["message"].endswith("context deadline exceeded")


def test_a_server_that_nobody_vouches_for_is_not_available(client: Client, things: Things) -> None:
    serve(client)
    register(client, caBundle=base64.b64encode(Authority.make().certificate).decode())
    assert "certificate" in client.condition("FailedDiscoveryCheck")["message"]
    assert client.http.get(THINGS).status_code == 503


def test_a_gateway_without_certificate_is_not_believed(monkeypatch: pytest.MonkeyPatch, things: Things) -> None:
    """The mistake that the others would not find if the server of this test believed everybody."""
    monkeypatch.setattr(aggregation.Authority, "client", lambda authority, user: things.authority.server([]))
    services = {"default/things": things.server_address[1]}
    with embedded.up(nodes=1, settings={"apiServers": {"services": services}}) as cluster:
        client = Client(cluster)
        serve(client)
        register(client, insecureSkipTLSVerify=True)
        client.condition("FailedDiscoveryCheck")
        client.http.close()

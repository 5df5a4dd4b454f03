"""An API server of somebody else behind an APIService: a process of this test stands for its Service."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from kemu.emulated.gateway import aggregation
from kemu.emulated.gateway.authentication.certificates import Authority
from kemu.lab.up import embedded
from kemu.lab.up.embedded import Cluster
from tests.realkube import binaries, clusters

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
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
SWAGGER = {
    "swagger": "2.0",
    "info": {"title": "things", "version": "v1"},
    "paths": {
        f"{ROOT}/things": {
            "get": {"responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/com.example.Thing"}}}}
        },
        "/apis/other.example.com/v1/others": {
            "get": {"responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/com.example.Other"}}}}
        },
    },
    "definitions": {
        "com.example.Thing": {
            "type": "object",
            "properties": {"metadata": {"$ref": f"#/definitions/{META}"}, "size": {"type": "integer"}},
            "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": "Thing"}],
        },
        "com.example.Other": {"type": "object", "properties": {"part": {"$ref": "#/definitions/com.example.Part"}}},
        "com.example.Part": {"type": "string"},
        "com.example.Unused": {"type": "string"},
        META: {"type": "object", "description": "Another one."},
    },
}


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
        elif self.path.startswith(f"{ROOT}/connect"):
            self.connect()
        elif self.path == f"{ROOT}/broken":
            self.send_response(200)
            self.send_header("content-length", "100")
            self.end_headers()
            self.wfile.write(b'{"items": [')
            self.close_connection = True
        elif self.path == ROOT:
            self.answer(200, RESOURCES)
        elif self.path == "/openapi/v3":
            self.answer(200, {"paths": {ROOT[1:]: {"serverRelativeURL": f"/openapi/v3{ROOT}?hash=1"}}})
        elif self.path == "/openapi/v2":
            self.answer(200, self.server.swagger)
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

    def connect(self) -> None:
        """Whoever upgrades hears everything twice, and with ``bye`` that it is over."""
        query = self.path.partition("?how=")[2]
        if query == "refused":
            self.answer(403, {"refused": self.asked()})
        elif query == "silent":
            self.server.more.wait(20)
        elif query == "plain":
            self.answer(200, {})
        elif query == "nonsense":
            self.wfile.write(b"nonsense\r\n\r\n")
        else:
            self.send_response(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", self.headers["upgrade"])
            self.end_headers()
            self.wfile.write(json.dumps(self.asked()).encode() + b"\n")
            while (data := self.connection.recv(1 << 16)) != b"bye":
                if not data:
                    self.server.gone.set()
                    break
                self.wfile.write(data + data)
        self.close_connection = True

    def do_POST(self) -> None:
        if self.path.startswith(f"{ROOT}/connect"):
            self.connect()
            return
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
        self.swagger: dict[str, Any] = SWAGGER
        self.more = threading.Event()
        self.gone = threading.Event()
        """Who had upgraded its connection."""
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
        data = config["clusters"][0]["cluster"]["certificate-authority-data"]
        self.authority = base64.b64decode(data).decode()
        self.http = httpx.Client(
            base_url=cluster.url,
            verify=ssl.create_default_context(cadata=self.authority),
            headers={"authorization": f"Bearer {cluster.token}"},
        )

    def condition(self, reason: str) -> dict[str, str]:
        """The condition of the APIService, once it has that reason."""
        found: dict[str, str] = {}
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


class Raw:
    """One connection, on which a request to upgrade it is sent."""

    def __init__(self, url: str, authority: str, token: str) -> None:
        context = ssl.create_default_context(cadata=authority)
        self.url, self.token = urlsplit(url), token
        plain = socket.create_connection((self.url.hostname, self.url.port), timeout=20)
        self.socket = context.wrap_socket(plain, server_hostname=self.url.hostname)
        self.read = self.socket.makefile("rb")

    def upgrade(
        self, query: str = "", method: str = "GET", protocol: str = "SPDY/3.1", acting: str = ""
    ) -> tuple[int, dict[str, str]]:
        lines = [f"{method} {ROOT}/connect{query} HTTP/1.1", f"Host: {self.url.netloc}", "Connection: Upgrade"]
        lines += [f"Upgrade: {protocol}", f"Authorization: Bearer {self.token}", "X-Remote-User: root", "X-Own: 1"]
        lines += [f"Impersonate-User: {acting}"] if acting else []
        self.socket.sendall("\r\n".join([*lines, "Content-Length: 0", "", ""]).encode())
        status = int(self.read.readline().split()[1])
        headers = {}
        while line := self.read.readline().strip().decode():
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        return status, headers

    def body(self, headers: dict[str, str]) -> bytes:
        return self.read.read(int(headers["content-length"]))

    def close(self) -> None:
        self.read.close()
        self.socket.close()


def check_upgrades(connect: Callable[[], Raw], things: Things) -> None:
    """What kemu and kube-apiserver both do."""
    for method, protocol in (("GET", "websocket"), ("POST", "SPDY/3.1")):
        raw = connect()
        status, headers = raw.upgrade(method=method, protocol=protocol)
        assert (status, headers["upgrade"], headers["connection"]) == (101, protocol, "Upgrade")
        asked = json.loads(raw.read.readline())["headers"]
        assert asked["host"] == ["things.default.svc:443"] or asked["host"][0].startswith("127.0.0.1:")
        assert (asked["upgrade"], asked["x-own"]) == ([protocol], ["1"])
        assert asked["x-remote-user"] != ["root"]
        assert "system:masters" in asked["x-remote-group"]
        assert "authorization" not in asked
        assert asked["x-forwarded-for"] == ["127.0.0.1"]
        for data in (b"one", b"x" * 300_000):
            raw.socket.sendall(data)
            assert sorted(raw.read.read(2 * len(data))) == sorted(data + data)
        raw.socket.sendall(b"bye")
        assert raw.read.read() == b"", "it ends when the other server ends it"
        raw.close()
    raw = connect()
    raw.upgrade()
    raw.close()
    assert things.gone.wait(10), "it ends when the client hangs up"

    raw = connect()
    status, headers = raw.upgrade("?how=refused")
    assert status == 403
    assert json.loads(raw.body(headers))["refused"]["headers"]["upgrade"] == ["SPDY/3.1"]
    raw.close()
    raw = connect()
    status, headers = raw.upgrade("?how=plain")
    assert (status, raw.body(headers)) == (503, b"invalid upgrade response: status code 200\n")
    raw.close()
    raw = connect()
    assert raw.upgrade("?how=nonsense")[0] == 503
    raw.close()


def check_merged(document: dict[str, Any]) -> None:
    """What kemu and kube-apiserver both make of SWAGGER."""
    (thing,) = [path for path in document["paths"] if path.startswith(ROOT)]
    assert document["paths"][thing] == SWAGGER["paths"][thing]  # type: ignore[index]
    assert not any("other.example.com" in path for path in document["paths"])
    found = document["definitions"]
    assert found["com.example.Thing"]["properties"]["metadata"] == {"$ref": f"#/definitions/{META}_v2"}
    assert found[f"{META}_v2"] == {"type": "object", "description": "Another one."}
    assert found[META] != found[f"{META}_v2"]
    own = {name for name in found if name.startswith("com.example")}
    assert own == {"com.example.Thing", "com.example.Unused"}, "the others went with their path"


def test_openapi_v2_tells_of_the_other_server(client: Client, things: Things) -> None:
    serve(client)
    register(client, insecureSkipTLSVerify=True)
    client.condition("Passed")
    check_merged(client.http.get("/openapi/v2").json())
    packed = client.http.get(
        "/openapi/v2", headers={"accept": "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"}
    )
    assert b"com.example.Thing" in packed.content
    assert client.http.delete(f"{SERVICES}/{NAME}").status_code == 200
    assert client.http.get("/openapi/v2").json()["paths"] == {}


@pytest.mark.parametrize(
    "swagger",
    [
        {},
        {"paths": []},
        {"paths": {}, "definitions": {"a": 1}},
        {"paths": {}, "definitions": {"a": {"type": ["string"]}}},
        {"paths": {}, "definitions": {META: {"x-kubernetes-group-version-kind": [1]}}},
        {"paths": {}, "definitions": {"a": {"description": "x" * (17 << 20)}}},
    ],
    ids=range(6),
)
def test_a_document_that_is_none_harms_no_other(client: Client, things: Things, swagger: dict[str, Any]) -> None:
    things.swagger = swagger
    serve(client)
    register(client, insecureSkipTLSVerify=True)
    client.condition("Passed")
    found = client.http.get("/openapi/v2").json()
    assert META in found["definitions"]
    assert "a" not in found["definitions"]
    assert client.http.get("/openapi/v2", headers={"accept": "proto-openapi"}).status_code == 200


def test_connections_are_upgraded_through_to_the_other_server(client: Client, things: Things) -> None:
    serve(client)
    register(client, insecureSkipTLSVerify=True)
    client.condition("Passed")
    check_upgrades(lambda: Raw(client.cluster.url, client.authority, client.cluster.token), things)
    raw = Raw(client.cluster.url, client.authority, client.cluster.token)
    assert raw.upgrade(acting="alice")[0] == 403
    raw.close()
    raw = Raw(client.cluster.url, client.authority, client.cluster.token)
    raw.upgrade()
    raw.read.readline()
    assert client.http.delete(f"{SERVICES}/{NAME}").status_code == 200
    assert client.http.get(THINGS).status_code == 404
    raw.socket.sendall(b"still")
    assert raw.read.read(10) == b"stillstill"
    raw.close()


def test_a_client_that_leaves_a_silent_server_is_not_waited_for(client: Client, things: Things) -> None:
    serve(client)
    register(client, insecureSkipTLSVerify=True)
    client.condition("Passed")
    raw = Raw(client.cluster.url, client.authority, client.cluster.token)
    raw.socket.sendall(f"GET {ROOT}/connect?how=silent HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n".encode())
    raw.close()
    assert client.http.get("/api/v1/nodes").status_code == 200


def test_a_server_that_ends_in_the_middle_breaks_the_answer_off(client: Client, things: Things) -> None:
    serve(client)
    register(client, insecureSkipTLSVerify=True)
    client.condition("Passed")
    with pytest.raises(httpx.RemoteProtocolError):
        client.http.get(f"{ROOT}/broken")
    assert client.http.get(THINGS).status_code == 200


@pytest.mark.slow
def test_a_real_api_server_does_the_same(things: Things, tmp_path: Path) -> None:
    binaries.require("etcd", "kube-apiserver")
    pair = Authority.make()
    proxy = pair.client(aggregation.PROXY)
    for name, data in (("ca", pair.certificate), ("proxy.crt", proxy.certificate), ("proxy.key", proxy.key)):
        (tmp_path / name).write_bytes(data)
    options = [f"--requestheader-client-ca-file={tmp_path}/ca", "--requestheader-username-headers=X-Remote-User"]
    options += ["--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-"]
    options += [f"--proxy-client-{kind}-file={tmp_path}/proxy.{end}" for kind, end in (("cert", "crt"), ("key", "key"))]
    things.context.load_verify_locations(cadata=pair.certificate.decode())
    with clusters.Cluster.start(tmp_path / "real", *options) as real:
        port = things.server_address[1]
        where = {"type": "ExternalName", "externalName": "127.0.0.1", "ports": [{"port": port}]}
        service = {"metadata": {"name": "things"}, "spec": where}
        assert real.request("POST", "/api/v1/namespaces/default/services", service)[0] == 201
        spec = {"group": GROUP, "version": VERSION, "groupPriorityMinimum": 9, "versionPriority": 9}
        spec |= {"insecureSkipTLSVerify": True, "service": {"namespace": "default", "name": "things", "port": port}}
        status, text = real.request("POST", SERVICES, {"metadata": {"name": NAME}, "spec": spec})
        assert status == 201, text
        for _ in range(300):
            if real.request("GET", ROOT)[0] == 200:
                break
            time.sleep(0.1)
        for _ in range(300):
            document = json.loads(real.request("GET", "/openapi/v2")[1])
            if "com.example.Thing" in document["definitions"]:
                break
            time.sleep(0.2)
        check_merged(document)
        check_upgrades(lambda: Raw(real.url, real.authority.read_text(), real.token), things)


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


def test_discovery_does_not_wait_for_a_server_that_hangs_later(
    client: Client, things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aggregation, "DISCOVERY_S", 0.3)
    serve(client)
    register(client, insecureSkipTLSVerify=True)
    client.condition("Passed")
    things.hangs = True
    answer = client.http.get(ROOT)
    assert (answer.status_code, answer.text) == (503, "error trying to reach service: context deadline exceeded\n")


def test_a_server_that_nobody_vouches_for_is_not_available(client: Client, things: Things) -> None:
    serve(client)
    register(client, caBundle=base64.b64encode(Authority.make().certificate).decode())
    assert "certificate" in client.condition("FailedDiscoveryCheck")["message"]
    assert client.http.get(THINGS).status_code == 503


def test_a_gateway_without_certificate_is_not_believed(monkeypatch: pytest.MonkeyPatch, things: Things) -> None:
    """The mistake that the others would not find if the server of this test believed everybody."""
    monkeypatch.setattr(Authority, "client", lambda authority, user: things.authority.server([]))
    services = {"default/things": things.server_address[1]}
    with embedded.up(nodes=1, settings={"apiServers": {"services": services}}) as cluster:
        client = Client(cluster)
        serve(client)
        register(client, insecureSkipTLSVerify=True)
        client.condition("FailedDiscoveryCheck")
        client.http.close()

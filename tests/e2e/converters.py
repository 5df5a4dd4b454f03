"""The conversion webhook of Kubernetes' e2e tests (``agnhost crd-conversion-webhook``), as a process of this machine.

These tests put it into a container, which neither kemu nor KWOK runs. Here it answers on loopback, with the
certificate that a test has made for it; a test's Service leads to it as soon as a definition names that Service.
"""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import yaml

TESTS = tuple(
    f"[sig-api-machinery] {name.replace('WEBHOOK', 'CustomResourceConversionWebhook [Privileged:ClusterAdmin]')}"
    for name in (
        (
            "CustomResourceFieldSelectors [Privileged:ClusterAdmin] CustomResourceFieldSelectors MUST list and watch "
            "custom resources matching the field selector"
        ),
        "WEBHOOK should be able to convert a non homogeneous list of CRs",
        "WEBHOOK should be able to convert from CR v1 to CR v2",
    )
)
"""Those of [Conformance] that need it."""
PORT = 9443
SERVICE, SECRET = "e2e-test-crd-conversion-webhook", "sample-custom-resource-conversion-webhook-secret"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_EVERY_S = 0.2


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["content-length"])))
        request = review["request"]
        objects = [converted(one, request["desiredAPIVersion"]) for one in request["objects"]]
        answer = {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
        text = json.dumps({**review, "response": answer}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        pass


def converted(obj: dict[str, Any], version: str) -> dict[str, Any]:
    """``convertExampleCRD``"""
    found = {**obj, "apiVersion": version}
    if version.endswith("/v2") and "hostPort" in found:
        found["host"], found["port"] = found.pop("hostPort").split(":")
    elif version.endswith("/v1") and ("host" in found or "port" in found):
        found["hostPort"] = f"{found.pop('host', '')}:{found.pop('port', '')}"
    return found


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", PORT), _Handler)
        self.context: ssl.SSLContext | None = None

    def show(self, secret: dict[str, str]) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "pair.pem"
            file.write_bytes(b"\n".join(base64.b64decode(secret[part]) for part in ("tls.crt", "tls.key")))
            context.load_cert_chain(file)
        self.context = context

    def get_request(self) -> Any:
        connection, address = self.socket.accept()
        assert self.context is not None
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextlib.contextmanager
def converter(kubeconfig: Path) -> Iterator[None]:
    """For one cluster at a time: it has the port that the tests expect."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context()
    if data := cluster.get("certificate-authority-data"):
        context.load_verify_locations(cadata=base64.b64decode(data).decode())
    else:
        context.load_verify_locations(cluster["certificate-authority"])
    headers = {"authorization": f"Bearer {user['token']}", "content-type": "application/merge-patch+json"}
    ends = threading.Event()
    with _Server() as server, httpx.Client(base_url=cluster["server"], verify=context, headers=headers) as client:
        threads = [
            threading.Thread(target=server.serve_forever),
            threading.Thread(target=_lead, args=(server, client, ends)),
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ends.set()
            server.shutdown()
            for thread in threads:
                thread.join()


def _lead(server: _Server, client: httpx.Client, ends: threading.Event) -> None:
    """Whatever Service a definition names: until then its test waits for the endpoints of the container."""
    known: set[str] = set()
    while not ends.wait(_EVERY_S):
        for one in client.get(_DEFINITIONS).json()["items"]:
            service = one["spec"].get("conversion", {}).get("webhook", {}).get("clientConfig", {}).get("service", {})
            namespace = service.get("namespace", "")
            if service.get("name") != SERVICE or namespace in known:
                continue
            known.add(namespace)
            core = f"/api/v1/namespaces/{namespace}"
            server.show(client.get(f"{core}/secrets/{SECRET}").json()["data"])
            spec = {"type": "ExternalName", "externalName": "127.0.0.1", "clusterIP": None, "clusterIPs": None}
            client.patch(f"{core}/services/{SERVICE}", json={"spec": spec}).raise_for_status()

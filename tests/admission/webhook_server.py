"""A webhook over HTTPS on loopback, well-behaved or not, as its path says. Also run as a program::

python -m tests.admission.webhook_server FOLDER      # writes ca.pem and port, serves until it is killed
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import ipaddress
import json
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Json = dict[str, Any]
NAMES = ("localhost", "hook.default.svc", "hook.other.svc")


def authority(called: str = "webhooks") -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, called)])
    made = _builder(name, name, key).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    return made.add_extension(usage, critical=True).sign(key, hashes.SHA256()), key


def certificate(
    signer: x509.Certificate, signer_key: ec.EllipticCurvePrivateKey
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAMES[0])])
    alternatives: list[x509.GeneralName] = [x509.DNSName(one) for one in NAMES]
    alternatives.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    made = _builder(name, signer.subject, key).add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return made.sign(signer_key, hashes.SHA256()), key


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=2))
    )


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up, or do not trust it, are what is tested."""


class Server:
    """Serves until it is closed; notes what it was asked."""

    def __init__(self, *, tls: bool = True) -> None:
        signer, signer_key = authority()
        self.authority = signer.public_bytes(serialization.Encoding.PEM)
        self.other_authority = authority("others")[0].public_bytes(serialization.Encoding.PEM)
        self.asked: list[tuple[str, Json]] = []
        """Path and review."""
        self.more: dict[str, Callable[[Json], Json]] = {}
        """By path: what further webhooks answer."""
        self.reviews: dict[str, Callable[[Json], Json]] = {}
        """By path: the whole review that others answer."""
        owner = self

        class Handler(_Handler):
            server_of = owner

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        if tls:
            made, key = certificate(signer, signer_key)
            self._http.socket = _context(made, key).wrap_socket(
                self._http.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.port}/{path}"

    def client(self, path: str) -> Json:
        """A ``clientConfig``."""
        return {"url": self.url(path), "caBundle": base64.b64encode(self.authority).decode()}

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[Server]:
    server = Server(**options)
    try:
        yield server
    finally:
        server.close()


def _context(made: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(made.public_bytes(serialization.Encoding.PEM) + private)
        file.flush()
        context.load_cert_chain(file.name)
    return context


class _Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True  # as servers in Go: head and body leave one by one
    server_of: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", "0")))
        path = self.path.partition("?")[0]
        if "//" in path:  # as servers of Go
            self.answer(307, b"", (("location", path.replace("//", "/")),))
            return
        path = path.strip("/")
        review = json.loads(data)
        self.server_of.asked.append((path, review))
        whole = self.server_of.reviews.get(path)
        if whole is not None:
            self.answer(200, json.dumps(whole(review)).encode())
            return
        raw = _RAW.get(path)
        if raw is not None:
            raw(self)
            return
        respond = self.server_of.more.get(path) or _RESPONSES[path]
        self.answer(200, json.dumps(_answer(respond, review)).encode())

    def answer(
        self, status: int, body: bytes, headers: tuple[tuple[str, str], ...] = (), kind: str = "application/json"
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def _answer(respond: Callable[[Json], Json], review: Json) -> Json:
    asked = review["request"]
    response = {"uid": asked["uid"], **respond(asked)}
    return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}


def patch(*operations: Json) -> Json:
    text = json.dumps(operations).encode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(text).decode()}


def labelled(key: str, value: str) -> Callable[[Json], Json]:
    def respond(asked: Json) -> Json:
        labels = (asked["object"] or {}).get("metadata", {}).get("labels")
        if labels is None:
            return patch({"op": "add", "path": "/metadata/labels", "value": {key: value}})
        return patch({"op": "add", "path": f"/metadata/labels/{key}", "value": value})

    return respond


def _unmanaged(obj: Json) -> Json:
    """kemu keeps no managed fields of what it does not store."""
    if "metadata" not in obj:
        return obj
    metadata = {key: one for key, one in obj["metadata"].items() if key not in ("managedFields", "creationTimestamp")}
    return {**obj, "metadata": metadata}


def _count(asked: Json) -> Json:
    """Counts its calls in a label."""
    labels = asked["object"]["metadata"].get("labels", {})
    return labelled("count", str(int(labels.get("count", "0")) + 1))(asked)


_DENIED = {"allowed": False}
_RESPONSES: dict[str, Callable[[Json], Json]] = {
    "allow": lambda asked: {"allowed": True},
    "warn": lambda asked: {"allowed": True, "warnings": ["beware of the dog", "and of the cat"]},
    "annotate": lambda asked: {"allowed": True, "auditAnnotations": {"seen": "yes"}},
    "deny": lambda asked: _DENIED,
    "deny-message": lambda asked: {**_DENIED, "status": {"message": "no such luck"}, "warnings": ["you were warned"]},
    "deny-reason": lambda asked: {**_DENIED, "status": {"reason": "Forbidden"}},
    "deny-code": lambda asked: {**_DENIED, "status": {"message": "too hot", "code": 418, "reason": "Teapot"}},
    "deny-details": lambda asked: {
        **_DENIED,
        "status": {
            "message": "wrong",
            "code": 422,
            "reason": "Invalid",
            "details": {"name": "it", "causes": [{"field": "spec", "message": "bad", "reason": "FieldValueInvalid"}]},
        },
    },
    "deny-odd": lambda asked: {
        **_DENIED,
        "status": {"message": "odd", "code": 100_000, "details": {"retryAfterSeconds": "x", "causes": [1], "name": 7}},
    },
    "deny-success": lambda asked: {**_DENIED, "status": {"status": "Success", "code": 200, "message": "odd"}},
    "label-a": labelled("a", "1"),
    "label-b": labelled("b", "2"),
    "count": _count,
    "image": lambda asked: patch({"op": "replace", "path": "/spec/containers/0/image", "value": "patched:1"}),
    "data": lambda asked: patch({"op": "add", "path": "/data/mutated", "value": "yes"}),
    "empty-patch": lambda asked: patch(),
    "bad-pointer": lambda asked: patch({"op": "replace", "path": "/spec/nothing/here", "value": 1}),
    "bad-operation": lambda asked: patch({"op": "explode", "path": "/metadata"}),
    "bad-type": lambda asked: patch({"op": "add", "path": "/data", "value": 7}),
    "invalid-object": lambda asked: patch({"op": "add", "path": "/metadata/labels", "value": {"-bad-": "x"}}),
    "rename": lambda asked: patch({"op": "replace", "path": "/metadata/name", "value": "renamed"}),
    "move": lambda asked: patch({"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}),
    "kind": lambda asked: patch({"op": "replace", "path": "/kind", "value": "Secret"}),
    "uid-of-object": lambda asked: patch({"op": "add", "path": "/metadata/uid", "value": "u"}),
    "patch-without-type": lambda asked: {"allowed": True, "patch": base64.b64encode(b"[]").decode()},
    "type-without-patch": lambda asked: {"allowed": True, "patchType": "JSONPatch"},
    "patch-garbage": lambda asked: {
        "allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(b"{").decode()
    },
    "patch-type": lambda asked: {
        "allowed": True, "patchType": "Merge", "patch": base64.b64encode(b"[{}]").decode()
    },
    "wrong-uid": lambda asked: {"allowed": True, "uid": "another"},
    "allowed-text": lambda asked: {"allowed": "yes"},
    "many-operations": lambda asked: patch(*({"op": "test", "path": "/kind", "value": "x"} for _ in range(20_000))),
    "huge-value": lambda asked: patch({"op": "add", "path": "/data", "value": {"a": "x" * (4 << 20)}}),
    "only-alice": lambda asked: (
        {"allowed": True}
        if asked["userInfo"]["username"] == "alice"
        else {**_DENIED, "status": {"message": f"you are {asked['userInfo']['username']}", "code": 403}}
    ),
    "echo-object": lambda asked: {
        **_DENIED,
        "status": {
            "message": json.dumps(
                {
                    **{key: one for key, one in asked.items() if key not in ("uid", "userInfo")},
                    "object": _unmanaged(asked["object"]),
                },
                sort_keys=True,
            )
        },
    },
    "as-alice": lambda asked: patch({"op": "add", "path": "/spec/user", "value": "alice"}),
    "echo": lambda asked: {
        **_DENIED,
        "status": {
            "message": json.dumps(
                {
                    key: asked.get(key)
                    for key in (
                        "kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource",
                        "name", "namespace", "operation", "dryRun", "options",
                    )
                } | {"object": asked["object"] is not None, "oldObject": asked["oldObject"] is not None},
                sort_keys=True,
            )
        },
    },
}  # fmt: skip


def _hang(handler: _Handler) -> None:
    time.sleep(20)


def _endless(handler: _Handler) -> None:
    handler.send_response(200)
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(chunk)


def _slow(handler: _Handler) -> None:
    """A byte every now and then."""
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    with contextlib.suppress(OSError):
        for _ in range(100):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.2)


def _cut(handler: _Handler) -> None:
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b"{")
    handler.close_connection = True


def _drop(handler: _Handler) -> None:
    handler.close_connection = True


def _status(status: int, text: str = "") -> Callable[[_Handler], None]:
    return lambda handler: handler.answer(status, text.encode())


_NO_RESPONSE = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})
_RAW: dict[str, Callable[[_Handler], None]] = {
    "hang": _hang,
    "endless": _endless,
    "slow": _slow,
    "cut": _cut,
    "drop": _drop,
    "garbage": _status(200, "certainly no JSON"),
    "empty": _status(200),
    "list": _status(200, "[]"),
    "deep": _status(200, "[" * 100_000),
    "no-response": _status(200, _NO_RESPONSE),
    "not-a-review": _status(200, json.dumps({"apiVersion": "v1", "kind": "Pod", "response": {}})),
    "404": _status(404, "nothing here"),
    "500": _status(500, "it broke"),
    "500-text": lambda handler: handler.answer(500, b"it broke", kind="text/plain"),
    "503": _status(503, "away"),
    "204": _status(204),
    "redirect": lambda handler: handler.answer(307, b"", (("location", handler.path.replace("redirect", "allow")),)),
}


def main(folder: Path) -> None:
    server = Server()
    (folder / "ca.pem").write_bytes(server.authority)
    (folder / "port").write_text(str(server.port))
    server._thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

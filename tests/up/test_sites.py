"""Web sites in somebody's browser reach a cluster without tokens in no way."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from tests.up.processes import up

SECRETS, PODS = "/api/v1/secrets", "/api/v1/namespaces/default/pods"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "planted"},
    "spec": {"containers": [{"name": "a", "image": "a"}]},
}


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        data = None if body is None else json.dumps(body).encode()
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_a_page_of_another_site_reads_and_writes_nothing(tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "1", "--insecure-http") as cluster:
        port = int(cluster.cluster["server"].rpartition(":")[2])
        # Another name that points to loopback: the browser takes the answer for the site's own.
        for host in (f"rebound.example:{port}", f"127.0.0.1:{port + 1}", "127.0.0.1", ""):
            code, status = ask(port, "GET", SECRETS, Host=host)
            assert (code, status["kind"]) == (421, "Status"), host
        for origin in ("https://site.example", f"http://rebound.example:{port}", "null"):
            assert ask(port, "GET", SECRETS, Origin=origin)[0] == 403
            assert ask(port, "POST", PODS, POD, Origin=origin, Content_Type="application/json")[0] == 403
            assert ask(port, "POST", "/kemu/v1/chaos", {}, Origin=origin)[0] == 403
        # What a page may send without asking first.
        for media in ({}, {"Content_Type": "text/plain"}, {"Content_Type": "application/x-www-form-urlencoded"}):
            assert ask(port, "POST", PODS, POD, **media)[0] == 415
            assert ask(port, "POST", "/kemu/v1/chaos", {"kind": "crash"}, **media)[0] == 415
        assert ask(port, "GET", PODS)[1]["items"] == []
        for host in ("localhost", "127.0.0.1", "[::1]"):
            assert ask(port, "GET", SECRETS, Host=f"{host}:{port}", Origin=f"http://{host}:{port}")[0] == 200
        assert ask(port, "POST", PODS, POD, Content_Type="application/json")[0] == 201
        assert ask(port, "DELETE", f"{PODS}/planted")[0] == 200


def test_with_tokens_clients_may_call_the_server_as_they_like(tmp_path: Path) -> None:
    """As kube-apiserver: who has no token gets nothing under any name."""
    with up(tmp_path, "--nodes", "1") as cluster:
        cluster.cluster["server"] = cluster.cluster["server"].replace("127.0.0.1", "localhost")
        assert cluster.ask(SECRETS)["kind"] == "SecretList"
        with pytest.raises(OSError, match="403"):
            cluster.ask(SECRETS, token="")

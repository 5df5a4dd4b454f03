"""Asks a real kube-apiserver the cases, and keeps its answers: ``python -m tests.admission.recorder KUBECONFIG``.

The webhooks run in this process, on loopback, where the API server has to be, too.
"""

from __future__ import annotations

import base64
import gzip
import json
import ssl
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.admission import cases, webhook_server

FILE = Path(__file__).parent / "real.json.gz"
_HEARD_S = 1.5
"""Until webhooks and policies are in force."""


def main(kubeconfig: Path, names: list[str]) -> None:
    kept = json.loads(gzip.decompress(FILE.read_bytes())) if FILE.exists() and names else {}
    config = yaml.safe_load(kubeconfig.read_text())
    server = config["clusters"][0]["cluster"]["server"]
    with webhook_server.serving() as hooks, httpx.Client(verify=_context(config), base_url=server, timeout=40) as http:
        for number, one in enumerate([*cases.WEBHOOKS, *cases.POLICIES, *cases.UNSTORED]):
            if not names or any(name in one["name"] for name in names):
                kept[f"{number} {one['name']}"] = play(http, hooks, one, number)
                _write(kept)


def _write(kept: dict[str, Any]) -> None:
    kept = {key: kept[key] for key in sorted(kept, key=lambda key: int(key.split()[0]))}
    FILE.write_bytes(gzip.compress(json.dumps(kept, indent=1).encode(), mtime=0))


def play(http: httpx.Client, hooks: webhook_server.Server, one: dict[str, Any], number: int) -> list[dict[str, Any]]:
    namespace = f"{cases.named(number)}-{int(time.time())}"  # what an earlier recording has left is in the way
    where = places(hooks, namespace)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    made = http.post("/api/v1/namespaces", json=body)
    assert made.status_code in (201, 409), made.text
    setup = [cases.confined(cases.filled(obj, where), namespace) for obj in one["setup"]]
    paths = []
    for obj in setup:
        made = http.post(cases.collection(obj, namespace), json=obj)
        assert made.status_code == 201, (one["name"], made.text)
        paths.append(f"{cases.collection(obj, namespace)}/{obj['metadata']['name']}")
    time.sleep(_HEARD_S)
    answers = []
    for asked in one["requests"]:
        asked = cases.filled(asked, where)
        headers = {"content-type": asked.get("type", "application/json")}
        content = json.dumps(asked["body"]) if "body" in asked else None
        got = http.request(asked["method"], asked["path"], params=asked.get("query"), content=content, headers=headers)
        answers.append(cases.seen(got.status_code, got.json(), told(got), where))
    for path in reversed(paths):
        http.delete(path)
    print(number, one["name"], [answer["code"] for answer in answers], flush=True)
    return answers


def places(hooks: webhook_server.Server, namespace: str) -> dict[str, str]:
    return {
        "ca": base64.b64encode(hooks.authority).decode(),
        "otherca": base64.b64encode(hooks.other_authority).decode(),
        "url": f"https://127.0.0.1:{hooks.port}",
        "ns": namespace,
    }


def told(answer: httpx.Response) -> list[str]:
    return answer.headers.get_list("warning")


def _context(config: dict[str, Any]) -> ssl.SSLContext:
    authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    user = config["users"][0]["user"]
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        for key in ("client-certificate-data", "client-key-data"):
            file.write(base64.b64decode(user[key]))
        file.flush()
        context.load_cert_chain(file.name)
    return context


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

"""Records what a real kube-apiserver says of the definitions and objects in `cases.py`.

    python tests/schemas/record.py KUBECONFIG [NAME…]     all cases, or those of some definitions

Writes tests/schemas/recording.json.gz. KUBECONFIG is of a cluster of the version that kemu emulates; the script makes
definitions in the group ``cases.example.com`` and deletes them again.
"""

from __future__ import annotations

import base64
import copy
import gzip
import http.client
import json
import pathlib
import ssl
import sys
import tempfile
import time
from typing import Any

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from tests.schemas import cases  # noqa: E402

HERE = pathlib.Path(__file__).parent
RECORDING = HERE / "recording.json.gz"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Server:
    def __init__(self, kubeconfig: str) -> None:
        config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as file:
            for part in ("client-certificate-data", "client-key-data"):
                file.write(base64.b64decode(user[part]))
            file.flush()
            context.load_cert_chain(file.name)
        host = cluster["server"].removeprefix("https://")
        self._connection = http.client.HTTPSConnection(host, context=context, timeout=60)

    def send(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> tuple[int, dict[str, Any], list[str]]:
        """Code, body and warnings of the answer."""
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        headers = {"Content-Type": kind, "Accept": "application/json"}
        self._connection.request(method, path, data.encode() if data is not None else None, headers)
        answer = self._connection.getresponse()
        warnings = [json.loads(one.partition(" - ")[2]) for one in answer.headers.get_all("Warning") or []]
        text = answer.read()
        if text.startswith(b"{"):
            return answer.status, json.loads(text), warnings
        return answer.status, {"message": text.decode()}, warnings


def refusal(code: int, answer: dict[str, Any]) -> dict[str, Any]:
    details = answer.get("details") or {}
    found = {"code": code, "reason": answer.get("reason", ""), "message": answer.get("message", "")}
    if details.get("causes"):
        found["causes"] = details["causes"]
    return found


def stored(answer: dict[str, Any], *, managed: bool) -> dict[str, Any]:
    """Without what differs from run to run."""
    kept = copy.deepcopy(answer)
    for name in ("uid", "resourceVersion", "creationTimestamp", *(() if managed else ("managedFields",))):
        kept["metadata"].pop(name, None)
    for entry in kept["metadata"].get("managedFields", ()):
        entry.pop("time", None)
    return kept


def definition_of(name: str, case: cases.Definition, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    plural = f"{name}s"
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": case.schema if schema is None else schema},
    }
    if case.subresources:
        version["subresources"] = case.subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{cases.GROUP}"},
        "spec": {
            "group": cases.GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": cases.kind_of(name)},
            "versions": [version],
        },
    }


def record(server: Server, name: str, case: cases.Definition) -> dict[str, Any]:
    body = definition_of(name, case)
    at = f"{DEFINITIONS}/{body['metadata']['name']}"
    code, answer, _ = server.send("POST", DEFINITIONS, body)
    if code != 201:
        return {"definition": refusal(code, answer)}
    try:
        return {"definition": {"code": code}, "objects": {key: steps(server, name, case, key) for key in case.objects}}
    finally:
        server.send("DELETE", at)


def wait(server: Server, name: str) -> None:
    for _ in range(200):
        if server.send("GET", f"/apis/{cases.GROUP}/v1/{name}s")[0] == 200:
            return
        time.sleep(0.1)
    raise SystemExit(f"{name}: not served")


def steps(server: Server, name: str, case: cases.Definition, key: str) -> list[dict[str, Any]]:
    wait(server, name)
    base = f"/apis/{cases.GROUP}/v1/{name}s"
    found: list[dict[str, Any]] = []
    at_first = True
    for step in case.objects[key]:
        verb, path = step["verb"], f"{base}/{key}{step.get('path', '')}"
        query = f"?fieldValidation={step.get('validation', 'Strict')}&fieldManager={step.get('manager', 'tests')}"
        if verb == "schema":
            at_first = False
            body = definition_of(name, case, step["schema"])
            at = f"{DEFINITIONS}/{body['metadata']['name']}"
            _, old, _ = server.send("GET", at)
            body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            code, answer, _ = server.send("PUT", at, body)
            time.sleep(2.5)
            found.append({"code": code} if code < 300 else refusal(code, answer))
            continue
        body = None
        if "object" in step:
            body = cases.manifest(name, key, step["object"])
        if verb == "create":
            code, answer, warnings = server.send("POST", base + query, body)
        elif verb == "update":
            _, old, _ = server.send("GET", f"{base}/{key}")
            assert body is not None
            body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            code, answer, warnings = server.send("PUT", path + query, body)
        elif verb == "apply":
            force = "&force=true" if step.get("force") else ""
            code, answer, warnings = server.send("PATCH", path + query + force, body, "application/apply-patch+yaml")
        elif verb == "text":
            code, answer, warnings = server.send("POST", base + query, step["text"])
        else:
            code, answer, warnings = server.send("GET", path)
        one = refusal(code, answer) if code >= 300 else {"code": code}
        if code < 300:
            one["object"] = stored(answer, managed=bool(step.get("managed")))
        if warnings:
            one["warnings"] = warnings
        found.append(one)
    if not at_first:
        body = definition_of(name, case)
        at = f"{DEFINITIONS}/{body['metadata']['name']}"
        server.send("DELETE", f"{base}/{key}")
        _, old, _ = server.send("GET", at)
        body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        server.send("PUT", at, body)
        time.sleep(2.5)
    return found


def publish(server: Server) -> dict[str, Any]:
    """What OpenAPI says of a kind, without Kubernetes' sentences."""
    body = definition_of("thing", cases.Definition(cases.PUBLISHED))
    body["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": ".spec.a"}]
    code, answer, _ = server.send("POST", DEFINITIONS, body)
    assert code == 201, answer
    group = f"{'.'.join(reversed(cases.GROUP.split('.')))}.v1"
    found: dict[str, Any] = {}
    try:
        for path, part in ((f"/openapi/v3/apis/{cases.GROUP}/v1", ("components", "schemas")), ("/openapi/v2", ("definitions",))):
            for _ in range(120):
                _, document, _ = server.send("GET", path)
                for name in part:
                    document = document.get(name) or {}
                if f"{group}.Thing" in document:
                    break
                time.sleep(0.5)
            found[path] = {name: bare(document[f"{group}.{name}"]) for name in ("Thing", "ThingList")}
        return found
    finally:
        server.send("DELETE", f"{DEFINITIONS}/{body['metadata']['name']}")


def bare(value: Any) -> Any:
    """Without descriptions that are not those of the cases."""
    if isinstance(value, dict):
        return {
            name: bare(one)
            for name, one in value.items()
            if not (name == "description" and isinstance(one, str) and ("More info" in one or " is a list " in one))
        }
    return [bare(one) for one in value] if isinstance(value, list) else value


def main() -> None:
    server = Server(sys.argv[1])
    chosen = sys.argv[2:]
    recording = json.loads(gzip.decompress(RECORDING.read_bytes())) if RECORDING.exists() else {}
    for name, case in cases.DEFINITIONS.items():
        if chosen and name not in chosen:
            continue
        recording[name] = record(server, name, case)
        print(name, recording[name]["definition"]["code"], len(recording[name].get("objects", ())))
    if not chosen or "published" in chosen:
        recording["published"] = publish(server)
    recording = {name: recording[name] for name in (*cases.DEFINITIONS, "published") if name in recording}
    text = json.dumps(recording, sort_keys=True, indent=0, ensure_ascii=False)
    RECORDING.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()

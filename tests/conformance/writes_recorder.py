"""Ask a real kube-apiserver: ``python -m tests.conformance.writes_recorder [file …] > recorded.jsonl``.

Starts one with its etcd on loopback, carries out the sequences of writes of the files (or of standard input) and writes
down what it answers. A sequence begins in an empty namespace of its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from kemu.emulated.objects import resources
from kemu.lab.conformance.writes import sequences
from tests.realkube.clusters import Cluster

Json = dict[str, Any]
TYPES = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
SEVERAL = 12
"""Steps, after which there may be more managers than an object keeps."""


def main() -> None:
    lines = [line for name in sys.argv[1:] or ["/dev/stdin"] for line in Path(name).read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder, Cluster.start(Path(folder)) as cluster:
        client = httpx.Client(
            base_url=cluster.url, verify=str(cluster.authority), headers={"Authorization": f"Bearer {cluster.token}"}
        )
        for line in lines:
            case = json.loads(line)["case"]
            try:
                expect = {"steps": record(client, case)}
            except httpx.RemoteProtocolError:
                print(f"{case['id']}: the server panics: left out", file=sys.stderr)
                continue
            json.dump({"case": case, "expect": expect}, sys.stdout, separators=(",", ":"), sort_keys=True)
            sys.stdout.write("\n")


def record(client: httpx.Client, case: Json) -> list[Json]:
    resource = resources.BY_PLURAL[case["resource"]]
    root = f"/apis/{resource.api_version}" if "/" in resource.api_version else f"/api/{resource.api_version}"
    where = f"{root}/namespaces/default/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"
    results, version = [], ""
    if len(case["steps"]) > SEVERAL:
        # Which entries are the oldest is judged by the second.
        time.sleep(1.05 - time.time() % 1)
    try:
        for step in case["steps"]:
            time.sleep(step.get("after", 0))
            answer = write(client, where, sequences.NAME, step)
            found = answer.json()
            warnings = [unquoted(text) for text in answer.headers.get_list("Warning")]
            if found.get("kind") == "Status":
                results.append(sequences.refusal_of(found))
            else:
                result, version = sequences.result_of(answer.status_code, found, warnings, version)
                results.append(result)
    finally:
        _clean(client, where)
    return results


def write(client: httpx.Client, where: str, name: str, step: Json) -> httpx.Response:
    verb = step["verb"]
    query = {"fieldValidation": step.get("validation", "Strict")}
    if not query["fieldValidation"]:
        del query["fieldValidation"]
    if "manager" in step:
        query["fieldManager"] = step["manager"]
    if "force" in step:
        query["force"] = "true" if step["force"] else "false"
    if step.get("dryRun"):
        query["dryRun"] = "All"
    url = where if verb == "create" else f"{where}/{name}"
    if step.get("subresource"):
        url += f"/{step['subresource']}"
    kind = step.get("contentType") or TYPES.get(verb, "application/json")
    return client.request(
        {"create": "POST", "update": "PUT"}.get(verb, "PATCH"),
        f"{url}?{urlencode(query)}",
        content=step.get("text", "").encode() or json.dumps(step["body"], separators=(",", ":")).encode(),
        headers={"Content-Type": kind, "User-Agent": step.get("agent", "recorder/1"), **as_whom(step)},
    )


def as_whom(step: Json) -> dict[str, str]:
    """``as``: a name and a group."""
    return {"Impersonate-User": step["as"][0], "Impersonate-Group": step["as"][1]} if "as" in step else {}


def _clean(client: httpx.Client, where: str) -> None:
    for name in ("x", "y"):
        remove(client, f"{where}/{name}")


def remove(client: httpx.Client, path: str) -> None:
    """Whatever holds the object."""
    for _ in range(5):
        if client.delete(f"{path}?gracePeriodSeconds=0").status_code == 404:
            break
        client.patch(
            path,
            content='{"metadata":{"finalizers":null,"generateName":null}}',
            headers={"Content-Type": TYPES["merge"]},
        )
        where, _, name = path.rpartition("/")
        if where.endswith("/namespaces"):
            empty = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {}}
            client.put(f"{path}/finalize", json=empty)


def unquoted(header: str) -> str:
    return str(json.loads(header.partition(" - ")[2]))


if __name__ == "__main__":
    main()

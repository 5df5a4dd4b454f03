"""Ask a real kube-apiserver: ``python -m tests.conformance.admitted_recorder [file …] > recorded.jsonl``.

Starts one with its etcd on loopback, with all admission plugins that are on by default, carries out the sequences of
writes of the files (or of standard input) and writes down what it answers. What a sequence leaves is removed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from kemu.emulated.objects import resources
from kemu.lab.conformance.writes import admitted, sequences
from tests.conformance import writes_recorder
from tests.realkube.clusters import Cluster

Json = dict[str, Any]
SETTLE_S = 0.05
"""After a write, until the plugins' informers have seen it."""
CLEANED_S = 0.15
OPTIONS = ("--allow-privileged=true", "--enable-admission-plugins=NodeRestriction")
"""As kubeadm starts it."""


def main() -> None:
    lines = [line for name in sys.argv[1:] or ["/dev/stdin"] for line in Path(name).read_text().splitlines()]
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.start(Path(folder), *OPTIONS, without_admission=()) as cluster,
    ):
        client = httpx.Client(
            base_url=cluster.url, verify=str(cluster.authority), headers={"Authorization": f"Bearer {cluster.token}"}
        )
        for line in lines:
            case = json.loads(line)["case"]
            expect = {"steps": record(client, case)}
            json.dump({"case": case, "expect": expect}, sys.stdout, separators=(",", ":"), sort_keys=True)
            sys.stdout.write("\n")


def record(client: httpx.Client, case: Json) -> list[Json]:
    versions: dict[tuple[str, ...], str] = {}
    results = []
    made: dict[str, None] = {}
    try:
        for step in case["steps"]:
            where = _path(step)
            answer = _send(client, where, step)
            time.sleep(step.get("after", SETTLE_S))
            found = answer.json()
            if answer.is_success and step["verb"] in ("create", "apply") and not step.get("subresource"):
                made[f"{where}/{found['metadata']['name']}"] = None
            warnings = [writes_recorder.unquoted(text) for text in answer.headers.get_list("Warning")]
            if answer.is_error:
                results.append(admitted.refusal_of(sequences.refusal_of(found), warnings))
            else:
                results.append(admitted.result_of(step, answer.status_code, found, warnings, versions))
    finally:
        for path in reversed(made):
            writes_recorder.remove(client, path)
        # Policies are read once a second.
        time.sleep(2.0 if any("admissionregistration" in path for path in made) else CLEANED_S)
    return results


def _path(step: Json) -> str:
    resource = resources.BY_PLURAL[step["resource"]]
    root = f"/apis/{resource.api_version}" if "/" in resource.api_version else f"/api/{resource.api_version}"
    namespace = step.get("namespace", "")
    return f"{root}/namespaces/{namespace}/{resource.plural}" if namespace else f"{root}/{resource.plural}"


def _send(client: httpx.Client, where: str, step: Json) -> httpx.Response:
    if step["verb"] == "get":
        return client.get(f"{where}/{step['name']}", headers=writes_recorder.as_whom(step))
    if step["verb"] == "delete":
        query = f"?gracePeriodSeconds={step['grace']}" if "grace" in step else ""
        return client.delete(f"{where}/{step['name']}{query}", headers=writes_recorder.as_whom(step))
    if step["verb"] == "bind":
        return client.post(f"{where}/{step['name']}/binding", json=step["body"])
    return writes_recorder.write(client, where, step["name"], step)


if __name__ == "__main__":
    main()

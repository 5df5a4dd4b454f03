"""Ask a real garbage collector: ``python -m tests.conformance.garbage_recorder [file …] > recorded.jsonl``.

Starts a kube-apiserver with its etcd, and a kube-controller-manager that only collects garbage, on loopback. Many cases
run beside each other, each several times in namespaces of its own; after a step, all wait until nothing changes.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from kemu.emulated.objects import resources
from kemu.lab.conformance.controllers import garbage
from tests.realkube.clusters import Cluster

Json = dict[str, Any]
TOGETHER = 100
"""Cases that run beside each other."""
TIMES = 3
QUIET_LOOKS, LOOK_S = 4, 1.0
"""So many looks, so far from each other, must show the same."""
MOST_OUTCOMES = 3
_POLICY_BODY = {"kind": "DeleteOptions", "apiVersion": "v1"}


def main() -> None:
    lines = [line for name in sys.argv[1:] or ["/dev/stdin"] for line in Path(name).read_text().splitlines()]
    cases = [json.loads(line)["case"] for line in lines]
    with tempfile.TemporaryDirectory() as folder, Cluster.start(Path(folder)) as cluster:
        limits = ("--kube-api-qps=2000", "--kube-api-burst=4000")
        cluster.start_controller_manager(("garbage-collector-controller",), *limits)
        client = httpx.Client(
            base_url=cluster.url, verify=str(cluster.authority), headers={"Authorization": f"Bearer {cluster.token}"}
        )
        while batch := cases[:TOGETHER]:
            cases = cases[TOGETHER:]
            for case, answers in zip(batch, _Batch(client, batch).play(), strict=True):
                if len(answers) > MOST_OUTCOMES - 1 and len(answers) == TIMES:
                    print(f"{case['id']}: {len(answers)} different answers: left out", file=sys.stderr)
                    continue
                expect = answers[0] if len(answers) == 1 else {"outcomes": answers}
                json.dump({"case": case, "expect": expect}, sys.stdout, separators=(",", ":"), sort_keys=True)
                sys.stdout.write("\n")


class _Batch:
    def __init__(self, client: httpx.Client, cases: list[Json]) -> None:
        self._client = client
        self._cases = cases
        self._worlds = [
            (case, garbage.World(case, f"{case['id']}-{number}")) for case in cases for number in range(TIMES)
        ]

    def play(self) -> Iterator[list[Json]]:
        """Of each case, all different answers."""
        answers: dict[str, list[Json]] = defaultdict(list)
        for _, world in self._worlds:
            for space in world.spaces:
                self._request("POST", "/api/v1/namespaces", space)
        for number in itertools.count():
            codes = self._step(number)
            if not codes:
                break
            found = self._settled()
            for case, world in self._worlds:
                if number < len(case["steps"]):
                    left = world.left(found[world.selector])
                    answers[world.selector].append({"codes": codes[world.selector], "left": left})
        events = self._list("/api/v1/events")
        repeated = iter(self._worlds)
        for _ in self._cases:
            distinct: list[Json] = []
            for _, world in itertools.islice(repeated, TIMES):
                one = {"steps": answers[world.selector], "events": world.warnings(events)}
                if one not in distinct:
                    distinct.append(one)
            yield distinct
        for _, world in self._worlds:
            for manifest in self._settled_once()[world.selector]:
                self._clean(manifest)

    def _step(self, number: int) -> dict[str, list[int]]:
        """The first request of all, then the second of all, and so on: much later for a collector."""
        codes: dict[str, list[int]] = defaultdict(list)
        asked = [(world, case["steps"][number]) for case, world in self._worlds if number < len(case["steps"])]
        for place in range(max((len(step["names"]) for _, step in asked), default=0)):
            began = time.monotonic()
            for world, step in asked:
                if place < len(step["names"]):
                    codes[world.selector].append(self._act(world, step, step["names"][place]))
            time.sleep(max(0.0, began + LOOK_S - time.monotonic()))
        return codes

    def _act(self, world: garbage.World, step: Json, name: str) -> int:
        """The code of a refusal; 0 if the request was carried out."""
        full, namespace = world.place(name)
        where = _path(world.kind(name), namespace)
        if step["do"] == "create":
            answer = self._request("POST", where, world.manifest(name))
            if answer.is_success:
                world.made(name, answer.json()["metadata"]["uid"])
        elif step["do"] == "delete":
            policy = {"propagationPolicy": step["policy"]} if "policy" in step else {}
            answer = self._request("DELETE", f"{where}/{full}", {**_POLICY_BODY, **policy})
        else:
            answer = self._request("GET", f"{where}/{full}")
            if answer.is_success:
                answer = self._request("PATCH", f"{where}/{full}", world.patch(step, answer.json()))
        return 0 if answer.is_success else answer.status_code

    def _settled(self) -> dict[str, list[Json]]:
        seen: list[dict[str, list[Json]]] = []
        while len(seen) < QUIET_LOOKS or any(one != seen[-1] for one in seen[-QUIET_LOOKS:]):
            time.sleep(LOOK_S)
            seen.append(self._settled_once())
        return seen[-1]

    def _settled_once(self) -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = defaultdict(list)
        for kind in garbage.KINDS:
            row = resources.BY_KIND[kind]
            for one in self._list(f"{_path(kind)}?labelSelector={garbage.LABEL}"):
                one |= {"apiVersion": row.api_version, "kind": kind}
                found[f"{garbage.LABEL}={one['metadata']['labels'][garbage.LABEL]}"].append(one)
        return found

    def _clean(self, manifest: Json) -> None:
        metadata = manifest["metadata"]
        where = f"{_path(manifest['kind'], metadata.get('namespace', ''))}/{metadata['name']}"
        self._request("PATCH", where, {"metadata": {"finalizers": None, "ownerReferences": None}})
        self._request("DELETE", where, {**_POLICY_BODY, "gracePeriodSeconds": 0, "propagationPolicy": "Background"})

    def _list(self, where: str) -> list[Json]:
        found: list[Json] = self._request("GET", where).raise_for_status().json()["items"]
        return found

    def _request(self, verb: str, where: str, body: Json | None = None) -> httpx.Response:
        kind = "application/merge-patch+json" if verb == "PATCH" else "application/json"
        content = None if body is None else json.dumps(body).encode()
        return self._client.request(verb, where, content=content, headers={"Content-Type": kind})


def _path(kind: str, namespace: str = "") -> str:
    row = resources.BY_KIND[kind]
    root = f"/apis/{row.api_version}" if "/" in row.api_version else f"/api/{row.api_version}"
    return f"{root}/namespaces/{namespace}/{row.plural}" if namespace else f"{root}/{row.plural}"


if __name__ == "__main__":
    main()

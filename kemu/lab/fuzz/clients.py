"""Scenarios whose objects come from outside: a client creates them through the gateway of ``kemu up --virtual``.

The cluster, its faults and what happens to nodes are those of a drawn scenario. Workload objects and pods come from an
HTTP client, at the times at which the scenario would create them. All checks judge the run; its record, replayed, gives
the same run; and what comes of it is what comes of the scenario by itself.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kemu.emulated.kubelet.images import stores
from kemu.emulated.objects import resources
from kemu.emulated.settings.values import duration_ns
from kemu.errors import KemuError
from kemu.lab.fuzz import relations
from kemu.lab.fuzz.facts import Facts, Witness
from kemu.lab.scenario.playing.replaying import replays
from kemu.lab.up import embedded, remotes
from kemu.lab.up.virtual import replays as with_clients

Data = dict[str, Any]
SETTLE_S = 0.005
"""The client waits for each answer, so no other actor could react."""
NAME, REPLAYED = "created-by-clients", "replayed-with-clients"


class _Over:
    """A run of ``kemu up``, as facts look at an execution."""

    def __init__(self, result: Any, duration_ns: int) -> None:
        self.scenario = dataclasses.replace(result.scenario, duration_ns=duration_ns)
        self.history = result.history
        self.error = None


def suits(data: Data) -> bool:
    """Whether there is something to create, and nothing that depends on when the set-up creates it."""
    items = data["spec"].get("manifests", [])
    if any(item.get("kind") in ("List", "Node") for item in items) or "autoscaler" in data["spec"]:
        return False
    return any(_is_of_a_client(item) for item in items)


def _is_of_a_client(item: Data) -> bool:
    return item.get("kind") in relations.WORKLOADS and "status" not in item and "nodeName" not in item.get("spec", {})


def split(data: Data) -> tuple[Data, list[tuple[float, Data]]]:
    """The scenario without what a client creates, and that, with the times."""
    made = copy.deepcopy(data)
    spec = made["spec"]
    given: list[tuple[float, Data]] = [(0.0, item) for item in spec.get("manifests", []) if _is_of_a_client(item)]
    spec["manifests"] = [item for item in spec.get("manifests", []) if not _is_of_a_client(item)]
    created = [event for event in spec.get("events", []) if _is_of_a_client(event.get("create", {}))]
    given += [(duration_ns(event["at"]) / 1e9, event["create"]) for event in created]
    spec["events"] = [event for event in spec.get("events", []) if event not in created]
    return made, sorted(given, key=lambda one: one[0])


def wrong(data: Data, base: Facts) -> Iterator[tuple[str, str]]:
    """What is wrong when a client creates the objects: id and detail. ``base``: the run of the scenario by itself."""
    rest, given = split(data)
    # What the scenario would start by itself for the objects that come from outside.
    spec = rest["spec"]
    spec.setdefault("controllers", list(base.scenario.controllers))
    if any(_is_about(event, given) for event in spec["events"]):
        return  # The events of the scenario come without the client's objects, so that they would find nothing.
    duration_s = duration_ns(spec.pop("duration")) / 1e9
    with tempfile.TemporaryDirectory(prefix="kemu-fuzz-") as folder:
        run_folder, result = Path(folder) / "run", None
        try:
            with embedded.up(rest, folder=run_folder, settle_s=SETTLE_S) as cluster:
                _play(cluster, given, duration_s)
        except AssertionError as error:
            yield "fails-with-clients", str(error)
            return
        result = cluster.result
        assert result is not None
        for replay in replays.replay(run_folder, None, with_clients.setting):
            if replay.difference is not None:
                yield REPLAYED, f"the replay differs: {replay.difference}"
        over: Any = _Over(result, base.scenario.duration_ns)
        one, two = relations.outcome(base), relations.outcome(Facts(over, Witness()))
        different = relations.differences(one, two) if one is not None and two is not None else []
        if different:
            yield NAME, "; ".join(different)


def _is_about(event: Data, given: list[tuple[float, Data]]) -> bool:
    """Whether it names an object that is not in the scenario now."""
    text = json.dumps(event)
    return any(f'"{item["metadata"]["name"]}"' in text or f"/{item['metadata']['name']}" in text for _, item in given)


def _play(cluster: embedded.Cluster, given: list[tuple[float, Data]], duration_s: float) -> None:
    remote = remotes.Remote(cluster.kubeconfig)
    for at_s, item in given:
        if at_s > cluster.now_s:
            cluster.step(at_s - cluster.now_s)
        resource = next(one for one in resources.RESOURCES if one.kind == item["kind"])
        namespace = item["metadata"].get("namespace", "default")
        version = item["apiVersion"]
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        try:
            remote.ask("POST", f"{root}/namespaces/{namespace}/{resource.plural}", _completed(item))
        except KemuError:
            continue  # A quota, or a fault; the checks judge what came of it.
    cluster.step(max(1.0, duration_s - cluster.now_s))


def _completed(item: Data) -> Data:
    """Containers with images, as clients state them."""
    made = copy.deepcopy(item)

    def fill(value: object) -> None:
        if isinstance(value, dict):
            for key in ("containers", "initContainers"):
                for container in value.get(key, ()) if isinstance(value.get(key), list) else ():
                    container.setdefault("image", stores.EVERYWHERE)
            for each in value.values():
                fill(each)
        elif isinstance(value, list):
            for each in value:
                fill(each)

    fill(made["spec"])
    return made

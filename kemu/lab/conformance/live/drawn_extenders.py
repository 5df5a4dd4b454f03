"""The extenders of a live comparison: what they say of a pod and a node is drawn from both names.

The real scheduler asks them over HTTP (:class:`Server`), kemu's in its own process (:func:`of_shadow`); both get the
same answers. One works by the names of nodes, the other by whole Nodes.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.configuration.configurations import ExtenderConfiguration
from kemu.emulated.scheduler.extenders.clients import MAX_PRIORITY, ExtenderClient, Extenders
from kemu.messages.v1 import extender_pb2, extender_pb2_grpc
from kemu.runtime.env import Env

Json = dict[str, Any]

Arguments = extender_pb2.ExtenderArgs | extender_pb2.ExtenderPreemptionArgs | extender_pb2.ExtenderBindingArgs

LANE, TRACK = "example.com/lane", "example.com/track"
"""The resources whose pods they are asked about: by names of nodes, and by Nodes."""
LOOPBACK = "127.0.0.1"
_VERBS: Json = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt"}


def configured(prefix: Callable[[str], str]) -> list[Json]:
    """As in a KubeSchedulerConfiguration. ``prefix``: where the extender of a resource is."""
    return [
        {
            "urlPrefix": prefix("lane"), **_VERBS, "weight": 3, "nodeCacheCapable": True,
            "managedResources": [{"name": LANE}],
        },
        {"urlPrefix": prefix("track"), **_VERBS, "weight": 1, "managedResources": [{"name": TRACK}]},
    ]  # fmt: skip


# What they say ----------------------------------------------------------------------------------------------------


def _drawn(pod: str, node: str, what: str) -> int:
    return zlib.crc32(f"{what} {pod} {node}".encode())


def refusal(pod: str, node: str) -> tuple[str, bool] | None:
    """Why the node does not suit, and whether nothing could help. None: it does."""
    chance = _drawn(pod, node, "filter") % 10
    if chance == 0:
        return "the way is closed", True
    return ("the way is busy", False) if chance < 3 else None


def score(pod: str, node: str) -> int:
    return _drawn(pod, node, "score") % (MAX_PRIORITY + 1)


def spares(pod: str, node: str) -> bool:
    """Whether no pod may be evicted from the node."""
    return _drawn(pod, node, "preempt") % 4 == 0


def filtered(pod: str, nodes: Iterable[str]) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """The nodes that suit, and why others do not: for now, or whatever happens."""
    kept: list[str] = []
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    for node in nodes:
        found = refusal(pod, node)
        if found is None:
            kept.append(node)
        else:
            (unresolvable if found[1] else failed)[node] = found[0]
    return kept, failed, unresolvable


# For the real scheduler -------------------------------------------------------------------------------------------


class Server:
    """Answers over HTTP, on a port of its own."""

    def __init__(self) -> None:
        self.port = 0
        self.asked = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0, limit=1 << 24)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    def configured(self) -> list[Json]:
        return configured(lambda name: f"http://{LOOPBACK}:{self.port}/{name}")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                asked = json.loads(await reader.readexactly(int(fields["content-length"])))
                self.asked += 1
                body = json.dumps(answer(head[0].split()[1].rpartition("/")[2], asked)).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
                )
                writer.write(body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def answer(verb: str, asked: Json) -> object:
    """In the form of ``k8s.io/kube-scheduler/extender/v1``."""
    pod = asked["Pod"]["metadata"]["name"]
    if verb == "preempt":
        victims = asked.get("NodeNameToMetaVictims") or {}
        for node, whole in (asked.get("NodeNameToVictims") or {}).items():
            pods = [{"UID": one["metadata"]["uid"]} for one in whole["Pods"]]
            victims[node] = {"Pods": pods, "NumPDBViolations": whole["NumPDBViolations"]}
        return {"NodeNameToMetaVictims": {node: one for node, one in victims.items() if not spares(pod, node)}}
    by_name = asked.get("NodeNames")
    items = {one["metadata"]["name"]: one for one in (asked.get("Nodes") or {}).get("items") or ()}
    names = list(items) if by_name is None else by_name
    if verb == "prioritize":
        return [{"Host": node, "Score": score(pod, node)} for node in names]
    kept, failed, unresolvable = filtered(pod, names)
    found: Json = {"FailedNodes": failed, "FailedAndUnresolvableNodes": unresolvable}
    if by_name is not None:
        return {**found, "NodeNames": kept}
    return {**found, "Nodes": {"metadata": {}, "items": [items[node] for node in kept]}}


# For kemu's scheduler ---------------------------------------------------------------------------------------------


def of_shadow(env: Env, cluster: Cluster) -> Extenders:
    """Asked without a connection."""
    made = Extenders(env, cluster, ())
    document = {"extenders": configured(lambda name: "grpc://localhost:1")}
    made.clients = [_Near(env, cluster, one) for one in configurations.configuration_of(document).extenders]
    return made


class _Near(ExtenderClient):
    def __init__(self, env: Env, cluster: Cluster, configuration: ExtenderConfiguration) -> None:
        self.configuration = configuration
        self.name = configuration.url_prefix
        self._env = env
        self._cluster = cluster
        methods = SimpleNamespace(Filter=None, Prioritize=None, ProcessPreemption=None, Bind=None)
        self._stub = cast(extender_pb2_grpc.ExtenderStub, methods)

    async def _call(
        self, pod: PodInfo, name: str, method: object, arguments: Arguments, nodes: int
    ) -> extender_pb2.ExtenderPreemptionResult | extender_pb2.HostPriorityList | extender_pb2.ExtenderFilterResult:
        if isinstance(arguments, extender_pb2.ExtenderPreemptionArgs):
            result = extender_pb2.ExtenderPreemptionResult()
            for node, meta in arguments.node_name_to_meta_victims.items():
                result.node_name_to_meta_victims[node].CopyFrom(meta)
            for node, whole in arguments.node_name_to_victims.items():
                made = result.node_name_to_meta_victims[node]
                made.pods.extend(extender_pb2.MetaPod(uid=one.metadata.uid) for one in whole.pods)
                made.num_pdb_violations = whole.num_pdb_violations
            for node in [node for node in result.node_name_to_meta_victims if spares(pod.name, node)]:
                del result.node_name_to_meta_victims[node]
            return result
        assert isinstance(arguments, extender_pb2.ExtenderArgs), "no extender binds"
        items = {one.metadata.name: one for one in arguments.nodes.items}
        names = list(items) or list(arguments.node_names.names)
        if name == "Prioritize":
            scores = [extender_pb2.HostPriority(host=node, score=score(pod.name, node)) for node in names]
            return extender_pb2.HostPriorityList(items=scores)
        kept, failed, unresolvable = filtered(pod.name, names)
        answer = extender_pb2.ExtenderFilterResult(failed_nodes=failed, failed_and_unresolvable_nodes=unresolvable)
        if arguments.HasField("nodes"):
            answer.nodes.SetInParent()
            answer.nodes.items.extend(items[node] for node in kept)
        else:
            answer.node_names.names.extend(kept)
        return answer

"""``metrics.k8s.io/v1beta1``: what nodes and pods use, as the metrics server tells ``kubectl top``.

Pods use what their annotations say (:mod:`kemu.emulated.kubelet.usage`), by which kubelets evict them; those that say
nothing use nothing. A node uses what its pods do, and what the scenario says of its machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from kemu.emulated.gateway.answers import documents
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.requests import negotiation
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.gateway.verbs.subresources import Handler
from kemu.emulated.kubelet.usage import meters
from kemu.emulated.objects import times
from kemu.emulated.objects.resources import Resource
from kemu.errors import NotFound
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.messages.v1 import api_pb2

GROUP, API_VERSION = "metrics.k8s.io", "metrics.k8s.io/v1beta1"
WINDOW = "10s"
"""So often kubelets measure."""

_ROWS = (
    Resource("nodes", "NodeMetrics", API_VERSION, core_v1_pb2.Node, False),
    Resource("pods", "PodMetrics", API_VERSION, core_v1_pb2.Pod),
)
ROWS: dict[tuple[str, str], Resource] = {(row.api_version, row.plural): row for row in _ROWS}
"""By API version and plural."""


async def read(call: Call) -> Response:
    """Get or list."""
    form = call.form()
    await call.require("get" if call.path.name else "list")
    if call.path.name:
        document = await _one(call)
    else:
        kind = f"{call.row.kind}List"
        document = {"kind": kind, "apiVersion": API_VERSION, "metadata": {}, "items": await _all(call)}
    text = documents.text(document)
    if form.media == negotiation.YAML:
        return Response(200, form.media, (documents.as_yaml(text),))
    return Response(200, negotiation.JSON, (documents.indented(text) if form.pretty else text + b"\n",))


HANDLERS: dict[str, Handler] = {"GET": read}


async def _one(call: Call) -> dict[str, Any]:
    pods = call.row.plural == "pods"
    resource = api_pb2.Resource(resource=call.row.plural, namespace=call.path.namespace)
    answer = await call.look("Get", api_pb2.GetRequest(resource=resource, name=call.path.name))
    found = call.row.message.FromString(answer.object)
    if isinstance(found, core_v1_pb2.Pod):
        document = _of_pod(call, found)
    else:
        node = cast(core_v1_pb2.Node, found)
        document = _of_node(call, node, await _running(call, call.path.name))
    if document is None:
        name = f"{call.path.namespace}/{call.path.name}" if pods else call.path.name
        raise NotFound(f'{call.row.kind.lower()}s.{GROUP} "{name}" not found', kind=call.row.plural, name=name)
    return {"kind": call.row.kind, "apiVersion": API_VERSION, **document}


async def _all(call: Call) -> list[dict[str, Any]]:
    query = call.request.query
    request = api_pb2.ListRequest(
        resource=api_pb2.Resource(resource=call.row.plural, namespace=call.path.namespace),
        label_selector=query.text("labelSelector"),
        field_selector=query.text("fieldSelector"),
    )
    wires = (await call.look("List", request)).items
    if call.row.plural == "pods":
        pods = [core_v1_pb2.Pod.FromString(one) for one in wires]
        return [document for pod in pods if (document := _of_pod(call, pod)) is not None]
    running = await _running(call)
    return [_of_node(call, node, running) for node in map(core_v1_pb2.Node.FromString, wires)]


async def _running(call: Call, node: str = "") -> dict[str, list[Any]]:
    """Pods by their nodes; of one node, or of all."""
    request = api_pb2.ListRequest(resource=api_pb2.Resource(resource="pods"))
    request.field_selector = f"spec.nodeName={node}" if node else "spec.nodeName!="
    found: dict[str, list[Any]] = {}
    for one in (await call.look("List", request)).items:
        pod = core_v1_pb2.Pod.FromString(one)
        found.setdefault(pod.spec.nodeName, []).append(pod)
    return found


def _of_pod(call: Call, pod: core_v1_pb2.Pod) -> dict[str, Any] | None:
    """None: nothing runs in it."""
    running = meters.Meter(pod).running(int(call.now_s()))
    if not running:
        return None
    containers = [{"name": name, "usage": _usage(used)} for name, used in running]
    return {**_head(call, pod.metadata), "containers": containers}


def _of_node(call: Call, node: core_v1_pb2.Node, running: Mapping[str, list[Any]]) -> dict[str, Any]:
    now_s = int(call.now_s())
    total = dict.fromkeys(meters.RESOURCES, 0)
    for pod in running.get(node.metadata.name, ()):
        for _, used in meters.Meter(pod).running(now_s):
            for resource in meters.RESOURCES:
                total[resource] += used[resource]
    own = call.settings.node_usage(node.metadata.name, now_s - call.clock.epoch_unix_s)
    for resource in meters.RESOURCES:
        total[resource] += own.get(resource, 0)
    return {**_head(call, node.metadata), "usage": _usage(total)}


def _head(call: Call, metadata: meta_v1_pb2.ObjectMeta) -> dict[str, Any]:
    now = times.format_time(int(call.now_s()))
    about: dict[str, Any] = {"name": metadata.name}
    if metadata.namespace:
        about["namespace"] = metadata.namespace
    about["creationTimestamp"] = now
    if metadata.labels:
        about["labels"] = dict(sorted(metadata.labels.items()))
    return {"metadata": about, "timestamp": now, "window": WINDOW}


def _usage(used: Mapping[str, int]) -> dict[str, str]:
    return {"cpu": f"{used['cpu']}m", "memory": f"{-(-used['memory'] // 1024)}Ki"}

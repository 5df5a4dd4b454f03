"""Extenders, for those who write one: subclass :class:`Extender`, and name the class in a scenario.

    class OnlyEvenNames(Extender):
        def filter(self, pod, node):
            return None if node.metadata.name[-1] in "02468" else unschedulable("an odd name")

An extender is an actor of its own, ``extender/<name>``, which schedulers call through gRPC
(``proto/kemu/v1/extender.proto``); it crashes, restarts and is cut off as any actor. It sees the cluster as a client of
the API server does: with a delay, and without the pods that a scheduler has only assumed.
:mod:`kemu.emulated.scheduler.extenders.clients` is the scheduler's side; docs/plugins.md has a walk through an example.
"""

from __future__ import annotations

import asyncio
from collections import UserDict
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, TypeVar

import grpc

from kemu.emulated.client import clients, informers
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.scheduler.framework.statuses import UNRESOLVABLE, Status, unschedulable
from kemu.errors import ApiError, KemuError
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import extender_pb2, extender_pb2_grpc
from kemu.runtime import user_code
from kemu.runtime.env import Env

NO_SUCH_NODE = "the extender does not know the node"

BUILT_IN = {"gpu-share": "kemu.emulated.scheduler.extenders.gpus:GpuShare"}
"""Those that come with kemu, by the name that a scenario may use."""


class KnownPods(UserDict[str, Any]):
    """Pods by UID, which are also found by the node that they run on."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, Any]] = {}
        super().__init__()

    def on_node(self, node: str) -> Mapping[str, core_v1_pb2.Pod]:
        """By UID."""
        return self._by_node.get(node, {})

    def __setitem__(self, uid: str, pod: core_v1_pb2.Pod) -> None:
        self._leave(uid)
        super().__setitem__(uid, pod)
        if pod.spec.nodeName:
            self._by_node.setdefault(pod.spec.nodeName, {})[uid] = pod

    def __delitem__(self, uid: str) -> None:
        self._leave(uid)
        super().__delitem__(uid)

    def _leave(self, uid: str) -> None:
        known = self.get(uid)
        if known is not None and known.spec.nodeName:
            there = self._by_node[known.spec.nodeName]
            del there[uid]
            if not there:
                del self._by_node[known.spec.nodeName]


class Extender:
    """The decisions of an extender. Pods and nodes are ``core.v1`` messages: read them, do not change them.

    ``nodes`` (by name) and ``pods`` (by UID, those that have not ended) are what the API server has shown so far.
    """

    def __init__(self, env: Env, client: clients.Client, args: Mapping[str, Any]) -> None:
        """``args``: as in the scenario. Raise ValueError for an invalid one."""
        self.env = env
        self.client = client
        self.args = args
        self.nodes: dict[str, Any] = {}
        self.pods = KnownPods()

    def filter(self, pod: core_v1_pb2.Pod, node: core_v1_pb2.Node) -> Status | None:
        """None when the pod can run on the node; ``unresolvable(…)`` where preemption could not help either."""
        return None

    def prioritize(self, pod: core_v1_pb2.Pod, node: core_v1_pb2.Node) -> int:
        """How good the node is, 0 to 10."""
        return 0

    def preempt(self, pod: core_v1_pb2.Pod, node: core_v1_pb2.Node, victims: Sequence[Any]) -> Sequence[Any] | None:
        """The victims, most important first: these, others on the node, or None: the node is not a candidate."""
        return victims

    async def bind(self, pod: core_v1_pb2.Pod, node: str) -> None:
        """Write the binding. An ApiError or :class:`Refusal` says why it was not."""
        await self.client.bind(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, node)

    async def consider(self, call: str) -> None:
        """Called before each answer (``Filter``, ``Prioritize``, …); sleep here (``env.clock``) to be slow."""

    def pods_on(self, node: str) -> list[core_v1_pb2.Pod]:
        """In the order of their UIDs."""
        return [pod for _uid, pod in sorted(self.pods.on_node(node).items())]


class Refusal(KemuError):
    """Raised by a method of an :class:`Extender`: the call fails, with this text. Any other exception ends the run."""


def load(name: str) -> type[Extender]:
    """The class of a name that comes with kemu, or of ``module:Class``. Raises ValueError."""
    full_name = BUILT_IN.get(name, name)
    if ":" not in full_name:
        raise ValueError(f"there is no extender {name!r}: write module:Class, or one of {', '.join(BUILT_IN)}")
    try:
        found = user_code.load(full_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"extender {name!r} cannot be loaded: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Extender)):
        raise ValueError(f"{name!r} is not an extender: a subclass of kemu.emulated.scheduler.extenders.Extender is")
    return found


class ExtenderActor:
    """Factory: ``kemu.emulated.scheduler.extenders.servers:ExtenderActor``; config ``plugin``, ``args`` and
    ``apiserver``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self._env = env
        client = clients.of_actor(env, config, shares=not user_code.is_in(config))
        self.extender = load(config["plugin"])(env, client, config.get("args") or {})
        self._informers = [
            informers.Informer(client, "nodes", handler=_mirror(self.extender.nodes, lambda node: node.metadata.name)),
            informers.Informer(
                client,
                "pods",
                handler=_mirror(self.extender.pods, lambda pod: pod.metadata.uid),
                field_selector=pod_phases.NOT_TERMINAL,
            ),
        ]
        env.serve(extender_pb2_grpc.add_ExtenderServicer_to_server, Servicer(self.extender))

    async def run(self) -> None:
        for informer in self._informers:
            await informer.synced()
        self._env.ready()
        await asyncio.get_running_loop().create_future()


K = TypeVar("K", bound=KubernetesObject)


def _mirror(objects: MutableMapping[str, K], key: Callable[[K], str]) -> informers.Callbacks[K]:
    """Callbacks that keep a dictionary in step with an informer."""

    def put(obj: K) -> None:
        objects[key(obj)] = obj

    def drop(obj: K) -> None:
        objects.pop(key(obj), None)

    return informers.Callbacks(put, lambda old, new: put(new), drop)


class Servicer(extender_pb2_grpc.ExtenderServicer):
    """From messages to an :class:`Extender` and back. A :class:`Refusal` becomes an error of the answer or INTERNAL."""

    def __init__(self, extender: Extender) -> None:
        self._extender = extender

    async def Filter(
        self, request: extender_pb2.ExtenderArgs, context: grpc.aio.ServicerContext
    ) -> extender_pb2.ExtenderFilterResult:
        await self._extender.consider("Filter")
        try:
            return self._filter(request)
        except Refusal as error:
            return extender_pb2.ExtenderFilterResult(error=str(error))

    def _filter(self, request: extender_pb2.ExtenderArgs) -> extender_pb2.ExtenderFilterResult:
        result = extender_pb2.ExtenderFilterResult()
        by_name = request.HasField("node_names")
        (result.node_names if by_name else result.nodes).SetInParent()
        for name, node in self._nodes(request):
            status = unschedulable(NO_SUCH_NODE) if node is None else self._extender.filter(request.pod, node)
            if status is not None:
                unresolvable = status.code == UNRESOLVABLE
                reasons = result.failed_and_unresolvable_nodes if unresolvable else result.failed_nodes
                reasons[name] = status.message
            elif by_name:
                result.node_names.names.append(name)
            else:
                result.nodes.items.append(node)
        return result

    async def Prioritize(
        self, request: extender_pb2.ExtenderArgs, context: grpc.aio.ServicerContext
    ) -> extender_pb2.HostPriorityList:
        await self._extender.consider("Prioritize")
        result = extender_pb2.HostPriorityList()
        try:
            for name, node in self._nodes(request):
                if node is not None:
                    result.items.add(host=name, score=self._extender.prioritize(request.pod, node))
        except Refusal as error:
            await context.abort(grpc.StatusCode.INTERNAL, str(error))
        return result

    def _nodes(self, request: extender_pb2.ExtenderArgs) -> list[tuple[str, Any]]:
        """The nodes of the request; None for a name that the watch has not shown."""
        if request.HasField("node_names"):
            return [(name, self._extender.nodes.get(name)) for name in request.node_names.names]
        return [(node.metadata.name, node) for node in request.nodes.items]

    async def ProcessPreemption(
        self, request: extender_pb2.ExtenderPreemptionArgs, context: grpc.aio.ServicerContext
    ) -> extender_pb2.ExtenderPreemptionResult:
        await self._extender.consider("ProcessPreemption")
        try:
            return self._preempt(request)
        except Refusal as error:
            await context.abort(grpc.StatusCode.INTERNAL, str(error))
            raise

    def _preempt(self, request: extender_pb2.ExtenderPreemptionArgs) -> extender_pb2.ExtenderPreemptionResult:
        result = extender_pb2.ExtenderPreemptionResult()
        whole, meta = request.node_name_to_victims, request.node_name_to_meta_victims
        for name in sorted([*whole, *meta]):
            if name in whole:
                victims, violations = list(whole[name].pods), whole[name].num_pdb_violations
            else:
                known = [self._extender.pods.get(one.uid) for one in meta[name].pods]
                victims, violations = [pod for pod in known if pod is not None], meta[name].num_pdb_violations
                if len(victims) < len(known):
                    # The watch has not shown all of them yet: no objection.
                    result.node_name_to_meta_victims[name].CopyFrom(meta[name])
                    continue
            node = self._extender.nodes.get(name, core_v1_pb2.Node(metadata={"name": name}))
            chosen = self._extender.preempt(request.pod, node, victims)
            if chosen is not None:
                answer = result.node_name_to_meta_victims[name]
                answer.num_pdb_violations = violations
                for victim in chosen:
                    answer.pods.add(uid=victim.metadata.uid)
        return result

    async def Bind(
        self, request: extender_pb2.ExtenderBindingArgs, context: grpc.aio.ServicerContext
    ) -> extender_pb2.ExtenderBindingResult:
        await self._extender.consider("Bind")
        pod = self._extender.pods.get(request.pod_uid)
        if pod is None:
            return extender_pb2.ExtenderBindingResult(error=f"the extender does not know pod {request.pod_name}")
        try:
            await self._extender.bind(pod, request.node)
        except (ApiError, Refusal) as error:
            return extender_pb2.ExtenderBindingResult(error=str(error))
        return extender_pb2.ExtenderBindingResult()


def serve(extender: Extender, server: grpc.aio.Server) -> None:
    """Offer an extender on a gRPC server of one's own, for schedulers that reach it as ``grpc://host:port``."""
    add = extender_pb2_grpc.add_ExtenderServicer_to_server
    add(Servicer(extender), server)  # type: ignore[no-untyped-call]

"""Bindings: a pod gets its node, once; and, an extension, several pods in one request.

A binding is a write like any other (:mod:`kemu.emulated.apiserver.registry.registry`), unless the API server has a
check (:mod:`kemu.emulated.apiserver.registry.bind_checks`). Then it depends on the guard of its node, too. A commit
takes the turns of all its pods and nodes, judges all its bindings, and then writes one pod after the other: in
Kubernetes, a resource version belongs to one object.
"""

from __future__ import annotations

import functools
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, cast

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.registry import bind_checks, entries, strategies
from kemu.emulated.apiserver.registry.bind_checks import BindCheck, Look
from kemu.emulated.apiserver.registry.registry import PODS, Registry
from kemu.emulated.apiserver.registry.strategies import Strategy
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.apiserver.watch.feed import Feed
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.pods import bind_generations
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2

Result = Entry | kemu_errors.ApiError
"""The pod as it is now, or why it was not bound."""


class Outcome:
    """What came of a commit."""

    __slots__ = ("refused_by", "results")

    def __init__(self, results: Sequence[Result], refused_by: int | None = None) -> None:
        self.results = results
        """One for each binding."""
        self.refused_by = refused_by
        """The index of the binding for which a commit was refused as a whole."""


class _Guard:
    """The guard of one node, as it was read, and what this commit has written to it since."""

    __slots__ = ("count", "look", "revision")

    def __init__(self, revision: int, look: Look) -> None:
        self.revision = revision
        """0: it does not exist."""
        self.look = look
        """Looks again at the bindings that depend on this revision."""
        self.count = look.count


class _Binding:
    """One binding of a commit, on its way."""

    __slots__ = ("entry", "guard_key", "look", "pod_key", "request", "value")

    def __init__(self, request: api_pb2.BindRequest, *, guarded: bool) -> None:
        self.request = request
        self.pod_key = resources.key(PODS, request.namespace, request.name)
        self.guard_key = bind_checks.guard_key(request.node) if guarded else b""
        self.look: Look | None = None
        """That has judged it."""
        self.entry: Entry | None = None
        """The pod as it was read."""
        self.value = b""
        """What it shall be."""


class Binder:
    def __init__(self, pods: Registry, feed: Feed, check: BindCheck | None) -> None:
        self._registry = pods
        self._feed = feed
        self._check = check

    def bind(self, request: api_pb2.BindRequest) -> Coroutine[Any, Any, tuple[Entry, bool]]:
        """Give a pod its node, once. To be awaited at once: the pod as it is now, and False."""
        namespace = _check_request(request)
        if self._check is not None:
            return self._commit_one(request)
        if request.HasField("node_generation"):
            raise errors.no_generations(request.name)
        strategy = strategies.STRATEGIES["pods"]
        return self._registry.rewrite_in_turn(strategy, namespace, request.name, self._bound, request, is_pure=True)

    async def _commit_one(self, request: api_pb2.BindRequest) -> tuple[Entry, bool]:
        (result,) = (await self._commit([request], all_or_nothing=False)).results
        if isinstance(result, kemu_errors.ApiError):
            raise result
        return result, False

    async def commit(self, request: api_pb2.CommitRequest) -> Outcome:
        """Bind several pods. Raises only what concerns the request as a whole."""
        seen: set[tuple[str, str]] = set()
        for one in request.bindings:
            _check_request(one)
            if (one.namespace, one.name) in seen:
                raise kemu_errors.BadRequest(f'the commit binds pod "{one.name}" twice')
            seen.add((one.namespace, one.name))
        return await self._commit(request.bindings, all_or_nothing=request.all_or_nothing)

    async def _commit(self, requests: Sequence[api_pb2.BindRequest], *, all_or_nothing: bool) -> Outcome:
        bindings = [_Binding(one, guarded=self._check is not None) for one in requests]
        turns = self._registry.turns
        taken: list[bytes] = []
        try:
            # In one order for all, so that no two commits wait for each other.
            for key in sorted({key for one in bindings for key in (one.pod_key, one.guard_key) if key}):
                turn = turns.take(key)
                if turn is not None:
                    await turns.wait(key, turn)
                taken.append(key)
            return await self._commit_in_turn(bindings, all_or_nothing=all_or_nothing)
        finally:
            for key in taken:
                turns.leave(key)

    async def _commit_in_turn(self, bindings: Sequence[_Binding], *, all_or_nothing: bool) -> Outcome:
        guards = await self._read(bindings)
        results: list[Result | None] = []
        """None: accepted, but not written."""
        for index, one in enumerate(bindings):
            try:
                self._judge(one, guards)
                results.append(None)
            except kemu_errors.ApiError as error:
                if all_or_nothing:
                    await self._keep_counts(bindings[:index], guards)
                    return _refused([one.request for one in bindings], error, index)
                results.append(error)
        for index, one in enumerate(bindings):
            if results[index] is None:
                results[index] = await self._write(one, guards)
        await self._show_counts(bindings)
        return Outcome([one for one in results if one is not None])

    async def _read(self, bindings: Sequence[_Binding]) -> dict[bytes, _Guard]:
        """Read pods and guards. Returns the guards by key."""
        keys = dict.fromkeys(key for one in bindings for key in (one.pod_key, one.guard_key) if key)
        revision, found = await self._registry.storage.read_all(list(keys))
        await self._feed.until(revision)
        guards: dict[bytes, _Guard] = {}
        for one in bindings:
            one.entry = found.get(one.pod_key)
            key = one.guard_key
            if self._check is not None and key not in guards:
                entry = found.get(key)
                look = self._check.look(one.request.node, entry)
                guards[key] = _Guard(entry.revision if entry is not None else 0, look)
        return guards

    def _judge(self, binding: _Binding, guards: Mapping[bytes, _Guard]) -> None:
        """Raises :class:`kemu.errors.ApiError`."""
        request, entry = binding.request, binding.entry
        look = binding.look = guards[binding.guard_key].look if binding.guard_key else None
        if entry is None:
            raise errors.not_found(PODS, request.name)
        binding.value = self._bound(strategies.STRATEGIES["pods"], entry, request)
        if look is not None:
            problem = look.accept(cast(core_v1_pb2.Pod, entries.parse(PODS, entry)), request)
            if problem:
                raise errors.conflict(PODS, request.name, problem, "binding")
        elif request.HasField("node_generation"):
            raise errors.no_generations(request.name)

    async def _write(self, binding: _Binding, guards: dict[bytes, _Guard]) -> Result:
        """Write an accepted binding; it is judged anew where others have written to the pod or the node meanwhile."""
        storage = self._registry.storage
        try:
            while True:
                guard = guards.get(binding.guard_key)
                if guard is not None and binding.look is not guard.look:
                    self._judge(binding, guards)  # the node was read again for another binding
                assert binding.entry is not None
                write = None
                if guard is not None:
                    write = binding.guard_key, guard.revision, b"%d" % (guard.count + 1)
                revision, _ = await storage.swap(binding.pod_key, binding.entry.revision, binding.value, write)
                if revision:
                    if guard is not None:
                        guard.revision, guard.count = revision, guard.count + 1
                    return Entry(binding.pod_key, revision, binding.value)
                guards |= await self._read([binding])
                self._judge(binding, guards)
        except (kemu_errors.ServiceUnavailable, kemu_errors.ServerTimeout):
            raise
        except kemu_errors.ApiError as error:
            return error

    async def _keep_counts(self, accepted: Sequence[_Binding], guards: Mapping[bytes, _Guard]) -> None:
        """Keep the counts of a commit that was refused as a whole, where the check wants it."""
        if self._check is None or not self._check.keeps_count_of_refused:
            return
        for key in dict.fromkeys(one.guard_key for one in accepted):
            # The server that has written it meanwhile has raised it.
            await self._registry.storage.swap(key, guards[key].revision, b"%d" % guards[key].look.count)
        await self._show_counts(accepted)

    async def _show_counts(self, bindings: Sequence[_Binding]) -> None:
        """Tell clients, in the Nodes, what the guards count."""
        nodes = strategies.STRATEGIES["nodes"]
        for one in {one.guard_key: one for one in bindings}.values():
            if one.look is not None and not one.look.is_shown():
                change = functools.partial(_counted, count=one.look.count)
                try:
                    await self._registry.rewrite_in_turn(nodes, "", one.request.node, change, None)
                except kemu_errors.NotFound:
                    continue

    def _bound(self, strategy: Strategy, entry: Entry, request: api_pb2.BindRequest) -> bytes:
        """``BindingREST.setPodNodeAndMetadata``."""
        writes = self._registry
        pod: Any = entries.parse(PODS, entry)
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        name = metadata.name
        if not writes.has_uid(request.uid, metadata.uid):
            raise errors.wrong_uid(PODS, entry.key, name, request.uid, metadata.uid)
        if metadata.HasField("deletionTimestamp"):
            raise errors.conflict(PODS, name, f"pod {name} is being deleted, cannot be assigned to a host", "binding")
        self._check_unbound(pod)
        if spec.schedulingGates:
            raise errors.conflict(PODS, name, f"pod {name} has non-empty .spec.schedulingGates", "binding")
        spec.nodeName = request.node
        metadata.annotations.MergeFrom(request.annotations)
        metadata.labels.MergeFrom(request.labels)
        meta.set_condition(status.conditions, "PodScheduled", "True", "", "", writes.unix_now_ns())
        status.ClearField("nominatedNodeName")
        value: bytes = pod.SerializeToString(deterministic=True)
        return value

    def _check_unbound(self, pod: core_v1_pb2.Pod) -> None:
        """Raises :class:`kemu.errors.Conflict` for a pod that has a node."""
        if pod.spec.nodeName:
            name = pod.metadata.name
            why = f'pod {name} is already assigned to node "{pod.spec.nodeName}"'
            raise errors.conflict(PODS, name, why, "binding")


def _check_request(request: api_pb2.BindRequest) -> str:
    """Returns the namespace. Raises :class:`kemu.errors.ApiError` for a binding that is incomplete."""
    name = request.name
    namespace = entries.addressed(PODS, request.namespace, name)
    if not request.node:
        cause = kemu_errors.Cause("target.name", "FieldValueRequired", "Required value")
        raise kemu_errors.Invalid(
            f'Binding "{name}" is invalid: target.name: Required value', kind="Binding", name=name, causes=[cause]
        )
    return namespace


def _counted(strategy: Strategy, entry: Entry, argument: object, *, count: int) -> bytes:
    """The Node with its bind generation, which never falls."""
    node: Any = entries.parse(strategy.resource, entry)
    if bind_generations.of(node) >= count:
        return entry.value
    bind_generations.write(node, count)
    value: bytes = node.SerializeToString(deterministic=True)
    return value


def refused_as_a_whole(request: api_pb2.CommitRequest, cause: kemu_errors.ApiError, blamed: int) -> Outcome:
    return _refused(request.bindings, cause, blamed)


def _refused(bindings: Sequence[api_pb2.BindRequest], cause: kemu_errors.ApiError, blamed: int) -> Outcome:
    """All of them, because of one."""
    culprit = bindings[blamed].name
    why = f'the commit is refused as a whole because of pod "{culprit}"'
    results: list[Result] = [errors.conflict(PODS, one.name, why, "binding") for one in bindings]
    results[blamed] = cause
    return Outcome(results, blamed)

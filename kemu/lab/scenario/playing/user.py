"""The actor that plays the people and programs outside of the control plane: it sets the cluster up and keeps it busy.

Role: launched by the runner after the API servers. Before the clock starts it creates namespaces, priority classes and
manifests in their order; pods that name a node are made to have run there since time 0. Then it carries out the
scenario's events and creates the pods of its workloads, each at its time, and replaces those that were lost where a
workload asks for that. A request that is refused is recorded (``user.refused``) and nothing else: the cluster goes on.

Nodes that are added and removed are the runner's business, as they are actors.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import heapq
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, Literal, TypeVar, cast

from google.protobuf.message import Message

from kemu import errors
from kemu.emulated.client import clients, drains, informers, streams
from kemu.emulated.kubelet.pods import statuses
from kemu.emulated.objects import custom_kinds, meta, resources
from kemu.emulated.objects.conversion import convert, custom_objects
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.settings import declared
from kemu.emulated.settings.declared import chosen
from kemu.lab.scenario.format import events
from kemu.lab.scenario.format.events import OF_MACHINES, Event
from kemu.lab.scenario.loading import clusters
from kemu.lab.scenario.loading.objects import manifests
from kemu.lab.scenario.playing import rollouts, workloads
from kemu.lab.scenario.scenarios import Manifest, Scenario
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject, CustomResourceDefinition
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaim
from kemu.runtime.env import SECOND_NS, ActorSpec, Env
from kemu.runtime.runlog.events import DrainStepped, UserActed, UserPodCreated, UserRefused

FACTORY = "kemu.lab.scenario.playing.user:User"

RETRY_INITIAL_S = 0.5
RETRY_MAX_S = 5.0
CUSTOM_PATIENCE_S, CUSTOM_RETRY_S = 30, 0.1
"""How long a custom object waits for its kind, and between looks."""
CUSTOM_TRIES = 10_000
"""And as many looks while the clock stands."""
"""How long the user waits before it repeats an unanswered request, at first and at most; with jitter."""

_ACTING: ContextVar[clients.Client | None] = ContextVar("acting", default=None)
"""The client of the user that does an event, if that is no administrator."""

T = TypeVar("T")
M = TypeVar("M", bound=KubernetesObject)


def spec(scenario: Scenario, name: str, apiservers: str | list[str]) -> ActorSpec:
    """The user of a scenario, as plain data."""
    config = {
        "apiserver": apiservers,
        "seed": scenario.seed,
        "setup": [_plain_manifest(manifest) for manifest in scenario.setup],
        "events": [_plain_event(event) for event in scenario.events if event.what not in OF_MACHINES],
        "workloads": [workloads.plain(workload) for workload in scenario.workloads],
    }
    return ActorSpec(name, FACTORY, config)


_LATER = "events", "workloads"
"""What of its configuration a user looks at only when the clock starts, unless it :func:`_watches`."""


def set_up_by(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What of a user's configuration shows before the clock starts."""
    return config if _watches(config) else {key: value for key, value in config.items() if key not in _LATER}


def turn_to(config: dict[str, Any], other: Mapping[str, Any]) -> None:
    """Make of the user with this configuration, whose clock has not started, the one of another scenario. What
    :func:`set_up_by` gives of both is equal."""
    config.update({key: other[key] for key in _LATER})


def _watches(config: Mapping[str, Any]) -> bool:
    """Whether it watches the pods of a workload, from the set-up on."""
    return any(each["replace_finished"] for each in config["workloads"])


def _plain_manifest(manifest: Manifest) -> list[Any]:
    message = manifest.message
    data = message.SerializeToString(deterministic=True)
    return [resources.of(message).plural, data, manifest.file, manifest.line, manifest.column, manifest.path]


def _plain_event(event: Event) -> dict[str, Any]:
    found = declared.plain(dataclasses.replace(event, objects=()))
    if event.objects:
        found[event.what] = {}  # the objects say it
    objects = [(resources.of(one).plural, one.SerializeToString(deterministic=True)) for one in event.objects]
    return {**{name: value for name, value in found.items() if value is not None}, "objects": objects}


def _event(data: Mapping[str, Any]) -> Event:
    objects = tuple(resources.MESSAGES[plural].FromString(one) for plural, one in data["objects"])
    return dataclasses.replace(declared.restored(Event, data), objects=objects)


class User:
    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        """``config`` as :func:`spec` makes it."""
        self._env = env
        self._config = config
        self._own_client = clients.Client(env, config["apiserver"])
        self._clients: dict[str, clients.Client] = {}
        """By the user as whom it acts."""
        self._streams: list[workloads.Stream] = []
        self._deleted: set[str] = set()
        """``namespace/name`` of pods that an event deletes: they are not replaced."""

    @property
    def _client(self) -> clients.Client:
        """As whom the event that is being carried out is done."""
        return _ACTING.get() or self._own_client

    def _act_as(self, name: str) -> None:
        """In the present task, and those that it starts."""
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = clients.Client(self._env, self._config["apiserver"], acts_as=name)
        _ACTING.set(client)

    async def run(self) -> None:
        await self._set_up()
        if _watches(self._config):
            self._streams = self._made()
            for stream in self._streams:
                if stream.replace_finished:
                    await self._watch(stream)
        self._env.ready()
        await self._env.clock.started()
        # Not before: until now it may have become the user of another scenario (turn_to).
        self._streams = self._streams or self._made()
        await self._play()
        # Replacements go on, and answers are still to come.
        await asyncio.Event().wait()

    def _made(self) -> list[workloads.Stream]:
        seed = self._config["seed"]
        return [workloads.Stream(data, seed, self._env.stream) for data in self._config["workloads"]]

    # --- set-up ------------------------------------------------------------------------------------------------------

    async def _set_up(self) -> None:
        """Raises ScenarioError where the API server refuses a manifest."""
        created = []
        uids: dict[tuple[str, str, str], str] = {}
        messages = [
            (resources.MESSAGES[plural].FromString(data), place) for plural, data, *place in self._config["setup"]
        ]
        messages.sort(key=lambda one: not isinstance(one[0], CustomResourceDefinition))
        for message, (file, line, column, path) in _owners_first(messages):
            for reference in message.metadata.ownerReferences:
                # Only the API server knows the UIDs of the objects that it creates.
                owner = reference.kind, message.metadata.namespace, reference.name
                reference.uid = uids.get(owner, reference.uid)
            try:
                made = await self._create(message)
                uids[_name_of(message)] = made.metadata.uid
                created.append((message, made))
            except errors.ApiError as error:
                if isinstance(error, errors.AlreadyExists) and _is_everywhere(message):
                    if isinstance(message, core_v1_pb2.ServiceAccount):
                        await self._client.update(message)
                    continue
                problem = errors.Problem(file, line, column, path, error.message)
                raise errors.ScenarioError([problem]) from error
        for message, _ in created:
            if isinstance(message, ResourceClaim):
                for consumer in message.status.reservedFor:
                    kind = "PodGroup" if consumer.resource == "podgroups" else "Pod"
                    name = kind, message.metadata.namespace, consumer.name
                    consumer.uid = uids.get(name, consumer.uid)
        await asyncio.gather(*[self._set_status(message, answer) for message, answer in created])

    async def _set_status(self, message: Any, created: Any) -> None:
        """The status that a manifest states; a pod with a node and without a status, but for its claims, has run there
        since time 0."""
        if isinstance(message, core_v1_pb2.Pod) and not _OF_LIFE.intersection(_stated(message.status)):
            if not message.spec.nodeName and not message.HasField("status"):
                return
            created.status.MergeFrom(message.status)
            if message.spec.nodeName:
                now_unix_ns = self._env.clock.epoch_unix_s * SECOND_NS
                meta.set_condition(created.status.conditions, "PodScheduled", "True", "", "", now_unix_ns)
                statuses.running(created, now_unix_ns)
        elif isinstance(message, CustomObject):
            await self._set_custom_status(message, created)
            return
        elif "status" in message.DESCRIPTOR.fields_by_name and message.HasField("status"):
            created.status.CopyFrom(message.status)
        else:
            return
        # It can only conflict with itself, if a first answer was lost.
        with contextlib.suppress(errors.Conflict):
            await self._insist(lambda: self._client.update_status(created))

    async def _set_custom_status(self, message: CustomObject, created: CustomObject) -> None:
        """Where its definition has a subresource for the status; else it has been created with it."""
        status = custom_objects.content(message).get("status")
        fields = custom_objects.content(created)
        row = await self._custom_kind(resources.of(message).plural)
        if status is None or fields.get("status") == status or not row.has_status:
            return
        custom_objects.put(created, {**fields, "status": status})
        with contextlib.suppress(errors.Conflict):
            await self._insist(lambda: self._client.update(created, "status", row.plural))

    async def _custom_kind(self, kind: str) -> CustomResource:
        """A custom kind (``Widget.example.com``), once it is established. Raises NotFound when that takes too long."""
        name, _, group = kind.partition(".")
        clock = self._env.clock
        tries, deadline_ns = 0, clock.now_ns() + CUSTOM_PATIENCE_S * SECOND_NS
        while True:
            row = await self._insist(lambda: self._client.custom_kind(group, name))
            if row is not None:
                return row
            tries += 1
            # During the set-up the clock stands.
            if clock.now_ns() >= deadline_ns or (not clock.now_ns() and tries > CUSTOM_TRIES):
                raise errors.NotFound(f'no matches for kind "{name}" in group "{group}"', kind=name)
            if clock.now_ns():
                await clock.sleep(CUSTOM_RETRY_S)

    async def _plural(self, kind: str) -> str:
        """As requests name a kind."""
        return (await self._custom_kind(kind)).plural if custom_kinds.is_custom(kind) else kind

    async def _insist(self, request: Callable[[], Awaitable[T]]) -> T:
        """Ask again while the API server, or the store behind it, is away or overloaded."""
        backoff = streams.Backoff(self._env, RETRY_INITIAL_S, RETRY_MAX_S)
        while True:
            try:
                return await request()
            except (errors.ServiceUnavailable, errors.ServerTimeout):
                pass
            except errors.TooManyRequests as error:
                if not error.retry_after_s:
                    raise
            await self._env.clock.sleep(backoff.next_s())

    async def _create(self, message: M) -> M:
        """Create an object, also across the loss of the connection, when it is not known whether it was created."""
        custom = ""
        if message.DESCRIPTOR is CustomObject.DESCRIPTOR:
            custom = await self._plural(resources.of(message).plural)
        try:
            return await self._client.create(message, custom)
        except (errors.ServiceUnavailable, errors.ServerTimeout):
            pass
        except errors.TooManyRequests:
            return await self._insist(lambda: self._client.create(message, custom))
        plural, metadata = custom or resources.of(message).plural, message.metadata
        while True:
            try:
                return await self._insist(lambda: self._client.create(message, custom))
            except errors.AlreadyExists:
                with contextlib.suppress(errors.NotFound):
                    found = await self._insist(lambda: self._client.get(plural, metadata.name, metadata.namespace))
                    return cast(M, found)

    # --- time --------------------------------------------------------------------------------------------------------

    async def _play(self) -> None:
        """Carries out everything at its time; requests of one instant are sent together, events before workloads."""
        clock, spawn = self._env.clock, self._env.spawn
        events = [_event(data) for data in self._config["events"]]
        agenda: list[tuple[int, int]] = []
        """(time, stream), or (time, -1) for the next event."""
        next_event = 0
        if events:
            agenda.append((events[0].at_ns, -1))
        for index, stream in enumerate(self._streams):
            when_ns = stream.next_ns()
            if when_ns is not None:
                agenda.append((when_ns, index))
        heapq.heapify(agenda)
        while agenda:
            when_ns, index = agenda[0]
            if when_ns > clock.now_ns():
                await clock.sleep_until_ns(when_ns)
            if index < 0:
                event = events[next_event]
                next_event += 1
                following = events[next_event].at_ns if next_event < len(events) else None
                spawn(self._carry_out(event), f"event {event.index}")
            else:
                stream = self._streams[index]
                number, pod = stream.arrival()
                following = stream.next_ns()
                spawn(self._create_pod(stream, number, pod, ""), "arrival")
            if following is None:
                heapq.heappop(agenda)
            else:
                heapq.heapreplace(agenda, (following, index))

    async def _carry_out(self, event: Event) -> None:
        acted = UserActed(index=event.index, what=event.what)
        self._env.log(UserActed(**acted, acts_as=event.acts_as) if event.acts_as else acted)
        if event.acts_as:
            self._act_as(event.acts_as)
        try:
            await _ACTIONS[event.what](self, event, chosen(event)[1])
        except errors.ApiError as error:
            self._refused({"index": event.index, "what": event.what, "name": event.target.name}, error)

    def _refused(self, what: Mapping[str, Any], error: errors.ApiError) -> None:
        self._env.log(UserRefused(**what, reason=error.reason, message=error.message))

    # --- workloads ---------------------------------------------------------------------------------------------------

    async def _create_pod(self, stream: workloads.Stream, number: int, pod: core_v1_pb2.Pod, replaces: str) -> None:
        try:
            created = await self._create(pod)
        except errors.ApiError as error:
            self._refused({"workload": stream.name, "n": number, "replaces": replaces}, error)
            return
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        self._env.log(
            UserPodCreated(
                pod=name,
                uid=created.metadata.uid,
                workload=stream.name,
                n=number,
                replaces=replaces,
            ),
        )

    async def _watch(self, stream: workloads.Stream) -> None:
        informer: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self._client,
            "pods",
            namespace=stream.namespace,
            label_selector=f"{workloads.LABEL}={stream.name}",
            handler=_Replacing(self, stream),
        )
        await informer.synced()

    def replace(self, stream: workloads.Stream, lost: core_v1_pb2.Pod, ran_ns: int) -> None:
        """Bring a lost pod back under a new name."""
        name = f"{lost.metadata.namespace}/{lost.metadata.name}"
        if name in self._deleted:
            return
        number, pod = stream.replacement(lost, ran_ns)
        self._env.spawn(self._create_pod(stream, number, pod, name), "replacement")

    def now_ns(self) -> int:
        return self._env.clock.now_ns()

    # --- events ------------------------------------------------------------------------------------------------------

    async def _create_objects(self, event: Event, _: object) -> None:
        await self._each(event, self._create)

    async def _apply(self, event: Event, _: object) -> None:
        await self._each(event, self._apply_one)

    async def _each(self, event: Event, request: Callable[[Any], Awaitable[Any]]) -> None:
        """One object after the other; a refused one does not keep the others away, as with kubectl."""
        for message in cast("tuple[KubernetesObject, ...]", event.objects):
            try:
                await request(message)
            except errors.ApiError as error:
                if len(event.objects) == 1:
                    raise
                self._refused({"index": event.index, "what": event.what, "name": message.metadata.name}, error)

    async def _apply_one(self, message: KubernetesObject) -> None:
        """Create, or patch what is there with everything that the manifest states."""
        plural, name, namespace = resources.of(message).plural, message.metadata.name, message.metadata.namespace
        how: Literal["merge", "strategic"] = "merge" if custom_kinds.is_custom(plural) else "strategic"
        plural = await self._plural(plural)
        try:
            await self._insist(lambda: self._client.get(plural, name, namespace))
        except errors.NotFound:
            await self._create(message)
            return
        patch = convert.to_json(message)
        await self._insist(lambda: self._client.patch(plural, name, namespace, patch, type=how))

    async def _delete(self, event: Event, stated: events.Delete) -> None:
        resource, namespace, name = event.target
        grace_s, policy = stated.grace_period_seconds, stated.propagation_policy
        if resource == "pods":
            self._deleted.add(f"{namespace}/{name}")
        resource = await self._plural(resource)
        await self._insist(
            lambda: self._client.delete(
                resource, name, namespace, grace_period_seconds=grace_s, propagation_policy=policy
            )
        )

    async def _patch(self, event: Event, stated: events.Patch) -> None:
        resource, namespace, name = event.target
        kind, patch = chosen(stated)
        part = stated.subresource or ""
        resource = await self._plural(resource)
        await self._insist(lambda: self._client.patch(resource, name, namespace, patch, part, kind))

    async def _resize(self, event: Event, stated: events.Resize) -> None:
        resource, namespace, name = event.target
        patch = {"spec": stated.spec}
        await self._insist(lambda: self._client.patch(resource, name, namespace, patch, "resize", "strategic"))

    async def _rollout(self, event: Event, stated: events.Rollout) -> None:
        now_s = self._env.clock.unix_ns() // SECOND_NS
        action, revision = chosen(stated)[0], stated.to_revision or 0
        await self._insist(lambda: rollouts.perform(self._client, action, *event.target, revision, now_s))

    async def _evict(self, event: Event, stated: events.Evict) -> None:
        _, namespace, name = event.target
        grace_s = stated.grace_period_seconds
        await self._insist(lambda: self._client.evict(namespace, name, grace_period_seconds=grace_s))

    async def _finish(self, event: Event, stated: events.Finish) -> None:
        _, namespace, name = event.target
        patch = {"metadata": {"annotations": {manifests.FINISH: str(stated.exit_code)}}}
        await self._insist(lambda: self._client.patch("pods", name, namespace, patch))

    async def _cordon(self, event: Event, _: object) -> None:
        patch = {"spec": {"unschedulable": True if event.what == "cordon" else None}}
        await self._insist(lambda: self._client.patch("nodes", event.target.name, "", patch))

    async def _drain(self, event: Event, options: drains.Options) -> None:
        def tell(node: str, step: str, pod: str = "", why: str = "") -> None:
            self._env.log(DrainStepped(index=event.index, node=node, step=step, pod=pod, why=why))

        await drains.drain(self._env, self._client, options, self._insist, tell)

    async def _taint(self, event: Event, stated: events.Taint | events.Untaint) -> None:
        """As kubectl: read, change, write; again when another client wrote meanwhile."""
        wanted = stated.message()
        while True:
            node = await self._insist(lambda: self._client.get("nodes", event.target.name))
            _put_taint(node, wanted, keep=event.what == "taint")
            try:
                await self._insist(functools.partial(self._client.update, node))
            except errors.Conflict:
                continue
            return


def _put_taint(node: core_v1_pb2.Node, wanted: core_v1_pb2.Taint, *, keep: bool) -> None:
    """Take the taint of this key and effect (any, if it has none) away; ``keep``: and put this one in its place."""
    kept = [
        taint.SerializeToString()
        for taint in node.spec.taints
        if taint.key != wanted.key or (wanted.effect and taint.effect != wanted.effect)
    ]
    del node.spec.taints[:]
    for data in kept:
        node.spec.taints.add().MergeFromString(data)
    if keep:
        node.spec.taints.add().CopyFrom(wanted)


_ACTIONS: dict[str, Callable[[User, Event, Any], Awaitable[None]]] = {
    "create": User._create_objects,
    "apply": User._apply,
    "delete": User._delete,
    "patch": User._patch,
    "resize": User._resize,
    "rollout": User._rollout,
    "evict": User._evict,
    "finish": User._finish,
    "cordon": User._cordon,
    "uncordon": User._cordon,
    "drain": User._drain,
    "taint": User._taint,
    "untaint": User._taint,
}


def _stated(message: Message) -> list[str]:
    """The fields that are set."""
    return [field.name for field, _ in message.ListFields()]


_OF_LIFE = set(core_v1_pb2.PodStatus.DESCRIPTOR.fields_by_name) - {
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
}
"""Fields of the status of a pod that say more than which claims are its own."""


def _name_of(message: KubernetesObject) -> tuple[str, str, str]:
    return resources.of(message).kind, message.metadata.namespace, message.metadata.name


def _is_everywhere(message: KubernetesObject) -> bool:
    """Whether every cluster has an object of that name before anybody creates one."""
    kind, _, name = _name_of(message)
    return (
        (kind == "Namespace" and name in clusters.NAMESPACES)
        or (kind == "PriorityClass" and name in clusters.SYSTEM_PRIORITY_CLASSES)
        # In clusters of kemu up.
        or (kind, name) in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt"))
    )


def _owners_first(messages: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """In their order, but none before an owner of its own."""
    known = {_name_of(message): message for message, _ in messages}
    depths: dict[tuple[str, str, str], int] = {}

    def depth(message: KubernetesObject, below: int) -> int:
        name = _name_of(message)
        if name not in depths:
            owners = [
                known.get((reference.kind, message.metadata.namespace, reference.name))
                for reference in message.metadata.ownerReferences
            ]
            found = [depth(owner, below + 1) for owner in owners if owner is not None and below < _MOST_OWNERS]
            depths[name] = max(found, default=-1) + 1
        return depths[name]

    return sorted(messages, key=lambda each: depth(each[0], 0))


_MOST_OWNERS = 10
"""One above the other; an object that owns itself does not matter here."""


class _Replacing:
    """Watches the pods of a workload, as a ReplicaSet does: one that terminates or was turned away is replaced at once.

    A pod that ended by itself, well or badly, is not; nor is one that an event of the scenario deleted.
    """

    def __init__(self, user: User, stream: workloads.Stream) -> None:
        self._user = user
        self._stream = stream
        self._replaced: set[str] = set()
        self._running: dict[str, int] = {}
        """Since when pods are seen to run, by UID; kept where a replacement goes on with their work."""

    def on_add(self, obj: core_v1_pb2.Pod) -> None:
        self.on_update(obj, obj)

    def on_update(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        phase = new.status.phase
        if phase == pod_phases.RUNNING and self._stream.work:
            self._running.setdefault(new.metadata.uid, self._user.now_ns())
        if phase == pod_phases.FAILED:
            # The reason of a pod that failed by itself stands in its containers.
            if new.status.reason:
                self._replace(new)
        elif phase != pod_phases.SUCCEEDED and new.metadata.HasField("deletionTimestamp"):
            self._replace(new)

    def on_delete(self, old: core_v1_pb2.Pod) -> None:
        if not pod_phases.is_terminal(old):
            self._replace(old)
        self._replaced.discard(old.metadata.uid)
        self._running.pop(old.metadata.uid, None)

    def _replace(self, pod: core_v1_pb2.Pod) -> None:
        if pod.metadata.uid not in self._replaced:
            self._replaced.add(pod.metadata.uid)
            now_ns = self._user.now_ns()
            self._user.replace(self._stream, pod, now_ns - self._running.get(pod.metadata.uid, now_ns))

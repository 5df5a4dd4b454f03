"""The actor ``controller/attach-detach``: which volumes are to be attached to which nodes, as VolumeAttachments say.

A volume is attached where a pod has been scheduled that uses it, and detached when no such pod is left and the kubelet
has unmounted it (``status.volumesInUse`` of the node). A volume of one node at a time stays where it is until then:
the pod that waits for it elsewhere hears of a *Multi-Attach error*. A node that is not ready may be dead or just
silent, and nothing is unmounted there; after six minutes the volume is detached by force, or at once if an operator has
tainted the node as out of service. The attaching itself is the drivers'
(:mod:`kemu.emulated.controllers.volumes.csi_drivers`). Further config: ``events``
(:data:`kemu.emulated.client.recorders.LEVELS`). Mirrors ``pkg/controller/volume/attachdetach``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kemu import errors
from kemu.emulated.client import informers, recorders, retries
from kemu.emulated.controllers import controllers
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.volumes import claims
from kemu.messages.k8s import core_v1_pb2, storage_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env, Timer
from kemu.runtime.runlog.events import AttachmentCreated, AttachmentDeleted, MultiAttachRefused

LOOP_NS = SECOND_NS // 10
"""How often the original looks at everything (``reconcilerLoopPeriod``); here only after something has changed."""
FORCE_AFTER_NS = 360 * SECOND_NS
"""So long a volume may stay mounted on a node that is not ready (``reconcilerMaxWaitForUnmountDuration``)."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


class Place(NamedTuple):
    """A volume on a node."""

    volume: str
    node: str


class AttachDetachController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.volumes.attachments:AttachDetachController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        level = config.get("events", recorders.NOTABLE)
        self._recorder = recorders.Recorder(env, self.client, "attachdetach-controller", "0", level)
        self._claiming: dict[str, core_v1_pb2.Pod] = {}
        """Pods with claims, in the order of the informer's store."""
        self._pods = self._informer("pods", "spec.nodeName!=", self._pod_changed)
        self._nodes = self._informer("nodes", note=self._node_changed)
        self._claims = self._informer("persistentvolumeclaims")
        self._volumes = self._informer("persistentvolumes")
        self._drivers = self._informer("csidrivers")
        self._attachments = self._informer("volumeattachments")
        self._asked_ns: dict[Place, int] = {}
        """Since when a volume is to be detached."""
        self._gone: dict[str, core_v1_pb2.Node] = {}
        """Nodes that are gone with volumes in use: nothing says that these are unmounted."""
        self._managed: set[str] = set()
        """Nodes whose pods count: those that are there, or were still to have volumes when they went."""
        self._assumed: set[Place] = set()
        """What is taken to be mounted until its node says which volumes are."""
        self._uncertain: set[Place] = set()
        """What an earlier controller may not have finished. It keeps nobody else from the volume."""
        self._reported: dict[Place, None] = {}
        """Where a Multi-Attach error has been reported."""
        self._timer: Timer | None = None
        self._due_ns = 0
        self._turn = asyncio.Event()

    def _informer(
        self, resource: str, fields: str = "", note: Callable[[Any, bool], None] | None = None
    ) -> informers.Informer[Any]:
        """``note``: is told of each object, and whether it is there."""

        def changed(*objects: Any) -> None:
            if note is not None:
                note(objects[-1], True)
            self._look_at(self.clock.now_ns())

        def deleted(obj: KubernetesObject) -> None:
            if note is not None:
                note(obj, False)
            self._look_at(self.clock.now_ns())

        handler = informers.Callbacks(changed, changed, deleted)
        return informers.Informer(self.client, resource, handler=handler, field_selector=fields)

    def _pod_changed(self, pod: core_v1_pb2.Pod, is_there: bool) -> None:
        key = controllers.key_of(pod)
        if is_there and next(claims.claim_names(pod), None) is not None:
            self._claiming[key] = pod
        else:
            self._claiming.pop(key, None)

    def _node_changed(self, node: core_v1_pb2.Node, is_there: bool) -> None:
        """``processVolumesInUse``."""
        name = node.metadata.name
        if is_there:
            self._managed.add(name)
            self._gone.pop(name, None)
        else:
            if all(place.node != name for place in self._wanted()):
                self._managed.discard(name)
            if node.status.volumesInUse:
                self._gone[name] = node
        if self._assumed:
            self._assumed = {place for place in self._assumed if place.node != name}

    async def run(self) -> None:
        seen = (self._nodes, self._drivers, self._volumes, self._claims, self._attachments, self._pods)
        await self.begin(*seen)
        # ``processVolumeAttachments``
        self._uncertain = {
            Place(one.spec.source.persistentVolumeName, one.spec.nodeName)
            for one in self._attachments.store.values()
            if not one.status.attached or one.spec.nodeName not in self._nodes.store
        }
        self._assumed = set(self._uncertain)
        while True:
            await self._turn.wait()
            self._turn.clear()
            await self._reconcile()

    def _look_at(self, when_ns: int) -> None:
        """Reconcile at the first turn from then on."""
        due_ns = (when_ns // LOOP_NS + 1) * LOOP_NS
        if self._timer is not None:
            if self._due_ns <= due_ns:
                return
            self._timer.cancel()
        self._due_ns = due_ns
        self._timer = self.clock.call_at_ns(due_ns, self._is_due)

    def _is_due(self) -> None:
        self._timer = None
        self._turn.set()

    # One turn --------------------------------------------------------------------------------------------------------

    async def _reconcile(self) -> None:
        """``reconcile``: what has to go first."""
        wanted = self._wanted()
        there = {
            Place(one.spec.source.persistentVolumeName, one.spec.nodeName): one
            for one in self._attachments.store.values()
        }
        self._uncertain &= there.keys()
        if self._assumed:
            # The status of such a node says what is attached, and is written then; so the node says what is mounted.
            sure = {at.node for at, one in there.items() if one.status.attached and at not in self._uncertain}
            self._assumed = {at for at in self._assumed if at.node not in sure or at.node not in self._nodes.store}
        for place, attachment in there.items():
            if place in wanted:
                self._asked_ns.pop(place, None)
            else:
                await self._detach_if_safe(place, attachment)
        for place, pods in wanted.items():
            if place not in there or place in self._uncertain:
                await self._attach_if_free(place, pods, there, wanted)
        self._reported = {place: None for place in self._reported if place in wanted}
        self._asked_ns = {place: at_ns for place, at_ns in self._asked_ns.items() if place in there}

    def _wanted(self) -> dict[Place, list[Any]]:
        """The pods that want a volume on their node (the desired state of the world)."""
        wanted: dict[Place, list[Any]] = {}
        for pod in self._claiming.values():
            if pod_phases.is_terminal(pod) or pod.spec.nodeName not in self._managed:
                continue
            for name in claims.claim_names(pod):
                claim = self._claims.store.get(f"{pod.metadata.namespace}/{name}")
                if claim is None or not claims.is_fully_bound(claim):
                    continue
                volume = self._volumes.store.get(claim.spec.volumeName)
                if volume is not None and self._is_attachable(volume):
                    wanted.setdefault(Place(volume.metadata.name, pod.spec.nodeName), []).append(pod)
        return wanted

    def _is_attachable(self, volume: core_v1_pb2.PersistentVolume) -> bool:
        source = volume.spec.persistentVolumeSource
        if not source.HasField("csi"):
            return False
        driver = self._drivers.store.get(source.csi.driver)
        return driver is None or not driver.spec.HasField("attachRequired") or bool(driver.spec.attachRequired)

    # Detaching -------------------------------------------------------------------------------------------------------

    async def _detach_if_safe(self, place: Place, attachment: storage_v1_pb2.VolumeAttachment) -> None:
        is_known = attachment.metadata.HasField("deletionTimestamp") or place not in self._uncertain
        if is_known and _is_changing(attachment):
            return
        now_ns = self.clock.now_ns()
        asked_ns = self._asked_ns.setdefault(place, now_ns)
        node = self._nodes.store.get(place.node)
        is_ready = node is not None and meta.is_ready(node)
        is_overdue = now_ns - asked_ns > FORCE_AFTER_NS
        is_out = node is not None and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
        told = self._gone.get(place.node) if node is None else node
        is_mounted = place in self._assumed or (told is not None and place.volume in told.status.volumesInUse)
        forced = is_out or (is_overdue and not is_ready)
        if is_mounted and not forced:
            if not is_overdue:
                self._look_at(asked_ns + FORCE_AFTER_NS)
            return
        name = attachment.metadata.name
        with contextlib.suppress(errors.NotFound):
            await retries.patiently(self.env, lambda: self.client.delete("volumeattachments", name))
        waited_ns = now_ns - asked_ns
        self.env.log(AttachmentDeleted(volume=place.volume, node=place.node, forced=is_mounted, waited_ns=waited_ns))

    # Attaching -------------------------------------------------------------------------------------------------------

    async def _attach_if_free(
        self,
        place: Place,
        pods: list[core_v1_pb2.Pod],
        there: Mapping[Place, storage_v1_pb2.VolumeAttachment],
        wanted: Mapping[Place, list[core_v1_pb2.Pod]],
    ) -> None:
        volume = self._volumes.store[place.volume]
        if not allows_many(volume):
            others = [at for at in there if at.volume == place.volume and at not in self._uncertain and at != place]
            if any(_is_changing(there[at]) for at in others):
                return  # it is not known yet where it will be
            if nodes := [at.node for at in others if there[at].status.attached]:
                if place not in self._reported:
                    self._reported[place] = None
                    users = [pod for node in nodes for pod in wanted.get(Place(place.volume, node), ())]
                    self._report(place, pods, nodes, users)
                return
        if place in there:
            self._uncertain.discard(place)
            return
        source = volume.spec.persistentVolumeSource.csi
        attachment = storage_v1_pb2.VolumeAttachment()
        attachment.metadata.name = claims.attachment_name(source.volumeHandle, source.driver, place.node)
        attachment.spec.attacher, attachment.spec.nodeName = source.driver, place.node
        attachment.spec.source.persistentVolumeName = place.volume
        with contextlib.suppress(errors.AlreadyExists):
            await retries.patiently(self.env, lambda: self.client.create(attachment))
        self.env.log(AttachmentCreated(volume=place.volume, node=place.node))

    def _report(
        self, place: Place, pods: list[core_v1_pb2.Pod], others: list[str], users: list[core_v1_pb2.Pod]
    ) -> None:
        """``reportMultiAttachError``. ``users``: the pods that want the volume on the other nodes."""
        for pod in pods:
            names = [one.metadata.name for one in users if one.metadata.namespace == pod.metadata.namespace]
            elsewhere = f"{len(users) - len(names)} pod(s) in different namespaces"
            if not users:
                text = "is already exclusively attached to one node and can't be attached to another"
            elif len(names) == len(users):
                text = f"is already used by pod(s) {', '.join(names)}"
            elif names:
                text = f"is already used by pod(s) {', '.join(names)} and {elsewhere}"
            else:
                text = f"is already used by {elsewhere}"
            text = f'Multi-Attach error for volume "{place.volume}" Volume {text}'
            self._recorder.event(pod, recorders.WARNING, "FailedAttachVolume", "FailedAttachVolume", text)
            key, uid = controllers.key_of(pod), pod.metadata.uid
            self.env.log(MultiAttachRefused(volume=place.volume, node=place.node, pod=key, uid=uid, others=others))


def _is_changing(attachment: storage_v1_pb2.VolumeAttachment) -> bool:
    """Whether it is being attached or detached (``IsOperationPending``)."""
    status = attachment.status
    is_settled = status.attached or status.HasField("attachError")
    return not is_settled or attachment.metadata.HasField("deletionTimestamp")


def allows_many(volume: core_v1_pb2.PersistentVolume) -> bool:
    """Whether several nodes may have the volume at a time (``IsMultiAttachAllowed``)."""
    modes = volume.spec.accessModes
    return not modes or claims.READ_WRITE_MANY in modes or claims.READ_ONLY_MANY in modes

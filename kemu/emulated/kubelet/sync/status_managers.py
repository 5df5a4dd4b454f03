"""The status manager: writes the statuses of pods to the API server, and removes the objects of pods that are gone.

Each pod has at most one task, alive only while there is something to write. Changes that come faster than writes are
merged: a write takes the state of the pod at that moment.

A status is a patch of the kubelet's own fields, with the UID as the only precondition: it never conflicts with other
writers, keeps their conditions, and never touches a later pod of the same name. A write that failed is repeated at the
next sync of all statuses, or sooner, together with another pod's. A sync also repairs what others have overwritten.

Mirrors ``pkg/kubelet/status`` (``syncBatch``, ``syncPod``, ``needsReconcile``, ``mergePodStatus``) and
``PatchPodStatus`` of ``pkg/util/pod``. That reads the pod first, to know what it may leave out of the patch; here
nothing is left out, which comes to the same. Where it writes one status after the other, here each has its own task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.kubelet.devices.managers import DeviceManager
from kemu.emulated.kubelet.pods import containers, sandboxes, statuses, workers
from kemu.emulated.objects import meta
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env, Timer

EXACT, SPARING = "exact", "sparing"
"""Which statuses are written: all that a real kubelet writes, or no more than a component acts on (``podStatuses``)."""

LOOK_NS = 10 * SECOND_NS
"""From one sync of all statuses to the next (``syncPeriod``)."""

_CONDITIONS = core_v1_pb2.Pod(
    status=core_v1_pb2.PodStatus(conditions=[core_v1_pb2.PodCondition(type=one) for one in statuses.OWNED_CONDITIONS])
).SerializeToString(deterministic=True)
"""The conditions that are removed from a refused pod."""


_RENDERED: dict[tuple[Any, ...], bytes] = {}
"""Statuses, by all that they depend on."""
_MOST_RENDERED = 256


class StatusManager:
    """``observe(pod)`` receives what the API server answers: an object newer than those that a watch has brought."""

    __slots__ = (
        "_client",
        "_clock",
        "_env",
        "_failed",
        "_is_exact",
        "_late",
        "_observe",
        "_phase_ns",
        "_sandboxes",
        "_timer",
        "devices",
    )

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        observe: Callable[[Any], None],
        writes: str = EXACT,
        boxes: sandboxes.Sandboxes | None = None,
    ) -> None:
        """``writes``: EXACT or SPARING. ``boxes`` tell addresses and IDs; None: statuses lack them on this node."""
        self._env = env
        self._is_exact = writes == EXACT
        self._clock = env.clock
        self._client = client
        self._observe = observe
        self._late: dict[str, workers.Worker] = {}
        """By UID: the pods whose status is written at the next sync."""
        self._failed: list[workers.Worker] = []
        """Those among them whose write failed; they are written with the next change of any pod."""
        self._phase_ns = -1
        """The phase of the syncs within their period; drawn when the first one matters."""
        self._timer: Timer | None = None
        self._sandboxes = boxes
        self.devices: DeviceManager | None = None
        """Whose devices the status of containers tells."""

    def forget(self, worker: workers.Worker) -> None:
        """Its object is gone."""
        if self._sandboxes is not None:
            self._sandboxes.forget(worker)

    def report(self, worker: workers.Worker) -> None:
        """Its state has changed in a way that its status shows."""
        worker.dirty = True
        self._start(worker)
        if self._failed:
            failed, self._failed = self._failed, []
            for one in failed:
                self._start(one)

    def starting(self, worker: workers.Worker) -> None:
        """A pod has been admitted: before its containers start, its status says that they are being created."""
        if self._is_exact:
            worker.is_starting = True
            self._start(worker)

    def generation_changed(self, worker: workers.Worker) -> None:
        """The spec has changed, or the pod is to be deleted: the status says that the kubelet has seen it."""
        if self._is_exact or not worker.pod.metadata.HasField("deletionTimestamp"):
            self.report(worker)

    def compare(self, worker: workers.Worker, pod: core_v1_pb2.Pod) -> None:
        """Whether a new state of the pod tells what this kubelet has told; if not, that is put right."""
        if worker.writing or worker.untold or worker.dirty or not worker.status:
            return
        if not statuses.agrees(core_v1_pb2.Pod.FromString(worker.status).status, pod.status):
            worker.untold = worker.dirty = True
            self._wait(worker)

    def delete(self, worker: workers.Worker) -> None:
        """Its containers are gone and it shall be deleted: remove the object."""
        if not worker.deleting:
            worker.deleting = True
            self._start(worker)

    def _wait(self, worker: workers.Worker) -> None:
        """For the next look."""
        self._late[worker.uid] = worker
        if self._timer is None:
            if self._phase_ns < 0:
                self._phase_ns = int(self._env.random.random() * LOOK_NS)
            now_ns = self._clock.now_ns()
            when_ns = now_ns + LOOK_NS - (now_ns - self._phase_ns) % LOOK_NS
            self._timer = self._clock.call_at_ns(when_ns, self._look)

    def _look(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        late, self._late = self._late, {}
        self._failed.clear()
        for worker in late.values():
            self._start(worker)

    def _start(self, worker: workers.Worker) -> None:
        if not worker.writing and not worker.removed and (worker.is_starting or worker.dirty or worker.deleting):
            worker.writing = True
            self._env.spawn(self._write(worker), f"report {worker.key}")

    async def _write(self, worker: workers.Worker) -> None:
        told = ""
        try:
            told = await self._tell(worker)
        except errors.NotFound:
            pass  # The watch will bring the news.
        except errors.Conflict:
            # Another pod has the name now: of this one nothing is told any more.
            worker.dirty = worker.deleting = False
        except errors.ApiError:
            # Whatever it is (syncPod logs it): again at the next look.
            self._failed.append(worker)
            self._wait(worker)
        worker.writing = False
        if told and worker.mirror is None and int(worker.pod.metadata.resourceVersion) > int(told):
            # What came meanwhile, from others.
            self.compare(worker, worker.pod)
        if not worker.dirty:
            worker.rest()

    async def _tell(self, worker: workers.Worker) -> str:
        """The resource version of the pod with the latest status. Empty: none was written, or the pod was deleted."""
        namespace, name = meta.split_name(worker.key)
        version = ""
        while not worker.removed and (worker.is_starting or worker.deleting or worker.dirty):
            if worker.deleting and not (worker.dirty and self._is_told_at_the_end(worker)):
                await self._client.delete("pods", name, namespace, grace_period_seconds=0, uid=worker.uid)
                return ""
            known = worker.pod if worker.mirror is None else await self._mirrored(worker)
            is_starting, worker.is_starting = worker.is_starting, False
            worker.dirty = worker.dirty and is_starting
            if known is None:
                return ""
            told = self._status(worker, known, is_starting=is_starting)
            if told == worker.status and not worker.untold:
                continue
            worker.status, worker.untold = told, True
            removed = b"" if worker.refusal is None and worker.resize is None else _removed(worker)
            uid = known.metadata.uid
            try:
                pod = await self._client.patch_message(core_v1_pb2.Pod, name, namespace, told, "status", uid, removed)
            except errors.ApiError:
                worker.dirty = True
                raise
            worker.untold = False
            version = pod.metadata.resourceVersion
            self._told(worker, pod)
        return version

    def _told(self, worker: workers.Worker, pod: core_v1_pb2.Pod) -> None:
        """``pod``: what the API server has answered."""
        if worker.mirror is not None:
            worker.mirror.see(pod)
            return
        revision, seen = pod.metadata.resourceVersion, worker.pod.metadata.resourceVersion
        # What the watch was faster to bring is in the informer's store already: one copy is enough.
        if not worker.removed and revision != seen:
            self._observe(pod)

    async def _mirrored(self, worker: workers.Worker) -> core_v1_pb2.Pod | None:
        """What stands for a static pod on the API server. None: nothing does."""
        assert worker.mirror is not None
        if worker.refusal is not None:
            return None  # A static pod that its node does not take gets no mirror.
        if worker.mirror.object is None:
            worker.untold = True
        return await worker.mirror.get()

    def _status(self, worker: workers.Worker, known: core_v1_pb2.Pod, *, is_starting: bool) -> bytes:
        """:meth:`_render` as bytes. Pods of one template whose state changes in the same second have the same."""
        key = None
        spec = known.spec
        if (
            known is worker.pod
            and worker.state != workers.ENDED
            and self._sandboxes is None
            and self.devices is None
            and worker.refusal is None
            and worker.resize is None
            and not worker.ephemeral
            and not (len(spec.initContainers) or len(spec.readinessGates))
            and known.status.phase not in pod_phases.TERMINAL
        ):
            epoch_ns = self._clock.unix_offset_ns
            state: list[Any] | None
            if is_starting:
                state = [(one.name, one.image, len(one.restartPolicyRules)) for one in spec.containers[:]]
            else:
                state = _state_of(worker.containers, epoch_ns)
            if state is not None:
                key = (
                    # Tests replace these.
                    type(self)._render,
                    statuses.write,
                    worker.status or known.status.SerializeToString(deterministic=True),
                    known.metadata.generation,
                    is_starting,
                    worker.has_sandbox,
                    (epoch_ns + worker.start_ns) // SECOND_NS,
                    (epoch_ns + self._clock.now_ns()) // SECOND_NS,
                    *state,
                )
                told = _RENDERED.get(key)
                if told is not None:
                    return told
        rendered: bytes = self._render(worker, known, is_starting=is_starting).SerializeToString(deterministic=True)
        if key is not None:
            if len(_RENDERED) >= _MOST_RENDERED:
                _RENDERED.clear()
            _RENDERED[key] = rendered
        return rendered

    def _render(self, worker: workers.Worker, known: core_v1_pb2.Pod, *, is_starting: bool) -> core_v1_pb2.Pod:
        """The worker's state in the status of an otherwise empty pod, from the latest one on. ``known``: the pod as the
        API server has it. ``is_starting``: as it was before any container started."""
        epoch_ns = self._clock.unix_offset_ns
        now_unix_ns = epoch_ns + self._clock.now_ns()
        pod: core_v1_pb2.Pod
        pod = core_v1_pb2.Pod.FromString(worker.status) if worker.status else statuses.own(known, now_unix_ns)
        status = pod.status
        if worker.refusal is not None:
            statuses.rejected(status, worker.pod, now_unix_ns, worker.refusal)
            return pod
        ended = worker.state == workers.ENDED and not is_starting
        statuses.write(
            status,
            worker.pod,
            containers.of(worker.pod) if is_starting else worker.containers,
            worker.phase if ended else "",
            worker.failure,
            sandbox=worker.has_sandbox and not ended and not is_starting,
            start_unix_ns=epoch_ns + worker.start_ns,
            now_unix_ns=now_unix_ns,
            epoch_ns=epoch_ns,
        )
        if self._sandboxes is not None:
            self._sandboxes.describe(status, worker, is_up=worker.has_sandbox)
        if worker.ephemeral:
            statuses.write_ephemeral(status, worker.pod, worker.ephemeral, epoch_ns)
        if worker.resize is not None:
            statuses.resize(status, worker.resize, now_unix_ns)
        if self.devices is not None and not is_starting and len(worker.pod.spec.resourceClaims):
            self.devices.describe(worker.pod, status)
        if known.status.phase in pod_phases.TERMINAL:
            # It does not go back once it is declared.
            status.phase = known.status.phase
        return pod

    def _is_told_at_the_end(self, worker: workers.Worker) -> bool:
        """Whether the last status of a pod that is removed is written before. If SPARING, only if the pod was killed,
        which shows why, or if the object outlives its containers."""
        return self._is_exact or worker.failure is not None or len(worker.pod.metadata.finalizers) > 0


def _state_of(those: list[containers.Container], epoch_ns: int) -> list[Any] | None:
    """What the status says of containers that run, times in seconds. None: one does not, or has ended before."""
    found = []
    for one in those:
        if one.state not in containers.UP or one.last is not None or one.before is not None or one.restarts_all:
            return None
        started_s = (epoch_ns + one.started_ns) // SECOND_NS
        found.append((one.name, one.image, one.is_unready, one.holds_start, one.restarts, one.has_started, started_s))
    return found


def _removed(worker: workers.Worker) -> bytes:
    """Conditions that the status has no longer, in an otherwise empty Pod."""
    if worker.refusal is not None:
        return _CONDITIONS
    resize = worker.resize
    assert resize is not None
    told = ((statuses.RESIZE_PENDING, resize.pending), (statuses.RESIZE_IN_PROGRESS, resize.in_progress))
    found = [core_v1_pb2.PodCondition(type=kind) for kind, one in told if one is None]
    return core_v1_pb2.Pod(status=core_v1_pb2.PodStatus(conditions=found)).SerializeToString(deterministic=True)

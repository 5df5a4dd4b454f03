"""The pod workers of one node: each takes a pod from its arrival to the end of its containers.

Synchronous: news from the API server and timers move workers (:mod:`kemu.emulated.kubelet.pods.workers`) from state to
state. Whether a pod is taken is left to :mod:`kemu.emulated.kubelet.admission.arrivals`, how its containers run to
:mod:`kemu.emulated.kubelet.sync.starts`, how they stop to :mod:`kemu.emulated.kubelet.sync.terminations`, what shall be
seen outside to
:mod:`kemu.emulated.kubelet.sync.status_managers`. A pod counts on its node from its admission until its containers are
gone, however long the API server knows it: terminating pods count.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from kemu.emulated.client import clients, recorders
from kemu.emulated.kubelet.admission import arrivals, predicates
from kemu.emulated.kubelet.devices.managers import DeviceManager
from kemu.emulated.kubelet.images import pulls, stores
from kemu.emulated.kubelet.node import boots
from kemu.emulated.kubelet.pods import claims, containers, lives, mirrors, sandboxes, statuses
from kemu.emulated.kubelet.pods.workers import ACTIVE, ENDED, STOPPING, WAITING, Worker
from kemu.emulated.kubelet.pressure import eviction_loops
from kemu.emulated.kubelet.probes import probers
from kemu.emulated.kubelet.programs import residents
from kemu.emulated.kubelet.resizes import allocations, resources
from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.kubelet.sync import (
    adoptions,
    ephemeral,
    image_volumes,
    life_events,
    starts,
    status_managers,
    terminations,
)
from kemu.emulated.kubelet.volumes import managers, references
from kemu.emulated.objects import meta
from kemu.emulated.objects.caches import late
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog import events as log_events

KILLING, FAILED_POST_START, FAILED_PRE_STOP = "Killing", "FailedPostStartHook", "FailedPreStopHook"
DEADLINE_EXCEEDED = statuses.Failure(
    "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
)


class PodWorkers:
    """The pods of a node. Several of its parts ask one another: those that need the workers are made with them."""

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        config: kubelet_configurations.Settings,
        node_name: str,
        admission: Callable[[predicates.NodeClaims, arrivals.ArrivalHost], arrivals.Arrivals],
        boot: boots.Boot = boots.BEFORE,
        images: stores.Images | None = None,
        status_writes: str = status_managers.EXACT,
        up_since_ns: int = 0,
        *,
        recorder: recorders.Recorder | None = None,
        boxes: sandboxes.Sandboxes | None = None,
        events: life_events.LifeEvents | None = None,
        volumes: managers.VolumeManager | None = None,
        devices: DeviceManager | None = None,
        pressures: Callable[[PodWorkers], eviction_loops.EvictionLoop | eviction_loops.LateLoop] | None = None,
        programs: residents.Programs | None = None,
    ) -> None:
        """``admission`` makes what admits pods; ``pressures`` what is told of all that may change the node's usage.
        ``up_since_ns``: when the kubelet started; 0: before the run. ``recorder`` writes event objects about containers
        that are killed; ``boxes`` tell addresses and IDs, ``events`` the usual life of containers: None where only a
        scheduler looks on. ``volumes`` mounts those of pods; None: there are none in this cluster; ``devices``
        likewise. ``programs``: see :class:`kemu.emulated.kubelet.sync.starts.Starts`."""
        self.usage = predicates.NodeClaims()
        self.arrivals = admission(self.usage, self)
        self.by_uid: dict[str, Worker] = {}
        """All pods that the API server has for this node, and those whose containers have outlived their object."""
        self.images = images or stores.Images(env, {})
        self._env = env
        self._clock = env.clock
        self._node_name = node_name
        self.reports = status_managers.StatusManager(env, client, self.observe, status_writes, boxes)
        self._puller = pulls.Pulls(env, self.images, config.image_pull, config.configuration.pulls_at_once)
        self._boot = boot
        self._events = events
        self._programs = programs
        self._up_since_ns = up_since_ns or -1
        self._starts = starts.Starts(env, config, self._puller, self, boot, events, programs, boxes)
        self._starts.names = None if volumes is None else volumes.names
        self._starts.contents = None if programs is None else references.Contents(env, client)
        self._probers: probers.Probers | None = None
        """None: no pod has had any probe."""
        self._recorder = recorder
        self.volumes = volumes
        self.devices = self.reports.devices = devices
        if devices is not None:
            devices.on_health = self._health_changed
        self.pressures = pressures(self) if pressures is not None else None

    # Most nodes never need these.

    @late
    def _adoptions(self) -> adoptions.Adoptions:
        return adoptions.Adoptions(self._env, self.images, self, self._boot)

    @late
    def _ephemeral(self) -> ephemeral.EphemeralContainers:
        return ephemeral.EphemeralContainers(self._env, self._puller, self, self._events)

    @late
    def _terminations(self) -> terminations.Terminations:
        return terminations.Terminations(self._env, self._starts, self._pre_stop_ran)

    @late
    def allocations(self) -> allocations.Allocations:
        return allocations.Allocations(self._env, self, self._recorder)

    def _probe(self, worker: Worker, *, is_adopted: bool = False) -> None:
        """The pod has been admitted, and its containers are known. ``is_adopted``: before this kubelet started."""
        for one in worker.containers:  # a generator for any() would cost more than the usual single container
            if one.is_probed:
                if self._probers is None:
                    env, since_ns = self._env, self._up_since_ns
                    self._probers = probers.Probers(env, self, since_ns, self._recorder, self._programs)
                self._probers.add(worker, is_adopted=is_adopted)
                return

    # --- news --------------------------------------------------------------------------------------------------------

    def observe(self, pod: core_v1_pb2.Pod, seen_ns: int | None = None, mirror: mirrors.Mirror | None = None) -> None:
        """The newest state of a pod of this node; older ones than already seen are ignored.

        ``mirror``: of a static pod, which the API server does not know under its own UID.
        """
        worker = self.by_uid.get(pod.metadata.uid)
        if worker is None:
            self._discover(pod, self._clock.now_ns() if seen_ns is None else seen_ns, mirror)
            return
        revision, known = int(pod.metadata.resourceVersion), int(worker.pod.metadata.resourceVersion)
        if revision >= known:
            has_changed = pod.metadata.generation > worker.pod.metadata.generation
            old, worker.pod = worker.pod, pod
            self._react(worker)
            is_up = worker.state in (ACTIVE, STOPPING)
            if has_changed and is_up and resources.differ(resources.of(pod), resources.of(old)):
                # Other changes try no resize again (``recordResizeOperations``).
                self.allocations.see(worker, old)
            if self._probers is not None:
                self._probers.sync(worker)
            if worker.state == ACTIVE and len(pod.spec.readinessGates):
                self.reports.report(worker)
            if has_changed and is_up:
                self.reports.generation_changed(worker)
            if revision > known:
                self.reports.compare(worker, pod)
            if worker.status and not worker.writing:
                worker.rest()
        elif pod_phases.is_terminal(pod) and worker.state == ACTIVE:
            # This kubelet has written over it before it heard of it.
            self._declared(worker, pod.status.phase)

    def compare(self, worker: Worker, pod: core_v1_pb2.Pod) -> None:
        """Whether another client has overwritten the status that this kubelet wrote."""
        self.reports.compare(worker, pod)

    def forget(self, pod: core_v1_pb2.Pod) -> None:
        """The API server does not know the pod any more. Containers that still run are stopped all the same; new pods
        are admitted as if they were gone (``GetActivePods`` warns of it)."""
        worker = self.by_uid.get(pod.metadata.uid)
        if worker is None:
            return
        worker.removed = True
        self.reports.forget(worker)
        self._uncount(worker)
        if worker.state == ENDED:
            self._forget_containers(worker)
            del self.by_uid[worker.uid]
        elif worker.state != STOPPING:
            self._stop(worker, worker.pod.spec.terminationGracePeriodSeconds)

    def _discover(self, pod: core_v1_pb2.Pod, seen_ns: int, mirror: mirrors.Mirror | None) -> None:
        worker = Worker(pod, seen_ns)
        worker.mirror = mirror
        self.by_uid[worker.uid] = worker
        status = pod.status
        if pod_phases.is_terminal(pod):
            worker.state = ENDED
            self._react(worker)
        elif status.phase == pod_phases.RUNNING or status.HasField("startTime"):
            self._adopt(worker)
        elif pod.metadata.HasField("deletionTimestamp"):
            worker.state = ENDED
            self._react(worker)
        else:
            self.arrivals.add(worker)

    def _react(self, worker: Worker) -> None:
        metadata = worker.pod.metadata
        if metadata.HasField("deletionTimestamp"):
            self._stop(worker, metadata.deletionGracePeriodSeconds)
        elif worker.state != ACTIVE:
            return
        elif pod_phases.is_terminal(worker.pod):
            self._declared(worker, worker.pod.status.phase)
        else:
            if worker.pod.spec.HasField("activeDeadlineSeconds"):
                self._watch_deadline(worker)
            if worker.has_sandbox and worker.pod.spec.ephemeralContainers:
                self._ephemeral.look(worker)
            if lives.FINISH in metadata.annotations:
                self.has_run(worker)

    def _declared(self, worker: Worker, phase: str) -> None:
        """Another client has set a terminal phase: stop the containers, and keep that phase."""
        worker.phase = phase
        self._stop(worker, worker.pod.spec.terminationGracePeriodSeconds)

    def _adopt(self, worker: Worker) -> None:
        """Admitted before this kubelet started: in an earlier life of it, or before the run began."""
        pod, now_ns = worker.pod, self._clock.now_ns()
        status, metadata = pod.status, pod.metadata
        worker.start_ns = worker.begun_ns = self._ns(status.startTime) if status.HasField("startTime") else now_ns
        allocated = self.allocations.adopt(worker)
        refusal = self.arrivals.readmit(worker, allocated) if now_ns > 0 else None
        if refusal is None:
            self._take(worker, claims.claim_of(allocated, running=True))
        worker.state = ACTIVE
        worker.refusal = None if refusal is None else _refusal_of(refusal)
        self._adoptions.adopt(worker)
        self.allocations.limit(worker)
        if self.pressures is not None:
            # Its containers are up already: nothing else need happen to them from here on.
            self.pressures.changed(worker)
        self._probe(worker, is_adopted=True)
        self._resume(worker)
        if refusal is not None:
            self.reports.report(worker)
            self._stop(worker, pod.spec.terminationGracePeriodSeconds)
        elif metadata.HasField("deletionTimestamp"):
            grace_s = metadata.deletionGracePeriodSeconds
            asked_ns = self._ns(metadata.deletionTimestamp) - grace_s * SECOND_NS
            begun_ns = max((one.started_ns for one in worker.containers), default=worker.start_ns)
            # By a clock that is ahead of this one, or that this one was ahead of before, it would be later than now.
            self._stop(worker, grace_s, min(max(asked_ns, begun_ns), now_ns))
        else:
            self._react(worker)

    def _resume(self, worker: Worker) -> None:
        volumes = self.volumes
        if volumes is not None and volumes.concerns(worker.pod):
            if worker.pod.status.phase != pod_phases.RUNNING:
                resume = functools.partial(self._resume_with_devices, worker)
                volumes.mount(worker, resume, lambda why: self._rejected(worker, why))
                return
            volumes.adopt(worker)
        self._resume_with_devices(worker)

    def _resume_with_devices(self, worker: Worker) -> None:
        devices = self.devices
        if devices is None or not devices.concerns(worker.pod) or worker.pod.status.phase == pod_phases.RUNNING:
            self._starts.resume(worker)
        elif worker.state == ACTIVE:
            devices.prepare(worker, lambda: self._starts.resume(worker))

    def _health_changed(self) -> None:
        """Of devices."""
        assert self.devices is not None
        for uid in self.devices.users():
            if uid in self.by_uid:
                self.reports.report(self.by_uid[uid])

    # --- verdicts, from the arrivals ---------------------------------------------------------------------------------

    def admitted(self, worker: Worker, claim: claims.Claim) -> None:
        self._take(worker, claim)
        worker.state = ACTIVE
        worker.begun_ns = worker.start_ns
        self._watch_deadline(worker)
        if self.volumes is not None and self.volumes.concerns(worker.pod):
            self._starts.prepare(worker)
            self.report(worker)
            self.volumes.mount(worker, lambda: self._mounted(worker), lambda why: self._rejected(worker, why))
        elif self.devices is not None and self.devices.concerns(worker.pod):
            self._starts.prepare(worker)
            self.report(worker)
            self._mounted(worker)
        else:
            self._starts.begin(worker)

    def _mounted(self, worker: Worker) -> None:
        if worker.state != ACTIVE:
            return
        if self.devices is not None and self.devices.concerns(worker.pod):
            self.devices.prepare(worker, lambda: self._prepared(worker))
        else:
            self._prepared(worker)

    def _prepared(self, worker: Worker) -> None:
        if worker.state == ACTIVE:
            worker.begun_ns = self._clock.now_ns()
            self._starts.go_on(worker)

    def _rejected(self, worker: Worker, why: str) -> None:
        """The node cannot attach its volumes (``rejectPod``)."""
        if worker.state == ACTIVE:
            self._event(worker, recorders.WARNING, managers.LIMIT_EXCEEDED, why)
            self.kill(worker, statuses.Failure(managers.LIMIT_EXCEEDED, f"Pod was rejected: {why}"))

    def refused(self, worker: Worker, decision: predicates.Decision) -> None:
        worker.refusal = _refusal_of(decision)
        worker.state = ENDED
        self.reports.report(worker)

    def active(self) -> list[Worker]:
        return [worker for worker in self.by_uid.values() if worker.claim is not None]

    def _take(self, worker: Worker, claim: claims.Claim) -> None:
        worker.claim = claim
        self.usage.add(claim)
        if self.pressures is not None:
            self.pressures.take(worker)

    def _uncount(self, worker: Worker) -> None:
        """It no longer counts for the admission of others."""
        if worker.claim is not None:
            self.usage.remove(worker.claim)
            worker.claim = None
            self.allocations.remove(worker)

    def _release(self, worker: Worker) -> None:
        """Its containers are gone."""
        worker.state = ENDED
        if self._probers is not None:
            self._probers.remove(worker)
        if self.volumes is not None:
            self.volumes.unmount(worker)
        if worker.deadline_timer is not None:
            worker.deadline_timer.cancel()
            worker.deadline_timer = None
        self._uncount(worker)
        if self.pressures is not None:
            self.pressures.release(worker)
        if worker.removed or worker.pod.metadata.HasField("deletionTimestamp") or worker.is_evicted:
            self._forget_containers(worker)
        if worker.on_gone:
            told, worker.on_gone = worker.on_gone, []
            for gone in told:
                gone()

    # --- what the container runtime knows ----------------------------------------------------------------------------

    def images_in_use(self) -> list[str]:
        """Images in use of containers that run, or have ended and are not removed yet."""
        found = []
        for worker in self.by_uid.values():
            created = [one for one in worker.containers if one.created_ns is not None]
            found += [*(one.image for one in created), *sorted(image_volumes.mounted(worker.pod, created))]
        return found

    def forget_ended(self) -> None:
        """Containers of pods that have ended are removed."""
        for worker in self.by_uid.values():
            if worker.state == ENDED:
                self._forget_containers(worker)

    def _forget_containers(self, worker: Worker) -> None:
        self._starts.forget(worker)
        for container in worker.containers:
            created_ns, container.created_ns = container.created_ns, None
            if created_ns is not None and self.pressures is not None:
                self.pressures.container_gone(container.image, created_ns)

    # --- kills -------------------------------------------------------------------------------------------------------

    def kill(
        self,
        worker: Worker,
        failure: statuses.Failure,
        gone: Callable[[], None] | None = None,
        grace_s: int | None = None,
    ) -> None:
        """End an admitted pod and fail it, for this reason. ``gone``: told when it has no containers left; at once if
        it has none now. ``grace_s``: instead of the pod's own grace period, if that is shorter than what is left."""
        if worker.state == ENDED:
            if gone is not None:
                gone()
            return
        worker.failure = failure
        if gone is not None:
            worker.on_gone.append(gone)
        self._stop(worker, worker.pod.spec.terminationGracePeriodSeconds if grace_s is None else max(grace_s, 1))

    def oom_kill(self, worker: Worker, name: str, limit_bytes: int | None = None) -> bool:
        """The kernel kills a container, which starts again if its policy says so. False: it does not run.

        ``limit_bytes``: its own limit, if it passed that; None: the memory of all pods or of the machine ran out.
        """
        for container in worker.containers:
            if container.name == name and container.is_up:
                event = log_events.OomKilled(**worker.named, container=name)
                self.log(event if limit_bytes is None else log_events.OomKilled(**event, limit_bytes=limit_bytes))
                self._starts.exit(worker, container, containers.KILLED, containers.OOM_KILLED)
                self._starts.advance(worker)
                return True
        return False

    def _watch_deadline(self, worker: Worker) -> None:
        """``activeDeadlineSeconds`` counts from the admission; it may be set, and be made shorter, while a pod runs."""
        spec = worker.pod.spec
        if not spec.HasField("activeDeadlineSeconds") or spec.activeDeadlineSeconds == worker.deadline_s:
            return
        worker.deadline_s = spec.activeDeadlineSeconds
        if worker.deadline_timer is not None:
            worker.deadline_timer.cancel()
        when_ns = max(worker.start_ns + worker.deadline_s * SECOND_NS, self._clock.now_ns())
        worker.deadline_timer = self._clock.call_at_ns(when_ns, self.kill, worker, DEADLINE_EXCEEDED)

    # --- ends --------------------------------------------------------------------------------------------------------

    def _stop(self, worker: Worker, wanted_s: int, since_ns: int | None = None) -> None:
        """Its containers shall stop. ``since_ns``: they had to then, not now."""
        state = worker.state
        if state == ENDED:
            self._gone(worker)
            return
        if state == WAITING:
            self.arrivals.remove(worker)
            self._gone(worker)
            return
        grace_s = terminations.effective_grace_s(worker.pod, wanted_s)
        if not worker.told_to_go:
            worker.told_to_go = True
            self.log(log_events.PodTerminating(**worker.named, grace_s=grace_s))
        if state == ACTIVE:
            self._take_down(worker, grace_s, self._clock.now_ns() if since_ns is None else since_ns)
        elif grace_s < worker.grace_s:
            # A second time can only shorten.
            self._terminations.hasten(worker, grace_s)

    def _take_down(self, worker: Worker, grace_s: int, asked_ns: int) -> None:
        worker.state = STOPPING
        worker.left = len(worker.containers)
        self._starts.give_up(worker)
        if self._probers is not None:
            self._probers.sync(worker)
        worker.stop_ns = asked_ns
        if any(one.is_up for one in worker.containers):
            self._terminations.begin(worker, grace_s, asked_ns)
        else:
            self._stopped(worker)

    def _stopped(self, worker: Worker) -> None:
        """No container is left. The status says so when the devices are unprepared, lest the claim be deallocated
        before."""
        if self.devices is not None and self.devices.holds(worker):
            self.devices.unprepare(worker, lambda: self._left(worker))
        else:
            self._left(worker)

    def _left(self, worker: Worker) -> None:
        """Neither containers nor devices are left."""
        if worker.ephemeral:
            self._ephemeral.stop(worker)
        if worker.told_to_go:
            forced = any(one.forced for one in worker.containers)
            self.log(log_events.PodTerminated(**worker.named, start=worker.stop_ns, forced=forced))
            if worker.failure is not None:
                worker.phase = pod_phases.FAILED
            elif not worker.phase:
                worker.phase = statuses.last_phase(worker.pod, worker.containers)
            self._release(worker)
            self.reports.report(worker)
            self._gone(worker)
            return
        mains = [one for one in worker.containers if one.kind == containers.MAIN]
        code = next((one.last.code for one in worker.containers if one.last is not None and one.last.code), 0)
        event = log_events.PodFinished(**worker.named, start=mains[0].started_ns, phase=worker.phase, exit_code=code)
        self._finished(worker)
        self.log(event)
        if worker.removed:
            del self.by_uid[worker.uid]
        else:
            self.reports.report(worker)

    def _finished(self, worker: Worker) -> None:
        """The containers have ended by themselves."""
        self._release(worker)

    def _gone(self, worker: Worker) -> None:
        """No containers are left, and the pod is being deleted, was killed, or finished by another component."""
        self._release(worker)
        if self.volumes is None:
            self._leave(worker)
        else:
            self.volumes.when_unmounted(worker, lambda: self._leave(worker))

    def _leave(self, worker: Worker) -> None:
        """Nothing of the pod is left."""
        if worker.removed:
            self.by_uid.pop(worker.uid, None)
        elif worker.pod.metadata.HasField("deletionTimestamp"):
            self.reports.delete(worker)

    # --- called by the starts ----------------------------------------------------------------------------------------

    def starting(self, worker: Worker) -> None:
        self.reports.starting(worker)
        self._probe(worker)

    def runs(self, worker: Worker, container: containers.Container) -> None:
        if worker.resize is not None:
            self.allocations.started(worker, container)
        if self._probers is not None:
            self._probers.sync(worker)

    def has_exited(self, worker: Worker) -> None:
        if self._probers is not None:
            self._probers.sync(worker)

    def hook_failed(self, worker: Worker, container: containers.Container) -> int:
        grace_s = int(worker.pod.spec.terminationGracePeriodSeconds)
        self._event(worker, recorders.WARNING, FAILED_POST_START, "PostStartHook failed")
        self._event(worker, recorders.NORMAL, KILLING, FAILED_POST_START)
        self.log(log_events.HookFailed(**worker.named, start=container.started_ns, container=container.name))
        return self._terminations.stopped_ns(worker, container, grace_s)

    def _pre_stop_ran(self, worker: Worker, failed_ns: int | None) -> None:
        if failed_ns is not None:
            told = worker, recorders.WARNING, FAILED_PRE_STOP, "PreStopHook failed"
            self._clock.call_at_ns(failed_ns, self._event, *told)
        if self._probers is not None:
            self._probers.sync(worker)

    def report(self, worker: Worker) -> None:
        self.reports.report(worker)
        if self.pressures is not None:
            self.pressures.changed(worker)

    def has_run(self, worker: Worker) -> None:
        """Apply the ``kemu.dev/finish`` annotation, now that the pod runs."""
        if worker.pod.spec.ephemeralContainers and worker.state == ACTIVE:
            self._ephemeral.look(worker)
        code = lives.finish(worker.pod)
        if code is None or not worker.has_run or worker.state != ACTIVE:
            return
        for container in worker.containers:
            if container.kind == containers.MAIN and container.state != containers.DONE:
                self._starts.note_exit(worker, container, code)
                container.state = containers.DONE
        self.completed(worker, pod_phases.FAILED if code else pod_phases.SUCCEEDED)

    def completed(self, worker: Worker, phase: str) -> None:
        worker.phase = phase
        grace_s = terminations.effective_grace_s(worker.pod, 0)
        self._take_down(worker, grace_s, self._clock.now_ns())

    def has_stopped(self, worker: Worker) -> None:
        if terminations.last_up(worker) is None:
            self._stopped(worker)
        elif self._terminations.turn(worker):
            self.reports.report(worker)

    # --- called by the allocation manager ----------------------------------------------------------------------------

    def fits(self, worker: Worker, pod: core_v1_pb2.Pod) -> predicates.Decision:
        return self.arrivals.fits(worker, pod)

    def claim(self, worker: Worker, claim: claims.Claim) -> None:
        assert worker.claim is not None
        self.usage.remove(worker.claim)
        worker.claim = claim
        self.usage.add(claim)

    def resize_restarts(self, worker: Worker, container: containers.Container) -> None:
        """``computePodResizeAction``: its resize policy asks for a restart, whatever the restart policy of the pod."""
        if container.state != containers.RUNNING:
            return
        container.is_replaced = True
        self._event(worker, recorders.NORMAL, KILLING, f"Container {container.name} resize requires restart")
        grace_s = int(worker.pod.spec.terminationGracePeriodSeconds)
        self.log(log_events.ContainerKilling(**worker.named, container=container.name, probe="", grace_s=grace_s))
        self._terminations.stop_one(worker, container, grace_s)

    def resized(self, worker: Worker, memory_limits: dict[str, int]) -> None:
        if self.pressures is not None:
            self.pressures.resized(worker, memory_limits)

    # --- called by the probers ---------------------------------------------------------------------------------------

    def passed_startup(self, worker: Worker) -> None:
        if worker.state == ACTIVE:
            self._starts.go_on(worker)

    def unhealthy(self, worker: Worker, container: containers.Container, kind: str) -> None:
        """Kill it, with the grace period of its probe, and start it anew unless its policy is Never, whatever its exit
        code will be (``computePodActions``)."""
        if container.state != containers.RUNNING:
            return
        pod = worker.pod
        spec = containers.spec_of(pod, container)
        probe = spec.livenessProbe if kind == "liveness" else spec.startupProbe
        of_pod_s = pod.spec.terminationGracePeriodSeconds
        own = probe.HasField("terminationGracePeriodSeconds")
        if container.kind == containers.SIDECAR:
            container.is_replaced = True
            message = f"Init container {container.name} failed {kind} probe"
        else:
            container.is_replaced = (spec.restartPolicy or pod.spec.restartPolicy) != "Never"
            message = f"Container {container.name} failed {kind} probe"
            if container.is_replaced:
                message += ", will be restarted"
        self._event(worker, recorders.NORMAL, KILLING, message)
        grace_s = int(probe.terminationGracePeriodSeconds if own else of_pod_s)
        self.log(log_events.ContainerKilling(**worker.named, container=container.name, probe=kind, grace_s=grace_s))
        self._terminations.stop_one(worker, container, grace_s)

    def _event(self, worker: Worker, event_type: str, reason: str, note: str) -> None:
        if self._recorder is not None:
            self._recorder.event(worker.pod, event_type, reason, reason, note)

    def log(self, event: log_events.Event) -> None:
        self._env.log(event)

    def _ns(self, time: meta_v1_pb2.Time) -> int:
        """A timestamp of an object by this actor's clock since the start of the run; what is older counts as its
        start."""
        return max(0, meta.unix_ns(time) - self._clock.unix_offset_ns)


def _refusal_of(decision: predicates.Decision) -> statuses.Refusal:
    return statuses.Refusal(decision.reason, decision.message)

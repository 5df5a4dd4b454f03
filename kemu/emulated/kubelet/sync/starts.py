"""Starting containers: image pulls, starts, restarts after an exit, and back-offs.

One container of a pod is started at a time: its image, its start, then the next. Init containers go first, each to its
end; a sidecar only has to start. Mirrors ``pkg/kubelet/kuberuntime`` (``computePodActions``,
``computeInitContainerActions``, ``SyncPod``, ``doBackOff``).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kemu.emulated.kubelet.images import pulls
from kemu.emulated.kubelet.node import boots
from kemu.emulated.kubelet.pods import containers, lives, sandboxes, statuses
from kemu.emulated.kubelet.pods.containers import (
    BACKING_OFF,
    DONE,
    IDLE,
    INIT,
    MAIN,
    PULLING,
    RUNNING,
    SIDECAR,
    STARTING,
    UNNOTICED,
    UNPULLED,
    Container,
)
from kemu.emulated.kubelet.pods.workers import ACTIVE, STOPPING, Worker
from kemu.emulated.kubelet.programs.residents import Answer, Programs
from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.kubelet.sync import image_volumes
from kemu.emulated.kubelet.sync.life_events import LifeEvents
from kemu.emulated.kubelet.volumes import references
from kemu.emulated.objects.pods import pod_phases
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog import events as log_events

FIRST_BACKOFF_S = 10.0
"""Before the second restart, and before the second pull; doubles with every further one. The first restart does not
wait, as in the kubelet."""

LONGEST_PULL_BACKOFF_S = 300.0

FORGIVEN_AFTER_NS = 600 * SECOND_NS
"""A container that ran longer starts anew with its back-off."""

RELIST_NS = SECOND_NS
"""From a failed pull until the kubelet reports the back-off, and from an OOM kill until it notices (relist period of
``pkg/kubelet/pleg``)."""

SYNC_AGAIN_NS = 10 * SECOND_NS
"""From a container that could not be created to the next try (``backOffPeriod``)."""

REPORT_START_AFTER_NS = 5 * SECOND_NS
"""Where statuses are written sparingly, a pod that runs sooner is reported Running at once, without the
ContainerCreating before."""


class StartHost(Protocol):
    """The owner of the pod."""

    def log(self, event: log_events.Event) -> None: ...

    def starting(self, worker: Worker) -> None:
        """Its containers are about to start."""

    def report(self, worker: Worker) -> None:
        """Its status has changed."""

    def runs(self, worker: Worker, container: Container) -> None:
        """A container of it has started."""

    def hook_failed(self, worker: Worker, container: Container) -> int:
        """Its postStart hook has failed and it is killed; returns when it will have stopped."""

    def has_exited(self, worker: Worker) -> None:
        """A container of it has exited."""

    def has_run(self, worker: Worker) -> None:
        """All of its main containers have started."""

    def completed(self, worker: Worker, phase: str) -> None:
        """Only its sidecars would start again."""

    def has_stopped(self, worker: Worker) -> None:
        """STOPPING: a container has ended."""


class _Look:
    """A look at what a container names, which can be cancelled as a pull can."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self) -> None:
        self._task.cancel()


class Starts:
    def __init__(
        self,
        env: Env,
        config: kubelet_configurations.Settings,
        puller: pulls.Pulls,
        host: StartHost,
        boot: boots.Boot = boots.BEFORE,
        events: LifeEvents | None = None,
        programs: Programs | None = None,
        boxes: sandboxes.Sandboxes | None = None,
    ) -> None:
        """``events``: None: the usual life of containers leaves no events. ``programs``: None: containers live as their
        pods say, whatever they run. ``boxes``: None: pods have no addresses."""
        self._boxes = boxes
        self._env = env
        self._clock = env.clock
        self._config = config
        self._pulls = puller
        self._images = puller.images
        self._host = host
        self._boot = boot
        self.events = events
        self._programs = programs
        self.names: references.Names | None = None
        """What has to be there; None: all is."""
        self.contents: references.Contents | None = None
        """What programs read of objects; None: nothing."""
        self._wanting: dict[Container, tuple[Worker, str]] = {}
        """Containers that wait until another pod has pulled this image, which they may not."""
        puller.on_pulled = self._image_has_come

    def begin(self, worker: Worker) -> None:
        """The pod has been admitted. The time that its start takes counts from ``worker.begun_ns``."""
        self.prepare(worker)
        self.go_on(worker)

    def prepare(self, worker: Worker) -> None:
        """The pod has been admitted, but has to wait before its containers start."""
        worker.containers = containers.of(worker.pod)
        worker.passed = 0
        worker.mains_to_start = len(worker.pod.spec.containers)
        self._host.starting(worker)

    def resume(self, worker: Worker) -> None:
        """The pod has been adopted: its containers run on, and the next ones start."""
        mains = [one for one in worker.containers if one.kind == MAIN]
        for container in worker.containers:
            if container.state == RUNNING and worker.state == ACTIVE:
                wanted = self._wanted(worker, container)
                if wanted:
                    self._env.spawn(self._look_and_resume(worker, container, wanted), f"sources of {worker.key}")
                    continue
                if self._programs is not None:
                    self._choose_course(worker, container)
                self.until_exit(worker, container)
        if worker.state != ACTIVE:
            return
        if any(one.kind == INIT and one.state == DONE and not one.has_succeeded for one in worker.containers):
            self._host.completed(worker, pod_phases.FAILED)
        elif all(one.state == DONE for one in mains):
            self._host.completed(worker, statuses.last_phase(worker.pod, worker.containers))
        else:
            self.go_on(worker)

    def go_on(self, worker: Worker) -> None:
        """Start the containers that can start, and report the pod if that takes long."""
        self.advance(worker)
        if worker.has_run or worker.state != ACTIVE:
            return
        busy = worker.busy
        if busy is None or busy.state == PULLING or busy.kind != MAIN or self._starts_late(worker):
            self._host.report(worker)

    def advance(self, worker: Worker) -> None:
        """Start containers in turn, as long as a start takes no time."""
        while worker.busy is None and worker.state == ACTIVE:
            container = _next(worker)
            if container is None:
                return
            self._fetch(worker, container)

    def _starts_late(self, worker: Worker) -> bool:
        container = worker.busy
        return container is not None and container.started_ns > worker.start_ns + REPORT_START_AFTER_NS

    # --- images ------------------------------------------------------------------------------------------------------

    def _fetch(self, worker: Worker, container: Container) -> None:
        """The container may start as soon as the images of the pod's volumes, and its own, are there."""
        volumes = image_volumes.of(worker.pod)
        if not volumes:
            self._fetch_own(worker, container)
            return

        def done(waited: bool) -> None:
            self._fetch_own(worker, container)
            if waited:
                self.go_on(worker)

        def failed(image: str, error: str) -> None:
            if error:
                self._not_pulled(worker, container, image, error, of_volume=True)
            else:
                self._may_not_pull(worker, container, image)
            self.go_on(worker)

        fetch = image_volumes.Fetch(
            worker,
            container,
            done,
            failed,
            puller=self._pulls,
            events=self.events,
            names=self.names,
            log=self._host.log,
            now_ns=self._clock.now_ns,
        )
        fetch.go_on(volumes)

    def _fetch_own(self, worker: Worker, container: Container) -> None:
        image, policy = container.image, container.pull_policy
        here = self._images.is_here(image)
        if here and policy != pulls.ALWAYS:
            if self.events is not None:
                self.events.present(worker, container, image)
            self._launch(worker, container)
        elif policy == pulls.NEVER:
            self._may_not_pull(worker, container, image)
        else:
            error = lives.pull_error(worker.pod, container)
            if not error and self.names is not None:
                error = self.names.pull_error(image)
            worker.busy = container
            container.state = PULLING
            if self.events is not None:
                self.events.pulling(worker, container, image)
            begun_ns = worker.begun_ns if not worker.has_sandbox else self._clock.now_ns()
            worker.pull = self._pulls.pull(image, bool(error), lambda: self._pulled(worker, container, error, begun_ns))
            if worker.pull is None:
                self._fetched(worker, container, error, begun_ns)

    def _may_not_pull(self, worker: Worker, container: Container, image: str) -> None:
        self._unpulled(worker, container, pulls.NEVER_PULLED, pulls.never_pulled_message(image))
        self._wanting[container] = worker, image

    def _pulled(self, worker: Worker, container: Container, error: str, begun_ns: int) -> None:
        """A pull that took its time is over."""
        worker.pull = None
        if not error:
            name, image = container.name, container.image
            self._host.log(log_events.ImagePulled(**worker.named, start=begun_ns, container=name, image=image))
        if not worker.has_sandbox:
            worker.begun_ns = self._clock.now_ns()
        self._fetched(worker, container, error, begun_ns)
        self.go_on(worker)

    def _fetched(self, worker: Worker, container: Container, error: str, begun_ns: int) -> None:
        worker.busy = None
        if not error:
            if self.events is not None:
                took_ns, size_bytes = max(0, self._clock.now_ns() - begun_ns), self._images.size_bytes(container.image)
                self.events.pulled(worker, container, took_ns, size_bytes, container.image)
            self._env.step("after-pull")
            container.pulls_failed = 0
            self._launch(worker, container)
            return
        self._not_pulled(worker, container, container.image, error)

    def _not_pulled(
        self, worker: Worker, container: Container, image: str, error: str, *, of_volume: bool = False
    ) -> None:
        """An image that the container needs cannot be pulled; it is tried again later."""
        delay_s = min(FIRST_BACKOFF_S * 2.0 ** min(container.pulls_failed, 64), LONGEST_PULL_BACKOFF_S)
        container.pulls_failed += 1
        event = log_events.ImagePullFailed(
            **worker.named, container=container.name, image=image, message=error, delay_s=delay_s
        )
        self._host.log(event)
        if self.events is not None:
            self.events.not_pulled(worker, container, error, image, of_volume=of_volume)
        self._unpulled(worker, container, pulls.PULL_FAILED, error)
        message = pulls.backing_off_message(image, error)
        retry_ns = self._clock.now_ns() + int(delay_s * SECOND_NS)
        self._at(
            container,
            self._clock.now_ns() + RELIST_NS,
            self._waits_to_pull,
            worker,
            container,
            image,
            message,
            retry_ns,
        )

    def _waits_to_pull(self, worker: Worker, container: Container, image: str, message: str, retry_ns: int) -> None:
        container.waiting, container.message = pulls.PULL_BACKING_OFF, message
        if self.events is not None:
            self.events.waits_to_pull(worker, container if image == container.image else None, image)
        self._at(container, retry_ns, self._again, worker, container)
        self._host.report(worker)

    def _unpulled(self, worker: Worker, container: Container, reason: str, message: str) -> None:
        container.state = UNPULLED
        container.waiting, container.message = reason, message
        self._host.report(worker)

    def _image_has_come(self, image: str) -> None:
        for container in [one for one, (_, wanted) in self._wanting.items() if wanted == image]:
            worker, _ = self._wanting.pop(container)
            self._at(container, self._clock.now_ns(), self._again, worker, container)

    def _again(self, worker: Worker, container: Container) -> None:
        """The pause before this container is over."""
        container.timer = None
        container.state = IDLE
        worker.passed = 0
        self.go_on(worker)

    # --- starts ------------------------------------------------------------------------------------------------------

    def _launch(self, worker: Worker, container: Container) -> None:
        """Create it as soon as there is all that its environment names."""
        names = self.names
        wanted = self._wanted(worker, container)
        spec = None if names is None and not wanted else containers.spec_of(worker.pod, container)
        if spec is None or not (wanted or (names is not None and names.are_in_environment(spec))):
            self._create(worker, container)
            return
        worker.busy = container
        container.state = PULLING
        worker.pull = _Look(self._env.spawn(self._look(worker, container, spec, wanted), f"names of {worker.key}"))

    def _wanted(self, worker: Worker, container: Container) -> list[tuple[str, str]]:
        """What its program reads of objects."""
        if self._programs is None or self.contents is None:
            return []
        return self._programs.wanted(worker.pod, containers.spec_of(worker.pod, container))

    async def _learn(self, worker: Worker, spec: core_v1_pb2.Container, wanted: list[tuple[str, str]]) -> None:
        assert self._programs is not None
        assert self.contents is not None
        self._programs.learn(worker.pod, spec, await self.contents.read(worker.pod, wanted))

    async def _look_and_resume(self, worker: Worker, container: Container, wanted: list[tuple[str, str]]) -> None:
        """A container that ran before this kubelet."""
        restarts = container.restarts
        await self._learn(worker, containers.spec_of(worker.pod, container), wanted)
        if container.state == RUNNING and container.restarts == restarts:
            self._choose_course(worker, container)
            self.until_exit(worker, container)

    async def _look(
        self, worker: Worker, container: Container, spec: core_v1_pb2.Container, wanted: list[tuple[str, str]]
    ) -> None:
        names, lacking = self.names, ""
        if names is not None and names.are_in_environment(spec):
            lacking = await names.lacking_in_environment(worker.pod, spec)
        if wanted and not lacking:
            await self._learn(worker, spec, wanted)
        worker.busy = worker.pull = None
        if not lacking:
            self._create(worker, container)
            self.go_on(worker)
            return
        if self.events is not None:
            self.events.not_configured(worker, container, lacking)
        self._unpulled(worker, container, references.CONFIG_ERROR, lacking)
        self._at(container, self._clock.now_ns() + SYNC_AGAIN_NS, self._look_again, worker, container)
        self.go_on(worker)

    def _look_again(self, worker: Worker, container: Container) -> None:
        worker.begun_ns = self._clock.now_ns()
        self._again(worker, container)

    def _create(self, worker: Worker, container: Container) -> None:
        pod, now_ns = worker.pod, self._clock.now_ns()
        if container.created_ns is None:
            container.created_ns = now_ns
        if self.events is not None:
            self.events.created(worker, container)
        when_ns = now_ns
        if not worker.has_sandbox:
            worker.has_sandbox = True
            said_s = lives.start_s(pod)
            start_s = said_s
            if start_s is None:
                usual = self._config.pod_start
                start_s = usual.draw(self._env.random) if usual.constant is None else usual.constant
            when_ns = max(now_ns, worker.begun_ns + int(start_s * SECOND_NS))
        own_s = lives.container_start_s(pod, container)
        if own_s:
            when_ns += int(own_s * SECOND_NS)
        if when_ns > now_ns:
            worker.busy = container
            container.state = STARTING
            container.started_ns = when_ns
            self._at(container, when_ns, self._started, worker, container)
        else:
            self._post_start(worker, container)

    def _started(self, worker: Worker, container: Container) -> None:
        container.timer = None
        worker.busy = None
        self._post_start(worker, container)
        self.go_on(worker)

    # --- postStart ---------------------------------------------------------------------------------------------------

    def _post_start(self, worker: Worker, container: Container) -> None:
        """The process has started. The pod waits for the hook of the container, and so does its status
        (``startContainer``)."""
        container.started_ns = now_ns = self._clock.now_ns()
        if container.last is not None and container.last.reason != containers.RESTARTING_ALL:
            container.restarts += 1
        if self._programs is not None:
            self._choose_course(worker, container)
        spec = containers.spec_of(worker.pod, container) if container.is_hooked else None
        if spec is None:
            self._run(worker, container)
            return
        worker.busy = container
        container.state = STARTING
        hook = spec.lifecycle.postStart
        hook_s, fails = lives.post_start_s(worker.pod, container, hook), False
        answer = self.run_hook(worker, container, hook, (lives.POST_START_SECONDS, lives.POST_START_ERROR))
        if answer is not None:
            hook_s, fails = answer.took_s, answer.code != 0
        if not math.isinf(hook_s):
            self._at(container, now_ns + int(hook_s * SECOND_NS), self._hook_done, worker, container, fails)

    def run_hook(
        self, worker: Worker, container: Container, hook: core_v1_pb2.LifecycleHandler, stated: Sequence[str]
    ) -> Answer | None:
        """What comes of the command of a hook. None: it has none, one of the annotations ``stated`` says what comes of
        it, or it is not understood: then it succeeds at once."""
        if self._programs is None or not hook.HasField("exec") or lives.states(worker.pod, container, stated):
            return None
        spec = containers.spec_of(worker.pod, container)
        now_s = self._clock.now_ns() / SECOND_NS
        return self._programs.run(self._pod(worker), spec, hook.exec.command, now_s, math.inf, takes_time=True)

    def _hook_done(self, worker: Worker, container: Container, fails: bool = False) -> None:
        container.timer = None
        if fails or lives.post_start_fails(worker.pod, container):
            stopped_ns = self._host.hook_failed(worker, container)
            self._at(container, stopped_ns, self._stopped_after_hook, worker, container)
            return
        worker.busy = None
        self._run(worker, container)
        self.go_on(worker)

    def _stopped_after_hook(self, worker: Worker, container: Container) -> None:
        container.timer = None
        worker.busy = None
        self.exit(worker, container, containers.KILLED if container.forced else 0)
        self.go_on(worker)

    # --- runs --------------------------------------------------------------------------------------------------------

    def _run(self, worker: Worker, container: Container) -> None:
        container.state = RUNNING
        container.forced = False
        if worker.has_several:
            event = log_events.ContainerStarted(**worker.named, container=container.name, restarts=container.restarts)
            self._host.log(event)
        if self.events is not None:
            self.events.started(worker, container)
        if self._env.crash_steps:
            self._env.step("after-start")
        first = not container.has_started
        container.has_started = True
        if first and container.kind == MAIN:
            worker.mains_to_start -= 1
            if not worker.mains_to_start:
                worker.has_run = True
                self._host.log(log_events.PodRunning(**worker.named, start=max(worker.start_ns, self._boot.at_ns)))
        self._host.runs(worker, container)
        if worker.has_run or worker.has_several:
            self._host.report(worker)
        if container.state == RUNNING:
            self.until_exit(worker, container)
        if worker.has_run:
            self._host.has_run(worker)

    def _choose_course(self, worker: Worker, container: Container) -> None:
        """What its program will do."""
        assert self._programs is not None
        container.hook = None
        started_s = (self._clock.unix_offset_ns + container.started_ns) / SECOND_NS
        container.course = self._programs.begin(
            self._pod(worker),
            containers.spec_of(worker.pod, container),
            is_init=container.kind == INIT,
            restarts=container.restarts,
            unix_s=started_s,
            now_s=container.started_ns / SECOND_NS,
        )

    def is_told(self, worker: Worker, container: Container, asked_ns: int) -> bool:
        """It gets SIGTERM then. False: it stops at once, or as the pod says; otherwise its course says when."""
        course = container.course
        if course is None or self._programs is None or container.kind == INIT:
            return False
        if lives.states(worker.pod, container, (lives.RUN_SECONDS, lives.SHUTDOWN_SECONDS)):
            return False
        found = self._programs.stop(
            self._pod(worker),
            containers.spec_of(worker.pod, container),
            restarts=container.restarts,
            unix_s=(self._clock.unix_offset_ns + container.started_ns) / SECOND_NS,
            after_s=(asked_ns - container.started_ns) / SECOND_NS,
            has_traps=course.has_traps,
        )
        container.course = found or course
        return found is not None

    def _pod(self, worker: Worker) -> core_v1_pb2.Pod:
        """As its containers know it."""
        return worker.pod if self._boxes is None else self._boxes.addressed(worker)

    def forget(self, worker: Worker) -> None:
        """The pod has gone, with its volumes."""
        if self._programs is not None:
            self._programs.forget(worker.pod)

    def until_exit(self, worker: Worker, container: Container) -> None:
        """It runs since ``started_ns``, until it exits by itself."""
        end_ns = exit_ns(worker, container)
        if end_ns is None:
            self._follow(worker, container)
            return
        if end_ns > self._clock.now_ns():
            self._at(container, end_ns, self._due, worker, container)
        else:
            self.exit(worker, container, lives.exit_code(worker.pod, container))

    def _follow(self, worker: Worker, container: Container) -> None:
        """Look again when its program goes on."""
        if self._programs is None or container.state != RUNNING:
            return
        next_s = self._programs.next_s(worker.pod, containers.spec_of(worker.pod, container))
        if next_s is not None:
            self._at(
                container, max(self._clock.now_ns(), math.ceil(next_s * SECOND_NS)), self._look_on, worker, container
            )

    def _look_on(self, worker: Worker, container: Container) -> None:
        container.timer = None
        assert self._programs is not None
        spec = containers.spec_of(worker.pod, container)
        outcome = self._programs.look(worker.pod, spec, self._clock.now_ns() / SECOND_NS)
        if outcome is not None:
            container.course = outcome
        self.until_exit(worker, container)
        self.advance(worker)

    def _due(self, worker: Worker, container: Container) -> None:
        container.timer = None
        self.exit(worker, container, lives.exit_code(worker.pod, container))
        self.advance(worker)

    # --- exits -------------------------------------------------------------------------------------------------------

    def exit(self, worker: Worker, container: Container, code: int, reason: str = "") -> None:
        """A container that was up has exited. What can start then has still to be started."""
        self.note_exit(worker, container, code, reason)
        if worker.state == STOPPING:
            container.state = DONE
            self._host.has_stopped(worker)
        elif container.restarts_all and containers.restarts_all(worker.pod, container, code):
            self._restart_all(worker, container)
        elif container.is_replaced or containers.restarts(worker.pod, container, code):
            self._restart(worker, container)
        else:
            container.state = DONE
            self._ended(worker, container, code)

    def _restart_all(self, worker: Worker, source: Container) -> None:
        """RestartAllContainers: the status says so; then all containers are removed, and begin anew in their order
        (``getContainersToReset``). There is no back-off, as no container is left that has failed."""
        source.resets = True
        self._host.report(worker)
        self._at(source, self._clock.now_ns(), self._reset_all, worker, source)

    def _reset_all(self, worker: Worker, source: Container) -> None:
        source.timer = None
        if worker.state != ACTIVE:
            return
        self._abandon(worker)
        for container in worker.containers:
            if container.is_up:
                self.note_exit(worker, container, containers.KILLED, containers.RESTARTING_ALL)
            cancel(container)
            containers.reset(container)
        worker.passed = 0
        self._host.report(worker)
        self.go_on(worker)

    def _abandon(self, worker: Worker) -> None:
        """What is being pulled or started."""
        if worker.pull is not None:
            worker.pull.cancel()
            worker.pull = None
        busy, worker.busy = worker.busy, None
        if busy is not None:
            cancel(busy)
            busy.state = IDLE

    def note_exit(self, worker: Worker, container: Container, code: int, reason: str = "") -> None:
        cancel(container)
        container.before = container.last
        now_ns, epoch_ns = self._clock.now_ns(), self._clock.unix_offset_ns
        container.last = containers.Exit(code, epoch_ns + container.started_ns, epoch_ns + now_ns, reason)
        if worker.has_several:
            start_ns, name = container.started_ns, container.name
            self._host.log(log_events.ContainerExited(**worker.named, start=start_ns, container=name, exit_code=code))
        container.state = DONE
        if self._programs is not None:
            self._programs.ended(worker.pod, containers.spec_of(worker.pod, container))
        if not container.is_replaced:
            self._host.has_exited(worker)

    def _ended(self, worker: Worker, container: Container, code: int) -> None:
        """For good."""
        if container.kind == INIT:
            if code:
                self._host.completed(worker, pod_phases.FAILED)
            else:
                self._host.report(worker)
        elif all(one.state == DONE for one in worker.containers if one.kind == MAIN):
            self._host.completed(worker, statuses.last_phase(worker.pod, worker.containers))
        else:
            self._host.report(worker)

    def _restart(self, worker: Worker, container: Container) -> None:
        now_ns = self._clock.now_ns()
        if now_ns - container.started_ns > FORGIVEN_AFTER_NS:
            container.crashes = 0
        crashes = container.crashes
        # Far beyond the longest pause a larger exponent would only overflow.
        longest_s = self._config.configuration.max_restart_period_s
        delay_s = min(FIRST_BACKOFF_S * 2.0 ** min(crashes - 1, 64), longest_s) if crashes else 0.0
        container.crashes += 1
        if container.is_replaced:
            container.is_replaced = False
            delay_s = self._replacement_pause_s(container, delay_s)
        container.backoff_s = delay_s
        assert container.last is not None
        event = log_events.ContainerRestarting(
            **worker.named,
            start=container.started_ns,
            exit_code=container.last.code,
            delay_s=delay_s,
            container=container.name,
        )
        self._host.log(event)
        if delay_s:
            container.state = BACKING_OFF
            self._host.has_exited(worker)
            if self.events is not None:
                self.events.waits_to_restart(worker, container)
            self._at(container, now_ns + int(delay_s * SECOND_NS), self._again, worker, container)
            self._host.report(worker)
        elif container.last.reason == containers.OOM_KILLED:
            # Until then its memory is free: started at once, it would take it from those that it was killed for.
            container.state = UNNOTICED
            self._at(container, now_ns + RELIST_NS, self._again, worker, container)
            self._host.report(worker)
        else:
            container.state = IDLE
            worker.passed = 0

    def _replacement_pause_s(self, container: Container, pause_s: float) -> float:
        """The sync that kills a container starts it anew, too, and knows only the exit before this one: while that is
        not older than the pause, the container waits, now for all of the pause (``doBackOff``)."""
        before = container.before
        if before is None:
            container.crashes -= 1
            return 0.0
        since_ns = self._clock.unix_offset_ns + self._clock.now_ns() - before.finished_unix_ns
        return pause_s if since_ns < pause_s * SECOND_NS else 0.0

    def _at(self, container: Container, when_ns: int, callback: Callable[..., None], *args: Any) -> None:
        cancel(container)
        container.timer = self._clock.call_at_ns(when_ns, callback, *args)

    def give_up(self, worker: Worker) -> None:
        """No container starts any more."""
        if worker.pull is not None:
            worker.pull.cancel()
            worker.pull = None
        worker.busy = None
        for container in worker.containers:
            if not container.is_up:
                cancel(container)
                container.state = DONE
                self._wanting.pop(container, None)


def cancel(container: Container) -> None:
    if container.timer is not None:
        container.timer.cancel()
        container.timer = None


def exit_ns(worker: Worker, container: Container) -> int | None:
    """When a running container exits by itself."""
    run_s = lives.run_s(worker.pod, container)
    return None if run_s is None else container.started_ns + int(run_s * SECOND_NS)


def _next(worker: Worker) -> Container | None:
    """Whose turn it is to be started."""
    found = worker.containers
    for index in range(worker.passed, len(found)):
        container = found[index]
        state, kind = container.state, container.kind
        if state == IDLE:
            return container
        if (kind == INIT and state != DONE) or (kind == SIDECAR and not _lets_pass(worker, container)):
            return None
        worker.passed = index + 1
    return None


def _lets_pass(worker: Worker, sidecar: Container) -> bool:
    """Whether the containers after a sidecar may start: it has passed its startup probe, or one of them has started
    before (``computeInitContainerActions``)."""
    if not sidecar.has_started or not sidecar.holds_start:
        return sidecar.has_started
    after = worker.containers[worker.containers.index(sidecar) + 1 :]
    return any(one.has_started for one in after)

"""The pods of one node: takes each from its arrival to the end of its containers.

Synchronous: news from the API server and timers move workers (:mod:`kemu.kubelet.workers`) from state to state; whether
a pod is taken is left to :mod:`kemu.kubelet.arrivals`, what shall be seen outside to :mod:`kemu.kubelet.reports`. A pod
counts on its node from its admission until its containers are gone, however long the API server knows it: terminating
pods count.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from kemu.client import clients
from kemu.kubelet import admission, arrivals, lives, reports, settings, statuses
from kemu.kubelet.workers import BACKING_OFF, ENDED, PULLING, RUNNING, STARTING, STOPPING, WAITING, Worker
from kemu.objects import meta
from kemu.runtime.env import SECOND_NS, Env

FIRST_BACKOFF_S = 10.0
"""Before the second restart; doubles with every further one. The first restart does not wait, as in the kubelet."""

KILLED = 137
"""The exit code of containers that had to be killed."""

REPORT_START_AFTER_NS = 5 * SECOND_NS
"""A pod that will run sooner is reported Running at once, without the ContainerCreating before: nobody acts on it, and
it is a write for every pod."""


class Pods:
    """``fresh_node`` reads the Node from the API server, for a second look before affinity alone refuses a pod."""

    def __init__(
        self,
        env: Env,
        client: clients.Client,
        config: settings.Settings,
        node_name: str,
        fresh_node: Callable[[], Awaitable[Any]],
    ) -> None:
        self.usage = admission.Usage()
        self.arrivals = arrivals.Arrivals(env, node_name, self.usage, self, fresh_node)
        self.by_uid: dict[str, Worker] = {}
        """All pods that the API server has for this node, and those whose containers have outlived their object."""
        self._env = env
        self._clock = env.clock
        self._settings = config
        self._node_name = node_name
        self._reports = reports.Reports(env, client, self.observe)
        self._images: dict[str, None] = {}

    def has_images(self, names: list[str]) -> None:
        """These need not be pulled."""
        self._images.update(dict.fromkeys(names))

    # --- news --------------------------------------------------------------------------------------------------------

    def observe(self, pod: Any, seen_ns: int | None = None) -> None:
        """The newest state of a pod of this node; older ones than already seen are ignored."""
        worker = self.by_uid.get(pod.metadata.uid)
        if worker is None:
            self._discover(pod, self._clock.now_ns() if seen_ns is None else seen_ns)
        elif _revision(pod) >= _revision(worker.pod):
            worker.pod = pod
            self._react(worker)

    def forget(self, pod: Any) -> None:
        """The API server does not know the pod any more. Containers that still run are stopped all the same."""
        worker = self.by_uid.get(pod.metadata.uid)
        if worker is None:
            return
        worker.removed = True
        if worker.state == ENDED:
            del self.by_uid[worker.uid]
        elif worker.state != STOPPING:
            self._stop(worker, worker.pod.spec.terminationGracePeriodSeconds)

    def _discover(self, pod: Any, seen_ns: int) -> None:
        worker = Worker(pod, seen_ns)
        self.by_uid[worker.uid] = worker
        status = pod.status
        if status.phase in statuses.TERMINAL:
            worker.state = ENDED
            self._react(worker)
        elif status.phase == statuses.RUNNING or status.HasField("startTime"):
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
        elif worker.state == ENDED or worker.state == STOPPING:
            return
        elif worker.pod.status.phase in statuses.TERMINAL:
            # Somebody else has declared it finished: its containers have to go.
            self._stop(worker, worker.pod.spec.terminationGracePeriodSeconds)
        elif worker.state in (RUNNING, BACKING_OFF):
            code = lives.finish(worker.pod)
            if code is not None:
                self._exit(worker, code, final=True)

    def _adopt(self, worker: Worker) -> None:
        """Admitted before this kubelet started: in an earlier life of it, or before the run began."""
        pod, now_ns = worker.pod, self._clock.now_ns()
        status = pod.status
        worker.start_ns = worker.started_ns = self._ns(status.startTime) if status.HasField("startTime") else now_ns
        in_back_off = False
        for container in status.containerStatuses:
            worker.restarts = max(worker.restarts, container.restartCount)
            state, last = container.state, container.lastState
            if state.HasField("running") and state.running.HasField("startedAt"):
                worker.started_ns = max(worker.started_ns, self._ns(state.running.startedAt))
            elif state.HasField("waiting"):
                in_back_off = True
            if last.HasField("terminated"):
                ended = last.terminated
                times = meta.unix_ns(ended.startedAt), meta.unix_ns(ended.finishedAt)
                worker.last = statuses.Exit(ended.exitCode, *times)
        self._take(worker, admission.claim_of(pod, running=True))
        metadata = pod.metadata
        if status.phase != statuses.RUNNING:
            self._pull(worker)
        elif in_back_off:
            self._run(worker)
        else:
            worker.state = RUNNING
            self._until_exit(worker)
            if not status.containerStatuses:
                self._reports.report(worker)
        if metadata.HasField("deletionTimestamp"):
            grace_s = metadata.deletionGracePeriodSeconds
            asked_ns = self._ns(metadata.deletionTimestamp) - grace_s * SECOND_NS
            self._stop(worker, grace_s, max(asked_ns, worker.started_ns))
        else:
            self._react(worker)

    # --- verdicts, from the arrivals ---------------------------------------------------------------------------------

    def admitted(self, worker: Worker, claim: admission.Claim) -> None:
        self._take(worker, claim)
        self._pull(worker)

    def refused(self, worker: Worker, decision: admission.Decision) -> None:
        worker.refusal = decision
        worker.state = ENDED
        self._reports.report(worker)

    def active(self) -> list[Worker]:
        return [worker for worker in self.by_uid.values() if worker.claim is not None]

    def kill(self, worker: Worker, failure: statuses.Failure, gone: Callable[[], None]) -> None:
        if worker.state == ENDED:
            gone()
            return
        worker.failure = failure
        worker.on_gone.append(gone)
        metadata, spec = worker.pod.metadata, worker.pod.spec
        deleting = metadata.HasField("deletionTimestamp")
        self._stop(worker, metadata.deletionGracePeriodSeconds if deleting else spec.terminationGracePeriodSeconds)

    def _take(self, worker: Worker, claim: admission.Claim) -> None:
        worker.claim = claim
        self.usage.add(claim)

    def _release(self, worker: Worker) -> None:
        """Its containers are gone."""
        worker.state = ENDED
        self._cancel(worker)
        if worker.claim is not None:
            self.usage.remove(worker.claim)
            worker.claim = None
        told, worker.on_gone = worker.on_gone, []
        for gone in told:
            gone()

    # --- life --------------------------------------------------------------------------------------------------------

    def _pull(self, worker: Worker) -> None:
        """Admitted: to the images, and from there to the containers. Counts from ``worker.start_ns``."""
        pulled_ns = worker.start_ns + self._pull_ns(worker)
        said_s = lives.start_s(worker.pod)
        start_s = self._settings.pod_start.draw(self._env.random) if said_s is None else said_s
        worker.started_ns = pulled_ns + int(start_s * SECOND_NS)
        if pulled_ns > self._clock.now_ns():
            worker.state = PULLING
            self._at(worker, pulled_ns)
        else:
            self._start(worker)
        if worker.started_ns > worker.start_ns + REPORT_START_AFTER_NS and worker.state != RUNNING:
            self._reports.report(worker)

    def _pull_ns(self, worker: Worker) -> int:
        """How long the images take that the node does not have, one after the other as in the kubelet."""
        distribution = self._settings.image_pull
        if distribution.constant == 0:
            return 0
        total_s = 0.0
        for container in worker.pod.spec.containers:
            image = container.image
            if image and image not in self._images:
                self._images[image] = None
                total_s += distribution.draw(self._env.random)
        return int(total_s * SECOND_NS)

    def _start(self, worker: Worker) -> None:
        worker.state = STARTING
        if worker.started_ns > self._clock.now_ns():
            self._at(worker, worker.started_ns)
        else:
            self._run(worker)

    def _run(self, worker: Worker) -> None:
        worker.state = RUNNING
        worker.started_ns = self._clock.now_ns()
        if worker.last is None:
            self._log("kubelet.running", worker, {"start": worker.start_ns})
        else:
            worker.restarts += 1
        self._reports.report(worker)
        self._until_exit(worker)
        self._react(worker)

    def _until_exit(self, worker: Worker) -> None:
        end_ns = _exit_ns(worker)
        if end_ns is None:
            return
        if end_ns > self._clock.now_ns():
            self._at(worker, end_ns)
        else:
            self._exit(worker, lives.exit_code(worker.pod))

    def _exit(self, worker: Worker, code: int, *, final: bool = False) -> None:
        """The containers have exited. ``final``: whatever the restart policy is."""
        now_ns, epoch_ns = self._clock.now_ns(), self._clock.epoch_unix_s * SECOND_NS
        worker.last = statuses.Exit(code, epoch_ns + worker.started_ns, epoch_ns + now_ns)
        policy = worker.pod.spec.restartPolicy
        if final or policy == "Never" or (policy == "OnFailure" and code == 0):
            worker.phase = statuses.FAILED if code else statuses.SUCCEEDED
            self._release(worker)
            data = {"start": worker.started_ns, "phase": worker.phase, "exit_code": code}
            self._log("kubelet.finished", worker, data)
            self._reports.report(worker)
            return
        self._restart(worker, now_ns)

    def _restart(self, worker: Worker, now_ns: int) -> None:
        longest_s = self._settings.max_restart_period_s
        if now_ns - worker.started_ns > 2 * longest_s * SECOND_NS:
            worker.crashes = 0
        crashes = worker.crashes
        # Far beyond the longest pause a larger exponent would only overflow.
        delay_s = min(FIRST_BACKOFF_S * 2.0 ** min(crashes - 1, 64), longest_s) if crashes else 0.0
        worker.crashes += 1
        worker.backoff_s = delay_s
        assert worker.last is not None
        data = {"start": worker.started_ns, "exit_code": worker.last.code, "delay_s": delay_s}
        self._log("kubelet.restarting", worker, data)
        if delay_s:
            worker.state = BACKING_OFF
            self._at(worker, now_ns + int(delay_s * SECOND_NS))
            self._reports.report(worker)
        else:
            self._run(worker)

    def _stop(self, worker: Worker, grace_s: int, since_ns: int | None = None) -> None:
        """Its containers shall stop. ``since_ns``: they were asked to then, not now."""
        state, now_ns = worker.state, self._clock.now_ns()
        if state == ENDED:
            self._gone(worker)
            return
        asked_ns = now_ns if since_ns is None else since_ns
        if state == STOPPING:
            # A second deletion can only shorten.
            if asked_ns + grace_s * SECOND_NS < worker.deadline_ns:
                worker.deadline_ns = asked_ns + grace_s * SECOND_NS
                self._until_stopped(worker)
            return
        if state == WAITING:
            self.arrivals.remove(worker)
            self._gone(worker)
            return
        worker.stop_ns = asked_ns
        self._log("kubelet.terminating", worker, {"grace_s": grace_s})
        if state == RUNNING:
            worker.state = STOPPING
            worker.deadline_ns = asked_ns + grace_s * SECOND_NS
            self._until_stopped(worker)
        else:
            self._stopped(worker)

    def _until_stopped(self, worker: Worker) -> None:
        by_itself_ns = worker.stop_ns + int(lives.shutdown_s(worker.pod) * SECOND_NS)
        exit_ns = _exit_ns(worker)
        if exit_ns is not None and exit_ns < by_itself_ns:
            by_itself_ns = exit_ns
        worker.forced = worker.deadline_ns < by_itself_ns
        end_ns = min(by_itself_ns, worker.deadline_ns)
        if end_ns <= self._clock.now_ns():
            self._stopped(worker)
        else:
            self._at(worker, end_ns)

    def _stopped(self, worker: Worker) -> None:
        self._log("kubelet.terminated", worker, {"start": worker.stop_ns, "forced": worker.forced})
        if worker.state == STOPPING:
            epoch_ns = self._clock.epoch_unix_s * SECOND_NS
            code = KILLED if worker.forced else 0
            worker.last = statuses.Exit(code, epoch_ns + worker.started_ns, epoch_ns + self._clock.now_ns())
        self._gone(worker)

    def _gone(self, worker: Worker) -> None:
        """No containers are left, and the pod is being deleted, was killed, or finished by somebody else."""
        self._release(worker)
        if worker.failure is not None and not worker.phase:
            worker.phase = statuses.FAILED
            self._reports.report(worker)
        if worker.removed:
            del self.by_uid[worker.uid]
        elif worker.pod.metadata.HasField("deletionTimestamp"):
            self._reports.delete(worker)

    # --- timers ------------------------------------------------------------------------------------------------------

    def _at(self, worker: Worker, when_ns: int) -> None:
        self._cancel(worker)
        worker.timer = self._clock.call_at_ns(when_ns, self._due, worker)

    def _cancel(self, worker: Worker) -> None:
        if worker.timer is not None:
            worker.timer.cancel()
            worker.timer = None

    def _due(self, worker: Worker) -> None:
        worker.timer = None
        state = worker.state
        if state == PULLING:
            self._log("kubelet.pulled", worker, {"start": worker.start_ns})
            self._start(worker)
        elif state in (STARTING, BACKING_OFF):
            self._run(worker)
        elif state == RUNNING:
            self._exit(worker, lives.exit_code(worker.pod))
        elif state == STOPPING:
            self._stopped(worker)

    def _ns(self, time: Any) -> int:
        """A timestamp of an object since the start of the run; what is older counts as its start."""
        return max(0, meta.unix_ns(time) - self._clock.epoch_unix_s * SECOND_NS)

    def _log(self, kind: str, worker: Worker, data: dict[str, Any]) -> None:
        self._env.log(kind, {"pod": worker.key, "uid": worker.uid, "node": self._node_name, **data})


def _revision(pod: Any) -> int:
    return int(pod.metadata.resourceVersion)


def _exit_ns(worker: Worker) -> int | None:
    """When running containers exit by themselves."""
    run_s = lives.run_s(worker.pod)
    return None if run_s is None else worker.started_ns + int(run_s * SECOND_NS)

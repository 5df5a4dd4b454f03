"""One of Omega's schedulers, on kemu: it decides about a whole job on a copy of the cluster, then commits all at once.

The queue holds jobs. An attempt copies what the informers have, holds the copy for the decision time, places the pods
of the job on it by randomised first fit (:mod:`experiments.published.omega.placements`), and sends all bindings in one
request. What was not bound, for whatever reason, joins the back of the queue a second later.

``config``: ``tJobSeconds``, ``tTaskSeconds``, ``seed`` (of the choices), ``allOrNothing``, ``coarse`` (bindings state
the generation of their node, for ``bindCheck: generation``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments.published.omega.actors.owners import COUNT_ANNOTATION, CPU, JOB_LABEL, MEMORY
from experiments.published.omega.placements import Placer
from kemu import errors
from kemu.emulated.client import clients, informers, sessions
from kemu.emulated.objects.amounts import quantities, requests
from kemu.emulated.objects.pods import bind_generations, pod_phases
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import own

RETRY_NS = SECOND_NS
MOST_IDLE_ATTEMPTS, MOST_ATTEMPTS = 100, 1_000
"""After more, without a single task placed and altogether, a job is given up."""

TRANSACTION = "omega.transaction"
"""Run log: an attempt has ended."""


class Job:
    """The pods of one job that wait for a node."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pods: dict[str, Any] = {}
        """By name; those without a node, in the order of their numbers."""
        self.missing = 0
        """Pods that were created with those here, and have not been seen yet."""
        self.queued = False
        """In the queue, being decided about, or in its backoff."""
        self.attempts = 0
        self.placed = 0


class _News:
    """Handles the events of one informer, and wakes the scheduler after each batch of them."""

    def __init__(self, scheduler: OmegaScheduler, changed: Callable[[Any], None], gone: Callable[[Any], None]) -> None:
        self._scheduler = scheduler
        self._changed = changed
        self._gone = gone

    def on_add(self, obj: Any) -> None:
        self._changed(obj)

    def on_update(self, old: Any, new: Any) -> None:
        self._changed(new)

    def on_delete(self, old: Any) -> None:
        self._gone(old)

    def on_batch_end(self) -> None:
        news, self._scheduler.news = self._scheduler.news, None
        if news is not None and not news.done():
            news.set_result(None)


class OmegaScheduler:
    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        settings = config["config"]
        self.env = env
        self.clock = env.clock
        self.name = config["name"]
        self.t_job_s, self.t_task_s = settings["tJobSeconds"], settings["tTaskSeconds"]
        self.seed = settings["seed"]
        self.all_or_nothing, self.coarse = settings["allOrNothing"], settings["coarse"]
        self.client = clients.Client(env, config["apiserver"], shares=True)
        self.queue: deque[Job] = deque()
        self.arrived = asyncio.Event()
        self.jobs: dict[int, Job] = {}
        self.machines: list[str] = []
        """Names of the nodes."""
        self.numbers: dict[str, int] = {}
        """Of machines, by name."""
        self.room: list[int] = []
        """Tasks that still fit, by machine."""
        self.generations: list[int] = []
        self.placed: dict[str, int] = {}
        """The machines of the pods that take room, by pod."""
        self.news: asyncio.Future[None] | None = None
        """Of whoever waits for the informers."""
        self.nodes = informers.Informer(self.client, "nodes", handler=_News(self, self.node_changed, self.node_changed))
        self.pods = informers.Informer(self.client, "pods", handler=_News(self, self.pod_changed, self.pod_gone))

    async def run(self) -> None:
        await self.nodes.synced()
        self.machines = sorted(self.nodes.store, key=lambda name: int(name.rpartition("-")[2]))
        task = {"cpu": quantities.milli(CPU), "memory": quantities.value(MEMORY)}
        for number, name in enumerate(self.machines):
            node = self.nodes.store[name]
            allocatable = requests.resource_list(node.status.allocatable)
            self.numbers[name] = number
            self.room.append(min(allocatable[resource] // amount for resource, amount in task.items()))
            self.generations.append(bind_generations.of(node))
        placer = Placer(self.seed, len(self.machines))
        await self.pods.synced()
        self.env.ready()
        await self.clock.started()
        while True:
            while not self.queue:
                self.arrived.clear()
                await self.arrived.wait()
            await self.attempt(self.queue.popleft(), placer)

    async def attempt(self, job: Job, placer: Placer) -> None:
        room, generations = self.room.copy(), self.generations.copy()
        pods = list(job.pods.values())
        job.attempts += 1
        started_ns = self.clock.now_ns()
        decision_s = self.t_job_s + self.t_task_s * len(pods)
        await self.clock.sleep_until_ns(started_ns + round(decision_s * SECOND_NS))
        claims = placer.place(len(pods), room, generations)
        bindings = [
            clients.Binding(
                "default",
                pod.metadata.name,
                pod.metadata.uid,
                self.machines[claim.machine],
                claim.sequence if self.coarse else None,
            )
            for pod, claim in zip(pods, claims, strict=False)
        ]
        conflicts = 0
        if bindings:
            commit = await self.client.commit(bindings, all_or_nothing=self.all_or_nothing)
            for pod, result in zip(pods, commit.results, strict=False):
                if not isinstance(result, errors.ApiError):
                    del job.pods[pod.metadata.name]
                    job.placed += 1
                elif isinstance(result, errors.NotFound):
                    del job.pods[pod.metadata.name]
                else:
                    conflicts += 1
            if commit.refused_by is not None:
                conflicts = commit.refused_by + 1  # the others were not checked
            await self.has_seen(bindings, commit)
        self.env.log(
            own(
                TRANSACTION,
                {
                    "job": job.number,
                    "attempt": job.attempts,
                    "started": started_ns,
                    "pods": [one.name for one in bindings],
                    "machines": [claim.machine for claim in claims],
                    "placed": len(bindings) - sum(one.name in job.pods for one in bindings),
                    "conflicts": conflicts,
                },
            ),
        )
        job.queued = False
        if job.pods and not self.is_given_up(job):
            job.queued = True
            self.clock.call_at_ns(self.clock.now_ns() + RETRY_NS, self.enqueue, job)

    def is_given_up(self, job: Job) -> bool:
        return job.attempts > MOST_ATTEMPTS or (not job.placed and job.attempts > MOST_IDLE_ATTEMPTS)

    def enqueue(self, job: Job) -> None:
        job.queued = True
        self.queue.append(job)
        self.arrived.set()

    async def has_seen(self, bindings: Sequence[clients.Binding], commit: sessions.Commit) -> None:
        """What came of a commit is in the next copy. Where watches take no time, neither does this."""
        bound = [
            f"{one.metadata.namespace}/{one.metadata.name}"
            for one in commit.results
            if not isinstance(one, errors.ApiError)
        ]
        counted = bindings[: commit.refused_by] if commit.refused_by is not None else bindings
        raised = [
            (self.numbers[one.node], one.node_generation)
            for index, one in enumerate(counted)
            if one.node_generation is not None
            and (commit.refused_by is not None or not isinstance(commit.results[index], errors.ApiError))
        ]
        store = self.pods.store
        while True:
            waiting = [key for key in bound if key in store and not store[key].spec.nodeName]
            if not waiting and all(self.generations[machine] > generation for machine, generation in raised):
                return
            self.news = asyncio.get_running_loop().create_future()
            await self.news

    # --- news --------------------------------------------------------------------------------------------------------

    def node_changed(self, node: Any) -> None:
        if self.numbers:
            self.generations[self.numbers[node.metadata.name]] = bind_generations.of(node)

    def pod_changed(self, pod: Any) -> None:
        name = pod.metadata.name
        if pod.spec.nodeName:
            placed = self.placed
            if pod_phases.is_terminal(pod):
                self.pod_gone(pod)
            elif name not in placed:
                machine = placed[name] = self.numbers[pod.spec.nodeName]
                self.room[machine] -= 1
        elif pod.spec.schedulerName == self.name and not pod_phases.is_terminal(pod):
            self.pod_waits(pod)

    def pod_gone(self, pod: Any) -> None:
        machine = self.placed.pop(pod.metadata.name, None)
        if machine is not None:
            self.room[machine] += 1

    def pod_waits(self, pod: Any) -> None:
        name, number = pod.metadata.name, int(pod.metadata.labels[JOB_LABEL])
        job = self.jobs.get(number)
        if job is None:
            job = self.jobs[number] = Job(number)
        if name in job.pods:
            return
        if not job.missing:
            job.missing = int(pod.metadata.annotations[COUNT_ANNOTATION])
        job.pods[name] = pod
        job.missing -= 1
        if not job.missing and not job.queued:
            self.enqueue(job)

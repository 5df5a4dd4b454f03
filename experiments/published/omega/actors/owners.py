"""The owner of the jobs: an actor that creates the pods of each job when it arrives, and removes those that have ended.

It stands for the job controllers of a cluster. A pod that a kubelet rejects gets a successor a second later, after its
backoff. Its place in a scenario is among the schedulers, where actors of one's own are named; no pod names it as its
scheduler.

``config``: ``seed``, ``durationMean``, ``lengthSeconds`` (the job list), ``batchSchedulers`` (batch jobs are dealt out
in turn), ``replaceAfterSeconds``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.published.omega import jobs as job_lists
from experiments.published.omega.configurations import dealt
from kemu import errors
from kemu.emulated.client import clients, informers
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import own

JOB_LABEL = "job"
"""The place of the job in its list, from 0."""
COUNT_ANNOTATION = "example.com/created-together"
"""How many pods of the job were created in the same instant: a scheduler waits until it has seen them all."""
REJECTED = "omega.rejected"
"""Run log: a kubelet has rejected a pod."""

CPU, MEMORY = "1", "2Gi"


class Owner:
    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        settings = config["config"]
        self.env = env
        self.client = clients.Client(env, config["apiserver"], shares=True)
        self.jobs = job_lists.drawn(settings["durationMean"], settings["seed"], settings["lengthSeconds"])
        self.schedulers = list(dealt(self.jobs, settings["batchSchedulers"]))
        self.replace_after_ns = int(settings["replaceAfterSeconds"] * SECOND_NS)
        self.created = [0] * len(self.jobs)
        """How many pods each job has had."""
        self.rejected: dict[int, int] = {}
        """By job: those of this instant, whose successors come together."""
        ended = informers.Callbacks(on_add=self.pod_ended)
        over = "status.phase!=Pending,status.phase!=Running"
        self.pods = informers.Informer(self.client, "pods", field_selector=over, handler=ended)

    async def run(self) -> None:
        await self.pods.synced()
        self.env.ready()
        await self.env.clock.started()
        for number, job in enumerate(self.jobs):
            await self.env.clock.sleep_until_ns(round(job.arrival_s * SECOND_NS))
            self.create(number, job.tasks)

    def create(self, number: int, count: int) -> None:
        """So many pods of a job, in one message to the API server."""
        job = self.jobs[number]
        pod = core_v1_pb2.Pod()
        pod.metadata.namespace = "default"
        pod.metadata.labels[JOB_LABEL] = str(number)
        pod.metadata.annotations["kemu.dev/run-seconds"] = f"{job.duration_s:.9f}"
        pod.metadata.annotations[COUNT_ANNOTATION] = str(count)
        pod.spec.schedulerName = self.schedulers[number]
        pod.spec.restartPolicy = "Never"
        pod.spec.terminationGracePeriodSeconds = 0
        container = pod.spec.containers.add(name="main", image="task")
        container.resources.requests["cpu"].string = CPU
        container.resources.requests["memory"].string = MEMORY
        first = self.created[number]
        self.created[number] += count
        for index in range(first, first + count):
            pod.metadata.name = f"job-{number}-{index}"
            self.env.spawn(self.client.create(pod), "create")

    def pod_ended(self, pod: Any) -> None:
        self.env.spawn(self.remove(pod.metadata.name), "remove")
        if pod.status.phase != "Failed":
            return
        number = int(pod.metadata.labels[JOB_LABEL])
        data = {"job": number, "pod": pod.metadata.name, "node": pod.spec.nodeName, "reason": pod.status.reason}
        self.env.log(own(REJECTED, data))
        if number not in self.rejected:
            when_ns = self.env.clock.now_ns() + self.replace_after_ns
            self.env.clock.call_at_ns(when_ns, self.replace, number)
        self.rejected[number] = self.rejected.get(number, 0) + 1

    def replace(self, number: int) -> None:
        self.create(number, self.rejected.pop(number))

    async def remove(self, name: str) -> None:
        try:
            await self.client.delete("pods", name, "default", grace_period_seconds=0)
        except errors.NotFound:
            return

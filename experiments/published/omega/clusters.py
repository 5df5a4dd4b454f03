"""The configuration of a row as a scenario of kemu, and its run: what the schedulers log becomes an outcome.

Nothing takes time but the decisions: no latency, no start of a container. What the experiment does not look at is left
out: Event objects, leases, statuses that nobody acts on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.published.omega.actors.owners import REJECTED
from experiments.published.omega.actors.schedulers import TRANSACTION
from experiments.published.omega.configurations import Configuration
from experiments.published.omega.jobs import BATCH, SERVICE, Job
from experiments.published.omega.outcomes import Outcome, Transaction
from kemu.lab.scenario import forms
from kemu.lab.scenario.playing import judging, plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.env import SECOND_NS
from kemu.runtime.sim.simulation import SimRuntime

NO_TIME = (
    "apiLatency",
    "watchLatency",
    "storeLatency",
    "schedulingCycle",
    "bind",
    "kubeletSync",
    "podStart",
    "imagePull",
)
ACTORS = "experiments.published.omega.actors"
RETRY_S = 1.0


KUBELETS = "kubelets reject"
"""A variant: nothing is checked at bind, as in Kubernetes."""
REAL_TIMES = "kubelets reject, real times"
"""A variant: that, with :data:`TIMES_APART`."""
TIMES_APART: dict[str, Any] = {
    "apiLatency": {"lognormal": {"median": "250us", "p99": "2ms"}},
    "storeLatency": {"lognormal": {"median": "150us", "p99": "1ms"}},
    "fsync": {"lognormal": {"median": "1.5ms", "p99": "9ms"}},
    "watchLatency": {"lognormal": {"median": "3ms", "p99": "20ms"}},
    "schedulingCycle": {"base": {"lognormal": {"median": "300us", "p99": "3ms"}}, "perNode": "1.4us"},
    "kubeletSync": {"lognormal": {"median": "200ms", "p99": "730ms"}},
    "podStart": {"lognormal": {"median": "1.2s", "p99": "3.5s"}},
    "imagePull": {"lognormal": {"median": "2s", "p99": "60s"}},
}
"""Published times of clusters whose machines stand apart: round trips within a cloud region (evanjones.ca, Network
latencies, 2021), the disk that etcd asks for (etcd.io, Hardware recommendations), and what kubemark runs leave for the
rest (kubernetes/kubernetes#42000, #24532, #3954; kube-burner/kube-burner#200; CCGrid 2023 for images)."""
KUBE_SCHEDULER = "kube-scheduler"
"""A variant: kubelets reject, and the schedulers are kemu's own: one pod at a time, as much time for each task."""
VARIANTS = ("", KUBELETS, REAL_TIMES, KUBE_SCHEDULER)

MEAN_TASKS = 10.5
"""Of a job."""


def cycle_s(configuration: Configuration) -> float:
    """Of kube-scheduler: so long that a task takes it as much time as Omega's batch scheduler."""
    return round(configuration.t_task_s + configuration.t_job_batch_s / MEAN_TASKS, 6)


def spec(configuration: Configuration, length_s: float, *, variant: str = "") -> dict[str, Any]:
    """The scenario. ``variant``: one of :data:`VARIANTS`."""
    check = "none" if variant else "generation" if configuration.coarse else "capacity"
    owner = {
        "seed": configuration.seed,
        "durationMean": configuration.duration_mean,
        "lengthSeconds": length_s,
        "batchSchedulers": configuration.batch_schedulers,
        "replaceAfterSeconds": RETRY_S,
    }
    schedulers: list[dict[str, Any]] = [
        {
            "name": name,
            "factory": f"{ACTORS}.schedulers:OmegaScheduler",
            "config": {
                "tJobSeconds": t_job_s,
                "tTaskSeconds": configuration.t_task_s,
                "seed": configuration.seed,
                "allOrNothing": configuration.all_or_nothing,
                "coarse": configuration.coarse and check == "generation",
            },
        }
        for name, _, t_job_s in configuration.schedulers()
    ]
    timing: dict[str, Any] = dict(TIMES_APART) if variant == REAL_TIMES else dict.fromkeys(NO_TIME, 0)
    if variant == KUBE_SCHEDULER:
        timing["schedulingCycle"] = f"{cycle_s(configuration):.6f}s"
        backoff = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
        schedulers = [{"name": one["name"], "config": backoff} for one in schedulers]
    schedulers.append({"name": "owner", "factory": f"{ACTORS}.owners:Owner", "config": owner})
    room = configuration.room
    return {
        "seed": configuration.seed,
        "duration": f"{length_s:g}s",
        "nodes": [
            {
                "namePrefix": "node-",
                "count": configuration.machines,
                "allocatable": {"cpu": str(room), "memory": f"{4 * room}Gi", "pods": "110"},
            }
        ],
        "schedulers": schedulers,
        "apiServers": {"bindCheck": check},
        "store": {"fsync": "none"},
        "controllers": [],
        "eventObjects": "none",
        "podStatuses": "sparing",
        "timing": timing,
    }


class Watcher:
    """Collects from the run log what an outcome is made of."""

    def __init__(self, configuration: Configuration, jobs: Sequence[Job], length_s: float) -> None:
        self._configuration = configuration
        self._jobs = jobs
        self._length_s = length_s
        self._classes = {f"scheduler/{name}/0": (name, of) for name, of, _ in configuration.schedulers()}
        self._transactions: list[Transaction] = []
        self._by_pod: dict[str, int] = {}
        """The transaction that bound it."""
        self._waits: dict[str, list[float]] = {BATCH: [], SERVICE: []}
        self._left = [job.tasks for job in jobs]
        self._cycle_s = cycle_s(configuration)
        self._taken = 0
        """Tasks that run now."""
        self._samples: list[int] = []
        """Of these, at every whole second."""
        self.rejected = 0
        """Pods, by kubelets."""
        self._running: dict[str, int] = {}
        """By kubelet."""
        self.most_on_a_node = 0
        """Pods that ran on one node at the same time, at most."""

    def take(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        while len(self._samples) * SECOND_NS < time_ns:
            self._samples.append(self._taken)
        if kind == TRANSACTION:
            self._add(time_ns, actor, data)
        elif kind == "sched.bind" and data["ok"]:
            self._add_binding(time_ns, actor, data)
        elif kind == "kubelet.running":
            self._taken += 1
            count = self._running[actor] = self._running.get(actor, 0) + 1
            self.most_on_a_node = max(self.most_on_a_node, count)
        elif kind == "kubelet.finished":
            self._taken -= 1
            self._running[actor] -= 1
        elif kind == REJECTED:
            self.rejected += 1
            index = self._by_pod[data["pod"]]
            one = self._transactions[index]
            self._transactions[index] = one._replace(placed=one.placed - 1, conflicts=one.conflicts + 1)
            self._left[data["job"]] += 1

    def _add(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        name, scheduler_class = self._classes[actor]
        number, started_ns = data["job"], data["started"]
        for pod in data["pods"]:
            self._by_pod[pod] = len(self._transactions)
        self._transactions.append(
            Transaction(
                name,
                scheduler_class,
                number,
                time_ns / SECOND_NS,
                (time_ns - started_ns) / SECOND_NS,
                tuple(data["machines"]),
                data["placed"],
                data["conflicts"],
            )
        )
        self._left[number] -= data["placed"]
        if data["attempt"] == 1:
            self._waits[scheduler_class].append(started_ns / SECOND_NS - self._jobs[number].arrival_s)

    def _add_binding(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """Of kemu's scheduler: a transaction of one claim."""
        name, scheduler_class = self._classes[actor]
        pod = data["pod"].partition("/")[2]
        number = int(pod.split("-")[1])
        machine = int(data["node"].rpartition("-")[2]) - 1
        self._by_pod[pod] = len(self._transactions)
        one = Transaction(name, scheduler_class, number, time_ns / SECOND_NS, self._cycle_s, (machine,), 1, 0)
        self._transactions.append(one)
        if self._left[number] == self._jobs[number].tasks:
            waited_s = time_ns / SECOND_NS - self._cycle_s - self._jobs[number].arrival_s
            self._waits[scheduler_class].append(waited_s)
        self._left[number] -= 1

    def outcome(self) -> Outcome:
        """After the run."""
        while len(self._samples) <= self._length_s:
            self._samples.append(self._taken)
        unfinished = {BATCH: 0, SERVICE: 0}
        for job, left in zip(self._jobs, self._left, strict=True):
            if left:
                unfinished[job.scheduler_class] += 1
        configuration = self._configuration
        utilisation = sum(self._samples) / len(self._samples) / (configuration.machines * configuration.room)
        return Outcome(configuration, self._length_s, self._transactions, self._waits, utilisation, unfinished)


def run(configuration: Configuration, jobs: Sequence[Job], length_s: float, *, variant: str = "") -> Watcher:
    """``jobs``: those that arrive within ``length_s``. The log is not kept, only looked at."""
    scenario = forms.load(spec(configuration, length_s, variant=variant), name="omega")
    watcher = Watcher(configuration, jobs, length_s)
    play(scenario, watcher)
    return watcher


def play(scenario: Scenario, watcher: Watcher) -> judging.End:
    """The run, without a judge."""
    recorder = plays.Recorder(watcher.take, scenario)
    runtime = SimRuntime(scenario.seed, recorder, scenario.timing, None)
    return plays.run(runtime, plays.drive(runtime, scenario, recorder, Heartbeats(scenario, "sim")))

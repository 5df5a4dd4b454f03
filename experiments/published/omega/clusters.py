"""The configuration of a row as a scenario of kemu, and its run: what the schedulers log becomes an outcome.

Nothing takes time but the decisions: no latency, no start of a container. What the experiment does not look at is left
out: Event objects, leases, statuses that nobody acts on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.published.omega.configurations import Configuration
from experiments.published.omega.jobs import BATCH, SERVICE, Job
from experiments.published.omega.outcomes import Outcome, Transaction
from experiments.published.omega.owners import REJECTED
from experiments.published.omega.schedulers import TAKEN, TRANSACTION
from kemu.api import scenario_forms
from kemu.runtime.env import SECOND_NS
from kemu.runtime.sim.simulation import SimRuntime
from kemu.scenario.playing import judging, plays
from kemu.scenario.playing.heartbeats import Heartbeats
from kemu.scenario.scenarios import Scenario

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
MODULE = "experiments.published.omega"
RETRY_S = 1.0


def spec(configuration: Configuration, length_s: float, *, bind_check: str = "") -> dict[str, Any]:
    """The scenario. ``bind_check``: another one than that of the configuration."""
    check = bind_check or ("generation" if configuration.coarse else "capacity")
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
            "factory": f"{MODULE}.schedulers:OmegaScheduler",
            "config": {
                "tJobSeconds": t_job_s,
                "tTaskSeconds": configuration.t_task_s,
                "seed": configuration.seed,
                "allOrNothing": configuration.all_or_nothing,
                "coarse": configuration.coarse and check == "generation",
                "samples": name == "service",
            },
        }
        for name, _, t_job_s in configuration.schedulers()
    ]
    schedulers.append({"name": "owner", "factory": f"{MODULE}.owners:Owner", "config": owner})
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
        "timing": dict.fromkeys(NO_TIME, 0),
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
        self._samples: list[int] = []
        self.rejected = 0
        """Pods, by kubelets."""

    def take(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if kind == TRANSACTION:
            self._add(time_ns, actor, data)
        elif kind == TAKEN:
            self._samples.append(data["tasks"])
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

    def outcome(self) -> Outcome:
        unfinished = {BATCH: 0, SERVICE: 0}
        for job, left in zip(self._jobs, self._left, strict=True):
            if left:
                unfinished[job.scheduler_class] += 1
        configuration = self._configuration
        utilisation = sum(self._samples) / len(self._samples) / (configuration.machines * configuration.room)
        return Outcome(configuration, self._length_s, self._transactions, self._waits, utilisation, unfinished)


def run(configuration: Configuration, jobs: Sequence[Job], length_s: float, *, bind_check: str = "") -> Watcher:
    """``jobs``: those that arrive within ``length_s``. The log is not kept, only looked at."""
    scenario = scenario_forms.load(spec(configuration, length_s, bind_check=bind_check), name="omega")
    watcher = Watcher(configuration, jobs, length_s)
    play(scenario, watcher)
    return watcher


def play(scenario: Scenario, watcher: Watcher) -> judging.End:
    """The run, without a judge."""
    recorder = plays.Recorder(watcher.take, scenario)
    runtime = SimRuntime(scenario.seed, recorder, scenario.timing, None)
    return plays.run(runtime, plays.drive(runtime, scenario, recorder, Heartbeats(scenario, "sim")))

"""Judges a run: feeds its events to the checks as they come, then judges what the scenario expects.

    judge = Judge(scenario)
    for event in log:
        judge.feed(*event)
    judged = judge.conclude(end)
    print(judged.verdict, judged.data("sim", digest))

Role: between :mod:`kemu.lab.checks` and :mod:`kemu.lab.scenario.verdicts` on one side, and the source of the events on
the other:
:mod:`runner` reads them from a run log, :mod:`kemu.lab.exploration.executions` judges while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.scheduler.cache.pod_groups import GANG
from kemu.lab.checks import costs, groups, registry
from kemu.lab.checks.counters import measured
from kemu.lab.checks.history import History
from kemu.lab.checks.limits import Autoscaled, Limits, NodeGroup
from kemu.lab.checks.results import Result
from kemu.lab.checks.scheduling import ledgers, unbound, waiting
from kemu.lab.scenario import headlines, verdicts
from kemu.lab.scenario.loading import clusters, controllers, references
from kemu.lab.scenario.playing import workloads
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime import runtimes
from kemu.runtime.env import SECOND_NS

BUSY_S = 10.0
"""Real time in which a machine that is busy with a run on Ray may deliver nothing."""

LOST = "lost"
"""What the run needed was gone before its time: Ray, a machine, the place of a cell."""
FULL = "full"
"""The run went on, but its log took no more: what it says is judged as if the run had ended there."""


@dataclass
class End:
    """How a run ended."""

    reason: str
    """``idle deadline stopped interrupted lost full``."""
    now_ns: int
    note: str = ""
    """What the headline says of it."""


class Judge:
    """The judge of one run. ``speed``: virtual seconds for each real one; 0 in virtual time."""

    def __init__(self, scenario: Scenario, speed: float = 0.0) -> None:
        self.scenario = scenario
        """Scenario whose expectations are judged: another one may take its place if it :func:`asks` for the same."""
        self._checks = registry.Judge(disabled=scenario.checks.disable, within=_limits(scenario, speed))
        self.history = self._checks.history
        """History of the events so far."""
        self.history.window = scenario.measure
        self.feed = self._checks.feed
        """Takes the next event; a ``LogSink``."""

    def conclude(self, end: End) -> Judged:
        """When every event has been fed."""
        history = self.history
        checks = self._checks.results()
        history.now_ns = max(history.now_ns, end.now_ns)
        scenario = self.scenario
        outcome = verdicts.Outcome(
            history,
            checks,
            end.now_ns,
            finished=end.reason not in ("interrupted", LOST, FULL),
            idle=end.reason == "idle",
            meant=meant(scenario, end.now_ns),
        )
        judgements = [verdicts.judge(expectation, outcome) for expectation in scenario.expectations]
        return Judged(scenario, end, history, checks, judgements)


def asks(scenario: Scenario, speed: float = 0.0) -> tuple[Any, ...]:
    """What a judge depends on while it is fed: judges of scenarios for which this is equal find the same."""
    return frozenset(scenario.checks.disable), _limits(scenario, speed), scenario.measure


@dataclass(frozen=True)
class Judged:
    """A run and what was found in it."""

    scenario: Scenario
    end: End
    history: History
    checks: list[Result]
    judgements: list[verdicts.Judgement]

    @cached_property
    def countable(self) -> list[Result]:
        """The checks that change the verdict by themselves."""
        return verdicts.countable(self.checks, self.scenario.expectations)

    @cached_property
    def verdict(self) -> str:
        """``holds fails unknown``"""
        verdict = verdicts.overall(self.countable, self.judgements)
        if (self.end.reason == "interrupted" and verdict == "holds") or self.history.gaps:
            # What is missing from the log may be what a check misses, or what would have shown a fault.
            return "unknown"
        return verdict

    @property
    def faults_never_came(self) -> tuple[str, ...]:
        """The ids of faults whose ``when`` did not come true."""
        came = {fault.id for fault in self.history.faults}
        return tuple(fault.id for fault in self.scenario.chaos if fault.when is not None and fault.id not in came)

    def data(self, runtime: str, digest: str) -> dict[str, Any]:
        """What verdict.json says of the run itself: verdict, expectations, checks, counters, waiting times, costs."""
        history = self.history
        waits = history.derived(waiting.measured)
        never_bound = unbound.data(unbound.of(history))
        empty = headlines.empty(history, [workload.name for workload in self.scenario.workloads])
        rest = [
            *([self.end.note] if self.end.note else []),
            *([history.lost] if history.lost else history.gaps[:1]),
            *empty,
            *headlines.disturbed(history.disturbances),
            *headlines.never_came(self.faults_never_came),
            *headlines.unbound(never_bound),
            *headlines.beyond_budgets(ledgers.of(history).budgets.values()),
        ]
        return {
            "scenario": self.scenario.name,
            "runtime": runtime,
            "seed": self.scenario.seed,
            "digest": digest,
            "verdict": self.verdict,
            "headline": headlines.of_run(self.verdict, self.judgements, self.countable, rest),
            **({"ablate": list(self.scenario.ablate)} if self.scenario.ablate else {}),
            **({"incomplete": history.gaps} if history.gaps else {}),
            "expectations": [
                verdicts.as_data(judgement, expectation)
                for judgement, expectation in zip(self.judgements, self.scenario.expectations, strict=True)
            ],
            "checks": [_check_data(check) for check in self.checks],
            **history.window.data(self.end.now_ns),
            "counts": measured(history),
            "faults": _faults(history),
            **({"disturbances": [one.data() for one in history.disturbances]} if runtime in runtimes.REAL else {}),
            **({"faults_never_came": list(self.faults_never_came)} if self.faults_never_came else {}),
            "refused": dict(history.refused.most_common()),
            **({"errors": dict(history.errors.most_common(_MOST_ERRORS))} if history.errors else {}),
            "waiting": waiting.summary(waits),
            "workloads": groups.workloads(history, waits),
            "schedulers": groups.schedulers(history),
            "budgets": {name: budget.data() for name, budget in ledgers.of(history).budgets.items()},
            "unbound": never_bound,
            "empty": empty,
            "costs": costs.summary(history),
            "virtual_s": round(self.end.now_ns / SECOND_NS, 6),
            "ended": self.end.reason,
        }


_MOST_ERRORS = 20
"""How many different errors of attempts verdict.json tells."""


def _limits(scenario: Scenario, speed: float) -> Limits:
    """What the scenario asks of the checks, and what they have to know of it."""
    schedulers = scenario.schedulers
    checks, lifecycle = scenario.checks, controllers.node_lifecycle(scenario)
    configurations = [kubelet_configurations.configuration(node.kubelet) for node in scenario.nodes]
    return Limits(
        max_wait_ns=checks.starvation.max_wait_ns,
        max_overtaken=checks.starvation.max_overtaken,
        max_eviction_returns=checks.loops.evictions,
        max_preemption_returns=checks.loops.preemptions,
        max_part_ns=checks.gangs.part_for_ns,
        gang_schedulers=tuple(
            name
            for scheduler in schedulers
            if isinstance(scheduler.config, Mapping) and scheduler.config.get("featureGates", {}).get(GANG)
            for name in references.profile_names(scheduler)
        ),
        node_eviction_rate=max(lifecycle.node_eviction_rate, lifecycle.secondary_node_eviction_rate),
        node_grace_ns=lifecycle.node_monitor_grace_period_ns,
        terminated_pods=controllers.terminated_pods(scenario),
        max_watch_delay_ns=_max_watch_delay_ns(scenario, speed),
        rank_by_qos=tuple(
            name
            for scheduler in schedulers
            if scheduler.policy.get("victimOrder") in ("qos", "qos-only")
            for name in references.profile_names(scheduler)
        ),
        max_backoff_ns=max((_max_backoff_ns(scheduler.config) for scheduler in schedulers), default=10 * SECOND_NS),
        pressure_transition_ns=max(
            (one.eviction_pressure_transition_period_ns for one in configurations), default=300 * SECOND_NS
        ),
        own_ranking=any(node.policy.get("evictionRanking", "current") != "current" for node in scenario.nodes),
        own_queues=any(clusters.has_its_own_queue(scheduler) for scheduler in schedulers),
        autoscaled=_autoscaled(scenario),
    )


def _autoscaled(scenario: Scenario) -> Autoscaled | None:
    if scenario.autoscaler is None:
        return None
    groups = []
    for one in scenario.autoscaler.groups:
        template = one.template.message.SerializeToString(deterministic=True)
        groups.append(NodeGroup(one.name, one.settings.min, one.settings.max, template))
    return Autoscaled(tuple(groups), scenario.autoscaler.settings)


def meant(scenario: Scenario, end_ns: int) -> dict[str, int]:
    """How many pods each workload means to create before that time, replacements apart."""
    return {each.name: workloads.due_before(each, scenario.seed, end_ns) for each in scenario.workloads}


def _faults(history: History) -> dict[str, dict[str, Any]]:
    """By kind: how often it happened, when first, and how many actors and links it hit."""
    found: dict[str, dict[str, Any]] = {}
    for fault in history.faults:
        one = found.setdefault(fault.what, {"count": 0, "first_s": round(fault.begin_ns / SECOND_NS, 6), "hit": 0})
        one["count"] += 1
        one["hit"] += len(fault.hits)
    return found


def _max_backoff_ns(config: Mapping[str, Any]) -> int:
    """``podMaxBackoffSeconds`` of a KubeSchedulerConfiguration, or its default."""
    said = config.get("podMaxBackoffSeconds", 10) if isinstance(config, Mapping) else 10
    return int(said) * SECOND_NS


def _max_watch_delay_ns(scenario: Scenario, speed: float) -> int:
    """Beyond what the scenario itself makes late: caches that lag, and keepalive that takes its time to notice a dead
    connection. On Ray the machine may be busy for a few seconds of real time."""
    timing = scenario.timing
    keepalive_s = timing.get("keepaliveTime", 0.0) + timing.get("keepaliveTimeout", 0.0)
    lag_ns = scenario.api_servers.cache_lag_ns + int(keepalive_s * SECOND_NS)
    busy_ns = int(BUSY_S * speed * SECOND_NS)
    return lag_ns + max(scenario.checks.watches.max_delay_ns, busy_ns)


def _check_data(check: Result) -> Mapping[str, Any]:
    return {
        "id": check.id,
        "holds": check.holds,
        "detail": check.detail,
        "detector": check.detector,
        "asked": check.asked,
    }

"""All oracles, by id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kemu.lab.fuzz.facts import Facts, Wrong
from kemu.lab.fuzz.oracles import pods, pressure, workloads

Oracle = Callable[[Facts], Iterator[str]]

ORACLES: Mapping[str, Oracle] = {
    oracle.__name__.replace("_", "-"): oracle
    for oracle in (
        pods.bound_pods_are_taken,
        pods.pods_that_fit_are_bound,
        pods.deleted_pods_go,
        workloads.workloads_reach_their_spec,
        workloads.statuses_are_told,
        workloads.budgets_are_current,
        workloads.quotas_are_current,
        workloads.jobs_go_on,
        workloads.owned_pods_have_owners,
        pressure.memory_pressure_is_noticed,
        pressure.oom_kills_are_needed,
    )
}

MOST_FINDINGS = 3


def ask(run: Facts) -> list[Wrong]:
    """What is wrong with a run that has not broken."""
    found = []
    for name, oracle in ORACLES.items():
        details = list(oracle(run))
        if details:
            more = f"; and {len(details) - MOST_FINDINGS} more" if len(details) > MOST_FINDINGS else ""
            found.append(Wrong(name, "; ".join(details[:MOST_FINDINGS]) + more))
    return found

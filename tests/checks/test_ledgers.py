"""How many healthy pods disruption budgets have, and who takes some away."""

from __future__ import annotations

import pytest

import kemu
from kemu import errors
from kemu.lab.checks.history import History
from kemu.lab.checks.scheduling import ledgers

SCENARIO = """\
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: storm}
spec:
  duration: 60s
  nodes: [{namePrefix: node-, count: 2, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}]
  priorityClasses: {high: 1000, low: 10}
  manifests:
    - apiVersion: policy/v1
      kind: PodDisruptionBudget
      metadata: {name: web}
      spec: {minAvailable: 3, selector: {matchLabels: {app: web}}}
  workloads:
    - name: web
      arrivals: {count: 4}
      pods:
        metadata: {labels: {app: web}}
        spec: {priorityClassName: low, containers: [{name: m, resources: {requests: {cpu: "2"}}}]}
    - name: batch
      start: 10s
      arrivals: {every: 1s, count: 3}
      pods: {spec: {priorityClassName: high, containers: [{name: m, resources: {requests: {cpu: "2"}}}]}}
"""


@pytest.fixture(scope="module")
def storm() -> kemu.Run:
    return kemu.run(SCENARIO)


def test_preemptions_within_and_beyond_a_budget_are_counted(storm: kemu.Run) -> None:
    counts = storm.data["counts"]
    assert counts["preemptions"] == 3
    assert (counts["preemptions_within_budget"], counts["budget_violations"]) == (1, 2)
    assert storm.data["budgets"] == {
        "default/web": {
            "wants": 3,
            "healthy": 1,
            "highest": 4,
            "lowest": 1,
            "lowest_s": 12.010303,
            "preempted": {"within": 1, "beyond": 2},
            "evicted": {"within": 0, "beyond": 0},
        }
    }


def test_they_are_counted_where_the_check_is_disabled() -> None:
    run = kemu.run(SCENARIO + "  checks: {disable: [voluntary-evictions-respect-budgets]}\n")
    assert run.data["counts"]["budget_violations"] == 2


def test_preemption_may_go_beyond_a_budget_so_it_is_told_and_nothing_fails(storm: kemu.Run) -> None:
    assert storm.verdict == "holds"
    assert storm.data["headline"].endswith("; 2 pods were preempted beyond the budget web")
    assert (
        "disruption budget  wants  highest  lowest      at  at the end  preempted  beyond\n"
        "web                    3        4       1  12.0 s           1          3       2\n" in _figures(storm)
    )


def _figures(run: kemu.Run) -> str:
    from kemu.lab.tell import tables

    return "\n".join([*(line.plain for line in tables.budgets(run.data["budgets"], 80)), ""])


def test_evictions_through_the_api_stay_within_and_those_of_a_kubelet_do_not() -> None:
    text = SCENARIO.partition("    - name: batch")[0]
    asks = "  events: [{at: 10s, evict: {pod: web-0}}, {at: 11s, evict: {pod: web-1}}]\n"
    counts = kemu.run(text + asks).data["counts"]
    assert (counts["evictions_within_budget"], counts["evictions_beyond_budget"]) == (1, 0)
    taint = "  events: [{at: 10s, taint: {node: node-1, key: gone, effect: NoExecute}}]\n"
    run = kemu.run(text + taint)
    counts = run.data["counts"]
    assert (counts["evictions_within_budget"], counts["evictions_beyond_budget"]) == (1, 1)
    assert run.data["headline"].endswith("; 1 pod was evicted beyond the budget web")


def test_a_budget_that_never_had_enough() -> None:
    run = kemu.run(SCENARIO.replace("minAvailable: 3", "minAvailable: 9"))
    budget = run.data["budgets"]["default/web"]
    assert (budget["highest"], budget["lowest"], budget["lowest_s"]) == (4, None, None)
    assert budget["preempted"] == {"within": 0, "beyond": 3}


def test_a_share_of_pods_without_a_controller_allows_no_disruption() -> None:
    """Nobody says how many pods there should be, so the disruption controller allows none (``getExpectedPodCount``)."""
    run = kemu.run(SCENARIO.replace("minAvailable: 3", "minAvailable: 50%"))
    budget = run.data["budgets"]["default/web"]
    assert (budget["wants"], budget["lowest"], budget["preempted"]) == (4, 1, {"within": 0, "beyond": 3})
    assert budget["lowest_s"] > 10  # and not when the first of them was all it had, and wanted
    assert run.data["headline"].endswith("; 3 pods were preempted beyond the budget web")


def test_without_a_budget_there_is_no_table() -> None:
    assert ledgers.of(History()).budgets == {}


@pytest.mark.parametrize(
    ("expectation", "holds", "detail"),
    [
        ("{pdb: web, healthy: {atLeast: 1}}", True, "never fewer than 1 since 0.014 s"),
        (
            "{pdb: web, healthy: {atLeast: 3}}",
            False,
            "2 of 3 at 11.010 s, as default/web-2 was preempted; at the lowest 1 at 12.010 s",
        ),
        (
            "{pdb: web, healthy: {}}",
            False,
            "2 of 3 at 11.010 s, as default/web-2 was preempted; at the lowest 1 at 12.010 s",
        ),
        ("{pdb: default/web, healthy: {atLeast: 4, after: 5s, before: 9s}}", True, "never fewer than 4 since 5.000 s"),
        ("{pdb: web, healthy: {atLeast: 2, after: 20s}}", False, "1 of 2 at 20.000 s; at the lowest 1 at 20.000 s"),
        ("{pdb: web, healthy: {atLeast: 5}}", False, "it never had so many: at most 4 of 5"),
        (
            "{pdb: web, healthy: {atLeast: 1, after: 0s}}",
            False,
            "0 of 1 at 0.000 s; at the lowest 0 at 0.000 s",
        ),
    ],
)
def test_an_expectation_of_a_budget(expectation: str, holds: bool, detail: str) -> None:
    run = kemu.run(f"{SCENARIO}  expect: [{expectation}]\n")
    (found,) = run.data["expectations"]
    assert (found["holds"], found["detail"]) == (holds, detail)
    assert found["id"] == "pdb.web.healthy"


def test_a_run_that_ends_before_the_window_proves_nothing() -> None:
    text = SCENARIO.replace("duration: 60s", "duration: 30s")
    until = "  until: {pod: batch-0, bound: {}}\n"
    run = kemu.run(f"{text}{until}  expect: [{{pdb: web, healthy: {{atLeast: 3, before: 25s}}}}]\n")
    assert (run.verdict, run.data["expectations"][0]["holds"]) == ("unknown", None)


@pytest.mark.parametrize(
    ("expectation", "mistake"),
    [
        ("{pdb: wab, healthy: {}}", "pdb: there is no PodDisruptionBudget wab (did you mean web?)"),
        (
            "{pdb: web, healthy: {after: 2m}}",
            "healthy.after: is after the end of the run at 1m (lengthen spec.duration)",
        ),
        ("{pdb: web, healthy: {after: 9s, before: 5s}}", "healthy.after: is later than before: 5s"),
        ("{pdb: web}", "has no statement: one of healthy"),
    ],
)
def test_mistakes(expectation: str, mistake: str) -> None:
    with pytest.raises(errors.ScenarioError) as caught:
        kemu.run(f"{SCENARIO}  expect: [{expectation}]\n")
    (problem,) = caught.value.problems
    assert str(problem).endswith(mistake)


def test_a_budget_cannot_end_a_run() -> None:
    with pytest.raises(errors.ScenarioError, match="must be something that happens during the run"):
        kemu.run(f"{SCENARIO}  until: {{pdb: web, healthy: {{}}}}\n")

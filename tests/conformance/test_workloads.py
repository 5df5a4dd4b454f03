"""Every recorded sync of the real workload controllers is kemu's, too; so are whole rollouts, with all their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.controllers.workloads import expectations, replica_sets
from kemu.emulated.controllers.workloads.daemon import daemon_sets
from kemu.emulated.controllers.workloads.deployments import revisions, rollouts
from kemu.emulated.controllers.workloads.stateful import stateful_sets
from kemu.lab.conformance import agreements, case_files, registry
from tests.conformance.generators import workloads as generated

DATA = Path(__file__).parent / "data" / "workloads"


def judged(family: str, number: int | None = None) -> agreements.Report:
    cases = list(case_files.read(DATA / f"{family}.jsonl.gz"))[:number]
    return agreements.judge(registry.kind("workloads"), cases)


@pytest.mark.parametrize("family", generated.FAMILIES)
def test_every_case_agrees(family: str) -> None:
    report = judged(family)
    assert report.total >= 30
    assert {one.id: one.differences for one in report.disagreements} == {}


def do_all_disagree(family: str, *ends: str) -> bool:
    """The cases whose identifiers end so."""
    cases = [case for case in case_files.read(DATA / f"{family}.jsonl.gz") if case.id.endswith(ends)]
    assert len(cases) == len(ends)
    return len(agreements.judge(registry.kind("workloads"), cases).disagreements) == len(ends)


def test_no_family_is_left_out() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz")} == {*generated.FAMILIES}


# Planted bugs -------------------------------------------------------------------------------------------------------


def test_a_surge_that_is_rounded_down_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rounded_up = rollouts.scaling.scaled
    monkeypatch.setattr(rollouts.scaling, "scaled", lambda value, total, up: rounded_up(value, total, up=False))
    assert judged("deployments", 60).disagreements


def test_pods_that_may_be_missing_rounded_up_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    rounded_down = rollouts.scaling.scaled
    monkeypatch.setattr(rollouts.scaling, "scaled", lambda value, total, up: rounded_down(value, total, up=True))
    assert judged("deployments").disagreements


def test_a_template_that_is_compared_with_its_hash_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revisions, "identity", lambda template: template.SerializeToString(deterministic=True))
    assert judged("deployments", 20).disagreements


def test_replica_sets_that_rank_only_by_pods_of_replica_sets_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    related = replica_sets.ReplicaSetController._related

    def of_nobody_else(self: Any, owner: Any) -> list[Any]:
        return [pod for pod in related(self, owner) if all(one.name != "else" for one in pod.metadata.ownerReferences)]

    monkeypatch.setattr(replica_sets.ReplicaSetController, "_related", of_nobody_else)
    assert do_all_disagree("replica-sets", "s102-00049", "s104-00117")


def test_a_controller_that_does_not_read_its_writes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expectations.Writes, "check", lambda self, owner: None)
    assert judged("stale", 10).disagreements


def test_an_adopted_pod_that_counts_after_its_deletion_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: Any, owner: Any, nodes: Any, adopted: Any) -> None:
        pass

    monkeypatch.setattr(daemon_sets.DaemonSetController, "_claim_again", nothing)
    assert do_all_disagree("daemon-sets", "s21-00021")


def test_a_revision_that_only_an_adopted_pod_has_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    clean_up = daemon_sets.daemon_histories.DaemonHistories.clean_up

    async def without_adopted(self: Any, owner: Any, old: Any, pods: Any) -> None:
        await clean_up(self, owner, old, [pod for pod in pods if pod.metadata.ownerReferences])

    monkeypatch.setattr(daemon_sets.daemon_histories.DaemonHistories, "clean_up", without_adopted)
    assert do_all_disagree("daemon-sets", "s11-00061")


def test_a_stateful_set_says_that_it_deleted_a_pod_that_was_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stateful_sets.StatefulSetController, "notes_gone", False)
    assert do_all_disagree("stateful-sets", "s12-00005", "s12-00083")


def test_a_stateful_set_repairs_the_claims_of_the_pods_that_it_has_just_created(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(self: Any, owner: Any, pod: Any) -> None:
        pass

    monkeypatch.setattr(stateful_sets.StatefulSetController, "repair_member", nothing)
    assert do_all_disagree("stateful-sets", "s11-00008", "s12-00005")

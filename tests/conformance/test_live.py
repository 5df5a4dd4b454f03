"""``kemu conformance live``: what it hears, how it judges; and that it agrees with a real kube-scheduler."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from kemu.doors.cli import main
from kemu.emulated.objects.conversion import convert
from kemu.emulated.real import executables
from kemu.errors import KemuError
from kemu.lab.conformance.live import drawn_pods, makers, reports, scheduler_logs, verdicts

LOG = """\
I1123 02:44:01.000001   77 eventhandlers.go:63] "Add event for node" node="n1"
I1123 02:44:01.000002   77 schedule_one.go:123] "Attempting to schedule pod" pod="dev/web"
I1123 02:44:01.000003   77 schedule_one.go:982] "Plugin scored node for pod" pod="dev/web" plugin="NodeResourcesFit" node="n1" score=40
I1123 02:44:01.000004   77 schedule_one.go:982] "Plugin scored node for pod" pod="dev/web" plugin="ImageLocality" node="n1" score=2
I1123 02:44:01.000005   77 schedule_one.go:1050] "Calculated node's final score for pod" pod="dev/web" node="n1" score=42
I1123 02:44:01.000006   77 schedule_one.go:1050] "Calculated node's final score for pod" pod="dev/web" node="n2" score=42
I1123 02:44:01.000007   77 schedule_one.go:481] "Successfully bound pod to node" pod="dev/web" node="n1" evaluatedNodes=2 feasibleNodes=2
I1123 02:44:02.000001   77 schedule_one.go:123] "Attempting to schedule pod" pod="dev/big"
I1123 02:44:02.000002   77 preemption.go:162] "the target node for the preemption is determined" node="n2" pod="dev/big"
I1123 02:44:02.000003   77 schedule_one.go:1239] "Unable to schedule pod; no fit; waiting" pod="dev/big" err="0/2 nodes are available: 2 node(s) didn't match \\"x\\"."
I1123 02:44:02.000004   77 executor.go:251] "Start the preemption asynchronously" preemptor="dev/big" node="n2" numVictims=2 numVictimsToDelete=2
I1123 02:44:02.000005   77 executor.go:152] "Preemptor Pod preempted victim Pod" preemptor="dev/big" victim="dev/a" node="n2"
I1123 02:44:02.000006   77 schedule_one.go:123] "Attempting to schedule pod" pod="dev/big"
I1123 02:44:02.000007   77 executor.go:152] "Preemptor Pod preempted victim Pod" preemptor="dev/big" victim="dev/b" node="n2"
I1123 02:44:02.000008   77 executor.go:303] "Async Preemption finished completely" preemptor="dev/big" node="n2" result="success"
E1123 02:44:03.000001   77 schedule_one.go:1243] "Error scheduling pod; retrying" err="it broke" logger="UnhandledError" pod="dev/big"
E1123 02:44:03.000002   77 reflector.go:1] "Failed to watch" err="gone"
"""  # noqa: E501


def _heard() -> tuple[scheduler_logs.SchedulerLog, list[scheduler_logs.Attempt]]:
    ended: list[scheduler_logs.Attempt] = []
    heard = scheduler_logs.SchedulerLog(ended.append)
    for line in LOG.splitlines(keepends=True):
        heard.hear(line)
    return heard, ended


def test_a_decision_is_heard_with_all_scores() -> None:
    heard, ended = _heard()
    bound = ended[0]
    assert (bound.pod, bound.outcome, bound.node, bound.number) == ("dev/web", scheduler_logs.BOUND, "n1", 1)
    assert bound.scores == {"n1": {"NodeResourcesFit": 40, "ImageLocality": 2}}
    assert bound.totals == {"n1": 42, "n2": 42}
    assert heard.handled["Add event for node", "n1"] == 1
    assert len(heard.complaints) == 1


def test_victims_belong_to_the_attempt_that_chose_them() -> None:
    """The next attempt may begin before the last victim is named."""
    _, ended = _heard()
    failed, broken = ended[1:]
    assert (failed.outcome, failed.nominated, failed.victims) == (scheduler_logs.FAILED, "n2", ["dev/a", "dev/b"])
    assert failed.message == '0/2 nodes are available: 2 node(s) didn\'t match "x".'
    assert not failed.is_evicting
    assert (broken.outcome, broken.message, broken.number) == (scheduler_logs.ERROR, "it broke", 2)


def _bound(node: str, **totals: int) -> scheduler_logs.Attempt:
    return scheduler_logs.Attempt("dev/web", totals=totals, outcome=scheduler_logs.BOUND, node=node)


def _answer(*best: str, **totals: int) -> dict[str, Any]:
    return {"node": best[0], "best": list(best), "feasible": sorted(totals), "totals": totals, "scores": {}}


def test_of_equal_nodes_any_may_be_taken_and_that_is_a_tie() -> None:
    assert verdicts.of("f", _bound("a", a=3, b=2), _answer("a", a=3, b=2)).kind == verdicts.ALIKE
    tied = verdicts.of("f", _bound("b", a=3, b=3), _answer("a", "b", a=3, b=3))
    assert (tied.kind, tied.tie) == (verdicts.TIE, ("a", "b"))


@pytest.mark.parametrize(
    ("attempt", "answer", "text"),
    [
        (_bound("b", a=3, b=3), _answer("a", a=3, b=2), "node: real b, kemu any of a"),
        # The node may be right by chance: every total counts.
        (_bound("a", a=3, b=1), _answer("a", a=3, b=2), "total of b: real 1, kemu 2"),
        (_bound("a"), {"node": "", "fullMessage": "0/1", "feasible": []}, "node: real a, kemu none: 0/1"),
        (
            scheduler_logs.Attempt("dev/web", outcome=scheduler_logs.FAILED, message="0/1 x."),
            {"node": "", "fullMessage": "0/1 y.", "feasible": []},
            "message: real '0/1 x.', kemu '0/1 y.'",
        ),
        (
            scheduler_logs.Attempt(
                "dev/web", outcome=scheduler_logs.FAILED, message="m", nominated="a", victims=["d/p"]
            ),
            {
                "node": "", "fullMessage": "m", "feasible": [],
                "preemption": {"chosenAnyOf": ["a"], "candidates": {"a": {"victims": ["q"]}}},
            },
            "victims on a: real ['p'], kemu ['q']",
        ),
        (
            scheduler_logs.Attempt("dev/web", outcome=scheduler_logs.FAILED, message="m"),
            {"node": "", "fullMessage": "m", "feasible": [], "preemption": {"chosen": "a", "chosenAnyOf": ["a"]}},
            "preempts on: real '', kemu 'a'",
        ),
    ],
)  # fmt: skip
def test_a_difference_is_named(attempt: scheduler_logs.Attempt, answer: dict[str, Any], text: str) -> None:
    verdict = verdicts.of("f", attempt, answer)
    assert verdict.kind == verdicts.DIFFERENT
    assert verdict.differences[0].startswith(text)
    report = reports.Report()
    report.add(verdict)
    assert not report.is_alike
    assert any(text in line for line in report.lines(5))
    assert report.lines(5)[-1].startswith("0 of 1 decisions alike")


def test_pods_of_all_families_are_drawn_and_read() -> None:
    cluster = makers.Maker(random.Random(5), 1)
    drawn = drawn_pods.PodMaker(cluster)
    families = set()
    for _ in range(400):
        family, pod = drawn.draw()
        families.add(family)
        for manifest in (pod, *drawn.extra):
            convert.from_manifest(manifest)
    assert len(families) == 13
    again = drawn_pods.PodMaker(makers.Maker(random.Random(5), 1))
    first = drawn_pods.PodMaker(makers.Maker(random.Random(5), 1))
    assert [again.draw() for _ in range(50)] == [first.draw() for _ in range(50)]


def test_a_missing_part_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KemuError, match=r"needs kube-scheduler v1\.36\.3: neither in .*kemu-tools nor on the PATH"):
        executables.find("kube-scheduler")


def test_the_real_scheduler_and_kemus_decide_alike(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        executables.find("etcd", "kube-apiserver", "kube-scheduler")
    except executables.ProgramMissing as missing:
        pytest.skip(f"not beside the project: {missing}")
    count = 100  # ten thousand in scripts/nightly
    code = main.main(["conformance", "live", "--pods", str(count), "--seed", "3", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [(one["pod"], one["differences"]) for one in told["differences"]] == []
    assert code == 0
    assert told["decisions"] == count
    assert told["alike"] + told["alikeByTie"] == count
    assert {"bound", "failed"} <= set(told["outcomes"])

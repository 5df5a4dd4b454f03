"""The sentences, the run that passes, and what they point at."""

from __future__ import annotations

import dataclasses

import pytest

from kemu.errors import KemuError
from kemu.lab.exploration import executions
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.tell.explaining import chains, explanations, knowledge, mentions, recordings
from kemu.lab.tell.explaining.explanations import Explanation
from tests.exploration.explaining import races
from tests.mutants import all_parts


@pytest.fixture(scope="module")
def stale() -> Explanation:
    return explanations.explain(loader.loads(races.STALE))


def texts(explanation: Explanation) -> list[str]:
    return [one.text for one in explanation.chain.sentences]


NEWS = (
    "The news that blue-pod was bound to node-1 reached scheduler red only after red had decided about red-pod "
    "(held for 696 ms, until 6.004 s)."
)
REFUSED = (
    "In the passing run the API server refused the bind of web by scheduler replica 1 (Conflict) at 5.014 s; here that "
    "did not happen."
)


def test_a_run_that_keeps_its_messages_is_the_same_run() -> None:
    scenario = loader.loads(races.STALE)
    recording = recordings.record(scenario)
    assert recording.execution.digest == executions.execute(scenario).digest
    (held,) = [flight for flight in recording.flights if flight.holds]
    assert (held.label.name, held.label.what, held.target) == ("blue-pod", "bound", "scheduler/red/0")
    assert (held.sent_ns, held.due_ns, held.arrived_ns) == (5_307_000_000, 5_308_000_000, 6_004_000_000)


def test_the_chain_goes_from_the_hold_to_the_check(stale: Explanation) -> None:
    assert texts(stale) == [
        "Scheduler blue chose node-1 for blue-pod.",
        NEWS,
        "So scheduler red still counted 4 CPUs free on node-1 at 5.504 s and chose it for red-pod, which wants 3 CPUs.",
        "Kubelet node-1 rejected red-pod (OutOfcpu).",
        "Expectation all-run fails: 2 of 3 pods; red-pod: never running.",
    ]


def test_every_sentence_points_at_an_event_of_the_log(stale: Explanation) -> None:
    events = stale.telling.events
    pointed = [(events[one.event].kind, events[one.event].actor) for one in stale.chain.sentences if one.event >= 0]
    assert pointed == [
        ("sched.attempt", "scheduler/blue/0"),
        ("hold.released", "holds"),
        ("sched.attempt", "scheduler/red/0"),
        ("kubelet.admit", "kubelet/node-1"),
    ]
    assert all(events[one.event].time_ns == one.time_ns for one in stale.chain.sentences if one.event >= 0)


def test_the_sibling_lacks_the_hold_and_hears_the_news(stale: Explanation) -> None:
    sibling, difference = stale.sibling, stale.difference
    assert sibling is not None
    assert difference is not None
    assert (sibling.kind, sibling.name) == ("hold", "0")
    assert sibling.recording.execution.outcome == executions.HOLDS
    assert str(difference) == (
        "First difference, at 5.308 s (event 83 of the passing run): scheduler red hears that blue-pod was bound to"
        " node-1; in this run only at 6.004 s."
    )
    assert sibling.recording.events[difference.event].kind == "watch.events"


def test_a_safeguard_that_is_away_comes_first_and_what_it_would_have_done_before_the_end() -> None:
    explanation = explanations.explain(loader.loads(races.TWICE), "pod-bound-at-most-once")
    assert texts(explanation) == [
        'The safeguard bind-once is taken away ("A pod that has a node is not bound again").',
        "Scheduler replica 0 chose node-2 for web.",
        "Scheduler replica 1 chose node-3 for web: web was bound to node-2 only afterwards (5.011 s).",
        "Pod web was bound to node-3 again.",
        REFUSED,
        "Check pod-bound-at-most-once fails: web was bound to node-2 at 5.011 s, then node-3 at 5.013 s.",
    ]
    assert explanation.sibling is not None
    assert explanation.sibling.kind == "ablation"


def test_a_finding_that_names_a_revision_and_no_time_begins_at_its_write(stale: Explanation) -> None:
    revision, (change, *_) = list(stale.telling.known.by_revision.items())[-1]
    mentioned = mentions.Mentions((), (), (), (revision,), (), "")
    assert mentions.anchors(mentioned, stale.telling, None) == [stale.telling.write(change)]


def test_without_holds_the_chain_begins_at_the_fault() -> None:
    explanation = explanations.explain(loader.loads(races.CRASH))
    assert texts(explanation)[:3] == [
        "Kubelet node-1 crashed.",
        "The scheduler chose node-1 for web.",
        "Kubelet node-1 started again.",
    ]
    assert explanation.sibling is not None
    assert (explanation.sibling.kind, explanation.sibling.name) == ("fault", "lights-out")


def test_a_request_that_is_only_late() -> None:
    explanation = explanations.explain(loader.loads(races.REQUEST))
    assert texts(explanation) == [
        "The scheduler chose node-1 for web.",
        "The scheduler's request to bind web reached the API server late (held for 3 s, until 8.005 s).",
        "Expectation at-once fails: instead: bound to node-1 by default-scheduler/0 at 8.006 s.",
    ]
    assert explanation.difference is not None
    assert (explanation.difference.time_ns, explanation.difference.later_ns) == (5_006_301_400, 8_006_301_400)


def test_no_chain_is_longer_than_six_sentences() -> None:
    text = races.STALE.replace(
        "{id: all-run,", "{id: first, pod: red-first, running: {before: 5s}}\n    - {id: all-run,"
    )
    for failure in ("first", "all-run"):
        assert len(explanations.explain(loader.loads(text), failure).chain.sentences) <= chains.MOST


def test_a_binding_that_finds_another_pod() -> None:
    found = texts(explanations.explain(loader.loads(races.RECREATED)))
    assert (
        found[1] == "The scheduler's request to bind db-0 reached the API server late (held for 197 ms, until 5.202 s)."
    )
    assert "The second db-0 was bound to node-1." in found


def test_a_watch_that_falls_silent() -> None:
    with pytest.MonkeyPatch.context() as patch:
        all_parts.MUTANTS["a-watch-falls-silent"].plant(patch)
        scenario = loader.load(catalog.find("races/two-replicas-same-pods"), None, {"seed": 3, "timing": "realistic"})
        found = texts(explanations.explain(scenario, "watch-has-no-gaps"))
    assert found[:2] == ["Pod web-3 runs.", "Scheduler replica 1 never heard that web-3 runs."]


def test_what_does_not_fail_is_not_explained() -> None:
    with pytest.raises(KemuError, match="nothing-like-it does not fail in this run; what fails is all-run"):
        explanations.explain(loader.loads(races.STALE), "nothing-like-it")
    passing = races.STALE[: races.STALE.index("  holds:")] + races.STALE[races.STALE.index("  expect:") :]
    with pytest.raises(KemuError, match="nothing to explain"):
        explanations.explain(loader.loads(passing))


def test_a_check_that_is_expected_to_fail_is_explained_too() -> None:
    """A scenario that shows a bug holds because the check fails."""
    text = races.TWICE + "  expect: [{check: pod-bound-at-most-once, holds: false}]\n"
    explanation = explanations.explain(loader.loads(text))
    assert explanation.telling.recording.execution.outcome == executions.HOLDS
    assert explanation.failure.id == "pod-bound-at-most-once"
    assert texts(explanation)[3] == "Pod web was bound to node-3 again."
    assert explanation.sibling is not None
    assert explanation.sibling.kind == "ablation"


def test_what_an_unschedulable_pod_does_not_get_although_it_is_there() -> None:
    """A nomination of a pod that is gone keeps room that nobody uses."""
    variants = loader.variants(loader.load(catalog.find("museum/102339-deleted-pod-keeps-its-nomination")))
    explanation = explanations.explain(variants[0][1])
    found = texts(explanation)
    assert found[0].startswith("The bug k8s-102339 is there")
    assert found[1].endswith("although node-1 had 4 CPUs free.")
    assert found[2] == (
        "In the passing run the scheduler chose node-1 for newcomer at 40.204 s; here that did not happen."
    )


def test_a_key_that_is_no_object_has_a_name() -> None:
    """The store's compaction writes one; a run with `cutWatches: {compacted: true}` has it among its changes."""
    pod = knowledge.Change(2, knowledge.Moment(0, 0), "/registry/pods/default/web", b"", None)
    assert (pod.name, dataclasses.replace(pod, key="compact_rev_key").name) == ("web", "compact_rev_key")


def test_what_changes_while_a_scheduler_decides_comes_afterwards() -> None:
    """Red begins to decide about red-pod at 5.003 s and ends at 5.503 s; blue-pod is bound at 5.306 s."""
    begin, end = races.STALE.index("  holds:"), races.STALE.index("  expect:")
    early = races.STALE[:begin] + races.STALE[end:]
    place = early.rindex("{at: 5s,")
    early = early[:place] + early[place:].replace("{at: 5s,", "{at: 4999ms,", 1)
    # Of two empty nodes it might choose the other one.
    selector = "nodeSelector: {kubernetes.io/hostname: node-1}"
    early = early.replace("{schedulerName: red, containers", f"{{schedulerName: red, {selector}, containers")
    found = texts(explanations.explain(loader.loads(early)))
    assert (
        "Scheduler red still counted 4 CPUs free on node-1 at 5.003 s and chose it for red-pod, which wants 3 CPUs: "
        "blue-pod was bound to node-1 only afterwards (5.306 s)."
    ) in found

"""Who lost in a run, whatever its verdict, and why: what a report tells of a run that holds.

    explanation = explain(scenario, [("cooperate=true", other)])

A scenario may expect the race that it shows, so its verdict holds and nothing fails. The loser is then the pod that a
kubelet rejected, whose binding was refused, that never got a node, that was evicted or preempted, the first of these
that there is. The sibling is the first variant in which a pod of that name does not lose in the same way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import Fact, PodHistory
from kemu.lab.exploration.executions import Failure
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.explaining import chains, differences, explanations, recordings, siblings
from kemu.lab.tell.explaining.explanations import Explanation
from kemu.lab.tell.explaining.names import at
from kemu.lab.tell.explaining.recordings import Recording
from kemu.lab.tell.explaining.siblings import Sibling
from kemu.lab.tell.explaining.tellings import Telling
from kemu.runtime.runlog.events import RequestRefused
from kemu.runtime.words import short


@dataclass(frozen=True)
class Loss:
    """A pod that did not get what it wanted."""

    kind: str
    """``rejected conflict waiting evicted oomKilled preempted``."""
    pod: str
    """``namespace/name``."""
    time_ns: int
    text: str
    """What it lost, as a sentence."""


class Recordings:
    """Each scenario is run once, as several variants may be compared with the same one."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[Scenario, Recording]] = {}

    def of(self, scenario: Scenario) -> Recording:
        found = self._of.get(id(scenario))
        if found is None:
            found = self._of[id(scenario)] = scenario, recordings.record(scenario)
        return found[1]


def explain(
    scenario: Scenario, variants: Sequence[tuple[str, Scenario]] = (), made: Recordings | None = None
) -> Explanation | None:
    """Why the run fails; where it does not, why one side lost. None: none did.

    ``variants``: others of the same matrix, by name.
    """
    made = made or Recordings()
    recording = made.of(scenario)
    if siblings.broken(recording.execution):
        return explanations.explain(scenario)
    loss = first(recording.execution.history)
    if loss is None:
        return None
    failure = Failure(loss.kind, f"{loss.pod} at {at(loss.time_ns)}", "")
    telling = Telling(recording)
    sibling = _sibling(recording, loss, variants, made)
    other = Telling(sibling.recording) if sibling is not None else None
    difference = differences.first(telling, other) if other is not None else None
    chain = chains.of(failure, telling, sibling, other, difference)
    last = dataclasses.replace(chain.sentences[-1], text=loss.text)
    chain = dataclasses.replace(chain, sentences=(*chain.sentences[:-1], last))
    return Explanation(scenario, failure, chain, telling, sibling, other, difference)


def _sibling(
    failing: Recording, loss: Loss, variants: Sequence[tuple[str, Scenario]], made: Recordings
) -> Sibling | None:
    for name, scenario in variants:
        recording = made.of(scenario)
        found = all_of(recording.execution.history)
        if not any((one.kind, one.pod) == (loss.kind, loss.pod) for one in found):
            differs = siblings.first_difference(failing.events, recording.events)
            return Sibling("variant", name, f"the variant {name}", recording, differs)
    return None


def first(history: History) -> Loss | None:
    """The first of the worst kind."""
    return next(all_of(history), None)


def all_of(history: History) -> Iterator[Loss]:
    """The worst kinds first; of each, in the order of time."""
    pods = history.pods.values()
    yield from _of_facts(history, "rejected")
    for time_ns, _, event in history.reports:
        if not isinstance(event, RequestRefused) or (event.verb, event.reason) != ("bind", "Conflict"):
            continue
        pod = history.pods.get(event.uid)
        if pod is not None:
            yield Loss("conflict", pod.key, time_ns, f"{_name(pod)} lost the race: its binding was refused (Conflict).")
    end_ns = history.now_ns if history.ended_ns is None else history.ended_ns
    waiting = [pod for pod in pods if pod.bound_ns is None and pod.gone_ns is None and pod.phase == "Pending"]
    for pod in sorted(waiting, key=lambda one: (-one.priority, one.created_ns)):
        tried = [fact for fact in pod.facts if fact.what == "unschedulable"]
        if tried:
            waited = (end_ns - pod.created_ns) / 1e9
            text = f"{_name(pod)} never got a node: it still waited at the end of the run, after {waited:.1f} s."
            yield Loss("waiting", pod.key, tried[-1].time_ns, text)
    for what in ("oomKilled", "evicted", "preempted"):
        yield from _of_facts(history, what)


def _of_facts(history: History, what: str) -> Iterator[Loss]:
    found = [(fact.time_ns, pod, fact) for pod in history.pods.values() for fact in pod.facts if fact.what == what]
    for time_ns, pod, fact in sorted(found, key=lambda one: one[0]):
        yield Loss(what, pod.key, time_ns, _sentence(history, pod, fact))


def _sentence(history: History, pod: PodHistory, fact: Fact) -> str:
    name = _name(pod)
    if fact.what == "rejected":
        return f"{name} lost the race: kubelet {fact.node} rejected it ({fact.reason}){_later(history, pod)}."
    if fact.what == "preempted":
        return f"{name} lost its place on {fact.node}: it was preempted for {fact.by.removeprefix('default/')}."
    if fact.what == "evicted":
        return f"{name} lost its place on {fact.node}: it was evicted."
    return f"{name} was killed on {fact.node}: memory ran out."


def _later(history: History, pod: PodHistory) -> str:
    """What became of those that took its place."""
    successors = [one for one in history.pods.values() if one.owner == pod.owner and one.created_ns > pod.created_ns]
    for one in successors:
        runs = one.first("running")
        if runs is not None and pod.owner != pod.key:
            return f"; {_name(one)} of the same workload ran at {at(runs.time_ns)}"
    return ""


def _name(pod: PodHistory) -> str:
    return short(pod.key)

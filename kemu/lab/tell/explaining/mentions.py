"""What a failure is about: the pods, nodes, actors, revisions and times that its detail names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kemu.lab.exploration.executions import Failure
from kemu.lab.scenario.expectations import CheckIs
from kemu.lab.tell.explaining.knowledge import Moment
from kemu.lab.tell.explaining.steps import BEGINNING, Step
from kemu.lab.tell.explaining.tellings import Telling, pod_key
from kemu.runtime.runlog.events.words import OUTCOME, WRITE

_TIME = re.compile(r"(\d+\.\d{3}) s\b")
_REVISION = re.compile(r"\brevisions? (\d+)")
FEW = 4
"""Pods, all of which a failure may be about that names none."""
_WORD = re.compile(r"[\w./\-]+")


@dataclass(frozen=True)
class Mentions:
    pods: tuple[str, ...]
    """``namespace/name``."""
    nodes: tuple[str, ...]
    actors: tuple[str, ...]
    revisions: tuple[int, ...]
    times_ns: tuple[int, ...]
    """As precise as the detail: milliseconds."""
    counter: str
    """That is not as expected; empty: it is no counter."""


_COUNTED = {
    "admissions_rejected": "rejected",
    "bind_conflicts": "bind refused",
    "bind_errors": "bind refused",
    "preemptions": "victim",
    "preemption_returns": "victim",
    "budget_violations": "victim",
    "oom_kills": "oom_killed",
    "evictions": "evicting",
    "pods_created": "created",
    "attempts_unschedulable": "attempt unschedulable",
}
"""By counter: what it counts, as the beginning of the word of a step."""


def of(failure: Failure, telling: Telling) -> Mentions:
    detail = first_finding(failure, telling)
    counter = detail.partition(" ")[0]
    words = [word.strip(".-") for word in _WORD.findall(detail)]
    nodes = {step.node: None for step in telling.steps if step.node}
    actors = {event[1]: None for event in telling.events}
    pods = [key for word in words if (key := pod_key(word)) in telling.of_pod]
    judged = telling.recording.execution.judged
    if not pods:  # What is expected may name them.
        texts = [one.text for one in judged.judgements if one.id == failure.id]
        words_of = (word.strip(".-") for text in texts for word in _WORD.findall(text))
        pods = [key for word in words_of if (key := pod_key(word)) in telling.of_pod]
    if not pods and not _REVISION.search(detail):
        pods = _held(telling)
    revisions = [int(number) for number in _REVISION.findall(detail)]
    return Mentions(
        tuple(dict.fromkeys(pods)),
        tuple(dict.fromkeys(word for word in words if word in nodes)),
        tuple(dict.fromkeys(word for word in words if word in actors)),
        tuple(revisions[:1]),
        tuple(dict.fromkeys(round(float(time) * 1000) * 1_000_000 for time in _TIME.findall(detail))),
        counter if counter in _COUNTED else "",
    )


def first_finding(failure: Failure, telling: Telling) -> str:
    """The finding of a failed check: it may have several, and one is enough to explain. An expectation has one, in
    several steps."""
    return failure.detail.partition("; ")[0] if check_of(failure, telling) else failure.detail


def check_of(failure: Failure, telling: Telling) -> str:
    """The check that fails, by itself or because it is expected to hold; empty: an expectation of another kind."""
    if any(check.id == failure.id for check in telling.recording.execution.judged.checks):
        return failure.id
    for expectation in telling.recording.scenario.expectations:
        if expectation.id == failure.id and isinstance(expectation.subject, CheckIs):
            return expectation.subject.check
    return ""


def _held(telling: Telling) -> list[str]:
    """A failure that names no pod (a counter, a metric) is about those that its holds are about, or about all if they
    are few."""
    held = []
    for hold in telling.recording.scenario.holds:
        held.append(pod_key(hold.message.label.name))
        if hold.until is not None and hold.until.pod:
            held.append(pod_key(hold.until.pod))
    found = [key for key in held if key in telling.of_pod]
    return found or (list(telling.of_pod) if len(telling.of_pod) <= FEW else [])


def anchors(mentioned: Mentions, telling: Telling, other: Telling | None) -> list[Step]:
    """The steps that the check found, or after which nothing better came: where the walk back begins.

    ``other``: the run that passes; what happened there too explains nothing.
    """
    found: list[Step] = []
    for time_ns in mentioned.times_ns:
        near = [step for step in telling.steps if _is_at(step, time_ns) and _is_about(step, mentioned)]
        if near:
            told = {step.pod for step in found}
            found.append(
                max(
                    near,
                    key=lambda step: (
                        step.pod not in told,
                        _is_near(step.at, time_ns),
                        step.weight,
                        step.pod in mentioned.pods,
                        step.at,
                    ),
                )
            )
    for revision in mentioned.revisions:
        found += [telling.write(change) for change in telling.known.by_revision.get(revision, ())[:1]]
    if found:
        # What else the finding names has to come from somewhere, too.
        last_ns = max([*(step.at.time_ns for step in found), *mentioned.times_ns])
        named = {key for step in found for key in (step.pod, *step.others)}
        for key in mentioned.pods:
            before = [
                step for step in telling.of_pod.get(key, ()) if _begun_ns(step) <= last_ns and step.weight >= WRITE
            ]
            if key not in named and before:
                found.append(before[-1])
        return list(dict.fromkeys(found))
    if mentioned.counter:
        what = _COUNTED[mentioned.counter]
        counted = [step for step in telling.steps if step.what.startswith(what)]
        new = [step for step in counted if other is None or step.sign not in other.signs]
        if new or counted:
            return (new or counted)[:1]
    for key in mentioned.pods:
        own = [step for step in telling.of_pod.get(key, ()) if step.pod == key or step.weight >= OUTCOME]
        new = [step for step in own if other is None or step.sign not in other.signs]
        telling_ones = [step for step in new if step.weight >= OUTCOME] or new or own
        if telling_ones:
            found.append(telling_ones[-1])
    return list(dict.fromkeys(found))


def _is_at(step: Step, time_ns: int) -> bool:
    """Whether it happened then, or began then."""
    return _is_near(step.at, time_ns) or _is_near(step.begun, time_ns)


def _is_near(moment: Moment, time_ns: int) -> bool:
    """Details round to milliseconds."""
    return abs(moment.time_ns - time_ns) <= 500_000


def _begun_ns(step: Step) -> int:
    return (step.begun if step.begun != BEGINNING else step.at).time_ns


def _is_about(step: Step, mentioned: Mentions) -> bool:
    keys = (step.pod, *step.others)
    if any(key in mentioned.pods for key in keys if key):
        return True
    return step.node in mentioned.nodes or (not mentioned.pods and step.actor in mentioned.actors)

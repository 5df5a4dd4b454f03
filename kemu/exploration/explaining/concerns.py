"""What a failure is about: the pods, nodes, actors, revisions and times that its detail names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kemu.exploration.executions import Failure
from kemu.exploration.explaining.steps import OUTCOME, Step
from kemu.exploration.explaining.tellings import Telling, pod_key

_TIME = re.compile(r"(\d+\.\d{3}) s\b")
_REVISION = re.compile(r"\brevisions? (\d+)")
FEW = 4
"""Pods, all of which a failure may be about that names none."""
_WORD = re.compile(r"[\w./\-]+")


@dataclass(frozen=True)
class Concerns:
    pods: tuple[str, ...]
    """``namespace/name``."""
    nodes: tuple[str, ...]
    actors: tuple[str, ...]
    revisions: tuple[int, ...]
    times_ns: tuple[int, ...]
    """As precise as the detail: milliseconds."""


def of(failure: Failure, telling: Telling) -> Concerns:
    detail = first_finding(failure, telling)
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
    return Concerns(
        tuple(dict.fromkeys(pods)),
        tuple(dict.fromkeys(word for word in words if word in nodes)),
        tuple(dict.fromkeys(word for word in words if word in actors)),
        tuple(dict.fromkeys(int(number) for number in _REVISION.findall(detail))),
        tuple(dict.fromkeys(round(float(time) * 1000) * 1_000_000 for time in _TIME.findall(detail))),
    )


def first_finding(failure: Failure, telling: Telling) -> str:
    """Of a check: it may have several, and one is enough to explain. An expectation has one, in several steps."""
    checks = {check.id for check in telling.recording.execution.judged.checks}
    return failure.detail.partition("; ")[0] if failure.id in checks else failure.detail


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


def anchors(concerns: Concerns, telling: Telling, other: Telling | None) -> list[Step]:
    """The steps that the check found, or after which nothing better came: where the walk back begins.

    ``other``: the run that passes; what happened there too explains nothing.
    """
    found: list[Step] = []
    for time_ns in concerns.times_ns:
        # The detail rounds to milliseconds.
        near = [
            step for step in telling.steps if abs(step.at.time_ns - time_ns) <= 500_000 and _is_about(step, concerns)
        ]
        if near:
            found.append(max(near, key=lambda step: (step.weight, step.pod in concerns.pods, step.at)))
    for revision in concerns.revisions:
        found += [telling.write(change) for change in telling.known.by_revision.get(revision, ())]
    if found:
        return list(dict.fromkeys(found))
    for key in concerns.pods:
        own = [step for step in telling.of_pod.get(key, ()) if step.pod == key or step.weight >= OUTCOME]
        new = [step for step in own if other is None or step.sign not in other.signs]
        telling_ones = [step for step in new if step.weight >= OUTCOME] or new or own
        if telling_ones:
            found.append(telling_ones[-1])
    return list(dict.fromkeys(found))


def _is_about(step: Step, concerns: Concerns) -> bool:
    keys = (step.pod, *step.others)
    if any(key in concerns.pods for key in keys if key):
        return True
    return step.node in concerns.nodes or (not concerns.pods and step.actor in concerns.actors)

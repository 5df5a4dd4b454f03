"""An explanation as files of a run folder, and as data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kemu.lab.exploration.executions import Failure
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.explaining import explanations
from kemu.lab.tell.explaining.chains import Sentence
from kemu.lab.tell.explaining.diagrams import Arrow, Diagram, Mark
from kemu.lab.tell.explaining.drawings import svgs, texts
from kemu.lab.tell.explaining.explanations import Explanation
from kemu.lab.tell.explaining.probabilities import Curve
from kemu.runtime.runlog.folders import EXPLANATIONS

TEXT, PICTURE, DATA = EXPLANATIONS


def write(explanation: Explanation, folder: Path, curve: Curve | None = None) -> None:
    """Put ``explanation.txt``, ``.svg`` and ``.json`` there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TEXT).write_text(texts.told(explanation, curve=curve))
    (folder / PICTURE).write_text(svgs.drawn(explanation, curve))
    (folder / DATA).write_text(json.dumps(data(explanation, curve), indent=2, ensure_ascii=False) + "\n")


def explain(scenario: Scenario, accepts: Callable[[Failure], bool], folder: Path) -> tuple[str, ...]:
    """Explain how a scenario fails, put the files there, and return the sentences. ``accepts``: by which failures.

    Raises KemuError if it does not fail so.
    """
    explanation = explanations.explain(scenario, accepts)
    write(explanation, folder)
    return tuple(sentence.text for sentence in explanation.chain.sentences)


def read(folder: Path, digest: str) -> dict[str, Any] | None:
    """What was written there about the run with that digest; None: nothing, or about another one."""
    try:
        found = json.loads((folder / DATA).read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("digest") == digest else None


def data(explanation: Explanation, curve: Curve | None = None) -> dict[str, Any]:
    """Events are places in the run log, from 0; times are seconds."""
    failure, sibling, difference = explanation.failure, explanation.sibling, explanation.difference
    failing, passing = explanation.diagrams
    return {
        "scenario": explanation.scenario.name,
        "seed": explanation.scenario.seed,
        "digest": explanation.telling.recording.execution.digest,
        "failure": {"id": failure.id, "detail": failure.detail, "cause": failure.cause},
        "sentences": [_sentence(one) for one in explanation.chain.sentences],
        "sibling": None
        if sibling is None
        else {
            "without": {"kind": sibling.kind, "name": sibling.name},
            "digest": sibling.recording.execution.digest,
            "verdict": sibling.recording.execution.outcome,
            "first_events_that_differ": None
            if sibling.differs is None
            else {"failing": sibling.differs[0], "passing": sibling.differs[1]},
            "first_difference": None
            if difference is None
            else {
                "text": difference.text,
                "run": "passing" if difference.is_of_passing else "failing",
                "event": difference.event,
                "time_s": _seconds(difference.time_ns),
                "actor": difference.actor,
                "in_the_other_run_s": None if difference.later_ns is None else _seconds(difference.later_ns),
            },
        },
        "picture": {"failing": _diagram(failing), "passing": None if passing is None else _diagram(passing)},
        "probability": None if curve is None else _curve(curve),
    }


def _curve(curve: Curve) -> dict[str, Any]:
    decision = curve.decision
    return {
        "suffixes": curve.suffixes,
        "points": [{"time_s": _seconds(point.time_ns), "p": point.probability} for point in curve.points],
        "decided": None
        if decision is None
        else {
            "event": decision.event,
            "time_s": _seconds(decision.time_ns),
            "actor": decision.actor,
            "text": decision.text,
            "before": decision.before,
            "after": decision.after,
        },
    }


def _sentence(one: Sentence) -> dict[str, Any]:
    return {
        "text": one.text,
        "event": None if one.event < 0 else one.event,
        "time_s": _seconds(one.time_ns),
        "actor": one.actor,
        "run": "passing" if one.is_of_passing else "failing",
        "hold": one.hold,
    }


def _diagram(diagram: Diagram) -> dict[str, Any]:
    return {
        "actors": list(diagram.actors),
        "titles": list(diagram.titles),
        "marks": [_mark(mark, diagram) for mark in diagram.marks],
        "messages": [_message(arrow, diagram) for arrow in diagram.arrows],
    }


def _mark(mark: Mark, diagram: Diagram) -> dict[str, Any]:
    return {
        "actor": diagram.actors[mark.column],
        "time_s": _seconds(mark.time_ns),
        "text": mark.text,
        "event": mark.event,
        "bad": mark.is_bad,
        "differs": mark.differs,
    }


def _message(arrow: Arrow, diagram: Diagram) -> dict[str, Any]:
    return {
        "from": diagram.actors[arrow.column],
        "to": diagram.actors[arrow.target],
        "sent_s": _seconds(arrow.time_ns),
        "arrived_s": None if arrow.arrived_ns < 0 else _seconds(arrow.arrived_ns),
        "text": arrow.text,
        "held_s": _seconds(arrow.late_ns),
        "differs": arrow.differs,
    }


def _seconds(time_ns: int) -> float:
    return round(time_ns / 1e9, 9)

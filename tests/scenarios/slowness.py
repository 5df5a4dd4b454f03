"""What a slow machine may change about a run on Ray, and what it may not.

Two virtual seconds at speed 20 are a tenth of a real one. What a scenario expects by a certain time, or as the outcome
of a race, may come out differently when the machine is busy; such a run is repeated at a slower speed. A check that
fails is wrong at any speed, and so is an expectation without a time, unless the run was over by its deadline, or the
store answered too late to tell whether a request was carried out: a scheduler that takes its binding for failed gives
the same room away twice, and the kubelet rejects a pod, in Kubernetes as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kemu import errors
from kemu.lab.scenario.expectations import CheckIs, Comparison, CounterIs, Expectation, InOrder, NodeIs, PodIs, PodsAre

CHECKS_OF_TIMES = ("node-evictions-keep-their-rate",)
"""Checks that compare intervals of time, which a busy machine stretches."""
_OUTCOME_UNKNOWN = f": {errors.OutcomeUnknown.reason}"
"""How the refusals of a verdict end that left the outcome of a request open."""


def depends_on_speed(expectation: Expectation) -> bool:
    """Whether a slow machine alone may make it fail."""
    subject = expectation.subject
    match subject:
        case CheckIs():
            return False
        case CounterIs() | InOrder() | Comparison():
            return True
        case PodsAre(quantifier="count"):
            return True  # How many came into a race.
        case PodIs() | PodsAre() | NodeIs():
            statement = subject.statement
            limits = (statement.after_ns, statement.before_ns, statement.at_least_ns, statement.at_most_ns)
            # Which node gets a pod is decided by what is free when its turn comes.
            return statement.never or statement.node is not None or any(limit is not None for limit in limits)


def faults(verdict: Mapping[str, Any], expectations: Sequence[Expectation]) -> Iterator[str]:
    """What is wrong with one run (one variant of a matrix) at any speed.

    What could not be judged (``holds`` is None) is a matter of speed: the run was over too early.
    """
    lost_answers = any(refusal.endswith(_OUTCOME_UNKNOWN) for refusal in verdict["refused"])
    by_id = {each.id: each for each in expectations}
    subjects = [each.subject for each in expectations]
    meant_to_fail = {subject.check for subject in subjects if isinstance(subject, CheckIs) and not subject.holds}
    for found in verdict["checks"]:
        if (
            found["asked"]
            and found["holds"] is False
            and found["id"] not in meant_to_fail
            and found["id"] not in CHECKS_OF_TIMES
        ):
            yield f"{found['id']}: {found['detail']}"
    for found in verdict["expectations"]:
        expectation = by_id[found["id"]]
        # A machine that cannot keep up is not done with the work at the deadline, or loses answers.
        slow = verdict["ended"] == "deadline" or lost_answers
        excused = slow and isinstance(expectation.subject, PodIs | PodsAre | NodeIs)
        if found["holds"] is False and not excused and not depends_on_speed(expectation):
            yield f"{found['text']}: {found['detail']}"

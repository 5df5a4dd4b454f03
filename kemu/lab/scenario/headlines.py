"""What a run came to, in one sentence; it never sounds like a success where nothing was expected.

    fails: 2 of 3 expectations, 1 of 17 checks; 25 pods were never bound
    nothing was expected; 17 checks hold; 25 pods were never bound

Role: beside :mod:`verdicts`, which judges; :mod:`kemu.lab.scenario.playing.judging` puts the sentence into the verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kemu.lab.checks.history import History
from kemu.lab.checks.history.disturbances import STOPPED, Disturbance
from kemu.lab.checks.results import Result
from kemu.lab.checks.scheduling.ledgers import EVICTED, PREEMPTED, BudgetHistory
from kemu.lab.scenario.verdicts import Judgement
from kemu.runtime.words import counted, short


def empty(history: History, workloads: Iterable[str]) -> list[str]:
    """What the run had none of, as sentences: nodes, pods, pods of a workload."""
    found = [] if history.nodes else ["there was no node"]
    if not history.pods:
        return [*found, "no pod was created"]
    made = {pod.workload: None for pod in history.pods.values()}
    if next(history.measured(), None) is None:
        found.append("no pod arrived in the time that is measured")
    return found + [f"workload {name} made no pod" for name in workloads if name not in made]


def never_came(faults: Iterable[str]) -> list[str]:
    """Faults that wait for something that did not happen."""
    return [f"the fault {fault} never came" for fault in faults]


def disturbed(disturbances: Iterable[Disturbance]) -> list[str]:
    """What happened to processes that the scenario did not ask for."""
    outside = [one for one in disturbances if one.from_outside]
    parts = [f"{what} {counted(number, 'time')}" for what, number in Counter(one.what for one in outside).items()]
    still = [one.process for one in outside if one.what == STOPPED and one.end_ns is None]
    return [
        *([f"from outside, processes {_all(parts)}"] if parts else []),
        *(f"{process} stood still until the end: what stopped it (SIGSTOP, a debugger) did not let it go on"
          for process in still),
    ]  # fmt: skip


def unbound(found: Mapping[str, Any]) -> list[str]:
    """``found``: as :func:`kemu.lab.checks.scheduling.unbound.data` has it."""
    pods, hopeless = found["pods"], found["hopeless"]
    if not pods:
        return []
    text = f"{counted(pods, 'pod')} {_were(pods)} never bound"
    if hopeless:
        text += f"; no node can take {hopeless if hopeless < pods else 'it' if pods == 1 else 'them'}"
        text += " of them" if hopeless < pods else ""
    return [text]


def beyond_budgets(budgets: Iterable[BudgetHistory]) -> list[str]:
    """Pods that their disruption budgets could not spare, which preemption and kubelets do not ask."""
    found = []
    for budget in budgets:
        for how in (PREEMPTED, EVICTED):
            pods = sum(one.beyond for one in budget.disruptions if one.how == how)
            if pods:
                name = short(budget.name)
                found.append(f"{counted(pods, 'pod')} {_were(pods)} {how} beyond the budget {name}")
    return found


def of_run(verdict: str, judgements: Sequence[Judgement], checks: Sequence[Result], rest: Sequence[str]) -> str:
    """``checks``: those that count by themselves. ``rest``: what else there is to say, :func:`empty` say."""
    judged = [check for check in checks if check.holds is not None]
    hold = _hold(sum(check.holds is True for check in judged), "check")
    broken = [_of(judgements, False, "expectation"), _of(judged, False, "check")]
    if verdict == "fails":
        parts = [f"fails: {', '.join(filter(None, broken))}"]
    elif verdict == "unknown" and (judgements or judged):
        open_ = _of(judgements, None, "expectation")
        parts = [f"unknown: {f'{open_} could not be judged' if open_ else 'the run log is not complete'}"]
    elif judgements:
        good = sum(check.holds is True for check in judged)
        parts = [f"{verdict}: {counted(len(judgements), 'expectation')}"]
        parts[0] += f", {counted(good, 'check')}" if good else ""
    else:
        limits = [check.id for check in checks if check.detector]
        parts = [
            f"nothing was expected{f' but {_all(limits)}' if limits else ''}",
            hold or "there was nothing to check",
        ]
    return "; ".join([*parts, *rest])


def of_matrix(verdict: str, variants: Sequence[Mapping[str, Any]], comparisons: Sequence[Judgement]) -> str:
    """``variants``: their verdicts as data."""
    parts = []
    failing = [sum(variant["verdict"] == word for variant in variants) for word in ("fails", "unknown")]
    for some, holds, says in zip(failing, (False, None), ("", " could not be judged"), strict=True):
        if some:
            parts.append(f"{some} of {counted(len(variants), 'variant')}{says}")
        found = _of(comparisons, holds, "comparison")
        if found:
            parts.append(f"{found}{says}")
    if not parts:
        parts.append(counted(len(variants), "variant"))
        parts += filter(None, [_hold(len(comparisons), "comparison")])
    never = sum(variant["unbound"]["pods"] for variant in variants)
    parts += [f"{counted(never, 'pod')} {_were(never)} never bound"] * bool(never)
    is_expected = bool(comparisons) or any(variant["expectations"] for variant in variants)
    if is_expected or verdict == "fails":
        return f"{verdict}: {'; '.join(parts)}"
    return "; ".join(["nothing was expected", *parts])


def _of(found: Sequence[Judgement | Result], holds: bool | None, noun: str) -> str:
    """``2 of 3 expectations``; empty where it is none of them."""
    some = sum(one.holds is holds for one in found)
    return f"{some} of {counted(len(found), noun)}" if some else ""


def _hold(number: int, noun: str) -> str:
    return f"{counted(number, noun)} {'holds' if number == 1 else 'hold'}" if number else ""


def _all(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _were(number: int) -> str:
    return "was" if number == 1 else "were"

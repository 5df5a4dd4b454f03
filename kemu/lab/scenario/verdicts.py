"""Judges what a scenario expects, on the history of its run.

Every judgement says what was found, not only whether it was right. What could not be judged because the run ended too
early is None, never True.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.counters import counts
from kemu.lab.checks.history import History
from kemu.lab.checks.history.facts import WORDS, Fact, PodHistory
from kemu.lab.checks.results import Result, seconds
from kemu.lab.scenario import evidence, sentences
from kemu.lab.scenario.evidence import Answer
from kemu.lab.scenario.expectations import (
    BudgetIs,
    CheckIs,
    Comparison,
    CounterIs,
    EventIs,
    Expectation,
    FaultIs,
    InOrder,
    MetricIs,
    NodeIs,
    ObjectIs,
    PodIs,
    PodsAre,
    RefusedIs,
    Selection,
    Statement,
)
from kemu.messages.k8s import meta_v1_pb2
from kemu.runtime.words import counted, short


@dataclass(frozen=True, slots=True)
class Outcome:
    """The run, as far as judging needs it."""

    history: History
    checks: Sequence[Result]
    end_ns: int
    finished: bool
    """It went as far as the scenario wanted, and was not broken off."""
    idle: bool
    """Nothing could happen any more when it ended."""
    meant: Mapping[str, int] = field(default_factory=dict)
    """How many pods each workload meant to create by then, replacements apart."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One expectation, judged."""

    id: str
    text: str
    holds: bool | None
    detail: str


def judge(expectation: Expectation, outcome: Outcome) -> Judgement:
    """Everything but comparisons, which look at several runs: see :func:`compare`."""
    subject = expectation.subject
    if (of_evidence := _OF_EVIDENCE.get(type(subject))) is not None:
        finished = _window_is_over(subject, outcome) if isinstance(subject, BudgetIs) else outcome.finished
        holds, detail = of_evidence(subject, outcome.history, finished=finished)
    else:
        holds, detail = _JUDGES[type(subject)](subject, outcome)
    return Judgement(expectation.id, expectation.text, holds, detail)


def happened(expectation: Expectation, history: History, meant: Mapping[str, int]) -> bool:
    """Whether ``until`` holds already, in a run that is still going on; ``meant`` for the whole run."""
    outcome = Outcome(history, (), history.now_ns, finished=False, idle=False, meant=meant)
    return judge(expectation, outcome).holds is True


def speaks_against(pod: PodHistory, subject: PodsAre, history: History) -> bool:
    """Whether, in a run that is still going on, what is said of ``all`` pods is not true of this one, or not yet."""
    outcome = Outcome(history, (), history.now_ns, finished=False, idle=False, meant={})
    return _statement(pod, subject.statement, outcome)[0] is not True


def latest_against(subject: PodsAre, history: History) -> PodHistory | None:
    """The one that was created last of those which :func:`speaks_against`. The last ones mostly come true last."""
    pods = reversed(_select(subject.selection, history))
    return next((pod for pod in pods if speaks_against(pod, subject, history)), None)


def times_happened(expectation: Expectation, history: History) -> int:
    """How often what :func:`~kemu.lab.scenario.expectations.can_be_counted` came true so far."""
    subject = expectation.subject
    match subject:
        case PodIs():
            pods = [history.pods[uid] for uid in history.names.get(subject.pod, ())]
            facts = [fact for pod in pods for fact in pod.facts]
        case PodsAre():
            facts = [fact for pod in _select(subject.selection, history) for fact in pod.facts]
        case NodeIs():
            node = history.nodes.get(subject.node)
            facts = list(node.facts) if node is not None else []
        case _:
            raise TypeError(f"{expectation.id} comes true once")
    return sum(fact.what == subject.statement.what and _fits(fact, subject.statement) for fact in facts)


# Pods ---------------------------------------------------------------------------------------------------------------


def _pod_is(subject: PodIs, outcome: Outcome) -> Answer:
    found = [outcome.history.pods[uid] for uid in outcome.history.names.get(subject.pod, ())]
    if not found:
        return _never_created(subject.statement, outcome, "it was never created")
    # A name that was used again stands for all the pods that bore it: one that fits is enough, and none may offend.
    answers = [_statement(pod, subject.statement, outcome) for pod in found]
    if subject.statement.never:
        return _worst(answers)
    return _best(answers)


def _best(answers: Sequence[Answer]) -> Answer:
    for wanted in (True, None):
        for answer in answers:
            if answer[0] is wanted:
                return answer
    return answers[-1]


def _worst(answers: Sequence[Answer]) -> Answer:
    for wanted in (False, None):
        for answer in answers:
            if answer[0] is wanted:
                return answer
    return answers[-1]


def _statement(pod: PodHistory, statement: Statement, outcome: Outcome) -> Answer:
    if statement.what == "phase":
        return _phase(pod, statement, outcome)
    if statement.what == "waited":
        return _waited(pod, statement, outcome)
    return _happened([fact for fact in pod.facts if fact.what == statement.what], statement, outcome)


def _happened(facts: Sequence[Fact], statement: Statement, outcome: Outcome) -> Answer:
    """``facts``: all of the kind that the statement speaks of."""
    fitting = [fact for fact in facts if _fits(fact, statement)]
    if statement.never:
        if fitting:
            return False, _tell(fitting[0])
        return (
            True if _window_is_over(statement, outcome) else None
        ), f"never {WORDS[statement.what].participle}, until {seconds(outcome.end_ns)}"
    if fitting:
        return True, _tell(fitting[0])
    if not _window_is_over(statement, outcome):
        return None, f"not {WORDS[statement.what].participle} when the run ended at {seconds(outcome.end_ns)}"
    if facts:
        return False, "instead: " + "; ".join(_tell(fact) for fact in facts[:3])
    return False, f"never {WORDS[statement.what].participle}"


def _window_is_over(statement: Statement | BudgetIs, outcome: Outcome) -> bool:
    if outcome.idle:
        return True
    if statement.before_ns is None:
        return outcome.finished
    return outcome.end_ns > statement.before_ns


def _fits(fact: Fact, statement: Statement) -> bool:
    if statement.after_ns is not None and fact.time_ns < statement.after_ns:
        return False
    if statement.before_ns is not None and fact.time_ns > statement.before_ns:
        return False
    if statement.node is not None and fact.node != statement.node:
        return False
    if statement.by is not None and fact.by != statement.by and fact.by.partition("/")[0] != statement.by:
        return False
    if statement.reason is not None and statement.reason not in (fact.reason, *fact.also):
        return False
    if statement.status is not None and fact.status != statement.status:
        return False
    if statement.bounds is not None and not statement.bounds.allow(fact.amount):
        return False
    return statement.phase is None or fact.reason == statement.phase


def _tell(fact: Fact) -> str:
    text = WORDS[fact.what].participle
    if fact.what == "finished":
        text = f"finished {fact.reason}"
    elif fact.what == "condition":
        text = f"{fact.reason} became {fact.status}"
    elif fact.what in ("tainted", "untainted"):
        text = f"{'got' if fact.what == 'tainted' else 'lost'} the taint {fact.reason}:{fact.status}"
    elif fact.what == "drainFailed":
        text = f"not drained ({fact.message})"
    elif fact.what == "scored":
        text = f"{fact.node} scored {fact.amount}"
    elif fact.what == "attempted":
        text = f"attempted ({fact.reason}{f', {fact.node}' if fact.node else ''})"
    elif fact.what == "evicted":
        text = f"evicted{f' from {fact.node}' if fact.node else ''}: {fact.reason}"
    elif fact.what == "rejected":
        text = f"rejected by {fact.node}: {fact.reason}"
    elif fact.node and fact.what in ("bound", "unbound", "nominated", "running", "ended", "oomKilled"):
        text += f" {'to' if fact.what in ('bound', 'unbound', 'nominated') else 'on'} {fact.node}"
    if fact.by:
        text += f" by {fact.by.removeprefix('default/')}"
    return f"{text} at {seconds(fact.time_ns)}"


def _phase(pod: PodHistory, statement: Statement, outcome: Outcome) -> Answer:
    if pod.gone_ns is not None:
        return False, f"it is gone since {seconds(pod.gone_ns)}"
    holds = pod.phase == statement.phase
    if not outcome.finished and (holds or pod.phase not in pod_phases.TERMINAL):
        return None, f"{pod.phase} at {seconds(outcome.end_ns)}, where the run ended too early"
    return holds, f"{pod.phase} at the end"


def _waited(pod: PodHistory, statement: Statement, outcome: Outcome) -> Answer:
    until = pod.bound_ns
    bound = until is not None
    if until is None:
        until = pod.deleting_ns if pod.deleting_ns is not None else outcome.end_ns
    waited = until - pod.created_ns
    text = f"waited {seconds(waited)}" + ("" if bound else " and was never bound")
    if statement.at_most_ns is not None and waited > statement.at_most_ns:
        return False, text
    if not bound and pod.deleting_ns is None and not outcome.finished:
        return None, text
    if statement.at_least_ns is not None and waited < statement.at_least_ns:
        return False, text
    if statement.at_most_ns is not None and not bound:
        return False, text
    return True, text


def _pods_are(subject: PodsAre, outcome: Outcome) -> Answer:
    answers = _answers(subject, outcome)
    yes = sum(holds is True for _, (holds, _) in answers)
    unknown = sum(holds is None for _, (holds, _) in answers)
    detail = f"{yes} of {counted(len(answers), 'pod')}" + (f", {unknown} could not be judged" if unknown else "")
    if subject.quantifier == "all":
        offence = next((f"{who}: {why}" for who, (holds, why) in answers if holds is False), None)
        if offence is not None:
            return False, f"{detail}; {offence}"
        if unknown or not (answers or outcome.finished):
            return None, detail
        return bool(answers), detail
    if subject.quantifier == "any":
        if yes:
            return True, detail
        return (None if unknown or not outcome.finished else False), detail
    if subject.quantifier == "none":
        if yes:
            return False, f"{detail}; {next(f'{who}: {why}' for who, (holds, why) in answers if holds)}"
        return (None if unknown or not outcome.finished else True), detail
    return evidence.number(yes, subject.bounds, detail, may_grow=bool(unknown) or not outcome.finished)


def _answers(subject: PodsAre, outcome: Outcome) -> list[tuple[str, Answer]]:
    """Who, and what is to be said of it; also of the pods that should be there and were never created."""
    selection, statement, history = subject.selection, subject.statement, outcome.history
    pods = _select(selection, history)
    answers = [(pod.key, _statement(pod, statement, outcome)) for pod in pods]
    if selection.names is not None:
        absent = [(name, "it was never created") for name in selection.names if name not in history.names]
        answers += [(name, _never_created(statement, outcome, why)) for name, why in absent]
    elif selection.workload is not None:
        refusals = history.never_created.get(selection.workload, [])
        refused = f"a pod of {selection.workload} that was refused"
        answers += [(refused, _never_created(statement, outcome, why)) for why, _ in refusals]
        arrived = sum(not pod.replaces for pod in pods) + sum(not replaces for _, replaces in refusals)
        missing = outcome.meant.get(selection.workload, 0) - arrived
        answers += [(f"a pod of {selection.workload}", (None, "nothing tells whether it was created"))] * missing
    return answers


def _never_created(statement: Statement, outcome: Outcome, why: str) -> Answer:
    return (statement.never if _window_is_over(statement, outcome) else None), why


def _select(selection: Selection, history: History) -> list[PodHistory]:
    pods = history.pods.values()
    if selection.workload is not None:
        return [pod for pod in pods if pod.workload == selection.workload]
    if selection.names is not None:
        wanted = frozenset(selection.names)
        return [pod for pod in pods if pod.key in wanted]
    message = convert.from_json(meta_v1_pb2.LabelSelector, dict(selection.selector or {}))
    compiled = selectors.compile_labels(message)
    return [pod for pod in pods if compiled.matches(pod.labels)]


# Nodes --------------------------------------------------------------------------------------------------------------


def _node_is(subject: NodeIs, outcome: Outcome) -> Answer:
    statement = subject.statement
    history = outcome.history.nodes.get(subject.node)
    facts = [
        fact
        for fact in (history.facts if history is not None else ())
        if fact.what == statement.what and statement.reason in (None, fact.reason)
    ]
    return _happened(facts, statement, outcome)


# Numbers, checks, order ---------------------------------------------------------------------------------------------


def _counter_is(subject: CounterIs, outcome: Outcome) -> Answer:
    value = counts(outcome.history)[subject.counter]
    return evidence.number(value, subject.bounds, f"{subject.counter} = {value}", may_grow=not outcome.finished)


def _check_is(subject: CheckIs, outcome: Outcome) -> Answer:
    result = next((check for check in outcome.checks if check.id == subject.check), None)
    if result is None:
        return None, "the check is disabled"
    if result.holds is None:
        return None, f"not exercised: {result.detail}"
    return result.holds is subject.holds, result.detail


def _in_order(subject: InOrder, outcome: Outcome) -> Answer:
    told = []
    last_ns = -1
    met: Counter[tuple[str, Statement]] = Counter()
    for step in subject.steps:
        facts = [
            fact
            for uid in outcome.history.names.get(step.pod, ())
            for fact in outcome.history.pods[uid].facts
            if fact.what == step.statement.what and _fits(fact, step.statement)
        ]
        name = short(step.pod)
        times = met[step.pod, step.statement]
        met[step.pod, step.statement] += 1
        if len(facts) <= times:
            told.append(f"{name} never {WORDS[step.statement.what].participle}{' again' if times else ''}")
            return (False if outcome.finished else None), "; ".join(told)
        fact = sorted(facts, key=lambda found: found.time_ns)[times]
        told.append(f"{name} {_tell(fact)}")
        if fact.time_ns <= last_ns:
            return False, "; ".join(told)
        last_ns = fact.time_ns
    return True, "; ".join(told)


_JUDGES: Mapping[type, Callable[[Any, Outcome], Answer]] = {
    PodIs: _pod_is, PodsAre: _pods_are, NodeIs: _node_is, InOrder: _in_order, CounterIs: _counter_is,
    CheckIs: _check_is,
}  # fmt: skip
_OF_EVIDENCE: Mapping[type, Callable[..., Answer]] = {
    BudgetIs: evidence.budget_is, MetricIs: evidence.metric_is, RefusedIs: evidence.refused_is,
    EventIs: evidence.event_is, ObjectIs: evidence.object_is, FaultIs: evidence.fault_is,
}  # fmt: skip
"""By the subject of the expectation."""


# Comparisons --------------------------------------------------------------------------------------------------------


def compare(
    expectation: Expectation, of: tuple[str, float | None, bool], than: tuple[str, float | None, bool]
) -> Judgement:
    """``of`` and ``than``: name of the variant, its metric, whether its run was finished."""
    subject = expectation.subject
    assert isinstance(subject, Comparison)
    (of_name, left, left_done), (than_name, right, right_done) = of, than
    if left is None or right is None:
        return Judgement(expectation.id, expectation.text, None, "a variant has no such pods")
    times = f"{left / right:.2f} times" if right else "against 0"
    detail = f"{subject.metric}: {left:g} with {of_name}, {right:g} with {than_name} ({times})"
    holds: bool | None = True
    if subject.at_least is not None and left < subject.at_least * right:
        holds = False
    if subject.at_most is not None and left > subject.at_most * right:
        holds = False
    if not (left_done and right_done):
        holds = None
        detail += "; a run ended too early"
    return Judgement(expectation.id, expectation.text, holds, detail)


# The whole ----------------------------------------------------------------------------------------------------------


def overall(checks: Sequence[Result], judgements: Sequence[Judgement]) -> str:
    """``fails`` before ``unknown`` before ``holds``; ``unknown`` too where nothing at all could be judged.

    A check that the scenario expects to fail (``{check: …, holds: false}``) does not count against the run twice.
    """
    if any(check.holds is False for check in checks) or any(found.holds is False for found in judgements):
        return "fails"
    if any(found.holds is None for found in judgements):
        return "unknown"
    return "holds" if judgements or any(check.holds for check in checks) else "unknown"


def countable(checks: Sequence[Result], expectations: Sequence[Expectation]) -> list[Result]:
    """The checks that count by themselves: not those that an expectation names, which is judged instead, nor
    detectors that were not asked for."""
    named = {expectation.subject.check for expectation in expectations if isinstance(expectation.subject, CheckIs)}
    return [check for check in checks if check.asked and check.id not in named]


def as_data(judgement: Judgement, expectation: Expectation) -> Mapping[str, Any]:
    """For verdict.json."""
    return {
        "id": judgement.id,
        "text": judgement.text,
        "says": sentences.of(expectation),
        "holds": judgement.holds,
        "detail": judgement.detail,
    }

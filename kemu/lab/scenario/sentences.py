"""Expectations as sentences, for people: ``c is bound to node-1 between 60 s and 80 s``.

Neighbours: ``expectations`` holds them as data, with the text of their author; ``verdicts`` says what was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.lab.checks.history.facts import WORDS, Words
from kemu.lab.scenario import expectations
from kemu.runtime.words import counted, short

_QUANTIFIERS = {"all": "every", "any": "some", "none": "no"}
_OF_STATEMENTS = {"phase": Words("is", "are"), "waited": Words("waits", "wait")}
"""What is stated and is no fact."""


def of(expectation: expectations.Expectation) -> str:
    """The whole expectation, without its id."""
    when = f" with {condition(expectation.when)}" if expectation.when else ""
    return _subject(expectation.subject) + when


def condition(values: Mapping[str, Any]) -> str:
    """``queue=fifo``: the last step of each path and its value."""
    return " ".join(f"{path.rpartition('.')[2]}={_plain(value)}" for path, value in values.items())


def _plain(value: object) -> Any:
    return ("on" if value else "off") if isinstance(value, bool) else value


def _subject(subject: Any) -> str:
    match subject:
        case expectations.PodIs():
            return f"{short(subject.pod)} {_statement(subject.statement)}"
        case expectations.PodsAre():
            return _pods(subject)
        case expectations.NodeIs():
            condition_of = f"{subject.statement.reason} of " if subject.statement.what == "condition" else ""
            return f"{condition_of}{subject.node} {_statement(subject.statement)}"
        case expectations.BudgetIs():
            return _budget(subject)
        case expectations.CounterIs():
            return f"the counter {subject.counter} is {_bounds(subject.bounds)}"
        case expectations.CheckIs():
            return f"the check {subject.check} {'holds' if subject.holds else 'does not hold'}"
        case expectations.MetricIs():
            return f"{_metric(subject.metric, subject.priority)} is {_bounds(subject.bounds)}"
        case expectations.RefusedIs():
            return _refused(subject)
        case expectations.EventIs():
            whom = subject.about or (f"a {subject.kind}" if subject.kind else "")
            about = f" about {whom}" if whom else ""
            return _often(f"Event {subject.reason}{about}", "is written", subject.bounds, article="an")
        case expectations.ObjectIs():
            return _object(subject)
        case expectations.FaultIs():
            return f"the fault {subject.fault} strikes {'somebody' if subject.hit else 'nobody'}"
        case expectations.InOrder():
            return ", then ".join(_subject(step) for step in subject.steps)
        case expectations.Comparison():
            least = expectations.Bounds(at_least=subject.at_least, at_most=subject.at_most)
            left = f"{_metric(subject.metric, subject.priority)} with {condition(subject.of)}"
            return f"{left} is {_bounds(least)} times that with {condition(subject.times_that_of)}"
    raise TypeError(subject)


def _budget(subject: expectations.BudgetIs) -> str:
    least = "as many healthy pods as it wants"
    if subject.at_least is not None:
        least = f"at least {counted(subject.at_least, 'healthy pod')}"
    window = _window(subject.after_ns, subject.before_ns)
    return " ".join(filter(None, [f"the budget {short(subject.budget)} keeps", least, window]))


def _pods(subject: expectations.PodsAre) -> str:
    whom = _selection(subject.selection)
    one, many = _statement(subject.statement), _statement(subject.statement, several=True)
    if subject.quantifier == "count":
        bounds = subject.bounds
        last = next((each for each in (bounds.equals, bounds.at_most, bounds.at_least) if each is not None), None)
        only_one = last == 1
        exactly = "exactly " if subject.bounds.equals is not None else ""
        noun = "pod" if only_one else "pods"
        if subject.selection.names is not None:
            noun = ""
        return " ".join(filter(None, [exactly + _bounds(subject.bounds), noun, whom, one if only_one else many]))
    return f"{_QUANTIFIERS[subject.quantifier]} pod {whom} {one}"


def _selection(selection: expectations.Selection) -> str:
    if selection.workload is not None:
        return f"of {selection.workload}"
    if selection.names is not None:
        return f"of {', '.join(map(short, selection.names))}"
    selector = dict(selection.selector or {})
    parts = [f"{key}={value}" for key, value in selector.get("matchLabels", {}).items()]
    for term in selector.get("matchExpressions", ()):
        values = ", ".join(map(str, term.get("values", ())))
        parts.append(f"{term['key']} {term['operator']}{f' ({values})' if values else ''}")
    return f"with {', '.join(parts)}"


def _statement(statement: expectations.Statement, *, several: bool = False) -> str:
    of_fact = WORDS.get(statement.what) or _OF_STATEMENTS[statement.what]
    verb, rest = of_fact.many if several else of_fact.one, of_fact.what
    never = " never" if statement.never else ""
    words = f"{verb}{never}" if verb in ("is", "are") else f"{never} {verb}".strip()
    if several and statement.what == "nominationCleared":
        rest = "their nominations"
    return " ".join(filter(None, [words, rest, *_details(statement), _window(statement.after_ns, statement.before_ns)]))


def _details(statement: expectations.Statement) -> list[str]:
    what, found = statement.what, []
    if what == "phase":
        return [f"{statement.phase} at the end"]
    if what == "waited":
        limits = [
            f"{word} {ns / 1e9:g} s"
            for word, ns in (("at least", statement.at_least_ns), ("at most", statement.at_most_ns))
            if ns is not None
        ]
        return [" and ".join(limits)]
    if what == "condition":
        return [statement.status or ""]
    if what in ("tainted", "untainted"):
        return [f"the taint {statement.reason}{f':{statement.status}' if statement.status else ''}"]
    if statement.phase is not None:
        found.append(f"as {statement.phase}")
    if statement.bounds is not None:
        found.append(f"of {_bounds(statement.bounds)}")
    if statement.node is not None:
        found.append(f"{WORDS[what].at} {statement.node}")
    if statement.by is not None:
        found.append(f"{'for' if what == 'preempted' else 'by'} {short(statement.by)}")
    if statement.reason is not None:
        found.append(f"({statement.reason})")
    return found


def _window(after: int | None, before: int | None) -> str:
    if after is not None and before is not None:
        return f"between {after / 1e9:g} s and {before / 1e9:g} s"
    if after is not None:
        return f"after {after / 1e9:g} s"
    return f"before {before / 1e9:g} s" if before is not None else ""


def _bounds(bounds: expectations.Bounds) -> str:
    if bounds.equals is not None:
        return f"{bounds.equals:g}"
    if bounds.at_least is not None and bounds.at_most is not None:
        return f"between {bounds.at_least:g} and {bounds.at_most:g}"
    if bounds.at_least is not None:
        return f"at least {bounds.at_least:g}"
    return f"at most {bounds.at_most:g}" if bounds.at_most is not None else "any number"


def _often(what: str, happens: str, bounds: expectations.Bounds, *, article: str = "a") -> str:
    if bounds.equals == 0 or (bounds.equals is None and bounds.at_most == 0):
        return f"no {what} {happens}"
    times = "at least once" if bounds == expectations.Bounds(at_least=1) else f"{_bounds(bounds)} times"
    return f"{article} {what} {happens} {times}"


def _metric(name: str, priority: int | None) -> str:
    return name if priority is None else f"{name} of priority {priority}"


def _refused(subject: expectations.RefusedIs) -> str:
    name = short(subject.name) if subject.name else ""
    whom = " ".join(filter(None, [subject.kind, name])) if name else f"a {subject.kind}" if subject.kind else ""
    about = f"{'' if subject.verb else 'about '}{whom}" if whom else ""
    request = " ".join(filter(None, ["request", f"to {subject.verb}" if subject.verb else "", about]))
    reason = f" ({subject.reason})" if subject.reason else ""
    return _often(request, f"is refused{reason}", subject.bounds)


def _object(subject: expectations.ObjectIs) -> str:
    name = f"{subject.kind} {subject.name}"
    if subject.namespace not in ("", "default"):
        name = f"{subject.kind} {subject.namespace}/{subject.name}"
    if not subject.field:
        return f"{name} {'is there' if subject.exists else 'is not there'} at the end"
    field = f"{'.'.join(str(step) for step in subject.field)} of {name}"
    if subject.states_value:
        return f"{field} is {subject.equals} at the end"
    if subject.bounds != expectations.Bounds():
        return f"{field} is {_bounds(subject.bounds)} at the end"
    return f"{field} is {'set' if subject.exists else 'not set'} at the end"

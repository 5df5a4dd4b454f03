"""What claims may look like, and what is said of those that are wrong."""

from __future__ import annotations

import pytest

from kemu.lab.sweep.cells import Metric
from kemu.lab.sweep.statistics import claims
from kemu.lab.sweep.statistics.claims import Term

QUEUE, NOMINATION, REPLICAS = "schedulers[0].policy.queue", "schedulers[0].policy.nomination", "schedulers[0].replicas"
VARY = {QUEUE: ["fifo", "priority"], NOMINATION: [False, True], REPLICAS: [1, 2.5], "load": ["5/s", "10/s"]}


@pytest.mark.parametrize(
    ("says", "left", "sign", "right"),
    [
        (
            "waiting.p99_s(queue=fifo) > 3 * waiting.p99_s(queue=priority)",
            Term(1, Metric("waiting.p99_s"), {QUEUE: "fifo"}),
            ">",
            Term(3, Metric("waiting.p99_s"), {QUEUE: "priority"}),
        ),
        (
            "0.5*waiting.max_s(priority=1000,nomination=off)<=waiting.max_s(nomination=true, priority=10)",
            Term(0.5, Metric("waiting.max_s", 1000), {NOMINATION: False}),
            "<=",
            Term(1, Metric("waiting.max_s", 10), {NOMINATION: True}),
        ),
        (
            f'oom_kills("{REPLICAS}"=2.5) >= refused.Conflict(replicas=1, load="5/s")',
            Term(1, Metric("oom_kills"), {REPLICAS: 2.5}),
            ">=",
            Term(1, Metric("refused.Conflict"), {REPLICAS: 1, "load": "5/s"}),
        ),
        ("preemptions < 1e3", Term(1, Metric("preemptions"), {}), "<", Term(1000, None, {})),
    ],
)
def test_claims(says: str, left: Term, sign: str, right: Term) -> None:
    found = claims.parse(says, VARY, name="it", confidence=0.9)
    assert (found.left, found.sign, found.right) == (left, sign, right)
    assert (found.id, found.says, found.confidence) == ("it", says, 0.9)


def test_a_term_as_text() -> None:
    found = claims.parse("2 * waiting.p99_s(nomination=off, priority=10) > 1.5", VARY)
    assert (found.left.text, found.right.text) == ("waiting.p99_s(nomination=off, priority=10)", "1.5")


def test_a_path_may_be_called_priority() -> None:
    vary = {"schedulers[0].policy.priority": ["x", "y"]}
    found = claims.parse("waiting.p99_s(priority=x) > 1", vary)
    assert found.left == Term(1, Metric("waiting.p99_s"), {"schedulers[0].policy.priority": "x"})


@pytest.mark.parametrize(
    ("says", "complaint"),
    [
        ("waiting.p99_s(que=fifo) > 1", "nothing that varies is called que; did you mean queue?"),
        ("waiting.p99_s(queue=lifo) > 1", "queue is never lifo: its values are fifo, priority"),
        ("waiting.p99_s(nomination=maybe) > 1", "nomination is never maybe: its values are off, on"),
        ("waiting.p9_s > 1", "there is no metric waiting.p9_s; did you mean waiting.p99_s?"),
        ("utilisation.cpu(priority=3) > 1", "utilisation.cpu is not told by priority"),
        ("waiting.p99_s(priority=high) > 1", "priority is a whole number, not high"),
        ("1 > 2", "both of its terms are numbers"),
        ("waiting.p99_s", "a claim compares two terms with <=, >=, <, >; the text ends instead"),
        ("waiting.p99_s > ", "a term begins with a number or a metric; the text ends instead"),
        ("waiting.p99_s = 3", "there is '=' instead"),
        ("waiting.p99_s(queue) > 2", "queue needs a value, as queue=value"),
        ("waiting.p99_s(queue=fifo > 2", "',' or ')' stands behind queue=fifo; there is '>' instead"),
        ("waiting.p99_s > 2 3", "the claim should end before there is '3'"),
        ("-1 * waiting.p99_s > 2", "a factor is positive, not -1"),
        ('waiting.p99_s("queue=fifo) > 2', "a quote that does not end"),
        ("", "a term begins with a number or a metric; the text ends instead"),
    ],
)
def test_mistakes(says: str, complaint: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        claims.parse(says, VARY)
    assert complaint in str(caught.value)


def test_a_key_that_two_paths_end_with_needs_the_whole_path() -> None:
    vary = {"a.queue": [1], "b.queue": [2]}
    with pytest.raises(ValueError, match=r"queue could be a\.queue or b\.queue"):
        claims.parse("oom_kills(queue=1) > 0", vary)
    assert claims.parse("oom_kills('b.queue'=2) > 0", vary).left.variant == {"b.queue": 2}

"""Expressions that mean harm: they are refused or cancelled, quickly, with neither deep recursion nor much memory."""

from __future__ import annotations

import sys

import pytest

from kemu.emulated import cel

BIG = "a" * 3_000_000
ENVIRONMENT = cel.Environment({"x": cel.types.DYN}, libraries=["bindings", "mutation"])

REFUSED = {
    "parentheses": "(" * 100_000,
    "brackets": "[" * 99_999,
    "calls": "f(" * 50_000,
    "conditions": "true?1:" * 14_000 + "1",
    "sums": "1" + "+1" * 49_000,
    "fields": "x" + ".a" * 49_000,
    "strays": "#" * 100_000,
    "length": "1" * 100_001,
    "a whole number": "9" * 99_999,
    "copies of macros": "x" + ".optMap(a, a)" * 60,
    "repetitions": "'a'.matches('((a{100}){100}){100}')",
}
CANCELLED = {
    "loops": "lists.range(1000).map(a, lists.range(1000).map(b, lists.range(1000)))",
    "a range": "lists.range(100000000000)",
    "doubled strings": "cel.bind(a, x + x, cel.bind(b, a + a, cel.bind(c, b + b, cel.bind(d, c + c, d + d))))",
    "replacements": "x.replace('', x)",
    "joins": "lists.range(1000).map(i, x).join(x)",
    "precisions": "'%.999999999f'.format([1.0])",
    "distinct items": "lists.range(5000).distinct()",
    "sets": "sets.contains(lists.range(5000), lists.range(5000))",
    "nested loops": "[1,2].map(x," * 200 + "x" + ")" * 200,
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    limit = sys.getrecursionlimit()
    with pytest.raises(cel.CompileError):
        ENVIRONMENT.compile(REFUSED[name])
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("name", CANCELLED)
def test_cancelled(name: str) -> None:
    with pytest.raises(cel.BudgetExceeded):
        ENVIRONMENT.compile(CANCELLED[name]).evaluate({"x": BIG})


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$", "(a+)+c"])
def test_patterns_take_time_linear_in_the_text(pattern: str) -> None:
    program = ENVIRONMENT.compile(f"x.matches('{pattern}')")
    assert program.evaluate({"x": BIG}, limit=None)[0] is (pattern == "(a|aa)+$")


def test_the_deepest_admitted_expressions_are_evaluated() -> None:
    assert ENVIRONMENT.compile("(" * 249 + "1" + ")" * 249).evaluate({})[0] == 1
    assert ENVIRONMENT.compile("1" + " + 1" * 250).evaluate({})[0] == 251
    nested = ENVIRONMENT.compile("[" * 240 + "]" * 240 + " == " + "[" * 240 + "]" * 240)
    assert nested.evaluate({})[0] is True
    assert nested.estimate().high > 0
    assert ENVIRONMENT.compile("true" + "&&true" * 16_000).evaluate({})[0] is True

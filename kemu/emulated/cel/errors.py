"""What goes wrong with an expression: it does not compile, its evaluation fails, or it costs too much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kemu import errors


@dataclass(frozen=True, slots=True)
class Issue:
    """One mistake in an expression: `line` counts from 1, `column` from 0, both in code points."""

    line: int
    column: int
    message: str


class CompileError(errors.KemuError):
    """The expression is no valid program. ``str()`` is what cel-go prints for the issues, line by line."""

    def __init__(self, text: str, issues: Sequence[Issue] = ()) -> None:
        super().__init__(text)
        self.issues = tuple(issues)


class InstantiationError(CompileError):
    """The expression is valid, but no program can be made of it: a constant in it is no value, such as ``int('x')``."""


class EvaluationError(errors.KemuError):
    """The evaluation ended with an error; ``str()`` is cel-go's message, `cost` is what it cost until then."""

    def __init__(self, message: str, cost: int = 0) -> None:
        super().__init__(message)
        self.cost = cost


class BudgetExceeded(EvaluationError):
    """The evaluation was cancelled because its actual cost passed the limit of a call."""

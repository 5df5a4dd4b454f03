"""Environments, which declare what expressions may name, and programs, which they compile expressions to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, NamedTuple

from kemu.emulated.cel import types
from kemu.emulated.cel.values import Value

#: The actual cost at which the evaluation of one expression is cancelled.
PER_CALL_LIMIT = 1_000_000

#: Libraries that only some of Kubernetes' environments have: ``cel.bind`` (DRA), ``jsonpatch`` (MutatingAdmissionPolicy).
Library = Literal["bindings", "jsonpatch"]


class Cost(NamedTuple):
    """An estimate: the least and the greatest cost of an evaluation; a greatest cost of 2⁶⁴-1 is unbounded."""

    low: int
    high: int


class Program:
    """A compiled expression; it may be evaluated any number of times, and keeps nothing of an evaluation."""

    #: The expression's text.
    text: str
    #: What the checker found the expression to be.
    type: types.Type

    def estimate(self) -> Cost:
        """The cost as Kubernetes estimates it from the sizes of the declared types of the variables."""
        raise NotImplementedError

    def evaluate(self, variables: Mapping[str, Value], limit: int | None = PER_CALL_LIMIT) -> tuple[Value, int]:
        """The value of the expression and its actual cost.

        Variables are plain JSON values, read by the declared types (strings of a type timestamp become timestamps), or
        `LazyFields`, an `Authorizer`, or values of other evaluations. The result is a CEL value: bool, int, float,
        str, bytes and None are themselves; `kemu.emulated.cel.plain` makes JSON of the rest.

        Raises `EvaluationError` with cel-go's message, `BudgetExceeded` when the cost passes `limit`; both know the cost.
        """
        raise NotImplementedError


class Environment:
    """Declared variables, object types and libraries; compiles expressions.

    `variables`: their types by name. `objects`: object types that expressions may construct by name or that variables
    of type `dyn` do not lead to; types reachable from `variables` are known. A name in `objects` is written as in
    ``Object.spec{…}``; a function may resolve names one at a time (`objects` = callable that returns a type or None).
    """

    def __init__(
        self,
        variables: Mapping[str, types.Type],
        objects: Iterable[types.Type] = (),
        libraries: Collection[Library] = (),
    ) -> None:
        raise NotImplementedError

    def extend(self, variables: Mapping[str, types.Type]) -> Environment:
        """This environment with more variables, or other types of some."""
        raise NotImplementedError

    def compile(self, text: str, wants: Collection[types.Type] = ()) -> Program:
        """Parse, check and plan `text`.

        Raises `CompileError` whose text is what cel-go prints (``ERROR: <input>:1:5: undeclared reference to 'x' (in
        container '')`` and the marked line), or ``must evaluate to bool`` if the type is none of `wants` (dyn is
        always admitted only if it is among them).
        """
        raise NotImplementedError

"""Functions: their overloads, for the checker, and what computes them, for the evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from kemu.emulated.cel.types import Type
from kemu.emulated.cel.values import Value

#: Computes a call from its arguments, the target first; it returns a value or an `Error`.
Implementation = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. ``arguments`` begin with the target of a member function."""

    id: str
    arguments: tuple[Type, ...]
    result: Type
    member: bool = False
    compute: Implementation | None = None
    #: Arguments are evaluated until the first error; otherwise both of two are.
    variadic: bool = False


@dataclass(slots=True)
class Function:
    """All overloads of a name, in the order of their declaration.

    ``single`` computes all overloads, if ``requires`` accepts the first argument; otherwise each overload computes
    itself behind a check of the types of the arguments, unless ``unguarded``. A function that is not strict receives
    errors.
    """

    name: str
    overloads: list[Overload] = field(default_factory=list)
    single: Implementation | None = None
    requires: Callable[[Value], bool] | None = None
    unguarded: bool = False
    strict: bool = True


class Functions:
    """The functions of an environment."""

    def __init__(self, parent: Functions | None = None) -> None:
        self._functions: dict[str, Function] = {}
        for function in parent._functions.values() if parent is not None else ():
            copied = Function(function.name, list(function.overloads), function.single, function.requires)
            copied.unguarded, copied.strict = function.unguarded, function.strict
            self._functions[function.name] = copied

    def find(self, name: str) -> Function | None:
        return self._functions.get(name)

    def declare(self, name: str, overloads: Iterable[Overload]) -> Function:
        """Add overloads to a function, which may be new."""
        function = self._functions.setdefault(name, Function(name))
        function.overloads.extend(overloads)
        return function

    def member(self, name: str, id: str, arguments: Iterable[Type], result: Type, compute: Implementation) -> None:  # noqa: A002
        self.declare(name, [Overload(id, tuple(arguments), result, True, compute)])

    def free(self, name: str, id: str, arguments: Iterable[Type], result: Type, compute: Implementation) -> None:  # noqa: A002
        self.declare(name, [Overload(id, tuple(arguments), result, False, compute)])

    def singleton(
        self,
        name: str,
        overloads: Iterable[tuple[str, Iterable[Type], Type] | tuple[str, Iterable[Type], Type, Literal["member"]]],
        compute: Implementation | None,
        requires: Callable[[Value], bool] | None = None,
    ) -> Function:
        """A function that computes all of its overloads alike."""
        function = self.declare(
            name, [Overload(entry[0], tuple(entry[1]), entry[2], len(entry) == 4, None) for entry in overloads]
        )
        function.single, function.requires = compute, requires
        return function

"""Environments, which declare what expressions may name, and programs, which they compile expressions to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, NamedTuple

from kemu.emulated.cel import documents, libraries, types
from kemu.emulated.cel.bounds import Exceeded, Oversized, Panicked
from kemu.emulated.cel.checking import checker, validators
from kemu.emulated.cel.costs import estimates
from kemu.emulated.cel.errors import BudgetExceeded, CompileError, EvaluationError
from kemu.emulated.cel.evaluation import access, plans
from kemu.emulated.cel.evaluation.runs import Run, Step
from kemu.emulated.cel.parsing import macros, parser, stacks
from kemu.emulated.cel.parsing.syntax import Node, depth
from kemu.emulated.cel.parsing.texts import Text
from kemu.emulated.cel.providers import ANY_FIELD, Provider
from kemu.emulated.cel.types import Type
from kemu.emulated.cel.values import NONE, Error, ListLike, MapLike, Optional, Value

#: The actual cost at which the evaluation of one expression is cancelled.
PER_CALL_LIMIT = 1_000_000

#: Libraries that only some of Kubernetes' environments have: ``cel.bind`` (DRA), ``Object{…}``, ``JSONPatch{…}`` and
#: ``jsonpatch.escapeKey`` (MutatingAdmissionPolicy).
Library = Literal["bindings", "mutation"]

_UNBOUNDED = 1 << 64
_SHALLOW = 40


class Cost(NamedTuple):
    """An estimate: the least and the greatest cost of an evaluation; a greatest cost of 2⁶⁴-1 is unbounded."""

    low: int
    high: int


class Program:
    """A compiled expression; it may be evaluated any number of times, and keeps nothing of an evaluation."""

    __slots__ = ("_deep", "_slots", "_step", "_tree", "_variables", "text", "type")

    def __init__(self, text: str, tree: Node, step: Step, slots: int, variables: Mapping[str, Type]) -> None:
        #: The expression's text.
        self.text = text
        #: What the checker found the expression to be.
        self.type = tree.type
        self._tree = tree
        self._step = step
        self._slots = slots
        self._variables = variables
        self._deep = depth(tree) > _SHALLOW

    def estimate(self, root: Type | None = None) -> Cost:
        """The cost as Kubernetes estimates it from declared sizes.

        `root` is the type whose sizes count, that of the variable ``self`` unless stated: Kubernetes takes every path
        for one from there, whatever variable it begins with. Without such a type all sizes are unknown.
        """
        own = self._variables.get("self")
        if root is None and own is not None and (own.schema is not None or own.fields is not None or own.max_elements):
            root = own
        with stacks.room():
            return Cost(*estimates.estimate(self._tree, root))

    def evaluate(self, variables: Mapping[str, Value], limit: int | None = PER_CALL_LIMIT) -> tuple[Value, int]:
        """The value of the expression and its actual cost.

        Variables are plain JSON values: those of types with a schema are read through it, others are as they are, or
        `LazyFields`, an `Authorizer`, or values of other evaluations. Those that are not given, are not declared. The
        result is a CEL value: bool, int, float, str, bytes and None are themselves; `kemu.emulated.cel.plain` makes
        JSON of the rest.

        Raises `EvaluationError` with cel-go's message, `BudgetExceeded` when the cost passes `limit`; both know the
        cost.
        """
        given = {name: _read(value, self._variables.get(name)) for name, value in variables.items()}
        run = Run(given, _UNBOUNDED if limit is None else limit, self._slots)
        try:
            if self._deep:
                with stacks.room():
                    value = self._step(run)
            else:
                value = self._step(run)
        except (Exceeded, Oversized):
            raise BudgetExceeded("operation cancelled: actual cost limit exceeded", run.cost) from None
        except Panicked as panicked:
            raise EvaluationError(str(panicked), run.cost) from None
        if type(value) is Error:
            raise EvaluationError(value.message, run.cost)
        return value, run.cost


def _read(value: Value, declared: Type | None) -> Value:
    """A variable's value: JSON is read through the schema of the variable's type."""
    if declared is None:
        return value
    if declared.kind == "opaque" and declared.name == "optional_type":
        if type(value) is Optional:
            return value
        return NONE if value is None else Optional(True, _read(value, declared.parameters[0]))
    if declared.schema is not None and not isinstance(value, ListLike | MapLike):
        return documents.read(value, declared.schema)
    return value


class Environment:
    """Declared variables, object types and libraries; compiles expressions.

    `variables`: their types by name. `objects`: further object types that expressions may name; those that are
    reachable from `variables` are known. `libraries`: see `Library`.
    """

    def __init__(
        self,
        variables: Mapping[str, Type],
        objects: Iterable[Type] = (),
        libraries: Collection[Library] = (),
    ) -> None:
        self._variables = dict(variables)
        self._objects = tuple(objects)
        self._libraries = frozenset(libraries)
        known = {declared.name: declared for declared in self._objects}
        if "mutation" in self._libraries:
            known[access.PATCH] = access.PATCH_TYPE
        self._provider = Provider(self._variables, known, _resolver("mutation" in self._libraries))

    def extend(self, variables: Mapping[str, Type]) -> Environment:
        """This environment with more variables, or other types of some."""
        return Environment({**self._variables, **variables}, self._objects, self._libraries)

    def compile(self, text: str, wants: Collection[Type] = ()) -> Program:
        """Parse, check and plan `text`.

        Raises `CompileError` whose text is what cel-go prints (``ERROR: <input>:1:5: undeclared reference to 'x' (in
        container '')`` and the marked line), or ``must evaluate to bool`` if the type is none of `wants`;
        `InstantiationError` if a constant is no value.
        """
        source = Text(text)
        available = macros.STANDARD.with_bindings() if "bindings" in self._libraries else macros.STANDARD
        tree = parser.parse(source, available)
        functions = libraries.functions("mutation" in self._libraries)
        with stacks.room():
            tree, issues = checker.check(tree, source, self._provider, functions)
            if not issues:
                issues = validators.validate(tree, source)
            if issues:
                raise CompileError(source.show(issues), issues)
            if wants and tree.type not in wants:
                raise CompileError(f"must evaluate to {' or '.join(wanted.name for wanted in wants)}")
            step, slots = plans.plan(tree, self._provider, functions)
        return Program(text, tree, step, slots, self._variables)


def _resolver(mutation: bool) -> Callable[[str], Type | None]:
    def resolve(name: str) -> Type | None:
        return Type("struct", name, fields=ANY_FIELD) if mutation and access.is_dynamic(name) else None

    return resolve


__all__ = ["PER_CALL_LIMIT", "Cost", "Environment", "Library", "Program", "types"]

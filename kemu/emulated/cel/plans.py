"""From a checked tree to closures that evaluate it and count what that costs.

The plan follows cel-go's planner and its tracker of costs step by step, as both decide what costs: a chain of selections is
one attribute with qualifiers; constants are folded; membership in a list of constants is a look-up; a call costs when all of
its arguments were evaluated, even if one is an error. A closure takes the `Run` and returns a value or an `Error`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from kemu.emulated.cel import access, actual_costs, times
from kemu.emulated.cel.declarations import Function, Functions, Implementation, Overload
from kemu.emulated.cel.errors import InstantiationError
from kemu.emulated.cel.providers import Provider
from kemu.emulated.cel.syntax import Call, Comprehension, Ident, ListOf, Literal, MapOf, Node, Select, Struct
from kemu.emulated.cel.types import Type
from kemu.emulated.cel.values import (
    NO_OVERLOAD,
    NONE,
    Error,
    MutableList,
    MutableMap,
    Optional,
    TypeValue,
    Uint,
    Value,
    is_list,
    is_map,
    item,
    text,
    type_name,
)

LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40

_UNSET: Final = object()
_GO_TYPES: Final = {
    "bool": "types.Bool", "bytes": "types.Bytes", "double": "types.Double", "int": "types.Int", "null_type": "types.Null",
    "string": "types.String", "uint": "types.Uint", "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Duration": "types.Duration", "optional_type": "*types.Optional", "type": "*types.Type",
}  # fmt: skip


class Exceeded(Exception):
    """The cost passed the limit."""


class Run:
    """One evaluation: what it cost so far, at most may cost, and the values of names."""

    __slots__ = ("cost", "limit", "slots", "variables")

    def __init__(self, variables: dict[str, Value], limit: int, slots: int) -> None:
        self.cost = 0
        self.limit = limit
        self.variables = variables
        self.slots: list[Value] = [_UNSET] * slots

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise Exceeded


Step: TypeAlias = Callable[[Run], Value]


class _Qualifier:
    """A field, an index or a key: a constant, or computed by a step that costs nothing of its own."""

    __slots__ = ("constant", "dynamic_object", "key", "optional", "step")

    def __init__(self, key: Value, step: Step | None, optional: bool, dynamic_object: bool = False) -> None:
        self.key = key
        self.step = step
        self.optional = optional
        self.constant = step is None
        self.dynamic_object = dynamic_object


class _Attribute:
    """A value and the qualifiers that are applied to it; or one of two attributes, by a condition."""

    __slots__ = ("branches", "condition", "qualifiers", "root", "test_only")

    def __init__(
        self, root: Step | None, condition: _Plan | None = None, branches: tuple[_Attribute, ...] = ()
    ) -> None:
        self.root = root
        self.condition = condition
        self.branches = branches
        self.qualifiers: list[_Qualifier] = []
        self.test_only = False

    def qualify(self, qualifier: _Qualifier) -> None:
        for branch in self.branches:
            branch.qualify(qualifier)
        if not self.branches:
            self.qualifiers.append(qualifier)

    def resolve(self) -> Step:
        """The step that resolves the attribute, without what the attribute itself costs."""
        if self.condition is not None:
            return _choose(self.condition.step(), *(branch.resolve() for branch in self.branches))
        assert self.root is not None, "an attribute without condition has a root"
        if not self.qualifiers:
            return _unwrapped(self.root)
        return _apply(self.root, tuple(self.qualifiers), self.test_only)


class _Plan:
    """How a node is evaluated: a constant, an attribute that may still be qualified, or a step."""

    __slots__ = ("attribute", "constant", "value", "_step")

    def __init__(self, step: Step | None = None, attribute: _Attribute | None = None) -> None:
        self._step = step
        self.attribute = attribute
        self.constant = False
        self.value: Value = None

    @staticmethod
    def of(value: Value) -> _Plan:
        plan = _Plan(lambda run: value)
        plan.constant, plan.value = True, value
        return plan

    def step(self) -> Step:
        if self._step is None:
            assert self.attribute is not None, "a plan is a step or an attribute"
            resolve = self.attribute.resolve()
            free = self.attribute.test_only or self.attribute.condition is not None
            self._step = _tested(resolve) if self.attribute.test_only else resolve if free else _charged(resolve)
        return self._step


def _charged(resolve: Step) -> Step:
    def step(run: Run) -> Value:
        value = resolve(run)
        run.cost += 1
        if run.cost > run.limit:
            raise Exceeded
        return value

    return step


def _tested(resolve: Step) -> Step:
    def step(run: Run) -> Value:
        value = resolve(run)
        return value.present if type(value) is Optional else value

    return step


def _unwrapped(root: Step) -> Step:
    return root


def _choose(condition: Step, first: Step, second: Step) -> Step:
    def step(run: Run) -> Value:
        value = condition(run)
        if value is True:
            return first(run)
        if value is False:
            return second(run)
        return value if type(value) is Error else NO_OVERLOAD

    return step


def _apply(root: Step, qualifiers: tuple[_Qualifier, ...], test_only: bool) -> Step:
    last = len(qualifiers) - 1
    if not test_only and all(part.constant and not part.optional and not part.dynamic_object for part in qualifiers):
        keys = tuple(part.key for part in qualifiers)
        return _apply_constants(root, keys)

    def step(run: Run) -> Value:
        value = root(run)
        optional = False
        if type(value) is Optional:
            if not value.present:
                return value
            value, optional = value.value, True
        for index, part in enumerate(qualifiers):
            if type(value) is Error:
                return value
            optional = optional or part.optional
            key = part.key
            if part.step is not None:
                key = part.step(run)
                if type(key) is Error:
                    if not optional:
                        run.charge(1)
                    return key
            if optional:
                value, present = access.find(value, key, part.dynamic_object)
                if type(value) is Error:
                    return value
                if not present:
                    return NONE
            elif test_only and index == last:
                found, present = access.find(value, key, part.dynamic_object)
                value = found if type(found) is Error else present
            else:
                value = access.get(value, key, part.dynamic_object)
            run.cost += 1
            if run.cost > run.limit:
                raise Exceeded
        return Optional(True, value) if optional and type(value) is not Error else value

    return step


def _apply_constants(root: Step, keys: tuple[Value, ...]) -> Step:
    """The common case: fields and constant indexes of what is no optional."""

    def step(run: Run) -> Value:
        value = root(run)
        if type(value) is Optional:
            return optional(run, value)
        for key in keys:
            if type(value) is dict and type(key) is str:
                value = value[key] if key in value else Error(f"no such key: {key}")
            elif type(value) is Error:
                return value
            else:
                value = access.get(value, key, False)
            run.cost += 1
            if run.cost > run.limit:
                raise Exceeded
        return value

    def optional(run: Run, value: Optional) -> Value:
        if not value.present:
            return value
        current = value.value
        for key in keys:
            current, present = access.find(current, key, False)
            if type(current) is Error:
                return current
            if not present:
                return NONE
            run.charge(1)
        return Optional(True, current)

    return step


def plan(tree: Node, provider: Provider, functions: Functions) -> tuple[Step, int]:
    """The step that evaluates a checked tree, and how many slots a run needs. Raises `InstantiationError`."""
    planner = _Planner(provider, functions)
    return planner.plan(tree).step(), planner.slots


class _Planner:
    def __init__(self, provider: Provider, functions: Functions) -> None:
        self.provider = provider
        self.functions = functions
        self.slots = 0
        self.scopes: list[dict[str, Step]] = []

    def plan(self, node: Node) -> _Plan:
        match node:
            case Literal():
                return _Plan.of(node.value)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Struct():
                return self._struct(node)
            case Comprehension():
                return self._comprehension(node)
            case _:
                raise AssertionError(f"a checked tree has no {type(node).__name__}")

    def _ident(self, node: Ident) -> _Plan:
        if node.constant is not None:
            return _Plan.of(TypeValue(node.constant))
        for scope in reversed(self.scopes):
            if node.name in scope:
                return _Plan(attribute=_Attribute(scope[node.name]))
        name = node.name
        missing = Error(f"no such attribute(s): {name}")

        def read(run: Run) -> Value:
            return run.variables.get(name, missing)

        return _Plan(attribute=_Attribute(read))

    def _attribute(self, operand: _Plan) -> _Attribute:
        return operand.attribute if operand.attribute is not None else _Attribute(operand.step())

    def _is_dynamic_object(self, type_: Type) -> bool:
        return type_.kind == "struct" and access.is_dynamic(type_.name)

    def _select(self, node: Select) -> _Plan:
        attribute = self._attribute(self.plan(node.operand))
        attribute.qualify(_Qualifier(node.field, None, False, self._is_dynamic_object(node.operand.type)))
        if not node.test_only:
            return _Plan(attribute=attribute)
        attribute.test_only = True
        for branch in attribute.branches:
            branch.test_only = True
        return _Plan(attribute=attribute)

    def _index(self, node: Call, optional: bool) -> _Plan:
        operand, index = self.plan(node.arguments[0]), self.plan(node.arguments[1])
        attribute = self._attribute(operand)
        if index.constant:
            qualifier = _Qualifier(index.value, None, optional, self._is_dynamic_object(node.arguments[0].type))
        elif index.attribute is not None:
            resolve = index.attribute.resolve()
            qualifier = _Qualifier(None, resolve, optional)
        else:
            qualifier = _Qualifier(None, index.step(), optional)
        attribute.qualify(qualifier)
        return _Plan(attribute=attribute)

    def _call(self, node: Call) -> _Plan:
        name = node.function
        match name:
            case "_[_]":
                return self._index(node, False)
            case "_?._" | "_[?_]":
                return self._index(node, True)
        operands = ([node.target] if node.target is not None else []) + node.arguments
        arguments = [self.plan(operand) for operand in operands]
        match name:
            case "_?_:_":
                branches = tuple(self._attribute(argument) for argument in arguments[1:])
                return _Plan(attribute=_Attribute(None, arguments[0], branches))
            case "_&&_":
                return _Plan(_logic([argument.step() for argument in arguments], False))
            case "_||_":
                return _Plan(_logic([argument.step() for argument in arguments], True))
            case "or" | "orValue" if node.overloads[0].startswith("optional_or"):
                return _Plan(_alternative(arguments[0].step(), arguments[1].step(), name == "orValue"))
        overload = node.overloads[0] if len(node.overloads) == 1 else ""
        function = self.functions.find(name)
        assert function is not None, "the checker found the function"
        if overload == "in_list" and arguments[1].constant:
            folded = _membership(arguments[0], arguments[1].value)
            if folded is not None:
                return folded
        compute, variadic = _bind(function, overload, len(arguments))
        if name in actual_costs.REGEX_FUNCTIONS and len(arguments) > 1 and arguments[1].constant:
            variadic = True
            self._check_pattern(arguments[1].value)
        cost = actual_costs.of_call(name, overload)
        if len(arguments) == 1 and arguments[0].constant and name in actual_costs.CONVERSIONS:
            value = compute(arguments[0].value)
            if type(value) is Error:
                raise InstantiationError(value.message)
            return _Plan.of(value)
        steps = [argument.step() for argument in arguments]
        return _Plan(_invoke(steps, compute, cost, variadic, function.strict))

    def _check_pattern(self, pattern: Value) -> None:
        if type(pattern) is not str:
            return
        from kemu.emulated.cel import patterns

        compiled = patterns.compiled(pattern)
        if isinstance(compiled, Error):
            raise InstantiationError(compiled.message)

    def _list(self, node: ListOf) -> _Plan:
        elements = [self.plan(element) for element in node.elements]
        if all(element.constant for element in elements) and not node.optional:
            return _Plan.of([element.value for element in elements])
        steps = [element.step() for element in elements]
        optional = [index in node.optional for index in range(len(steps))]

        def step(run: Run) -> Value:
            result: list[Value] = []
            for index, element in enumerate(steps):
                value = element(run)
                if type(value) is Error:
                    run.charge(LIST_COST)
                    return value
                if optional[index]:
                    if type(value) is not Optional:
                        run.charge(LIST_COST)
                        return Error(f"cannot initialize optional list element from non-optional value {text(value)}")
                    if not value.present:
                        continue
                    value = value.value
                result.append(value)
            run.charge(LIST_COST)
            return result

        return _Plan(step)

    def _map(self, node: MapOf) -> _Plan:
        entries = [(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries]
        if all(key.constant and value.constant and not optional for key, value, optional in entries):
            return _Plan.of({key.value: value.value for key, value, _ in entries})
        steps = [(key.step(), value.step(), optional) for key, value, optional in entries]

        def build(run: Run) -> Value:
            result: dict[Value, Value] = {}
            for key_step, value_step, optional in steps:
                key = key_step(run)
                if type(key) is Error:
                    return key
                value = value_step(run)
                if type(value) is Error:
                    return value
                if optional:
                    if type(value) is not Optional:
                        return Error(
                            f"cannot initialize optional entry '{text(key)}' from non-optional value {text(value)}"
                        )
                    if not value.present:
                        result.pop(key, None)
                        continue
                    value = value.value
                try:
                    result[key] = value
                except TypeError:
                    return Error(
                        f"internal error: runtime error: hash of unhashable type {_GO_TYPES.get(type_name(key), 'types')}"
                    )
            return result

        def step(run: Run) -> Value:
            value = build(run)
            run.charge(MAP_COST)
            return value

        return _Plan(step)

    def _struct(self, node: Struct) -> _Plan:
        name = node.name
        fields = [(field.name, self.plan(field.value).step(), field.optional) for field in node.fields]

        def build(run: Run) -> Value:
            result: dict[str, Value] = {}
            for field, value_step, optional in fields:
                value = value_step(run)
                if type(value) is Error:
                    return value
                if optional:
                    if type(value) is not Optional:
                        return Error(
                            f"cannot initialize optional entry '{field}' from non-optional value {text(value)}"
                        )
                    if not value.present:
                        result.pop(field, None)
                        continue
                    value = value.value
                result[field] = value
            return access.construct(name, result)

        def step(run: Run) -> Value:
            value = build(run)
            run.charge(STRUCT_COST)
            return value

        return _Plan(step)

    def _comprehension(self, node: Comprehension) -> _Plan:
        initial = self.plan(node.initial).step()
        over = self.plan(node.range).step()
        accumulated, first, second = self.slots, self.slots + 1, self.slots + 2
        self.slots += 3
        self.scopes.append({node.accumulator: _accumulator(accumulated, initial)})
        # An accumulator hides a variable of the same name.
        scope = {node.variable: _slot(first)} if node.variable != node.accumulator else {}
        if node.second:
            scope[node.second] = _slot(second)
        self.scopes.append(scope)
        condition = self.plan(node.condition).step()
        step = self.plan(node.step).step()
        self.scopes.pop()
        result = self.plan(node.result).step()
        self.scopes.pop()
        return _Plan(_fold(over, condition, step, result, (accumulated, first, second), bool(node.second)))


def _slot(index: int) -> Step:
    def read(run: Run) -> Value:
        return run.slots[index]

    return read


def _accumulator(index: int, initial: Step) -> Step:
    """What was accumulated; its beginning is computed when it is first read."""

    def read(run: Run) -> Value:
        value = run.slots[index]
        if value is _UNSET:
            value = initial(run)
            if is_list(value) and len(value) == 0:
                value = MutableList()
            elif is_map(value) and len(value) == 0:
                value = MutableMap()
            run.slots[index] = value
        return value

    return read


def _fold(over: Step, condition: Step, body: Step, result: Step, indexes: tuple[int, int, int], pairs: bool) -> Step:
    accumulated, first, second = indexes

    def step(run: Run) -> Value:
        slots = run.slots
        saved = slots[accumulated], slots[first], slots[second]
        slots[accumulated] = _UNSET
        aggregate = over(run)
        if type(aggregate) is Error:
            return aggregate
        if is_list(aggregate):
            entries = enumerate(aggregate) if pairs else ((value, None) for value in aggregate)
        elif is_map(aggregate):
            entries = (
                ((key, _entry(aggregate, key)) for key in aggregate) if pairs else ((key, None) for key in aggregate)
            )
        else:
            go_type = _GO_TYPES.get(type_name(aggregate), type_name(aggregate))
            if pairs:
                return Error(f"unsupported comprehension range type: {go_type}")
            return Error(f"got '{go_type}', expected iterable type")
        for one, other in entries:
            slots[first], slots[second] = one, other
            if condition(run) is False:
                break
            slots[accumulated] = body(run)
        value = result(run)
        slots[accumulated], slots[first], slots[second] = saved
        kind = type(value)
        if kind is MutableList:
            return list(value)
        return dict(value) if kind is MutableMap else value

    return step


def _entry(entries: Value, key: Value) -> Value:
    return entries[key] if isinstance(entries, dict) else entries.find(key)[0]


def _logic(terms: list[Step], decisive: bool) -> Step:
    def step(run: Run) -> Value:
        error: Error | None = None
        for term in terms:
            value = term(run)
            if value is decisive:
                return decisive
            if type(value) is not bool and error is None:
                error = value if type(value) is Error else NO_OVERLOAD
        return (not decisive) if error is None else error

    return step


def _alternative(first: Step, second: Step, of_value: bool) -> Step:
    """``a.or(b)`` and ``a.orValue(b)``: `b` is evaluated only if `a` has no value."""

    def step(run: Run) -> Value:
        value = first(run)
        if type(value) is not Optional:
            return value
        if value.present:
            return value.value if of_value else value
        return second(run)

    return step


def _membership(value: _Plan, constants: Value) -> _Plan | None:
    """``value in [constants]`` by a look-up, which costs nothing."""
    if not constants:
        return _Plan.of(False)
    if any(type(constant) not in (bool, int, Uint, float, str) for constant in constants):
        return None
    known = frozenset((type(constant) is bool, constant) for constant in constants)
    argument = value.step()

    def step(run: Run) -> Value:
        given = argument(run)
        if type(given) is Error:
            return given
        return type(given) in (bool, int, Uint, float, str) and (type(given) is bool, given) in known

    return _Plan(step)


def _is_receiver(value: Value) -> bool:
    return type(value) in (str, times.Timestamp, times.Duration)


def _bind(function: Function, overload: str, count: int) -> tuple[Implementation, bool]:
    """What computes a call, and whether its arguments are evaluated one by one until the first error."""
    if function.single is not None:
        return _guarded_single(function.name, function.single, function.requires), False
    chosen = [candidate for candidate in function.overloads if candidate.id == overload]
    if not chosen and len(function.overloads) == 1:
        chosen = function.overloads
    if chosen:
        only = chosen[0]
        assert only.compute is not None, f"{only.id} computes nothing"
        if function.unguarded or not function.strict:
            return only.compute, count > 2 or only.variadic
        return _guarded(function.name, only), count > 2 or only.variadic
    return _dispatched(function, count), True


def _guarded_single(name: str, compute: Implementation, requires: Callable[[Value], bool] | None) -> Implementation:
    if requires is None:
        return compute
    refused = Error(f"no such overload: {name}")

    def call(*arguments: Value) -> Value:
        if requires(arguments[0]):
            return compute(*arguments)
        return NO_OVERLOAD if _is_receiver(arguments[0]) else refused

    return call


def _refused(name: str, arguments: tuple[Value, ...]) -> Error:
    return Error(f"no such overload: {name}({', '.join(map(type_name, arguments))})")


def _guarded(name: str, overload: Overload) -> Implementation:
    compute = overload.compute
    checked = [
        (index, declared) for index, declared in enumerate(overload.arguments) if declared.kind not in ("dyn", "param")
    ]

    def call(*arguments: Value) -> Value:
        assert compute is not None
        for index, declared in checked:
            if not admits(declared, arguments[index]):
                return _refused(name, arguments)
        return compute(*arguments)

    return call


def _dispatched(function: Function, count: int) -> Implementation:
    candidates = [overload for overload in function.overloads if len(overload.arguments) == count and overload.compute]

    def call(*arguments: Value) -> Value:
        for overload in candidates:
            pairs = zip(overload.arguments, arguments, strict=True)
            if function.unguarded or all(admits(declared, argument) for declared, argument in pairs):
                assert overload.compute is not None
                return overload.compute(*arguments)
        return _refused(function.name, arguments)

    return call


def admits(declared: Type, value: Value) -> bool:
    """Whether a value is of a declared type, as far as the run time looks: aggregates by their first element."""
    if declared.kind in ("dyn", "param", "any"):
        return True
    if type_name(value) != declared.name:
        return False
    if declared.kind == "list":
        return len(value) == 0 or admits(declared.parameters[0], item(value, 0))
    if declared.kind == "map":
        if len(value) == 0:
            return True
        key = next(iter(value))
        return admits(declared.parameters[0], key) and admits(declared.parameters[1], _entry(value, key))
    return True


def _invoke(
    steps: list[Step], compute: Implementation, cost: actual_costs.CallCost, variadic: bool, strict: bool
) -> Step:
    fixed = cost if isinstance(cost, int) else None
    varying = None if isinstance(cost, int) else cost

    def charge(run: Run, arguments: list[Value], result: Value) -> None:
        run.cost += varying(arguments, result) if varying is not None else fixed or 0
        if run.cost > run.limit:
            raise Exceeded

    if variadic or len(steps) not in (1, 2):

        def call(run: Run) -> Value:
            arguments: list[Value] = []
            for argument in steps:
                value = argument(run)
                if type(value) is Error:
                    return value
                arguments.append(value)
            result = compute(*arguments)
            charge(run, arguments, result)
            return result

        return call
    if len(steps) == 1:
        (only,) = steps

        def unary(run: Run) -> Value:
            value = only(run)
            result = value if strict and type(value) is Error else compute(value)
            charge(run, [value], result)
            return result

        return unary
    left, right = steps

    def binary(run: Run) -> Value:
        first, second = left(run), right(run)
        if type(first) is Error:
            result = first
        elif type(second) is Error:
            result = second
        else:
            result = compute(first, second)
        charge(run, [first, second], result)
        return result

    return binary

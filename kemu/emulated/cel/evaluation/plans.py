"""From a checked tree to closures that evaluate it and count what that costs.

The plan follows cel-go's planner and its tracker of costs step by step, as both decide what costs: a chain of
selections is one attribute with qualifiers; constants are folded; membership in a list of constants is a look-up; a
call costs when all of its arguments were evaluated, even if one is an error. A closure takes the `Run` and returns a
value or an `Error`.
"""

from __future__ import annotations

from typing import Final

from kemu.emulated.cel.bounds import Panicked
from kemu.emulated.cel.costs import actual_costs
from kemu.emulated.cel.declarations import Functions, Implementation
from kemu.emulated.cel.errors import InstantiationError
from kemu.emulated.cel.evaluation import access, calls, patterns
from kemu.emulated.cel.evaluation.attributes import Attribute, Plan, Qualifier
from kemu.emulated.cel.evaluation.runs import UNSET, Run, Step
from kemu.emulated.cel.parsing.syntax import Call, Comprehension, Ident, ListOf, Literal, MapOf, Node, Select, Struct
from kemu.emulated.cel.providers import Provider
from kemu.emulated.cel.types import Type
from kemu.emulated.cel.values import (
    NO_OVERLOAD,
    Error,
    MutableList,
    MutableMap,
    Optional,
    TypeValue,
    Uint,
    Value,
    as_key,
    go_type,
    is_list,
    is_map,
    text,
    type_name,
)

LIST_COST: Final = 10
MAP_COST: Final = 30
STRUCT_COST: Final = 40

_UNHASHABLE: Final = frozenset({"bytes", "kubernetes.Semver", "kubernetes.NamedFormat"})


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

    def plan(self, node: Node) -> Plan:
        match node:
            case Literal():
                return Plan.of(node.value)
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

    def _ident(self, node: Ident) -> Plan:
        if node.constant is not None:
            return Plan.of(TypeValue(node.constant))
        for scope in reversed(self.scopes):
            if node.name in scope:
                return Plan(attribute=Attribute(scope[node.name]))
        name = node.name
        missing = Error(f"no such attribute(s): {name}")

        def read(run: Run) -> Value:
            return run.variables.get(name, missing)

        return Plan(attribute=Attribute(read))

    def _attribute(self, operand: Plan) -> Attribute:
        return operand.attribute if operand.attribute is not None else Attribute(operand.step())

    def _is_dynamic_object(self, type_: Type) -> bool:
        return type_.kind == "struct" and access.is_dynamic(type_.name)

    def _select(self, node: Select) -> Plan:
        attribute = self._attribute(self.plan(node.operand))
        attribute.qualify(Qualifier(node.field, None, False, self._is_dynamic_object(node.operand.type)))
        if not node.test_only:
            return Plan(attribute=attribute)
        attribute.test_only = True
        for branch in attribute.branches:
            branch.test_only = True
        return Plan(attribute=attribute)

    def _index(self, node: Call, optional: bool) -> Plan:
        operand, index = self.plan(node.arguments[0]), self.plan(node.arguments[1])
        attribute = self._attribute(operand)
        if index.constant:
            refused = access.refusal(index.value)
            if refused is not None:
                raise InstantiationError(refused.message)
            qualifier = Qualifier(index.value, None, optional, self._is_dynamic_object(node.arguments[0].type))
        elif index.attribute is not None:
            resolve = index.attribute.resolve()
            qualifier = Qualifier(None, resolve, optional)
        else:
            qualifier = Qualifier(None, index.step(), optional)
        attribute.qualify(qualifier)
        return Plan(attribute=attribute)

    def _call(self, node: Call) -> Plan:
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
                return Plan(attribute=Attribute(None, arguments[0], branches))
            case "_&&_":
                return Plan(_logic([argument.step() for argument in arguments], False))
            case "_||_":
                return Plan(_logic([argument.step() for argument in arguments], True))
            case "or" | "orValue" if node.overloads[0].startswith("optional_or"):
                return Plan(_alternative(arguments[0].step(), arguments[1].step(), name == "orValue"))
        overload = node.overloads[0] if len(node.overloads) == 1 else ""
        function = self.functions.find(name)
        assert function is not None, "the checker found the function"
        if overload == "in_list" and arguments[1].constant:
            folded = _membership(arguments[0], arguments[1].value)
            if folded is not None:
                return folded
        compute, variadic = calls.bind(function, overload, len(arguments))
        if name in actual_costs.REGEX_FUNCTIONS and len(arguments) > 1 and arguments[1].constant:
            variadic = True
            compute = self._with_pattern(compute, arguments[1].value)
        cost = actual_costs.of_call(name, overload)
        if len(arguments) == 1 and arguments[0].constant and name in actual_costs.CONVERSIONS:
            value = compute(arguments[0].value)
            if type(value) is Error:
                raise InstantiationError(value.message)
            return Plan.of(value)
        steps = [argument.step() for argument in arguments]
        return Plan(calls.invoke(steps, compute, cost, variadic, function.strict))

    def _with_pattern(self, compute: Implementation, pattern: Value) -> Implementation:
        """A call whose pattern is a constant: a pattern that is none is found now, and other types have shorter
        errors.
        """
        if type(pattern) is not str:
            return compute
        compiled = patterns.compiled(pattern)
        if isinstance(compiled, Error):
            raise InstantiationError(compiled.message)

        def call(*arguments: Value) -> Value:
            if type(arguments[0]) is not str or type(arguments[-1]) not in (str, int):
                return NO_OVERLOAD
            return compute(*arguments)

        return call

    def _list(self, node: ListOf) -> Plan:
        elements = [self.plan(element) for element in node.elements]
        if all(element.constant for element in elements) and not node.optional:
            return Plan.of([element.value for element in elements])
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

        return Plan(step)

    def _map(self, node: MapOf) -> Plan:
        entries = [(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries]
        constant = all(key.constant and value.constant and not optional for key, value, optional in entries)
        if constant and not any(type_name(key.value) in _UNHASHABLE for key, _, _ in entries):
            return Plan.of({as_key(key.value): value.value for key, value, _ in entries})
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
                if type_name(key) in _UNHASHABLE:
                    raise Panicked(f"internal error: runtime error: hash of unhashable type {go_type(key)}")
                result[as_key(key)] = value
            return result

        def step(run: Run) -> Value:
            value = build(run)
            run.charge(MAP_COST)
            return value

        return Plan(step)

    def _struct(self, node: Struct) -> Plan:
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

        return Plan(step)

    def _comprehension(self, node: Comprehension) -> Plan:
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
        return Plan(_fold(over, condition, step, result, (accumulated, first, second), bool(node.second)))


def _slot(index: int) -> Step:
    def read(run: Run) -> Value:
        return run.slots[index]

    return read


def _accumulator(index: int, initial: Step) -> Step:
    """What was accumulated; its beginning is computed when it is first read."""

    def read(run: Run) -> Value:
        value = run.slots[index]
        if value is UNSET:
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
        slots[accumulated] = UNSET
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
            if pairs:
                return Error(f"unsupported comprehension range type: {go_type(aggregate)}")
            return Error(f"got '{go_type(aggregate)}', expected iterable type")
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


def _membership(value: Plan, constants: Value) -> Plan | None:
    """``value in [constants]`` by a look-up, which costs nothing."""
    if not constants:
        return Plan.of(False)
    if any(type(constant) not in (bool, int, Uint, float, str) for constant in constants):
        return None
    known = frozenset((type(constant) is bool, constant) for constant in constants)
    argument = value.step()

    def step(run: Run) -> Value:
        given = argument(run)
        if type(given) is Error:
            return given
        return type(given) in (bool, int, Uint, float, str) and (type(given) is bool, given) in known

    return Plan(step)

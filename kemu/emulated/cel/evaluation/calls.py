"""Calls: which implementation computes one, what types it admits, and what the call costs."""

from __future__ import annotations

from collections.abc import Callable

from kemu.emulated.cel import times
from kemu.emulated.cel.bounds import Exceeded
from kemu.emulated.cel.costs.actual_costs import CallCost
from kemu.emulated.cel.declarations import Function, Implementation, Overload
from kemu.emulated.cel.evaluation.runs import Run, Step
from kemu.emulated.cel.types import Type
from kemu.emulated.cel.values import NO_OVERLOAD, Error, Value, item, type_name


def _is_receiver(value: Value) -> bool:
    return type(value) in (str, times.Timestamp, times.Duration)


def bind(function: Function, overload: str, count: int) -> tuple[Implementation, bool]:
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
        return admits(declared.parameters[0], key) and admits(
            declared.parameters[1], value[key] if isinstance(value, dict) else value.find(key)[0]
        )
    return True


def invoke(steps: list[Step], compute: Implementation, cost: CallCost, variadic: bool, strict: bool) -> Step:
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
                arguments.append(value)
                if type(value) is Error:
                    if len(arguments) == len(steps):
                        charge(run, arguments, value)
                    return value
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

"""Attributes: a value and the fields, keys and indexes that are applied to it, which count as one step of an
evaluation.

What a chain such as ``self.spec.containers[0].name`` costs is one for the attribute and one for each qualifier, as in
cel-go.
"""

from __future__ import annotations

from kemu.emulated.cel.bounds import Exceeded
from kemu.emulated.cel.evaluation import access
from kemu.emulated.cel.evaluation.runs import Run, Step
from kemu.emulated.cel.values import NO_OVERLOAD, NONE, UINT_MAX, Error, Optional, Value


class Qualifier:
    """A field, an index or a key: a constant, or computed by a step that costs nothing of its own."""

    __slots__ = ("constant", "dynamic_object", "key", "optional", "step")

    def __init__(self, key: Value, step: Step | None, optional: bool, dynamic_object: bool = False) -> None:
        self.key = key
        self.step = step
        self.optional = optional
        self.constant = step is None
        self.dynamic_object = dynamic_object


class Attribute:
    """A value and the qualifiers that are applied to it; or one of two attributes, by a condition."""

    __slots__ = ("branches", "condition", "qualifiers", "root", "test_only")

    def __init__(self, root: Step | None, condition: Plan | None = None, branches: tuple[Attribute, ...] = ()) -> None:
        self.root = root
        self.condition = condition
        self.branches = branches
        self.qualifiers: list[Qualifier] = []
        self.test_only = False

    def qualify(self, qualifier: Qualifier) -> None:
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
            return self.root
        return _apply(self.root, tuple(self.qualifiers), self.test_only)


class Plan:
    """How a node is evaluated: a constant, an attribute that may still be qualified, or a step."""

    __slots__ = ("_step", "attribute", "constant", "value")

    def __init__(self, step: Step | None = None, attribute: Attribute | None = None) -> None:
        self._step = step
        self.attribute = attribute
        self.constant = False
        self.value: Value = None

    @staticmethod
    def of(value: Value) -> Plan:
        plan = Plan(lambda run: value)
        plan.constant, plan.value = True, value
        return plan

    def step(self) -> Step:
        if self._step is None:
            assert self.attribute is not None, "a plan is a step or an attribute"
            resolve = self.attribute.resolve()
            free = self.attribute.test_only or self.attribute.condition is not None
            if self.attribute.test_only:
                self._step = _tested(resolve, self.attribute.condition is not None)
            else:
                self._step = resolve if free else _charged(resolve)
        return self._step


def _charged(resolve: Step) -> Step:
    def step(run: Run) -> Value:
        value = resolve(run)
        run.cost += 1
        if run.cost > run.limit:
            raise Exceeded
        return value

    return step


def _tested(resolve: Step, conditional: bool) -> Step:
    """A test of presence costs nothing; cel-go takes its one off even from a condition, for which it never asked
    one.
    """

    def step(run: Run) -> Value:
        value = resolve(run)
        if conditional:
            run.cost = run.cost - 1 & UINT_MAX
            run.charge(0)
        return value.present if type(value) is Optional else value

    return step


def _choose(condition: Step, first: Step, second: Step) -> Step:
    def step(run: Run) -> Value:
        value = condition(run)
        if value is True:
            return first(run)
        if value is False:
            return second(run)
        return value if type(value) is Error else NO_OVERLOAD

    return step


def _apply(root: Step, qualifiers: tuple[Qualifier, ...], test_only: bool) -> Step:
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

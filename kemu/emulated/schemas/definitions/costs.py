"""Rules of a definition that is made: whether they compile, and what they may cost (``CELSchemaContext``)."""

from __future__ import annotations

from kemu.emulated import cel
from kemu.emulated.schemas import problems, rules
from kemu.emulated.schemas.definitions import internals
from kemu.emulated.schemas.problems import child
from kemu.emulated.schemas.rules import Rule
from kemu.emulated.schemas.structural import Node
from kemu.errors import Cause

LIMIT = 10_000_000
"""What one rule may cost, for as many values as there may be (``StaticEstimatedCostLimit``)."""
TOTAL_LIMIT = 100_000_000
"""What all rules of a schema may cost."""
_MOST = 2**64 - 1
_SHOWN = 4
"""Most expensive rules that are told if the total is too much."""


class _Total:
    def __init__(self) -> None:
        self.cost = 0
        self.expensive: list[tuple[int, str]] = []

    def add(self, path: str, cost: int) -> None:
        self.cost = min(self.cost + cost, _MOST)
        if cost >= TOTAL_LIMIT // 100:
            self.expensive.append((cost, path))
            self.expensive.sort(key=lambda one: -one[0])
            del self.expensive[_SHOWN:]


class Scope:
    """A node, with how many of its values an object can have."""

    def __init__(
        self, node: Node, parent: Scope | None, step: tuple[str, str], total: _Total, tells_of_each: bool
    ) -> None:
        """``step``: how to come here from the parent: ``fields``, with a name, or ``elements``."""
        self._node = node
        self._parent = parent
        self._step = step
        self._total = total
        self._tells_of_each = tells_of_each
        self._has_rules: bool = bool(node.rules) or (parent is not None and parent._has_rules)
        self._times: int | None = 1
        """None: nothing bounds it."""
        if parent is not None:
            below = _elements(parent._node)
            self._times = None if parent._times is None or below is None else _times(parent._times, below)
        self._type: cel.types.Type | None = None

    @classmethod
    def of_root(cls, node: Node, *, tells_of_each: bool) -> Scope:
        """``tells_of_each``: whether single rules may be too expensive, or only all of them."""
        return cls(node, None, ("", ""), _Total(), tells_of_each)

    def of_property(self, name: str, node: Node) -> Scope:
        return Scope(node, self, ("fields", name), self._total, self._tells_of_each)

    def of_items(self, node: Node) -> Scope:
        return Scope(node, self, ("elements", ""), self._total, self._tells_of_each)

    of_values = of_items

    def check(self, path: str, uncorrelated: str, found: list[Cause]) -> None:
        """Judge the rules of the node. ``uncorrelated``: the path below which there are no old values."""
        here = child(path, "x-kubernetes-validations")
        type_ = self._declared()
        if type_ is None:
            detail = "internal error: failed to construct type information for x-kubernetes-validations rules: "
            found.append(problems.internal(here, f"{detail}unable to convert structural schema to CEL declarations"))
            return
        for index, rule in enumerate(rules.compile_all(self._node, type_)):
            self._check_rule(rule, f"{here}[{index}]", uncorrelated, found)

    def check_total(self, path: str, found: list[Cause]) -> None:
        if self._total.cost <= TOTAL_LIMIT:
            return
        for _, at in self._total.expensive:
            detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            found.append(problems.forbidden(at, detail))
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        found.append(problems.forbidden(path, _exceeds(what, self._total.cost, TOTAL_LIMIT)))

    def _declared(self) -> cel.types.Type | None:
        if self._type is None:
            parent = self._parent
            if parent is not None and parent._has_rules:
                how, name = self._step
                above = parent._declared()
                self._type = rules.field_type(above, name) if how == "fields" else rules.element_type(above)
            if self._type is None:
                self._type = rules.type_of(self._node, is_root=parent is None or self._node.embedded)
        return self._type

    def _check_rule(self, rule: Rule, path: str, uncorrelated: str, found: list[Cause]) -> None:
        cost = _times(rule.cost, self._times if self._times is not None else rule.times)
        if self._tells_of_each and cost > LIMIT:
            found.append(problems.forbidden(f"{path}.rule", _exceeds("estimated rule cost", cost, LIMIT)))
        self._total.add(f"{path}.rule", cost)
        shown = problems.Verbatim(internals.rule(rule.source))
        if rule.error:
            found.append(problems.invalid(f"{path}.rule", shown, rule.error))
        at = f"{path}.messageExpression"
        if rule.message_error:
            found.append(problems.invalid(at, shown, rule.message_error))
        elif rule.message is not None:
            if self._tells_of_each and rule.message_cost > LIMIT:
                what = _exceeds("estimated messageExpression cost", rule.message_cost, LIMIT)
                found.append(problems.forbidden(at, what))
            self._total.add(at, rule.message_cost)
        optional = rule.source.get("optionalOldSelf")
        if rule.uses_old:
            if uncorrelated:
                detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
                found.append(problems.invalid(f"{path}.rule", rule.source.get("rule") or "", detail))
        elif optional is not None:
            detail = "may not be set if oldSelf is not used in rule"
            found.append(problems.invalid(f"{path}.optionalOldSelf", optional, detail))


def _elements(node: Node) -> int | None:
    """How many values of the nodes below there are for each of a node's own; None: nothing bounds it."""
    if node.type == "object" and node.additional is not None:
        return None if node.max_properties is None else max(node.max_properties, 0)
    if node.type == "array":
        return None if node.max_items is None else max(node.max_items, 0)
    return 1


def _times(cost: int, count: int) -> int:
    return min(cost * count, _MOST)


def _exceeds(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    elif factor < 1.5:
        shown = f"{factor:.6f}x"
    else:
        shown = f"{factor:.1f}x"
    hint = (
        "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings "
        "are declared"
    )
    return f"{what} exceeds budget by factor of {shown} ({hint})"

"""``x-kubernetes-validations``: rules in CEL about values, with messages of their own (``schema/cel``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated import cel
from kemu.emulated.schemas import correlation, paths, problems
from kemu.emulated.schemas.correlation import Pair
from kemu.emulated.schemas.problems import child
from kemu.emulated.schemas.structural import Node
from kemu.errors import Cause

BUDGET = 10_000_000
"""What all rules about one object may cost (``RuntimeCELCostBudget``)."""
MAX_OBJECT_BYTES = 3 * 1024 * 1024
MAX_MESSAGE_BYTES = 5 * 1024

_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule. A rule whose text is empty has neither a program nor an error."""

    source: Mapping[str, Any]
    program: cel.Program | None = None
    error: str = ""
    uses_old: bool = False
    cost: int = 0
    """What one evaluation costs at most."""
    times: int = 0
    """How many such values an object has room for."""
    message: cel.Program | None = None
    message_error: str = ""
    message_cost: int = 0
    at: str = ""
    """Path of the field that a refusal names, relative."""


class NoType(ValueError):
    """Expressions cannot see the values of a schema."""


def compile_all(node: Node, type_: cel.types.Type | None) -> list[Rule]:
    """The rules of one node (``Compile``). ``type_``: of its values. Raises :class:`NoType`."""
    if not node.rules:
        return []
    if type_ is None:
        raise NoType("failed to convert to declType for CEL validation rules")
    plain = cel.Environment({"self": type_, "oldSelf": type_})
    optional = cel.Environment({"self": type_, "oldSelf": cel.types.optional_of(type_)})
    return [_compile(node, rule, optional if rule.get("optionalOldSelf") else plain, type_) for rule in node.rules]


def _compile(node: Node, rule: Mapping[str, Any], environment: cel.Environment, type_: cel.types.Type) -> Rule:
    text = rule.get("rule") or ""
    if not text.strip():
        return Rule(rule)
    try:
        program = environment.compile(text)
    except cel.CompileError as error:
        return Rule(rule, error=f"compilation failed: {error}")
    if program.type != cel.types.BOOL:
        return Rule(rule, error="cel expression must evaluate to a bool")
    found: dict[str, Any] = {
        "program": program,
        "uses_old": "oldSelf" in text and not _compiles({"self": type_}, text),
        "cost": program.estimate().high,
        "times": MAX_OBJECT_BYTES // (type_.min_serialized + 1),
    }
    expression = rule.get("messageExpression") or ""
    if expression:
        try:
            message = environment.compile(expression)
        except cel.CompileError as error:
            return Rule(rule, **found, message_error=f"messageExpression compilation failed: {error}")
        if message.type != cel.types.STRING:
            return Rule(rule, **found, message_error="messageExpression must evaluate to a string")
        found |= {"message": message, "message_cost": message.estimate().high}
    if rule.get("fieldPath"):
        try:
            found["at"] = paths.resolve(rule["fieldPath"], node)[0]
        except ValueError:
            pass
    return Rule(rule, **found)


def _compiles(variables: Mapping[str, cel.types.Type], text: str) -> bool:
    try:
        cel.Environment(variables).compile(text)
    except cel.CompileError:
        return False
    return True


def type_of(node: Node, *, is_root: bool) -> cel.types.Type | None:
    """The type of a node's values; None: expressions cannot see them."""
    return cel.schemas.declared(node.source, root=is_root, name="selfType")


def element_type(type_: cel.types.Type | None) -> cel.types.Type | None:
    """Of the elements of a list, or of the values of a map."""
    return type_.parameters[-1] if type_ is not None and type_.kind in ("list", "map") else None


def field_type(type_: cel.types.Type | None, name: str) -> cel.types.Type | None:
    """Of the field that the schema calls ``name``."""
    escaped = cel.schemas.escape(name)
    if type_ is None or type_.fields is None or escaped is None:
        return None
    return type_.fields.get(escaped)


# Evaluation -----------------------------------------------------------------------------------------------------------


class _OutOfBudget(Exception):
    """No further rule is evaluated; causes say why."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands, and which old value its own is compared to when it comes to ratcheting."""

    path: str
    pair: Pair | None = None
    nearest: Pair | None = None

    def below(self, path: str, step: str | int) -> _Place:
        if self.pair is None:
            return _Place(path, None, self.nearest)
        if isinstance(step, str):
            if self.nearest is None and step in ("apiVersion", "kind"):
                return _Place(path)
            return _Place(path, self.pair.key(step), self.pair)
        return _Place(path, self.pair.index(step), self.pair)

    @property
    def is_unchanged(self) -> bool:
        pair = self.pair if self.pair is not None else self.nearest
        return pair is not None and pair.is_same


class _Checks:
    """The rules of a node and of those below it."""

    __slots__ = ("fields", "items", "node", "other", "problem", "rules")

    def __init__(self, node: Node, type_: cel.types.Type | None) -> None:
        self.node = node
        self.problem = ""
        self.rules: list[Rule] = []
        try:
            self.rules = compile_all(node, type_)
        except NoType as error:
            self.problem = str(error)
        self.items = _checks_of(node.items, element_type(type_)) if node.items is not None else None
        additional = node.additional_node
        self.other = _checks_of(additional, element_type(type_)) if additional is not None else None
        self.fields: dict[str, _Checks] = {}
        for name, one in node.properties.items():
            if cel.schemas.escape(name) is None:
                found = type_of(one, is_root=one.embedded)
            else:
                found = field_type(type_, name)
            if found is not None and (checks := _checks_of(one, found)) is not None:
                self.fields[name] = checks


def _checks_of(node: Node, type_: cel.types.Type | None) -> _Checks | None:
    checks = _Checks(node, type_)
    has_any = checks.rules or checks.problem or checks.items or checks.other or checks.fields
    return checks if has_any else None


class Rules:
    """All rules of a schema."""

    def __init__(self, node: Node, *, is_root: bool = True) -> None:
        self._checks = _Checks(node, type_of(node, is_root=is_root))

    def check(
        self, value: Any, old: Any, found: list[Cause], pair: Pair | None = None, warnings: list[str] | None = None
    ) -> None:
        """Judge a whole object; ``old``: None for a new one. With ``pair``, what breaks a rule and has not changed is
        told in ``warnings`` only."""
        _Run(found, warnings, BUDGET).start(self._checks, value, old, _Place("", pair))

    def run(self, value: Any, old: Any, path: str, found: list[Cause], budget: int) -> int:
        """Judge a value at ``path``, and return what is left of the budget; negative: it was not enough."""
        run = _Run(found, None, budget)
        run.start(self._checks, value, old, _Place(path))
        return run.left


class _Run:
    def __init__(self, found: list[Cause], warnings: list[str] | None, budget: int) -> None:
        self._found = found
        self._warnings = warnings
        self.left = budget

    def start(self, checks: _Checks, value: Any, old: Any, place: _Place) -> None:
        try:
            self._walk(checks, value, old, place)
        except _OutOfBudget:
            self.left = -1

    def _walk(self, checks: _Checks, value: Any, old: Any, place: _Place) -> None:
        if value is None:
            return
        if checks.problem:
            detail = f"rule compiler initialization error: {checks.problem}"
            self._found.append(problems.invalid(place.path, checks.node.type, detail))
        elif checks.rules:
            self._evaluate(checks, value, old, place)
        node, path = checks.node, place.path
        if isinstance(value, list):
            if checks.items is not None:
                before = None
                if node.list_type == "map" and isinstance(old, list):
                    before = correlation.MapList(node.list_keys, old)
                for index, one in enumerate(value):
                    old_one = before.get(one) if before is not None else None
                    self._walk(checks.items, one, old_one, place.below(f"{path}[{index}]", index))
        elif isinstance(value, dict):
            old_fields = old if isinstance(old, dict) and node.map_type in (None, "granular", "atomic") else {}
            for name, one in value.items():
                if checks.other is not None:
                    self._walk(checks.other, one, old_fields.get(name), place.below(f"{path}[{name}]", name))
                below = checks.fields.get(name)
                if below is not None:
                    self._walk(below, one, old_fields.get(name), place.below(child(path, name), name))

    def _evaluate(self, checks: _Checks, value: Any, old: Any, place: _Place) -> None:
        kind = checks.node.type
        if self.left <= 0:
            self._found.append(problems.invalid(place.path, kind, _OUT_OF_BUDGET))
            raise _OutOfBudget
        for rule in checks.rules:
            if rule.error:
                self._found.append(problems.invalid(place.path, kind, f"rule compile error: {rule.error}"))
                continue
            is_optional = bool(rule.source.get("optionalOldSelf"))
            if rule.program is None or (rule.uses_old and old is None and not is_optional):
                continue
            variables = {"self": value}
            if rule.uses_old or is_optional:
                variables["oldSelf"] = _optional(old) if is_optional else old
            self._evaluate_one(rule, variables, kind, value, place)

    def _evaluate_one(self, rule: Rule, variables: dict[str, Any], kind: str, value: Any, place: _Place) -> None:
        assert rule.program is not None
        wrong: cel.EvaluationError | None = None
        result: Any = None
        try:
            result, cost = rule.program.evaluate(variables)
        except cel.EvaluationError as error:
            wrong, cost = error, error.cost
        if cost > self.left:
            self._found.append(problems.invalid(place.path, kind, _OUT_OF_BUDGET))
            raise _OutOfBudget
        self.left -= cost
        shown = (rule.source.get("message") or rule.source.get("rule") or "").strip()
        if wrong is not None:
            self._add_failure(wrong, shown, kind, place)
            return
        if result is True:
            return
        at = child(place.path, rule.at) if rule.at else place.path
        detail = self._message(rule, variables, kind, at, place)
        what = problems.OMITTED if kind in ("object", "array") else value
        self._add(_of_reason(rule.source.get("reason"), at, what, detail), rule, place)

    def _add_failure(self, wrong: cel.EvaluationError, shown: str, kind: str, place: _Place) -> None:
        text = str(wrong)
        if text.startswith("no such overload"):
            detail = f"'{text}': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
        elif isinstance(wrong, cel.BudgetExceeded):
            detail = (
                f"'{text}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
            )
        else:
            detail = f"{text} evaluating rule: {shown}"
        self._found.append(problems.invalid(place.path, kind, detail))
        if isinstance(wrong, cel.BudgetExceeded):
            raise _OutOfBudget

    def _message(self, rule: Rule, variables: dict[str, Any], kind: str, at: str, place: _Place) -> str:
        plain = (rule.source.get("message") or "").strip()
        if not rule.source.get("message"):
            plain = f"failed rule: {(rule.source.get('rule') or '').strip()}"
        if rule.message is None:
            return plain
        expression = problems.quoted(rule.source.get("messageExpression") or "")
        text: Any = None
        wrong: cel.EvaluationError | None = None
        try:
            text, cost = rule.message.evaluate(variables)
        except cel.EvaluationError as error:
            wrong, cost = error, error.cost
        stops = ""
        if cost > self.left:
            stops = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
        elif isinstance(wrong, cel.BudgetExceeded):
            stops = f"no further validation rules will be run due to call cost exceeds limit for messageExpression: {expression}"
        if stops:
            self._add(problems.invalid(at, kind, stops), rule, place)
            raise _OutOfBudget
        self.left -= cost
        if wrong is not None or not isinstance(text, str):
            return plain
        text = text.strip()
        is_usable = text and "\n" not in text and len(text.encode()) <= MAX_MESSAGE_BYTES
        return text if is_usable else plain

    def _add(self, cause: Cause, rule: Rule, place: _Place) -> None:
        if not rule.uses_old and place.is_unchanged:
            if self._warnings is not None:
                self._warnings.append(problems.text_of(cause))
        else:
            self._found.append(cause)


def _of_reason(reason: str | None, path: str, value: Any, detail: str) -> Cause:
    if reason == "FieldValueForbidden":
        return problems.forbidden(path, detail)
    if reason == "FieldValueRequired":
        return problems.required(path, detail)
    if reason == "FieldValueDuplicate":
        return problems.duplicate(path, value)
    return problems.invalid(path, value, detail)


def _optional(value: Any) -> Any:
    """``optional.of(value)``; of a value that is not there, ``optional.none()``."""
    return cel.values.NONE if value is None else cel.values.Optional(True, value)

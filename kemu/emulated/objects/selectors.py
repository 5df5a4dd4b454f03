"""Label selectors, field selectors, node selector terms and tolerations, compiled.

Selectors are compiled once and matched often. Each compiled selector exposes its equality requirements as
``equals: dict[key, value]``, for indexes (of watchers, of pods by node); ``matches`` checks all requirements.

Label and node selectors match any ``Mapping[str, str]``: a dict or a protobuf map of labels.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from google.protobuf.message import Message

from kemu.emulated.objects import names, resources
from kemu.emulated.objects.caches import text_cache
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

Labels = Mapping[str, str]

IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT = "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"


class SelectorError(ValueError):
    """A selector that cannot be parsed; the text says what is wrong and where."""


# Labels -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: str
    """``In``, ``NotIn``, ``Exists``, ``DoesNotExist``, ``Gt`` or ``Lt``."""
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        operator = self.operator
        if operator == IN:
            return value is not None and value in self.values
        if operator == NOT_IN:
            return value is None or value not in self.values
        if operator == EXISTS:
            return value is not None
        if operator == DOES_NOT_EXIST:
            return value is None
        if value is None:
            return False
        left, right = names.int64(value), names.int64(self.values[0])
        if left is None or right is None:
            return False
        return left > right if operator == GT else left < right

    def __str__(self) -> str:
        values = ",".join(sorted(self.values))
        match self.operator:
            case "In":
                return f"{self.key}={values}" if len(self.values) == 1 else f"{self.key} in ({values})"
            case "NotIn":
                return f"{self.key}!={values}" if len(self.values) == 1 else f"{self.key} notin ({values})"
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case _:
                return f"{self.key}{'>' if self.operator == GT else '<'}{values}"


class LabelSelector:
    """A compiled label selector: all requirements must hold. Without requirements it matches everything."""

    __slots__ = ("_others", "equals", "nothing", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements = tuple(requirements)
        self.nothing = nothing
        """Matches no object at all, as an absent selector does."""
        self.equals: dict[str, str] = {}
        """Labels that must have exactly this value."""
        others = []
        for requirement in self.requirements:
            if requirement.operator == IN and len(requirement.values) == 1 and requirement.key not in self.equals:
                self.equals[requirement.key] = requirement.values[0]
            else:
                others.append(requirement)
        self._others = tuple(others)

    @property
    def everything(self) -> bool:
        """Whether it has no requirements, and so matches all labels."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Labels) -> bool:
        if self.nothing:
            return False
        for key, value in self.equals.items():
            if labels.get(key) != value:
                return False
        for requirement in self._others:  # noqa: SIM110 - a generator costs more than the usual single requirement
            if not requirement.matches(labels):
                return False
        return True

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)

    def __repr__(self) -> str:
        return f"LabelSelector({'nothing' if self.nothing else str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return self.requirements == other.requirements and self.nothing == other.nothing

    def __hash__(self) -> int:
        return hash((self.requirements, self.nothing))


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(nothing=True)

_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)|\s+$", re.ASCII)


@text_cache(4096)
def parse_labels(text: str) -> LabelSelector:
    """Compile the text form: ``a=b,c!=d,e in (x,y),f notin (z),g,!h,i>5``. Raises SelectorError."""
    return LabelSelector(sorted(_Parser(text).requirements(), key=lambda requirement: requirement.key))


def compile_labels(selector: meta_v1_pb2.LabelSelector | None) -> LabelSelector:
    """Compile a ``meta.v1.LabelSelector`` message. None (an absent field) matches nothing, an empty one everything.

    Raises SelectorError for an unknown operator or missing values, which validation refuses.
    """
    if selector is None:
        return NOTHING
    match_labels = selector.matchLabels
    requirements = [Requirement(key, IN, (match_labels[key],)) for key in sorted(match_labels)]
    for expression in selector.matchExpressions:
        if expression.operator not in (IN, NOT_IN, EXISTS, DOES_NOT_EXIST):
            raise SelectorError(f'"{expression.operator}" is not a valid label selector operator')
        _check_requirement(expression.key, expression.operator, expression.values)
        requirements.append(Requirement(expression.key, expression.operator, tuple(expression.values)))
    return LabelSelector(requirements) if requirements else EVERYTHING


def compile_labels_field(message: Message, field: str) -> LabelSelector:
    """:func:`compile_labels` of a field that may be absent: ``compile_labels_field(pdb.spec, "selector")``."""
    return compile_labels(getattr(message, field) if message.HasField(field) else None)


def labels_equal(labels: Labels) -> LabelSelector:
    """The selector of exact values, as ``spec.selector`` of a Service or ``nodeSelector``; empty matches everything."""
    return LabelSelector(Requirement(key, IN, (labels[key],)) for key in sorted(labels))


def _check_requirement(key: str, operator: str, values: Sequence[str]) -> None:
    """``NewRequirement`` of ``apimachinery/pkg/labels``."""
    found: list[str] = []
    if problems := names.label_key(key):
        found.append(_invalid("key", key, problems))
    if operator in (IN, NOT_IN) and not values:
        found.append("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    if operator in (EXISTS, DOES_NOT_EXIST) and values:
        found.append(f"values: Invalid value: {_list(values)}: values set must be empty for exists and does not exist")
    if operator in (GT, LT):
        if len(values) != 1:
            text = "for 'Gt', 'Lt' operators, exactly one value is required"
            found.append(f"values: Invalid value: {_list(values)}: {text}")
        text = "for 'Gt', 'Lt' operators, the value must be an integer"
        found += [
            _invalid(f"values[{index}]", value, [text])
            for index, value in enumerate(values)
            if not names.is_int64(value)
        ]
    for index, value in enumerate(values):
        if problems := names.label_value(value):
            found.append(_invalid(f"values[{index}][{key}]", value, problems))
    if found:
        raise SelectorError(found[0] if len(found) == 1 else f"[{', '.join(dict.fromkeys(found))}]")


def _invalid(field: str, value: str, problems: Sequence[str]) -> str:
    return f'{field}: Invalid value: "{value}": {"; ".join(problems)}'


def _list(values: Sequence[str]) -> str:
    return json.dumps(list(values), separators=(",", ":"))


class _Parser:
    """Recursive descent over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [token for token in (match.group(1) for match in _TOKEN.finditer(text)) if token]
        self.position = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if not self.tokens:
            return found
        if not self._begins():
            raise self._unexpected(self._peek(), "!, identifier, or 'end of string'")
        while True:
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            token = self._next()
            if token == "":
                return found
            if token != ",":
                raise self._unexpected(token, "',' or 'end of string'")
            if not self._begins():
                raise self._unexpected(self._peek(), "identifier after ','")

    def _begins(self, negates: bool = True) -> bool:
        """Whether a requirement can begin here, or, without ``!``, a value."""
        token = self._peek()
        return (token == "!" and negates) or (token != "" and token[0] not in "=!<>(),")

    def _requirement(self) -> Requirement:
        token = self._next()
        negated = token == "!"
        if negated:
            token = self._next()
        key = self._word(token, "identifier")
        if problems := names.label_key(key):
            # The parser knows no place.
            raise SelectorError(_invalid("<nil>", key, problems))
        if negated:
            return self._checked(key, DOES_NOT_EXIST, ())
        following = self._peek()
        if following in ("", ","):
            return self._checked(key, EXISTS, ())
        operator = self._next()
        match operator:
            case "=" | "==":
                return self._checked(key, IN, (self._exact(),))
            case "!=":
                return self._checked(key, NOT_IN, (self._exact(),))
            case ">" | "<":
                return self._checked(key, GT if operator == ">" else LT, (self._exact(),))
            case "in" | "notin":
                return self._checked(key, IN if operator == "in" else NOT_IN, self._values())
            case _:
                raise self._unexpected(operator, "in, notin, =, ==, !=, gt, lt")

    def _values(self) -> tuple[str, ...]:
        token = self._next()
        if token != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        if self._peek() not in (",", ")") and not self._begins(negates=False):
            raise self._unexpected(self._peek(), "',', ')' or identifier")
        values = [self._value()]
        while True:
            token = self._next()
            if token == ")":
                return tuple(sorted(dict.fromkeys(values)))
            if token != ",":
                raise self._unexpected(token, "',' or ')'")
            if self._peek() not in (",", ")") and not self._begins(negates=False):
                raise self._unexpected(self._peek(), "',', or identifier")
            values.append(self._value())

    def _value(self) -> str:
        """A value in a list; it may be empty, before a comma or a parenthesis."""
        if self._peek() in (",", ")"):
            return ""
        return self._word(self._next(), "identifier")

    def _exact(self) -> str:
        """The only value, which may be empty before a comma or at the end."""
        if self._peek() in ("", ","):
            return ""
        return self._word(self._next(), "identifier")

    def _word(self, token: str, wanted: str) -> str:
        if token == "" or token[0] in "=!<>(),":
            raise self._unexpected(token, wanted)
        return token

    def _checked(self, key: str, operator: str, values: tuple[str, ...]) -> Requirement:
        _check_requirement(key, operator, values)
        return Requirement(key, operator, values)

    def _peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self.position += 1
        return token

    def _unexpected(self, token: str, wanted: str) -> SelectorError:
        """As ``Parser`` of ``apimachinery/pkg/labels`` says it."""
        return SelectorError(f"found '{token}', expected: {wanted}")


# Fields -------------------------------------------------------------------------------------------------------------


_COMMON_FIELDS: dict[str, Callable[[Any], str]] = {
    "metadata.name": attrgetter("metadata.name"),
    "metadata.namespace": attrgetter("metadata.namespace"),
}

_KIND_FIELDS: dict[str, dict[str, Callable[[Any], str]]] = {
    "pods": {
        "spec.nodeName": attrgetter("spec.nodeName"),
        "spec.restartPolicy": attrgetter("spec.restartPolicy"),
        "spec.schedulerName": attrgetter("spec.schedulerName"),
        "spec.serviceAccountName": attrgetter("spec.serviceAccountName"),
        "spec.hostNetwork": lambda pod: "true" if pod.spec.hostNetwork else "false",
        "status.phase": attrgetter("status.phase"),
        "status.podIP": attrgetter("status.podIP"),
        "status.podIPs": lambda pod: "",  # taken, but no pod has it (ToSelectableFields)
        "status.nominatedNodeName": attrgetter("status.nominatedNodeName"),
    },
    "nodes": {"spec.unschedulable": lambda node: "true" if node.spec.unschedulable else "false"},
    "namespaces": {"status.phase": attrgetter("status.phase")},
    "secrets": {"type": attrgetter("type")},
    "certificatesigningrequests": {"spec.signerName": attrgetter("spec.signerName")},
    "replicationcontrollers": {"status.replicas": lambda rc: str(rc.status.replicas)},
    "jobs": {"status.successful": lambda job: str(job.status.succeeded)},
    "services": {"spec.clusterIP": attrgetter("spec.clusterIP"), "spec.type": attrgetter("spec.type")},
    "resourceslices": {
        "spec.nodeName": attrgetter("spec.nodeName"),
        "spec.driver": attrgetter("spec.driver"),
    },
    "events": {
        "involvedObject.kind": attrgetter("involvedObject.kind"),
        "involvedObject.namespace": attrgetter("involvedObject.namespace"),
        "involvedObject.name": attrgetter("involvedObject.name"),
        "involvedObject.uid": attrgetter("involvedObject.uid"),
        "involvedObject.apiVersion": attrgetter("involvedObject.apiVersion"),
        "involvedObject.resourceVersion": attrgetter("involvedObject.resourceVersion"),
        "involvedObject.fieldPath": attrgetter("involvedObject.fieldPath"),
        "reason": attrgetter("reason"),
        "reportingComponent": lambda event: event.reportingComponent or event.source.component,
        "source": lambda event: event.source.component or event.reportingComponent,
        "type": attrgetter("type"),
    },
}


@lru_cache(1024)
def supported_fields(resource: str) -> Mapping[str, Callable[[Any], str]]:
    """The fields of a kind, by its plural, that field selectors may name, and how to get each from an object."""
    row = resources.BY_PLURAL.get(resource)
    # Kinds with fields of their own know only what they have.
    is_without = resource in _KIND_FIELDS and row is not None and not row.namespaced
    return {**common_fields(not is_without), **_KIND_FIELDS.get(resource, {})}


class FieldSelector:
    """A compiled field selector of one kind: ``field=value`` and ``field!=value``, all of which must hold."""

    __slots__ = ("checks", "equals", "not_equals", "resource")

    def __init__(
        self,
        resource: str,
        equals: dict[str, str],
        not_equals: Sequence[tuple[str, str]],
        known: Mapping[str, Callable[[Any], str]] | None = None,
    ) -> None:
        """``known``: the fields that there are; None: those of a kind of kemu's table."""
        self.resource = resource
        self.equals = equals
        """Fields that must have exactly this value."""
        self.not_equals = tuple(not_equals)
        getters = supported_fields(resource) if known is None else known
        self.checks = tuple(
            (getters[field], value, wanted)
            for pairs, wanted in ((tuple(equals.items()), True), (self.not_equals, False))
            for field, value in pairs
        )
        """How to get each field, its value, and whether it must have that value."""

    @property
    def everything(self) -> bool:
        return not self.checks

    def matches(self, message: KubernetesObject) -> bool:
        for getter, value, wanted in self.checks:  # noqa: SIM110 - a generator costs more than the usual single check
            if (getter(message) == value) is not wanted:
                return False
        return True

    def __str__(self) -> str:
        terms = [f"{field}={_escape(value)}" for field, value in self.equals.items()]
        terms += [f"{field}!={_escape(value)}" for field, value in self.not_equals]
        return ",".join(terms)

    def __repr__(self) -> str:
        return f"FieldSelector({self.resource}: {self})"


_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_TERMS = re.compile(r"(?:\\.|[^,\\])+|\\$", re.DOTALL)


@text_cache(4096)  # each kubelet has two, and asks once
def parse_fields(text: str, resource: str) -> FieldSelector:
    """Compile ``spec.nodeName=n1,status.phase!=Failed`` for a kind, given by its plural. Raises SelectorError.

    A backslash takes the special meaning of ``,``, ``=`` and ``\\`` in values.
    """
    known = supported_fields(resource)
    field, _, value = text.partition("=")
    if field in known and value.isascii() and value.replace("-", "").isalnum():
        # The selector of a kubelet, of which there are many.
        return FieldSelector(resource, {field: value}, ())
    return FieldSelector(resource, *_requirements(text, resource, known))


def common_fields(namespaced: bool) -> dict[str, Callable[[Any], str]]:
    """What field selectors may name of any kind."""
    return {name: get for name, get in _COMMON_FIELDS.items() if namespaced or name != "metadata.namespace"}


def parse_custom_fields(text: str, resource: str, known: Mapping[str, Callable[[Any], str]]) -> FieldSelector:
    """As :func:`parse_fields`, of a custom kind with these fields."""
    return FieldSelector(resource, *_requirements(text, resource, known), known)


def check_fields(text: str) -> None:
    """Raises SelectorError for what is no field selector of whatever kind."""
    _terms_of(text)


def _terms_of(text: str) -> list[tuple[str, str, str]]:
    """Field, operator and value of each term (``fields.ParseSelector``)."""
    found = []
    for term in sorted(_TERMS.findall(text)):
        match = _TERM.fullmatch(term)
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        field, operator, raw = match.groups()
        found.append((field, operator, _unescape(raw)))
    return found


def _requirements(
    text: str, resource: str, known: Mapping[str, Callable[[Any], str]]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Fields that must have a value, and those that must not."""
    equals: dict[str, str] = {}
    not_equals: list[tuple[str, str]] = []
    contradiction: list[tuple[str, str]] = []
    for stated, operator, value in _terms_of(text):
        field = _OLD_NAMES.get((resource, stated), stated)
        if field not in known:
            raise SelectorError(_unsupported(field, resource))
        if operator == "!=":
            not_equals.append((field, value))
        elif equals.setdefault(field, value) != value:
            contradiction.append((field, equals[field]))
    # Two values for one field can never both hold: ask for the first one, and for not the first one.
    return equals, [*not_equals, *contradiction]


_OLD_NAMES = {("pods", "spec.host"): "spec.nodeName"}
_WORDS = {
    "jobs": 'field label "{}" not supported for Job',
    "resourceslices": "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
}
"""How a kind says that it does not know a field, where it has its own words."""


def _unsupported(field: str, resource: str) -> str:
    if resource in _KIND_FIELDS or resource not in resources.BY_PLURAL:
        return _WORDS.get(resource, "field label not supported: {}").format(field)
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _unescape(value: str) -> str:
    if "\\" not in value:
        if "=" in value:
            raise SelectorError(_UNESCAPED)
        return value
    result = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            character = next(characters, "")
            if character not in ("\\", ",", "="):
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{character}")
        elif character == "=":
            raise SelectorError(_UNESCAPED)
        result.append(character)
    return "".join(result)


_UNESCAPED = f"invalid field selector: unescaped character in value: {ord('=')}"
"""Go tells the number of the letter."""


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


# Nodes --------------------------------------------------------------------------------------------------------------


class NodeSelectorTerm:
    """A compiled ``NodeSelectorTerm``: all of its requirements, on labels and on ``metadata.name``, must hold.

    A term without requirements matches nothing; neither does one with an invalid part (an unknown operator, a value of
    ``Gt`` that is no integer, a value that no label can have).
    """

    __slots__ = ("expressions", "fields", "never")

    def __init__(self, term: core_v1_pb2.NodeSelectorTerm) -> None:
        self.expressions = tuple(Requirement(one.key, one.operator, tuple(one.values)) for one in term.matchExpressions)
        self.fields = tuple(Requirement(one.key, one.operator, tuple(one.values)) for one in term.matchFields)
        self.never = not self.expressions and not self.fields
        for requirement in self.expressions:
            if requirement.operator not in (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT):
                self.never = True
            else:
                try:
                    _check_requirement(requirement.key, requirement.operator, requirement.values)
                except SelectorError:
                    self.never = True
        for requirement in self.fields:
            if requirement.operator not in (IN, NOT_IN) or len(requirement.values) != 1:
                self.never = True

    def matches(self, labels: Labels, name: str) -> bool:
        """``labels`` and ``name`` of a node."""
        if self.never:
            return False
        for requirement in self.expressions:
            if not requirement.matches(labels):
                return False
        for requirement in self.fields:
            value = name if requirement.key == "metadata.name" else ""
            if (value == requirement.values[0]) is not (requirement.operator == IN):
                return False
        return True


class NodeSelector:
    """A compiled ``NodeSelector``: one of its terms must match."""

    __slots__ = ("terms",)

    def __init__(self, selector: core_v1_pb2.NodeSelector) -> None:
        self.terms = tuple(NodeSelectorTerm(term) for term in selector.nodeSelectorTerms)

    def matches(self, labels: Labels, name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)


class RequiredNodeAffinity:
    """The nodes that a pod accepts: ``spec.nodeSelector`` and the required part of its node affinity."""

    __slots__ = ("affinity", "node_selector")

    def __init__(self, pod_spec: core_v1_pb2.PodSpec) -> None:
        self.node_selector = tuple((key, pod_spec.nodeSelector[key]) for key in sorted(pod_spec.nodeSelector))
        self.affinity: NodeSelector | None = None
        node_affinity = pod_spec.affinity.nodeAffinity
        if node_affinity.HasField("requiredDuringSchedulingIgnoredDuringExecution"):
            self.affinity = NodeSelector(node_affinity.requiredDuringSchedulingIgnoredDuringExecution)

    @property
    def everything(self) -> bool:
        """Whether any node will do."""
        return not self.node_selector and self.affinity is None

    def matches(self, labels: Labels, name: str) -> bool:
        for key, value in self.node_selector:
            if labels.get(key) != value:
                return False
        return self.affinity is None or self.affinity.matches(labels, name)


# Taints -------------------------------------------------------------------------------------------------------------


class Taint(Protocol):
    """A taint of a node, as the API has it or as the scheduler keeps it."""

    @property
    def key(self) -> str: ...

    @property
    def value(self) -> str: ...

    @property
    def effect(self) -> str: ...


T = TypeVar("T", bound=Taint)


def tolerates(toleration: core_v1_pb2.Toleration, taint: Taint) -> bool:
    """Whether a toleration matches a taint: effect and key empty or equal, and ``Exists`` or an equal value."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator == EXISTS:
        return True
    return operator in ("", "Equal") and bool(toleration.value == taint.value)


def tolerates_any(tolerations: Iterable[core_v1_pb2.Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations matches the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def untolerated_taint(
    taints: Iterable[T], tolerations: Sequence[core_v1_pb2.Toleration], effects: Sequence[str]
) -> T | None:
    """The first taint of one of ``effects`` that no toleration matches, or None."""
    for taint in taints:
        if taint.effect in effects and not tolerates_any(tolerations, taint):
            return taint
    return None


def go_text(selector: meta_v1_pb2.LabelSelector) -> str:
    """``LabelSelector.String`` of Go's generated code."""
    labels = "".join(f"{key}: {selector.matchLabels[key]}," for key in sorted(selector.matchLabels))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],}},"
        for one in selector.matchExpressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )

"""What a step can wait for: ``pod/web running``, ``node/n1 NotReady``, ``deployment/web .status.readyReplicas=3``.

``KIND/NAME CONDITION``, as in ``kubectl wait``; the kind may be written as for kubectl (``po``, ``deploy``), the name
may be a pattern (``pod/web-*``: all that match, and at least one). Several, separated by commas, must all hold:

* ``exists``, ``gone``;
* of pods ``bound`` (to a node; of volumes and claims: to each other), and phases: ``pending``, ``running``,
  ``succeeded``, ``failed``;
* of workloads ``rolledOut``, as ``kubectl rollout status`` sees it;
* ``PATH=VALUE``, ``PATH!=VALUE``: a field, ``.status.phase=Running``, ``.spec.containers[0].image=nginx:2``; dots in a
  key are escaped or quoted, as in JSONPath: ``.metadata.labels.kubernetes\\.io/os=linux``,
  ``.metadata.labels['kubernetes.io/os']=linux``;
* ``TYPE``, ``TYPE=STATUS``: a condition of the status, whatever its case: ``Ready``, ``PodScheduled=False``;
  ``NotTYPE``: its status is not True, or it is not there.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert, descriptors, json_writers
from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.runtime import words

_PHASES = ("pending", "running", "succeeded", "failed")
_WORDS = {word.lower(): word for word in (*_PHASES, "bound", "exists", "gone", "rolledOut")}
_PATH = re.compile(r"\{?(\.[^=!{}]+)\}?(!?=)(.*)", re.DOTALL)
_STEP = re.compile(r"""\.((?:[^.\[\]\\]|\\.)+)|\[(\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]""")
_MISSING = object()

Path = tuple[str | int, ...]

Test = Callable[[Mapping[str, Any]], bool]
"""Test of an object in JSON."""


class BadCondition(KemuError):
    """It cannot be read."""


@dataclass(frozen=True)
class Condition:
    """Condition of the objects of one kind."""

    text: str
    resource: resources.Resource
    namespace: str
    pattern: str
    test: Test | None
    """None: no such object may exist."""

    @property
    def field_selector(self) -> str:
        """The field selector of what has to be watched."""
        return "" if _is_pattern(self.pattern) else f"metadata.name={self.pattern}"

    def holds(self, objects: Iterable[apps_v1_pb2.Deployment | core_v1_pb2.Pod]) -> bool:
        """``objects``: all of the kind that there are, as messages."""
        found = self.matching(objects)
        if self.test is None:
            return not found
        test = self.test
        return bool(found) and all(test(convert.to_json(each)) for each in found)

    @property
    def is_gone(self) -> bool:
        return self.test is None

    def matching(self, objects: Iterable[Any]) -> list[Any]:
        """Those that the condition is about."""
        return [each for each in objects if fnmatch.fnmatchcase(each.metadata.name, self.pattern)]


def parse(text: str, namespace: str = "default") -> list[Condition]:
    """Raises :class:`BadCondition`."""
    found = [_one(part.strip(), namespace) for part in text.split(",") if part.strip()]
    if not found:
        raise BadCondition("nothing to wait for; write it as 'pod/NAME running'")
    return found


def _one(text: str, namespace: str) -> Condition:
    subject, _, stated = text.partition(" ")
    kind, slash, name = subject.partition("/")
    stated = stated.strip()
    if not slash or not name or not stated:
        raise BadCondition(f"{text!r}: write it as KIND/NAME CONDITION, such as 'pod/web running'")
    resource = resources.find(kind.lower()) or resources.BY_KIND.get(kind)
    if resource is None:
        raise BadCondition(f"{text!r}: there is no kind {kind!r}")
    test = None if stated.lower() == "gone" else _test(stated, text, resource)
    return Condition(text, resource, namespace if resource.namespaced else "", name, test)


def _test(stated: str, text: str, resource: resources.Resource) -> Test:
    word = stated.lower()
    if word == "exists":
        return lambda found: True
    if word == "bound" and resource.kind == "Pod":
        return lambda found: bool(_at(found, ("spec", "nodeName"), ""))
    if word in (*_PHASES, "bound"):
        _check(resource, ("status", "phase"), text)
        return lambda found: str(_at(found, ("status", "phase"), "")).lower() == word
    if word == "rolledout":
        return _is_rolled_out
    path = _PATH.fullmatch(stated)
    if path is not None:
        where, relation, value = path.groups()
        steps = _steps(where.strip())
        if steps is None:
            raise BadCondition(f"{text!r}: {where!r} is no path such as .status.phase or .spec.containers[0].image")
        _check(resource, steps, text)
        return lambda found: (_as_text(_at(found, steps, "")) == value) is (relation == "=")
    if not re.fullmatch(r"[A-Za-z][\w./-]*(=\w+)?", stated):
        raise BadCondition(f"{text!r}: {stated!r} is no condition")
    _check(resource, ("status", "conditions"), text)
    if stated[0].islower():
        # Types of conditions may be written so, but a word that is nearly another one never comes true.
        near = words.nearest_word(word, _WORDS, 0.75)
        if near:
            raise BadCondition(f"{text!r}: {stated!r} is no condition; did you mean {_WORDS[near]}?")
    kind, equals, status = stated.partition("=")
    if not equals and len(kind) > 3 and kind.startswith("Not") and kind[3].isupper():
        return lambda found: _status_of(found, kind[3:]) != "true"
    return lambda found: _status_of(found, kind) == (status or "True").lower()


def _status_of(found: Mapping[str, Any], kind: str) -> str:
    """The status of a condition, in lower case."""
    for condition in _at(found, ("status", "conditions"), []):
        if str(condition.get("type", "")).lower() == kind.lower():
            return str(condition.get("status", "")).lower()
    return ""


def _is_rolled_out(found: Mapping[str, Any]) -> bool:
    """``DeploymentStatusViewer.Status`` and its like: everything is up to date, available, and nothing else is left."""
    status: Mapping[str, Any] = found.get("status", {})
    if int(status.get("observedGeneration", 0)) < int(found["metadata"].get("generation", 0)):
        return False
    if "desiredNumberScheduled" in status:  # a DaemonSet
        wanted = status["desiredNumberScheduled"]
        return bool(status.get("updatedNumberScheduled", 0) == wanted == status.get("numberAvailable", 0))
    wanted = found.get("spec", {}).get("replicas", 1)
    if "updateRevision" in status:  # a StatefulSet
        is_updated = status.get("currentRevision") == status["updateRevision"]
        return bool(is_updated and status.get("readyReplicas", 0) == wanted)
    # A ReplicaSet does not say how many are updated: it updates none.
    updated = status.get("updatedReplicas", 0) if "strategy" in found.get("spec", {}) else wanted
    return bool(status.get("replicas", 0) == updated == wanted == status.get("availableReplicas", 0))


def _steps(text: str) -> Path | None:
    """None: it is no path."""
    found: list[str | int] = []
    end = 0
    while end < len(text):
        match = _STEP.match(text, end)
        if match is None:
            return None
        name, number, *quoted = match.groups()
        if number is not None:
            found.append(int(number))
        else:
            found.append(
                re.sub(r"\\(.)", r"\1", name) if name is not None else next(q for q in quoted if q is not None)
            )
        end = match.end()
    return tuple(found)


def _check(resource: resources.Resource, path: Path, text: str) -> None:
    """Raises :class:`BadCondition` for a field that no object of that kind can ever have."""
    complaint = _complaint(resource, path)
    if complaint:
        raise BadCondition(f"{text!r} can never hold: {complaint}")


def _complaint(resource: resources.Resource, path: Path) -> str:
    """Why no object of that kind can ever have something there; empty if one can."""
    at: _Shape = resource.message.DESCRIPTOR
    for number, step in enumerate(path):
        shown = _shown(path[:number]) or resource.kind
        if at is _ANYTHING:
            return ""
        if isinstance(at, FieldDescriptor) and descriptors.map_value(at) is None:  # a list
            if not isinstance(step, int):
                return f"{shown} is a list: write {shown}[0]"
            at = _one_of(at)
        elif isinstance(step, int):
            return f"{shown} is no list"
        elif isinstance(at, FieldDescriptor):
            value = descriptors.map_value(at)
            at = None if value is None else _one_of(value)
        elif at is None:
            return f"{shown} holds no fields; a dot in a key is written as \\. or the key as ['a.b/c']"
        else:
            known = _fields(at)
            if step not in known:
                return f"{shown} has no field {step}" + (
                    f", {hint}" if (hint := words.did_you_mean(step, known)) else ""
                )
            field = known[step]
            at = _ANYTHING if field is None else field if field.is_repeated else _one_of(field)
    return ""


_ANYTHING = object()
_Shape = Any
"""A Descriptor; the FieldDescriptor of a map or list; None: no fields, a text or number; :data:`_ANYTHING`."""


def _one_of(field: FieldDescriptor) -> _Shape:
    kind = field.message_type
    if kind is None:
        return None
    if kind.full_name in _FREE:
        return _ANYTHING
    return kind if kind.full_name not in json_writers.PLAIN or kind.full_name == _SELECTOR else None


_FREE = (meta_v1_pb2.FieldsV1.DESCRIPTOR.full_name, meta_v1_pb2.RawExtension.DESCRIPTOR.full_name)
_SELECTOR = core_v1_pb2.NodeSelector.DESCRIPTOR.full_name


def _fields(message: Descriptor) -> dict[str, FieldDescriptor | None]:
    """By their names in JSON; of every object also its kind."""
    found: dict[str, FieldDescriptor | None] = {}
    for field in message.fields:
        if descriptors.is_inline(field) and field.message_type is not None:
            found |= _fields(field.message_type)
        else:
            found[field.name] = field
    if "metadata" in found:
        found |= {"kind": None, "apiVersion": None}
    return found


def _shown(path: Path) -> str:
    return "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" if "." not in step else f"['{step}']" for step in path
    )


def _at(found: object, path: Path, missing: object) -> Any:
    for step in path:
        if isinstance(step, int):
            found = found[step] if isinstance(found, list) and step < len(found) else _MISSING
        else:
            found = found.get(step, _MISSING) if isinstance(found, dict) else _MISSING
        if found is _MISSING or found is None:
            return missing
    return found


def _as_text(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_pattern(name: str) -> bool:
    return any(each in name for each in "*?[")

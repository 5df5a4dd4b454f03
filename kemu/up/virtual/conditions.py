"""What a step can wait for: ``pod/web running``, ``node/n1 NotReady``, ``deployment/web .status.readyReplicas=3``.

``KIND/NAME CONDITION``, as in ``kubectl wait``; the kind may be written as for kubectl (``po``, ``deploy``), the name
may be a pattern (``pod/web-*``: all that match, and at least one). Several, separated by commas, must all hold:

* ``exists``, ``gone``;
* of pods ``bound``, and their phases: ``pending``, ``running``, ``succeeded``, ``failed``;
* of workloads ``rolledOut``, as ``kubectl rollout status`` sees it;
* ``PATH=VALUE``, ``PATH!=VALUE``: a field, ``.status.phase=Running``, ``.spec.containers[0].image=nginx:2``;
* ``TYPE``, ``TYPE=STATUS``: a condition of the status, whatever its case: ``Ready``, ``PodScheduled=False``;
  ``NotTYPE``: its status is not True, or it is not there.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.errors import KemuError
from kemu.objects import resources
from kemu.objects.conversion import convert

_PHASES = ("pending", "running", "succeeded", "failed")
_PATH = re.compile(r"\{?(\.[^=!{}]+)\}?(!?=)(.*)", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_MISSING = object()

Test = Callable[[Mapping[str, Any]], bool]
"""Of an object in JSON."""


class BadCondition(KemuError):
    """It cannot be read."""


@dataclass(frozen=True)
class Condition:
    """Of the objects of one kind."""

    text: str
    resource: resources.Resource
    namespace: str
    pattern: str
    test: Test | None
    """None: no such object may exist."""

    @property
    def field_selector(self) -> str:
        """Of what has to be watched."""
        return "" if _is_pattern(self.pattern) else f"metadata.name={self.pattern}"

    def holds(self, objects: Iterable[Any]) -> bool:
        """``objects``: all of the kind that there are, as messages."""
        found = [each for each in objects if fnmatch.fnmatchcase(each.metadata.name, self.pattern)]
        if self.test is None:
            return not found
        test = self.test
        return bool(found) and all(test(convert.to_json(each)) for each in found)


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
    test = None if stated.lower() == "gone" else _test(stated, text)
    return Condition(text, resource, namespace if resource.namespaced else "", name, test)


def _test(stated: str, text: str) -> Test:
    word = stated.lower()
    if word == "exists":
        return lambda found: True
    if word == "bound":
        return lambda found: bool(_at(found, ".spec.nodeName", ""))
    if word in _PHASES:
        return lambda found: str(_at(found, ".status.phase", "")).lower() == word
    if word == "rolledout":
        return _is_rolled_out
    path = _PATH.fullmatch(stated)
    if path is not None:
        where, relation, value = path.groups()
        if "".join(match[0] for match in _STEP.finditer(where)) != where:
            raise BadCondition(f"{text!r}: {where!r} is no path such as .status.phase or .spec.containers[0].image")
        return lambda found: (_as_text(_at(found, where, "")) == value) is (relation == "=")
    if not re.fullmatch(r"[A-Za-z][\w./-]*(=\w+)?", stated):
        raise BadCondition(f"{text!r}: {stated!r} is no condition")
    kind, equals, status = stated.partition("=")
    if not equals and len(kind) > 3 and kind.startswith("Not") and kind[3].isupper():
        return lambda found: _status_of(found, kind[3:]) != "true"
    return lambda found: _status_of(found, kind) == (status or "True").lower()


def _status_of(found: Mapping[str, Any], kind: str) -> str:
    """The status of a condition, in lower case."""
    for condition in _at(found, ".status.conditions", []):
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


def _at(found: Any, path: str, missing: Any) -> Any:
    for name, number in _STEP.findall(path):
        if number:
            found = found[int(number)] if isinstance(found, list) and int(number) < len(found) else _MISSING
        else:
            found = found.get(name, _MISSING) if isinstance(found, dict) else _MISSING
        if found is _MISSING or found is None:
            return missing
    return found


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_pattern(name: str) -> bool:
    return any(each in name for each in "*?[")

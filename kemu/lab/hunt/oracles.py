"""Whether a trial went wrong, told from what the reference came to: no property has to be stated for that.

What differs by nature is no difference: identities, versions, times, addresses, the random ends of names. So is what
differs between two runs of the reference.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.errors import KemuError
from kemu.lab.hunt.projects import Ignored, Step
from kemu.lab.hunt.trials import Outcome

Fields = Mapping[str, Any]
"""Leaves of an object by their paths."""

_NOBODYS = frozenset(("Event", "Lease", "Node", "CSINode", "EndpointSlice", "Endpoints", "ControllerRevision"))
"""Kinds that controllers of Kubernetes keep, or that come and go by themselves."""
_BY_NATURE = frozenset(
    (
        "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation", "observedGeneration",
        "managedFields", "selfLink", "podIP", "podIPs", "hostIP", "hostIPs", "clusterIP", "clusterIPs",
        "nodePort", "healthCheckNodePort",
        "nodeName", "containerID", "imageID", "startTime", "lastTransitionTime", "lastUpdateTime", "lastProbeTime",
        "lastHeartbeatTime", "volumeName", "claimRef", "currentRevision", "updateRevision",
    )
)  # fmt: skip
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_TOKENS = re.compile(r"kube-api-access-[a-z0-9]{5}")
"""Volumes that the API server adds to pods, for the token of their service account."""
_HOT_TIMES, _HOT_LEAST = 5, 50
"""A controller that writes so many times as often as in the reference, and so often at least, runs hot."""
_NAMED_FIELDS = 3


@dataclass(frozen=True)
class Symptom:
    """One thing that went wrong."""

    what: str
    """``stuck crash missing surplus different created deleted hot property refused``"""
    subject: str
    """The kind, or the controller, or the step."""
    text: str

    @property
    def signature(self) -> tuple[str, str]:
        """Symptoms that are alike have one."""
        return self.what, self.subject


class Unsettled(KemuError):
    """The steps do not come to an end without perturbations either."""


class Reference:
    """What the steps come to without perturbations: at least two runs of them."""

    def __init__(self, outcomes: Sequence[Outcome], ignored: Sequence[Ignored], steps: Sequence[Step]) -> None:
        self.outcomes = outcomes
        self._ignored = ignored
        self._steps = steps
        states = [normalised(outcome) for outcome in outcomes]
        self._state = states[0]
        self._unsteady = set[str]()
        """Objects that are not there in each of them."""
        self._free = set[tuple[str, str]]()
        """Fields that differ between them, with their objects."""
        for other in states[1:]:
            self._unsteady |= self._state.keys() ^ other.keys()
            for name in self._state.keys() & other.keys():
                self._free |= {(name, path) for path, _, _ in _differences(self._state[name], other[name])}
        self._created = _most([outcome.created() for outcome in outcomes])
        self._deleted = _most([outcome.deleted() for outcome in outcomes])
        self._writes = _most([Counter(one.controller for one in outcome.course.writes) for outcome in outcomes])

    @property
    def problems(self) -> list[str]:
        """Why it is none: what went wrong without any perturbation."""
        found = []
        for outcome in self.outcomes:
            found += [f"step {place + 1} ({self._steps[place]}) waited in vain" for place in outcome.stuck]
            found += [f"step {place + 1} ({self._steps[place]}): {why}" for place, why in outcome.refused.items()]
            found += [f"controller {name}: {why}" for name, all_ in outcome.crashes.items() for why in all_]
            found += [f"property {name} does not hold" for name in outcome.failed]
        return list(dict.fromkeys(found))

    def symptoms(self, outcome: Outcome) -> list[Symptom]:
        """In the order of their weight."""
        return list(self._symptoms(outcome))

    def _symptoms(self, outcome: Outcome) -> Iterator[Symptom]:
        for name in outcome.failed:
            yield Symptom("property", name, f"property {name} does not hold")
        for name, crashes in outcome.crashes.items():
            yield Symptom("crash", name, f"controller {name} fails: {crashes[0]}")
        for place in outcome.stuck:
            step = self._steps[place]
            yield Symptom("stuck", str(step), f"step {place + 1} waits in vain: {step}")
        for place, why in outcome.refused.items():
            yield Symptom("refused", str(self._steps[place]), f"step {place + 1} is refused: {why}")
        state = normalised(outcome)
        for name in sorted(self._state.keys() - state.keys() - self._unsteady):
            yield Symptom("missing", _kind(name), f"{_shown(name)} is missing in the end")
        for name in sorted(state.keys() - self._state.keys() - self._unsteady):
            yield Symptom("surplus", _kind(name), f"{_shown(name)} is there in the end, and should not be")
        yield from self._counts(outcome)
        for name in sorted(self._state.keys() & state.keys()):
            changed = [
                each
                for each in _differences(self._state[name], state[name])
                if (name, each[0]) not in self._free and not self._is_ignored(name, each[0])
            ]
            if changed:
                more = f" and {len(changed) - _NAMED_FIELDS} more" if len(changed) > _NAMED_FIELDS else ""
                shown = ", ".join(
                    f"{path} is {now!r} and should be {was!r}" for path, was, now in changed[:_NAMED_FIELDS]
                )
                yield Symptom("different", _kind(name), f"{_shown(name)} differs in the end: {shown}{more}")

    def _counts(self, outcome: Outcome) -> Iterator[Symptom]:
        for what, verb, before, now in (
            ("created", "created", self._created, outcome.created()),
            ("deleted", "deleted", self._deleted, outcome.deleted()),
        ):
            for kind, count in sorted(now.items()):
                if kind not in _NOBODYS and count > before[kind]:
                    yield Symptom(what, kind, f"{count} {kind} objects were {verb}, in the reference {before[kind]}")
        writes = Counter(one.controller for one in outcome.course.writes)
        for name, count in writes.items():
            if count >= _HOT_LEAST and count > _HOT_TIMES * self._writes[name]:
                text = f"controller {name} has made {count} writes, in the reference {self._writes[name]}"
                yield Symptom("hot", name, text)

    def _is_ignored(self, name: str, path: str) -> bool:
        return any(
            (not one.kind or one.kind == _kind(name))
            and (path == one.path or path.startswith((f"{one.path}.", f"{one.path}[")))
            for one in self._ignored
        )


def normalised(outcome: Outcome) -> dict[str, Fields]:
    """What the store holds in the end: objects by kind and name, without what differs by nature."""
    course = outcome.course
    found: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    objects = [(course.named(key), one) for key, one in outcome.objects().items()]
    objects.sort(key=lambda each: int(each[1]["metadata"].get("resourceVersion") or 0))
    plain = []
    for named, one in objects:
        prefix = one["metadata"].get("generateName", "")
        name = named.name
        if prefix and name.startswith(prefix):
            counts[f"{named.kind} {named.namespace} {prefix}"] += 1
            name = f"{prefix}#{counts[f'{named.kind} {named.namespace} {prefix}']}"
            names[named.name] = name
        plain.append((f"{named.kind} {named.namespace}/{name}", named.kind, one))
    for identity, kind, one in plain:
        if kind not in _NOBODYS:
            found[identity] = dict(_leaves({key: value for key, value in one.items() if key != "metadata"}, "", names))
            metadata = {
                key: value for key, value in one["metadata"].items() if key not in ("name", "namespace", "generateName")
            }
            found[identity] |= dict(_leaves(metadata, "metadata", names))
            if "deletionTimestamp" in one["metadata"]:
                found[identity]["metadata.deletionTimestamp"] = "set"
    return dict(found)


def _leaves(value: object, path: str, names: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key in sorted(value):
            if key not in _BY_NATURE:
                yield from _leaves(value[key], f"{path}.{key}" if path else key, names)
    elif isinstance(value, list):
        keyed = all(isinstance(one, Mapping) and isinstance(one.get("type"), str) for one in value) and value
        for index, one in enumerate(value):
            yield from _leaves(one, f"{path}[{one['type'] if keyed else index}]", names)
    elif isinstance(value, str):
        shown = _TOKENS.sub("kube-api-access-#", names.get(value, value))
        if not _TIME.fullmatch(shown):
            yield path, shown
    else:
        yield path, value


def _differences(before: Fields, after: Fields) -> Iterator[tuple[str, Any, Any]]:
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            yield path, before.get(path), after.get(path)


def _most(counters: Sequence[Counter[str]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in counters:
        found |= one
    return found


def _kind(identity: str) -> str:
    return identity.partition(" ")[0]


def _shown(identity: str) -> str:
    kind, _, name = identity.partition(" ")
    return f"{kind} {name.removeprefix('default/').removeprefix('/')}"

"""What of a story is told: of one pod, one node, one workload, some kinds, some time.

Role: :mod:`stories` asks it of each happening. A name that the run does not have is a mistake, told with the nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kemu.emulated.objects import resources
from kemu.errors import KemuError
from kemu.lab.checks.history import History
from kemu.lab.checks.history.custom_objects import ObjectFact
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.tell import happenings
from kemu.lab.tell.happenings import Happening
from kemu.runtime import words
from kemu.runtime.words import short

LISTED = 6
"""Names that an error lists where none is near."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Each field that is set narrows it."""

    pod: str = ""
    """Name, ``namespace/name`` or UID: what happened to it, and what made room for it."""
    node: str = ""
    """What happened there: to it, to its pods, and by its kubelet."""
    workload: str = ""
    """Workload of its pods: a workload, a controller (``ReplicaSet/web``), or what the names of single pods begin
    with."""
    object: str = ""
    """An object, ``widget/a``: its kind, of custom ones with or without the group, or its resource, and its name."""
    kinds: tuple[str, ...] = ()
    from_ns: int = 0
    until_ns: int = 1 << 62

    def check(self, history: History) -> None:
        """Raises KemuError for what the run does not have."""
        for kind in self.kinds:
            if kind not in happenings.KINDS:
                known = happenings.KINDS
                raise KemuError(f"--kind: no kind {_unknown(kind, known, listed=len(known), near=1)}")
        if self.pod and not any(self._is_pod(pod) for pod in history.pods.values()):
            names = dict.fromkeys(short(pod.key) for pod in history.pods.values())
            raise KemuError(f"--pod: no pod {_unknown(short(self.pod), names)}")
        if self.node and self.node not in history.nodes:
            raise KemuError(f"--node: no node {_unknown(self.node, history.nodes)}")
        families = dict.fromkeys(happenings.family(pod) for pod in history.pods.values())
        if self.workload and not any(self._is_of_workload(pod) for pod in history.pods.values()):
            raise KemuError(f"--workload: no workload {_unknown(self.workload, families)}")
        resource = self.resource
        if self.object and not resource and not any(self._is_object(fact) for fact in history.custom):
            names = dict.fromkeys(f"{fact.kind}/{short(fact.key)}" for fact in history.custom)
            raise KemuError(f"--object: no custom object {_unknown(self.object, names)}")
        name = self.object.partition("/")[2]
        keys = happenings.names(history, resource) if resource else ()
        if resource and not any(name in (key, short(key)) for key in keys):
            shown = resources.BY_PLURAL[resource].kind
            raise KemuError(f"--object: no {shown} {_unknown(name, [short(key) for key in keys])}")
        if self.from_ns > self.until_ns:
            raise KemuError("--from is later than --to")

    @property
    def resource(self) -> str:
        """Of the object, where its kind is none of the custom ones."""
        kind = self.object.partition("/")[0].lower()
        return next((one.plural for one in resources.RESOURCES if kind in (one.kind.lower(), one.plural)), "")

    def takes(self, one: Happening) -> bool:
        return (
            self.from_ns <= one.time_ns <= self.until_ns
            and (not self.kinds or one.kind in self.kinds)
            and (not self.pod or self._of_pods(one, self._is_pod))
            and (not self.workload or self._of_pods(one, self._is_of_workload))
            and (not self.object or (one.fact is not None and self._is_object(one.fact)))
            and (not self.node or self._is_on_node(one))
        )

    def _of_pods(self, one: Happening, wanted: Callable[[PodHistory], bool]) -> bool:
        return any(wanted(pod) for pod in (one.pod, one.by) if pod is not None)

    def _is_pod(self, pod: PodHistory) -> bool:
        return self.pod in (pod.key, short(pod.key), pod.uid)

    def _is_of_workload(self, pod: PodHistory) -> bool:
        return self.workload in (happenings.family(pod), pod.owner)

    def _is_object(self, fact: ObjectFact) -> bool:
        kind, _, name = self.object.partition("/")
        plural, _, group = fact.resource.partition(".")
        singular = fact.kind.lower()
        names = (singular, f"{singular}.{group}", plural, fact.resource)
        return kind.lower() in names and name in (fact.key, short(fact.key))

    def _is_on_node(self, one: Happening) -> bool:
        actor = f"kubelet/{self.node}"
        return one.node == self.node or self.node in one.whom or actor in one.whom


def _unknown(name: str, known: Iterable[str], *, listed: int = LISTED, near: int = 4) -> str:
    """``w-9; did you mean w-90 or w-19?``"""
    names = list(known)
    if not names:
        return f"{name}; the run has none"
    close = words.nearest(name, names, near, words.ALIKE)
    if close:
        return f"{name}; did you mean {' or '.join(close)}?"
    more = f" and {len(names) - listed} more" if len(names) > listed else ""
    return f"{name}; there are {', '.join(names[:listed])}{more}"

"""Whose pods are whose: the workload at the top, and the act that made its pods what they are.

Role: below :mod:`blame`.
"""

from __future__ import annotations

from collections.abc import Callable

from kemu.emulated.kubelet.usage.usages import USAGE
from kemu.emulated.objects import meta, resources
from kemu.lab.checks.history.facts import PodHistory
from kemu.lab.tell import happenings
from kemu.lab.tell.causes.acts import CHANGED, CREATED, DELETED, Act, Acts
from kemu.lab.tell.causes.evidence import Evidence
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.runlog.events import Autoscaled
from kemu.runtime.words import short

ANSWERS_NS = 900_000_000_000
"""So long after a rollout an autoscaler answers what its pods use."""
Top = tuple[str, str]
"""Kind and name: of a workload, or ``Pod`` and what names of pods begin with."""


class Owners:
    def __init__(self, evidence: Evidence, acts: Acts) -> None:
        self._evidence = evidence
        self._acts = acts
        self._tops: dict[str, Top] = {}
        self._templates: dict[tuple[Top, str, int], Act | None] = {}
        self._lone: dict[Top, list[Act]] = {}

    def top(self, uid: str) -> Top:
        found = self._tops.get(uid)
        if found is None:
            found = self._tops[uid] = self._top(uid)
        return found

    def _top(self, uid: str) -> Top:
        pod = self._evidence.history.pods[uid]
        life = self._evidence.lives.get(uid)
        if life is None:
            return "Pod", happenings.family(pod)
        controller, namespace = meta.controller_of(life.pod), life.pod.metadata.namespace
        if controller is None:
            return ("workload", pod.workload) if pod.workload else ("Pod", happenings.family(pod))
        kind, name = controller.kind, controller.name
        while (owner := self._object(kind, namespace, name)) is not None:
            above = meta.controller_of(owner)
            if above is None:
                break
            kind, name = above.kind, above.name
        return kind, short(f"{namespace}/{name}")

    def _object(self, kind: str, namespace: str, name: str) -> KubernetesObject | None:
        resource = resources.BY_KIND.get(kind)
        if resource is None:
            return None
        key = f"/registry/{resource.plural}/{namespace}/{name}"
        return next((one.message for one in self._evidence.versions.get(key, ()) if one.message is not None), None)

    def template(self, uid: str) -> Act | None:
        """The act that made the pod what it is; None: not known."""
        pod, top = self._evidence.history.pods[uid], self.top(uid)
        if top[0] == "workload":
            return next(iter(self._acts.of.get(top, ())), None)
        if top[0] == "Pod":
            return self._of_lone(top, pod)
        if top[0] == "Node":
            return self._acts.latest(*top, pod.created_ns) or Act("Pod", pod.name, 0, "stands")
        key = (top, pod.owner, 0 if pod.owner.startswith("ReplicaSet/") else pod.created_ns)
        if key not in self._templates:
            self._templates[key] = self._template(top, pod)
        return self._templates[key]

    def usage(self, uid: str) -> Act | None:
        """The act since which pods of its workload ask for and use what it does, whatever else was changed later."""
        return self.since(uid, _uses)

    def since(self, uid: str, part: Callable[[core_v1_pb2.PodTemplateSpec], object]) -> Act | None:
        """The act since which a part of the template of its workload is what it is."""
        act = self.template(uid)
        if act is None or act.message is None or "template" not in act.message.spec.DESCRIPTOR.fields_by_name:
            return act
        for other in reversed(self._acts.of.get((act.kind, act.name), ())):
            if other.time_ns >= act.time_ns or other.message is None or other.what == DELETED:
                continue
            if part(other.message.spec.template) != part(act.message.spec.template):
                break
            act = other
        return act

    def _template(self, top: Top, pod: PodHistory) -> Act | None:
        when_ns = pod.created_ns
        if top[0] == "Deployment":
            namespace, name = pod.key.partition("/")[0], pod.owner.partition("/")[2]
            replica_set = self._object("ReplicaSet", namespace, name)
            versions = self._evidence.versions.get(f"/registry/replicasets/{namespace}/{name}", ())
            when_ns = versions[0].time_ns if versions else when_ns
            if isinstance(replica_set, apps_v1_pb2.ReplicaSet):
                alike = [
                    act
                    for act in self._acts.of.get(top, ())
                    if act.time_ns <= pod.created_ns
                    and act.message is not None
                    and act.what in (CREATED, CHANGED, "stands")
                    and _same(act.message.spec.template, replica_set.spec.template)
                    and (act.what != CHANGED or act.is_template)
                ]
                if alike:
                    return alike[-1]
        return self._acts.latest(*top, when_ns, template=True)

    def _of_lone(self, top: Top, pod: PodHistory) -> Act:
        """Pods of one sort that are made within a minute are made by one act."""
        acts = self._lone.setdefault(top, [])
        near = next((act for act in acts if abs(act.time_ns - pod.created_ns) <= 60_000_000_000), None)
        if near is None:
            near = Act("Pod", short(pod.key), pod.created_ns, CREATED if pod.created_ns else "stands")
            near.index = self._event(pod.name, pod.created_ns)
            acts.append(near)
        elif short(pod.key) not in (near.name, *near.also):
            near.also.append(short(pod.key))
        return near

    def _event(self, name: str, time_ns: int) -> int | None:
        listed = self._evidence.document.get("events")
        for index, one in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(one, dict) and ("create" in one or "apply" in one) and f"'{name}'" in str(one):
                return index
        return None

    def size(self, uid_or_top: str | Top, time_ns: int) -> Act | None:
        """The act by which a workload has as many pods, or as large ones, as it has then."""
        top = uid_or_top if isinstance(uid_or_top, tuple) else self.top(uid_or_top)
        if top[0] == "workload":
            return next(iter(self._acts.of.get(top, ())), None)
        if top[0] == "Pod":
            found = [act for act in self._lone.get(top, ()) if act.time_ns <= time_ns]
            return found[-1] if found else None
        scaled = self._autoscaled(top, time_ns)
        if scaled is not None:
            return scaled
        found = [
            act
            for act in self._acts.of.get(top, ())
            if act.time_ns <= time_ns
            and (
                act.what in (CREATED, "stands")
                or (
                    act.what == CHANGED and any("resources" in path or path.endswith("replicas") for path in act.fields)
                )
            )
        ]
        return found[-1] if found else self._acts.latest(*top, time_ns)

    def _autoscaled(self, top: Top, time_ns: int) -> Act | None:
        """The autoscaler that has made a workload larger by then, or the rollout to whose usage it answers."""
        scaled_ns, autoscaler = max(
            (
                (when_ns, event.autoscaler)
                for when_ns, _, event in self._evidence.events[Autoscaled]
                if when_ns <= time_ns and event.replicas > event.before and self._target(event.autoscaler) == top
            ),
            default=(0, ""),
        )
        acts = [act for act in self._acts.of.get(top, ()) if act.time_ns and act.time_ns <= time_ns]
        if not autoscaler or (acts and acts[-1].time_ns > scaled_ns and "spec.replicas" in acts[-1].fields):
            return None
        before = [act for act in acts if scaled_ns - ANSWERS_NS <= act.time_ns <= scaled_ns and act.is_template]
        if before and any(USAGE in path or "resources" in path for path in before[-1].fields):
            return before[-1]
        return self._acts.latest("HorizontalPodAutoscaler", short(autoscaler), scaled_ns)

    def _target(self, autoscaler: str) -> Top | None:
        versions = self._evidence.versions.get(f"/registry/horizontalpodautoscalers/{autoscaler}", ())
        message = next((one.message for one in versions if one.message is not None), None)
        if message is None:
            return None
        target = message.spec.scaleTargetRef
        return target.kind, short(f"{autoscaler.partition('/')[0]}/{target.name}")

    def deletion(self, uid: str, time_ns: int) -> Act | None:
        """Of its workload by a client, before that time."""
        found = [act for act in self._acts.of.get(self.top(uid), ()) if act.what == DELETED and act.time_ns <= time_ns]
        return found[-1] if found else None


def _uses(template: core_v1_pb2.PodTemplateSpec) -> tuple[str, dict[str, str], list[core_v1_pb2.Container]]:
    """On what of a template it depends how much its pods use: lives by rule go by labels, images and commands."""
    containers = [*template.spec.initContainers, *template.spec.containers]
    return template.metadata.annotations.get(USAGE, ""), dict(template.metadata.labels), containers


def selects(template: core_v1_pb2.PodTemplateSpec) -> tuple[object, ...]:
    """What of a template says on which nodes its pods may go."""
    spec = template.spec
    rules = spec.affinity, list(spec.topologySpreadConstraints), list(spec.tolerations)
    return dict(spec.nodeSelector), spec.schedulerName, *rules


def wants(template: core_v1_pb2.PodTemplateSpec) -> list[core_v1_pb2.ResourceRequirements]:
    return [one.resources for one in (*template.spec.initContainers, *template.spec.containers)]


def images(template: core_v1_pb2.PodTemplateSpec) -> tuple[object, ...]:
    notes = {key: value for key, value in template.metadata.annotations.items() if "image-pull-error" in key}
    return notes, [one.image for one in (*template.spec.initContainers, *template.spec.containers)]


def _same(one: core_v1_pb2.PodTemplateSpec, other: core_v1_pb2.PodTemplateSpec) -> bool:
    """Whether pods of two templates are alike but for labels that controllers set."""
    notes = dict(one.metadata.annotations)
    return bool(one.spec == other.spec) and notes == dict(other.metadata.annotations)

"""What must not happen at any moment of a trial, whatever comes in the end: told from the changes of the store alone.

Some of it is in order at times, as when a user asks for it. Therefore only what happens more often to an object than in
the reference counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from google.protobuf.message import Message

from kemu.emulated.objects import resources
from kemu.lab.hunt.courses import Change, Course, Write, message
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS

CLAIM, MOUNT, TWINS, ALIEN, NEEDLESS, SCALED, ORPHAN, FLAPPING, FINALIZER = (
    "claim", "mount", "twins", "alien", "needless", "scaled", "orphan", "flapping", "finalizer",
)  # fmt: skip
_REPLACED_NS = 10 * SECOND_NS
"""Virtual time in which a mounted object that was deleted may come again."""
_FLIPS_LEAST = 6
_COME_AND_GO = frozenset(("pods", "jobs", "replicasets", "events", "leases", "endpointslices", "endpoints"))
_KEPT_ANYWAY = frozenset(("events", "leases", "endpointslices", "endpoints"))
_SCALED_KINDS = ("statefulsets", "deployments", "replicasets")
_Scaled: TypeAlias = "apps_v1_pb2.StatefulSet | apps_v1_pb2.Deployment | apps_v1_pb2.ReplicaSet"
_OF_KUBERNETES = ("kubernetes.io/", "foregroundDeletion", "orphan")


@dataclass(frozen=True)
class Harm:
    """Something that should not have happened."""

    what: str
    key: str
    """Of the object that it happened to."""
    time_ns: int
    text: str
    lasts: bool = True
    """Nobody made it good."""
    by: str = ""
    """The key of another object by whose change it happened."""


def harms(course: Course, begun_ns: int, end_ns: int, stable_ns: int) -> list[Harm]:
    """In the order of time. ``stable_ns``: the time before the end in which all has to stand still."""
    found = _World(course, begun_ns).harms()
    aliens = list(_aliens(course, begun_ns))
    found += aliens
    told = {(one.key, one.time_ns) for one in aliens}
    found += [one for one in _needless(course, begun_ns) if (one.key, one.time_ns) not in told]
    found += _orphans(course, end_ns)
    found += _flapping(course, begun_ns, end_ns - stable_ns)
    return sorted(found, key=lambda one: one.time_ns)


class _World:
    """The objects of the store, moment by moment."""

    def __init__(self, course: Course, begun_ns: int) -> None:
        self._course = course
        self._begun_ns = begun_ns
        self._objects: dict[str, Any] = {}
        self._of: dict[str, dict[str, Any]] = defaultdict(dict)
        """Objects by plural and key."""
        self._by_uid: dict[str, Any] = {}
        self._removed_at_work: dict[str, int] = {}
        """Pods that were removed though their containers ran, and when."""

    def harms(self) -> list[Harm]:
        found: list[Harm] = []
        for change in self._course.changes:
            before = self._objects.get(change.key)
            now = None if change.value is None else message(change.key, change.value)
            if change.time_ns >= self._begun_ns:
                found += self._judged(change, before, now)
            plural = resources.plural_of(change.key)
            if now is None:
                self._objects.pop(change.key, None)
                self._of[plural].pop(change.key, None)
                if before is not None:
                    self._by_uid.pop(before.metadata.uid, None)
            else:
                self._objects[change.key] = self._of[plural][change.key] = now
                self._by_uid[now.metadata.uid] = now
        return found

    def _judged(self, change: Change, before: KubernetesObject | None, now: KubernetesObject | None) -> Iterator[Harm]:
        if isinstance(before, core_v1_pb2.PersistentVolumeClaim):
            if not _goes(before) and (now is None or _goes(now)):
                yield from self._claim(change, before)
        elif isinstance(before, core_v1_pb2.Secret | core_v1_pb2.ConfigMap):
            if now is None:
                yield from self._mounted(change, before)
        elif resources.plural_of(change.key) == "pods":
            yield from self._twins(change, cast(core_v1_pb2.Pod, before), cast(core_v1_pb2.Pod, now))
        elif resources.plural_of(change.key) in _SCALED_KINDS and before is not None and now is not None:
            yield from self._scaled(change, cast(_Scaled, before), cast(_Scaled, now))

    def _claim(self, change: Change, claim: core_v1_pb2.PersistentVolumeClaim) -> Iterator[Harm]:
        for user in self._users(claim):
            text = f"{self._shown(change)} is deleted, though {user} uses it"
            yield Harm(CLAIM, change.key, change.time_ns, text)
            return

    def _users(self, claim: core_v1_pb2.PersistentVolumeClaim) -> Iterator[str]:
        name, namespace = claim.metadata.name, claim.metadata.namespace
        for one in self._of["statefulsets"].values():
            if one.metadata.namespace == namespace and not self._is_going(one):
                for template in one.spec.volumeClaimTemplates:
                    number = name.removeprefix(f"{template.metadata.name}-{one.metadata.name}-")
                    if number != name and number.isdecimal() and int(number) < one.spec.replicas:
                        yield f"StatefulSet {one.metadata.name} with {one.spec.replicas} replicas"
        for one in self._of["pods"].values():
            if one.metadata.namespace == namespace and self._is_wanted(one) and name in _claims(one):
                yield f"Pod {one.metadata.name}"

    def _mounted(self, change: Change, gone: KubernetesObject) -> Iterator[Harm]:
        kind, name = self._course.named(change.key).kind, gone.metadata.name
        for one in self._of["pods"].values():
            if one.metadata.namespace != gone.metadata.namespace or not self._is_wanted(one):
                continue
            if name in _mounts(one, kind):
                anew = next(
                    (
                        each
                        for each in self._course.changes
                        if each.key == change.key and each.is_new and each.revision > change.revision
                    ),
                    None,
                )
                lasts = anew is None or anew.time_ns - change.time_ns > _REPLACED_NS
                text = f"{self._shown(change)} is deleted, though Pod {one.metadata.name} mounts it"
                yield Harm(MOUNT, change.key, change.time_ns, text, lasts)
                return

    def _twins(self, change: Change, before: core_v1_pb2.Pod | None, now: core_v1_pb2.Pod | None) -> Iterator[Harm]:
        if now is None:
            if before is not None and _runs(before) and _owner(before, "StatefulSet") is not None:
                self._removed_at_work[change.key] = change.time_ns
            return
        if before is None and self._removed_at_work.pop(change.key, None) is not None:
            text = f"{self._shown(change)} is there anew before the containers of the former one have ended"
            yield Harm(TWINS, change.key, change.time_ns, text)
        claims = _claims(now)
        if claims and now.spec.nodeName and (before is None or not before.spec.nodeName):
            for other in self._of["pods"].values():
                shared = _claims(other) & claims if other.spec.nodeName not in ("", now.spec.nodeName) else ()
                if not shared or other.metadata.namespace != now.metadata.namespace or _is_over(other):
                    continue
                claim = min(shared)
                held = self._objects.get(f"/registry/persistentvolumeclaims/{now.metadata.namespace}/{claim}")
                if held is not None and set(held.spec.accessModes) <= {"ReadWriteOnce", "ReadWriteOncePod"}:
                    both = f"{self._shown(change)} and Pod {other.metadata.name}"
                    text = f"{both} have PersistentVolumeClaim {claim} on two nodes at once"
                    yield Harm(TWINS, change.key, change.time_ns, text)
                    return

    def _scaled(self, change: Change, before: _Scaled, now: _Scaled) -> Iterator[Harm]:
        was, wanted = before.spec.replicas, now.spec.replicas
        if wanted < was and before.metadata.uid == now.metadata.uid and not self._is_going(now):
            made = self._course.made_by(change)
            if made:
                text = f"{made} scales {self._shown(change)} from {was} to {wanted}, which nobody has asked for"
                latest = self._course.values.get(change.key)
                end = cast(_Scaled, message(change.key, latest)) if latest is not None else None
                yield Harm(SCALED, change.key, change.time_ns, text, end is None or end.spec.replicas <= wanted)

    def _is_wanted(self, pod: core_v1_pb2.Pod) -> bool:
        """Whether a pod is to run on: of a StatefulSet, as that says."""
        if _goes(pod) or _is_over(pod) or self._is_going(pod):
            return False
        owner = _owner(pod, "StatefulSet")
        held = None if owner is None else self._by_uid.get(owner.uid)
        number = pod.metadata.name.rpartition("-")[2]
        return held is None or not number.isdecimal() or int(number) < held.spec.replicas

    def _is_going(self, one: KubernetesObject, depth: int = 5) -> bool:
        """Whether an object or one of its owners is being deleted, or is gone."""
        if _goes(one):
            return True
        for reference in one.metadata.ownerReferences:
            owner = self._by_uid.get(reference.uid)
            if owner is None or (depth and self._is_going(owner, depth - 1)):
                return True
        return False

    def _shown(self, change: Change) -> str:
        return str(self._course.named(change.key))


def _aliens(course: Course, begun_ns: int) -> Iterator[Harm]:
    """What a controller deleted, and somebody else had made. What others keep anew by themselves does not count."""
    deletes = [one for one in course.writes if one.verb == "delete" and one.status < 300 and one.time_ns >= begun_ns]
    if not deletes:
        return
    by_key: dict[str, list[Change]] = defaultdict(list)
    wanted = {one.key for one in deletes}
    for change in course.changes:
        if change.key in wanted:
            by_key[change.key].append(change)
    for write in deletes:
        plural = resources.plural_of(write.key)
        if plural in _COME_AND_GO:
            continue
        former = [one for one in by_key[write.key] if one.revision <= write.revision and one.time_ns <= write.time_ns]
        born = next((one for one in reversed(former) if one.is_new), None)
        last = next((one for one in reversed(former) if one.value is not None), None)
        if born is None or last is None or course.made_by(born) or last.value is None:
            continue
        if any(reference.controller for reference in message(last.key, last.value).metadata.ownerReferences):
            continue
        text = f"{write.controller} deletes {course.named(write.key)}, which it has not made"
        yield Harm(ALIEN, write.key, write.time_ns, text)


def _needless(course: Course, begun_ns: int) -> Iterator[Harm]:
    """What a controller deleted, and what had to be made anew: it was wanted. What was too much does not come again.
    To delete it once more while it goes, as after a lost response, does not count."""
    told = set[tuple[str, int]]()
    deletes = [one for one in course.writes if one.verb == "delete" and one.status < 300 and one.time_ns >= begun_ns]
    for write in deletes:
        if resources.plural_of(write.key) in _KEPT_ANYWAY:
            continue
        later = (one for one in course.changes if one.key == write.key and one.is_new and one.revision > write.revision)
        anew = next(later, None)
        if anew is not None and (write.key, anew.revision) not in told:
            told.add((write.key, anew.revision))
            text = f"{write.controller} deletes {course.named(write.key)}, which is wanted and has to be made anew"
            yield Harm(NEEDLESS, write.key, write.time_ns, text)


def _orphans(course: Course, end_ns: int) -> Iterator[Harm]:
    """What says in the end that it belongs to objects that are all gone."""
    found = {key: message(key, value).metadata for key, value in course.values.items()}
    uids = {one.uid for one in found.values()}
    for key, one in sorted(found.items()):
        owners = one.ownerReferences
        if owners and not one.HasField("deletionTimestamp") and not any(owner.uid in uids for owner in owners):
            text = f"{course.named(key)} is left, though its owner {owners[0].kind} {owners[0].name} is gone"
            yield Harm(ORPHAN, key, end_ns, text)


def _flapping(course: Course, begun_ns: int, stable_since_ns: int) -> Iterator[Harm]:
    """Objects that go to and fro between two values."""
    own = Counter(one.key for one in course.writes if one.status < 300)
    often = {
        key for key, count in own.items() if count >= _FLIPS_LEAST and resources.plural_of(key) not in _COME_AND_GO
    }
    values: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for change in course.changes:
        if change.key in often and change.value is not None and change.time_ns >= begun_ns:
            values[change.key].append((change.time_ns, _content(change)))
    for key, series in sorted(values.items()):
        flips = [
            series[index][0]
            for index in range(2, len(series))
            if series[index][1] == series[index - 2][1] != series[index - 1][1]
        ]
        if len(flips) >= _FLIPS_LEAST:
            text = f"{course.named(key)} goes to and fro between two values, {len(flips)} times"
            yield Harm(FLAPPING, key, flips[0], text, flips[-1] >= stable_since_ns)


def _content(change: Change) -> bytes:
    """Without what every write changes."""
    assert change.value is not None
    found = message(change.key, change.value)
    for name in ("resourceVersion", "generation", "managedFields"):
        found.metadata.ClearField(name)
    return bytes(found.SerializeToString(deterministic=True))


@dataclass(frozen=True)
class Ending:
    """An object that had finalizers is gone, and what its controllers had deleted until then."""

    key: str
    time_ns: int
    cleaned: frozenset[str]
    """Keys."""


def endings(course: Course, begun_ns: int) -> list[Ending]:
    """Objects that waited for finalizers of controllers, and came to an end."""
    deletes: dict[str, list[Write]] = defaultdict(list)
    for write in course.writes:
        if write.verb == "delete" and write.status < 300:
            deletes[write.key].append(write)
    waiting: dict[str, int] = {}
    gone: dict[str, int] = {}
    found = []
    for change in course.changes:
        if change.value is None:
            gone[change.key] = change.time_ns
            since = waiting.pop(change.key, None)
            if since is not None and change.time_ns >= begun_ns:
                cleaned = {
                    key
                    for key, writes in deletes.items()
                    if key != change.key
                    and since <= gone.get(key, -1)
                    and any(since <= one.time_ns <= change.time_ns for one in writes)
                }
                found.append(Ending(change.key, change.time_ns, frozenset(cleaned)))
        else:
            gone.pop(change.key, None)
            if change.key not in waiting:
                metadata = message(change.key, change.value).metadata
                if metadata.HasField("deletionTimestamp") and any(_is_own(one) for one in metadata.finalizers):
                    waiting[change.key] = change.time_ns
    return found


def unfinished(course: Course, begun_ns: int, references: Sequence[Mapping[str, frozenset[str]]]) -> Iterator[Harm]:
    """Objects that were gone before the work of their finalizers was done: of what in each reference was deleted until
    then, something is still there. ``references``: by key, what was deleted."""
    for ending in endings(course, begun_ns):
        wanted = [one[ending.key] for one in references if ending.key in one]
        if len(wanted) < len(references) or not wanted:
            continue
        for key in sorted(frozenset.intersection(*wanted) - ending.cleaned):
            if _was_there(course, key, ending.time_ns):
                lasts = key in course.values
                who = f"{course.named(ending.key)} is gone"
                text = f"{who} before {course.named(key)} is, for which its finalizer had to wait"
                yield Harm(FINALIZER, key, ending.time_ns, text, lasts, ending.key)


def _was_there(course: Course, key: str, time_ns: int) -> bool:
    """Whether an object was there at a time, and not going."""
    last = next((one for one in reversed(course.changes) if one.key == key and one.time_ns <= time_ns), None)
    return last is not None and last.value is not None and not _goes(message(key, last.value))


def _is_own(finalizer: str) -> bool:
    """Of a controller, and not of Kubernetes."""
    return not finalizer.startswith(_OF_KUBERNETES)


def _goes(one: KubernetesObject) -> bool:
    return bool(one.metadata.HasField("deletionTimestamp"))


def _is_over(pod: core_v1_pb2.Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _runs(pod: core_v1_pb2.Pod) -> bool:
    return not _is_over(pod) and any(one.state.HasField("running") for one in pod.status.containerStatuses)


def _owner(one: KubernetesObject, kind: str) -> meta_v1_pb2.OwnerReference | None:
    return next((each for each in one.metadata.ownerReferences if each.kind == kind and each.controller), None)


def _claims(pod: core_v1_pb2.Pod) -> set[str]:
    sources = (one.volumeSource for one in pod.spec.volumes)
    return {one.persistentVolumeClaim.claimName for one in sources if one.HasField("persistentVolumeClaim")}


def _mounts(pod: core_v1_pb2.Pod, kind: str) -> set[str]:
    """Names of Secrets or ConfigMaps that a pod cannot do without."""
    field = "secret" if kind == "Secret" else "configMap"
    sources: list[Any] = []
    for volume in pod.spec.volumes:
        source = volume.volumeSource
        sources += [getattr(source, field)] if source.HasField(field) else []
        sources += [getattr(one, field) for one in source.projected.sources if one.HasField(field)]
    for container in (*pod.spec.initContainers, *pod.spec.containers):
        places = (*container.envFrom, *(one.valueFrom for one in container.env))
        for name in (f"{field}Ref", f"{field}KeyRef"):
            sources += [
                getattr(one, name) for one in places if name in one.DESCRIPTOR.fields_by_name and one.HasField(name)
            ]
    return {_referred(one) for one in sources if not one.optional}


def _referred(source: Message) -> str:
    fields = source.DESCRIPTOR.fields_by_name
    named = source if "secretName" in fields else getattr(source, "localObjectReference")  # noqa: B009
    return str(getattr(named, "secretName" if "secretName" in fields else "name"))

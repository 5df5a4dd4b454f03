"""Revisions of a Deployment: annotations of its ReplicaSets, and which of them has its template
(``deployment/util/deployment_util.go``)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, MutableMapping
from functools import lru_cache
from typing import Any

from kemu.emulated.objects.templates import dumps
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO = "deprecated.deployment.rollback.to"

NOT_COPIED = frozenset(
    ("kubectl.kubernetes.io/last-applied-configuration", REVISION, HISTORY, DESIRED, MAX, ROLLBACK_TO)
)
"""Annotations that a Deployment and its ReplicaSets do not share (``annotationsToSkip``)."""
LONGEST_HISTORY = 2000
"""Characters of the list of revisions that a ReplicaSet had (``maxRevHistoryLengthInChars``)."""
LARGEST_INT32 = 2**31 - 1


def integer(text: str) -> int | None:
    """``strconv.ParseInt`` with base 10; None: the text is no number."""
    if not re.fullmatch("[+-]?[0-9]+", text, re.ASCII):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def revision(obj: KubernetesObject) -> int | None:
    """0: it has none; None: it is no number."""
    text = obj.metadata.annotations.get(REVISION)
    return 0 if text is None else integer(text)


def max_revision(sets: Iterable[apps_v1_pb2.ReplicaSet]) -> int:
    return max((revision(one) or 0 for one in sets), default=0)


def last_revision(sets: Iterable[Any]) -> int:
    """The second highest (``LastRevision``)."""
    highest = second = 0
    for number in (revision(one) for one in sets if one is not None):
        if number is None:
            continue
        if number >= highest:
            highest, second = number, highest
        elif number > second:
            second = number
    return second


def age(one: KubernetesObject) -> tuple[int, str]:
    """The oldest first (``ReplicaSetsByCreationTimestamp``)."""
    return one.metadata.creationTimestamp.seconds, one.metadata.name


def by_revision(sets: Iterable[apps_v1_pb2.ReplicaSet]) -> list[apps_v1_pb2.ReplicaSet]:
    """``ReplicaSetsByRevision``: one whose revision is no number is compared by its age, so the order is not a total
    one; it is that of an insertion sort, as Go's of a dozen elements is."""
    placed: list[Any] = []
    for one in sets:
        place = len(placed)
        while place > 0 and _goes_before(one, placed[place - 1]):
            place -= 1
        placed.insert(place, one)
    return placed


def _goes_before(one: apps_v1_pb2.ReplicaSet, other: apps_v1_pb2.ReplicaSet) -> bool:
    numbers = revision(one), revision(other)
    if None in numbers or numbers[0] == numbers[1]:
        return age(one) < age(other)
    return (numbers[0] or 0) < (numbers[1] or 0)


def replicas_annotation(one: KubernetesObject, name: str) -> int | None:
    """``getNonNegativeInt32FromAnnotation``."""
    text = one.metadata.annotations.get(name, "")
    number = integer(text) if text.isdigit() else None
    return number if number is not None and number <= LARGEST_INT32 else None


def set_replicas(one: apps_v1_pb2.ReplicaSet, desired: int, most: int) -> bool:
    """Write both numbers into its annotations; whether that changed anything (``SetReplicasAnnotations``)."""
    return _set(one, {DESIRED: str(desired), MAX: str(most)})


def set_new(deployment: apps_v1_pb2.Deployment, new: KubernetesObject, number: int) -> bool:
    """Give the newest ReplicaSet the Deployment's annotations and its revision; whether that changed anything
    (``SetNewReplicaSetAnnotations`` of one that exists)."""
    annotations = new.metadata.annotations
    given = deployment.metadata.annotations
    changed = _set(new, {key: given[key] for key in sorted(given) if key not in NOT_COPIED})
    text = annotations.get(REVISION, "")
    before = integer(text) if text else 0
    if before is None:
        return False
    if before < number:
        _set(new, {REVISION: str(number)})
        changed = True
        if text:
            # It is rolled back to: what it was is kept.
            _remember(annotations, text)
    return changed


def _remember(annotations: MutableMapping[str, str], number: str) -> None:
    """Add a revision to the list of former ones, and drop as many of the oldest as its length demands."""
    former = annotations.get(HISTORY, "")
    numbers = former.split(",")
    if not numbers[0]:
        annotations[HISTORY] = number
        return
    length, start = len(former) + len(number) + 1, 0
    while length > LONGEST_HISTORY and start < len(numbers):
        length -= len(numbers[start]) + 1
        start += 1
    if length <= LONGEST_HISTORY:
        annotations[HISTORY] = ",".join([*numbers[start:], number])


def _set(obj: KubernetesObject, wanted: dict[str, str]) -> bool:
    annotations, changed = obj.metadata.annotations, False
    for key, value in wanted.items():
        if key not in annotations or annotations[key] != value:
            annotations[key] = value
            changed = True
    return changed


def set_revision(deployment: apps_v1_pb2.Deployment, number: str) -> bool:
    """``SetDeploymentRevision``."""
    return _set(deployment, {REVISION: number})


def find_new(deployment: apps_v1_pb2.Deployment, sets: list[apps_v1_pb2.ReplicaSet]) -> apps_v1_pb2.ReplicaSet | None:
    """The oldest ReplicaSet with the Deployment's template (``FindNewReplicaSet``). Sorts ``sets`` by age."""
    sets.sort(key=age)
    wanted = identity(deployment.spec.template)
    return next((one for one in sets if identity(one.spec.template) == wanted), None)


def find_old(sets: Iterable[apps_v1_pb2.ReplicaSet], new: KubernetesObject | None) -> list[apps_v1_pb2.ReplicaSet]:
    """``FindOldReplicaSets``."""
    return [one for one in sets if new is None or one.metadata.uid != new.metadata.uid]


def is_same_template(one: core_v1_pb2.PodTemplateSpec, other: core_v1_pb2.PodTemplateSpec) -> bool:
    """Whether two templates differ in nothing but their hash (``EqualIgnoreHash``)."""
    return identity(one) == identity(other)


def identity(template: core_v1_pb2.PodTemplateSpec) -> bytes:
    """What is equal of equal templates, whatever their hash labels are."""
    return _identity(template.SerializeToString(deterministic=True))


@lru_cache(8192)
def _identity(template_bytes: bytes) -> bytes:
    template = core_v1_pb2.PodTemplateSpec.FromString(template_bytes)
    if HASH_LABEL in template.metadata.labels:
        del template.metadata.labels[HASH_LABEL]
    return hashlib.blake2b(dumps.text(template).encode(), digest_size=16).digest()

"""Sets of tolerations: merged, and compared with those that are allowed (``pkg/util/tolerations``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kemu.messages.k8s import core_v1_pb2


class _Terms(NamedTuple):
    """A toleration in a form in which an absent text equals an empty one."""

    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None


def merge(tolerations: Sequence[core_v1_pb2.Toleration]) -> list[core_v1_pb2.Toleration]:
    """Without those that another one covers (``MergeTolerations`` in ``pkg/util/tolerations``)."""
    terms = [_terms(toleration) for toleration in tolerations]
    kept: list[int] = []
    for index, mine in enumerate(terms):
        covered = any(_covers(terms[other], mine) for other in kept)
        if not covered and not any(other != mine and _covers(other, mine) for other in terms[index + 1 :]):
            kept.append(index)
    return [_copy(tolerations[index]) for index in kept]


def are_covered(tolerations: Iterable[core_v1_pb2.Toleration], allowed: Sequence[core_v1_pb2.Toleration]) -> bool:
    """Whether each toleration is covered by an allowed one (``VerifyAgainstWhitelist`` in ``pkg/util/tolerations``)."""
    terms = [_terms(one) for one in allowed]
    return not terms or all(any(_covers(one, _terms(wanted)) for one in terms) for wanted in tolerations)


def _terms(toleration: core_v1_pb2.Toleration) -> _Terms:
    seconds = toleration.tolerationSeconds if toleration.HasField("tolerationSeconds") else None
    return _Terms(toleration.key, toleration.operator, toleration.value, toleration.effect, seconds)


def _copy(toleration: core_v1_pb2.Toleration) -> core_v1_pb2.Toleration:
    made = core_v1_pb2.Toleration()
    made.CopyFrom(toleration)
    return made


def _covers(one: _Terms, other: _Terms) -> bool:
    """Whether ``one`` tolerates all that ``other`` does (``isSuperset``)."""
    if one == other:
        return True
    if one.key != other.key and (one.key or one.operator != "Exists"):
        return False
    if one.effect not in ("", other.effect):
        return False
    if one.effect == "NoExecute" and one.seconds is not None and (other.seconds is None or other.seconds > one.seconds):
        return False
    if one.operator in ("Equal", ""):
        return other.operator == "Equal" and one.value == other.value
    return one.operator == "Exists"

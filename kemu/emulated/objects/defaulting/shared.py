"""What the defaults of several kinds have in common."""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.caches import text_cache
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

_MILLI_NANO = 1_000_000


def default_replicas(
    spec: apps_v1_pb2.DeploymentSpec
    | apps_v1_pb2.ReplicaSetSpec
    | apps_v1_pb2.StatefulSetSpec
    | core_v1_pb2.ReplicationControllerSpec,
) -> None:
    if not spec.HasField("replicas"):
        spec.replicas = 1


def set_int_or_string(target: meta_v1_pb2.IntOrString, value: int | str) -> None:
    if isinstance(value, int):
        target.type, target.intVal = 0, value
    else:
        target.type, target.strVal = 1, value


def prepare_status(obj: KubernetesObject) -> None:
    """A kind with a spec that users write and a status that controllers write."""
    obj.metadata.generation = 1
    obj.ClearField("status")


def prepare_generation(obj: KubernetesObject) -> None:
    obj.metadata.generation = 1


def round_up(amounts: Mapping[str, meta_v1_pb2.Quantity]) -> None:
    """Kubernetes stores amounts in thousandths at the finest."""
    for name in amounts:
        text = amounts[name].string
        rounded = _milli_text(text)
        if rounded is not text:
            amounts[name].string = rounded


@text_cache(65_536)
def _milli_text(text: str) -> str:
    """The text itself where it has no part below a thousandth."""
    try:
        quantity = quantities.parse(text)
    except ValueError:
        return text
    if quantity.nano % _MILLI_NANO == 0:
        return text
    return str(quantities.Quantity(quantity.milli * _MILLI_NANO, quantity.format))

"""What the API server fills in when an object is created.

:func:`apply` mirrors the defaulting of the API types (``pkg/apis/*/v1/defaults.go`` of Kubernetes): absent fields get
their documented defaults. :func:`prepare_create` mirrors the create strategies (``pkg/registry``), which set what users
may not set. Priority, default tolerations and overhead come from admission plugins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects.defaulting import (
    apps,
    autoscaling,
    batch,
    core,
    definitions,
    devices,
    pods,
    quotas,
    small_groups,
    storage,
)

_GROUPS = (pods, core, quotas, storage, apps, batch, autoscaling, devices, definitions, small_groups)

_FILL: dict[type[Message], Callable[[Any], None]] = {
    kind: fill for group in _GROUPS for kind, fill in group.FILL.items()
}

_PREPARE: dict[type[Message], Callable[[Any], None]] = {
    kind: prepare for group in _GROUPS for kind, prepare in group.PREPARE.items()
}


def apply(obj: Message) -> None:
    """Fill in the defaults, in place. Objects of kinds without defaults stay as they are.

    Quantities that cannot be parsed stay as they are; validation refuses them later.
    """
    fill = _FILL.get(type(obj))
    if fill is not None:
        fill(obj)


def prepare_create(obj: Message) -> None:
    """Set the fields that belong to the server, in place: generation and initial status.

    A pod becomes Pending and gets its QoS class; its ``matchLabelKeys`` are merged into its selectors. Call it after
    :func:`apply` and before validation.
    """
    prepare = _PREPARE.get(type(obj))
    if prepare is not None:
        prepare(obj)

"""The events of the cluster autoscaler and of the provider of machines."""

from __future__ import annotations

from kemu.runtime.runlog.events.declared import Event, field

_AUTOSCALER = "cluster autoscaler"


class ScaleUpRequested(Event, kind="autoscaler.scale_up", by=_AUTOSCALER, on_page=True):
    """The provider was asked for nodes"""

    group: str
    size_before: int = field(key="from")
    size: int = field(key="to")
    max: int
    pods: list[str]
    """Those for which it is done."""
    ok: bool


class ScaleUpImpossible(Event, kind="autoscaler.no_scale_up", by=_AUTOSCALER, on_page=True):
    """No group can help a pod; once until the reason changes"""

    pod: str
    uid: str
    why: str


class NodesUnneeded(Event, kind="autoscaler.unneeded", by=_AUTOSCALER):
    """The nodes whose pods could run on the others, where they have changed"""

    nodes: list[str]


class ScaleDownBegun(Event, kind="autoscaler.scale_down", by=_AUTOSCALER, on_page=True):
    """A node is tainted and its removal begins"""

    node: str
    group: str
    drain: bool
    pods: int
    pods_rev: int
    """By which it was decided."""
    nodes_rev: int
    """By which it was decided."""
    unneeded_ns: int


class ScaleDownEnded(Event, kind="autoscaler.scaled_down", by=_AUTOSCALER, on_page=True):
    """The removal of a node has ended"""

    node: str
    group: str
    ok: bool
    why: str


class AutoscalerReported(Event, kind="autoscaler.event", by=_AUTOSCALER):
    """An Event about itself"""

    type: str
    reason: str
    message: str


class AutoscalerFailed(Event, kind="autoscaler.failed", by=_AUTOSCALER):
    """An iteration broke off"""

    why: str


class InstanceChanged(Event, kind="cloud.instance", by="provider of machines"):
    """A machine of a group goes on; between `running` and `gone` it is paid for"""

    group: str
    node: str
    what: str
    """`requested failed refused running deleting gone`."""
    price: float

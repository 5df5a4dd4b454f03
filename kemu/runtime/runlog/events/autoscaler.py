"""The events of the cluster autoscaler and of the provider of machines."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.runtime.runlog.events.declared import Event, field
from kemu.runtime.runlog.events.words import BAD, GOOD, Line, whole
from kemu.runtime.words import short

_AUTOSCALER = "cluster autoscaler"


def _line(phrase: str, tone: str, why: str = "") -> Sequence[Line]:
    return (whole("scaled", phrase, phrase, tone, why, who="cluster-autoscaler"),)


class ScaleUpRequested(Event, kind="autoscaler.scale_up", by=_AUTOSCALER, on_page=True):
    """The provider was asked for nodes"""

    group: str
    size_before: int = field(key="from")
    size: int = field(key="to")
    max: int
    pods: list[str]
    """Those for which it is done."""
    ok: bool

    def lines(self, before: Event | None) -> Sequence[Line]:
        pods = self.pods
        why = f"for {short(pods[0])}" + (f" and {len(pods) - 1} more" if len(pods) > 1 else "") if pods else ""
        if not self.ok:
            return _line(f"{self.group} cannot grow: the provider refuses", BAD, why)
        return _line(f"{self.group} grows from {self.size_before} to {self.size}", GOOD, why)


class ScaleUpImpossible(Event, kind="autoscaler.no_scale_up", by=_AUTOSCALER, on_page=True):
    """No group can help a pod; once until the reason changes"""

    pod: str
    uid: str
    why: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        return _line(f"no node would help {short(self.pod)}", BAD, self.why)


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

    def lines(self, before: Event | None) -> Sequence[Line]:
        return _line(f"{self.node} is not needed: it is {'drained' if self.drain else 'empty'} and goes", GOOD)


class ScaleDownEnded(Event, kind="autoscaler.scaled_down", by=_AUTOSCALER, on_page=True):
    """The removal of a node has ended"""

    node: str
    group: str
    ok: bool
    why: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        return () if self.ok else _line(f"{self.node} stays", BAD, self.why)


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

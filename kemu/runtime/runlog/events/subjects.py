"""What many events name first: a pod, or a pod on a node."""

from __future__ import annotations

from typing import TypedDict

from kemu.runtime.runlog.events.declared import Event


class OfPod(Event):
    """About a pod."""

    pod: str
    """``namespace/name``."""
    uid: str


class OfPodOnNode(OfPod):
    """About a pod on a node."""

    node: str


class OnNode(TypedDict):
    """The fields of :class:`OfPodOnNode`."""

    pod: str
    uid: str
    node: str

"""The check volume-attached-to-one-node."""

from __future__ import annotations

from typing import Any

from kemu.lab.checks.history import History
from kemu.lab.checks.nodes.volumes import VolumeAttachedToOneNode
from kemu.lab.checks.results import Result
from kemu.runtime.runlog.events import typed


def judged(*events: tuple[str, str, str], modes: tuple[str, ...] = ("ReadWriteOnce",)) -> Result:
    """``events``: what, volume, node, one a second."""
    check = VolumeAttachedToOneNode()
    for second, (what, volume, node) in enumerate(events):
        data: dict[str, Any] = {"volume": volume, "node": node, "modes": list(modes)}
        check.on_event(second * 1_000_000_000, "controller/csi-drivers", typed(f"csi.{what}", data))
    return check.result(History())


def test_a_volume_may_move() -> None:
    result = judged(("attached", "v", "a"), ("detached", "v", "a"), ("attached", "v", "b"))
    assert (result.holds, result.detail) == (True, "2 attachments")


def test_two_nodes_at_a_time_are_named() -> None:
    result = judged(("attached", "v", "a"), ("attached", "w", "b"), ("attached", "v", "b"))
    assert result.holds is False
    assert result.detail == "v was attached to b at 2.000 s while it was attached to a"


def test_a_volume_of_many_nodes_is_not_judged() -> None:
    assert judged(("attached", "v", "a"), ("attached", "v", "b"), modes=("ReadWriteMany",)).holds is None


def test_without_volumes_there_is_nothing_to_judge() -> None:
    assert judged().holds is None

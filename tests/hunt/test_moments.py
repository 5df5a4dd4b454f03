"""Points mean the same in trials in which a status was written more or less often."""

from __future__ import annotations

from typing import Any

from kemu.lab.hunt import moments
from kemu.lab.hunt.impacts import Analysis
from kemu.lab.hunt.perturbations import Point
from tests.hunt.recorded import Recording


def _widget(size: int, seen: int) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": size, "parts": [{"on": size > 1}]},
        "status": {"seen": seen},
    }


def _recorded(statuses: int) -> Recording:
    """Grows, shrinks and grows again, with so many statuses between."""
    recording = Recording()
    for step, size in enumerate((1, 2, 1, 2)):
        for seen in range(statuses):
            recording.put(10 * step + seen, _widget(size, seen))
    return recording


def test_a_change_is_told_by_what_its_fields_come_to_be() -> None:
    one, other = _recorded(2), _recorded(5)
    key = one.course.key(Point("Widget.example.com", "w", "default", 1).subject)
    changes = [each for each in one.course.changes if each.key == key]
    points = [Analysis(one.outcome).point(each) for each in changes]
    created, grown, again = points[0], points[2], points[6]
    assert created.when == (("metadata.name", '"*"'),)
    assert grown.when == (("spec.parts.0.on", "true"), ("spec.size", "2"))
    assert (grown.nth, again.nth, again.when) == (1, 2, grown.when)
    assert (points[1].when, points[1].nth) == ((), 2)
    assert [moments.find(one.course, each) for each in points] == changes
    found = [moments.find(other.course, each) for each in (created, grown, again)]
    assert [each is not None and each.nth for each in found] == [1, 6, 16]
    assert moments.times(other.course, grown) == 2
    assert str(grown).endswith("whereupon spec.parts.0.on is true and spec.size is 2")

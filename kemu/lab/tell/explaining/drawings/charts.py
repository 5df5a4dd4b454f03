"""P(failure) over time as a chart: a sparkline for the terminal, a panel for the SVG."""

from __future__ import annotations

from html import escape

from kemu.lab.tell import people
from kemu.lab.tell.explaining.names import at, sentence
from kemu.lab.tell.explaining.probabilities import Curve

_LEVELS = "▁▂▃▄▅▆▇█"
HEIGHT = 190
_LEFT, _TOP, _PLOT = 66, 36, 110


def told(curve: Curve) -> list[str]:
    """A few lines: one column for each instant."""
    if not curve.points:
        return []
    levels = [_LEVELS[min(round(point.probability * (len(_LEVELS) - 1)), 7)] for point in curve.points]
    lines = [
        f"P(failure), {curve.suffixes} futures drawn at each of {len(curve.points)} instants",
        "",
        "  " + "".join(levels),
    ]
    decision = curve.decision
    if decision is not None:
        place = next(i for i, point in enumerate(curve.points) if point.time_ns == decision.time_ns)
        lines.append("  " + " " * place + "▲")
    first, last = curve.points[0], curve.points[-1]
    ends = (f"{at(one.time_ns)}: {people.percentage(one.probability)}" for one in (first, last))
    lines.append(f"  {'  …  '.join(ends)}")
    if decision is not None:
        lines += ["", f"{summary(curve)}"]
    return lines


def summary(curve: Curve) -> str:
    """What decided it; empty: nothing did."""
    decision = curve.decision
    if decision is None:
        return ""
    rise = f"from {people.percentage(decision.before)} to {people.percentage(decision.after)}"
    return f"Decided at {at(decision.time_ns)} ({rise}): {decision.text} (event {decision.event})."


def drawn(curve: Curve, left: int, top: int, width: int) -> list[str]:
    """Elements of an SVG, in the classes of ``svgs``. Instants stand at equal distances, however far they are apart."""
    points = curve.points
    if not points:
        return []
    span = (width - _LEFT - 20) / max(len(points) - 1, 1)
    xs = [left + _LEFT + index * span for index in range(len(points))]
    base = top + _TOP + _PLOT
    ys = [base - point.probability * _PLOT for point in points]
    parts = [f'<text class="head" x="{left}" y="{top + 14}">P(failure) after what has happened until then</text>']
    for share in (0.0, 0.5, 1.0):
        y = base - share * _PLOT
        parts.append(f'<line class="grid" x1="{left + _LEFT}" x2="{xs[-1]:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="time" x="{left + _LEFT - 8}" y="{y + 4:.1f}">{people.percentage(share)}</text>')
    decision = curve.decision
    if decision is not None:
        x = next(x for x, point in zip(xs, points, strict=True) if point.time_ns == decision.time_ns)
        parts.append(f'<line class="decided" x1="{x:.1f}" x2="{x:.1f}" y1="{top + _TOP - 8}" y2="{base}"/>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    parts.append(f'<polyline class="curve" points="{line}"/>')
    parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in zip(xs, ys, strict=True)]
    for index in _labelled(curve):
        parts.append(f'<text class="tick" x="{xs[index]:.1f}" y="{base + 18}">{at(points[index].time_ns)}</text>')
    if decision is not None:
        parts.append(
            f'<text class="faint" x="{left + _LEFT}" y="{base + 38}">{escape(sentence(summary(curve)))}</text>'
        )
    return parts


def _labelled(curve: Curve) -> list[int]:
    """The first, the last, and the one that decided, unless they stand too close."""
    last = len(curve.points) - 1
    found = [0, last]
    if curve.decision is not None:
        own = next(i for i, point in enumerate(curve.points) if point.time_ns == curve.decision.time_ns)
        found = [index for index in found if abs(index - own) > 2] + [own]
    return sorted(found)

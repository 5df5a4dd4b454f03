"""Numbers as people say them: sizes, times, the figures of runs by their names, and messages with raw bytes in them."""

from __future__ import annotations

import re
from typing import NamedTuple

from kemu.emulated.objects.amounts import quantities

_LONG = 6
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: float) -> str:
    """``8.4 MiB`` of 8768171 bytes."""
    unit = 0
    while abs(count) >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.3g} {_UNITS[unit]}" if abs(count) < 1000 else f"{count:.0f} {_UNITS[unit]}"


def quantity(count: int) -> str:
    """As Kubernetes writes it where that is short, ``400Mi``; else ``8.4 MiB``."""
    text = quantities.shortest(count)
    return text if len(text) <= _LONG else size(count)


def duration(seconds: float) -> str:
    """``4 ms``, ``12.5 s``, ``3 min 20 s``, ``2 h 5 min``; as exact as one needs to compare."""
    if not seconds:
        return "0 s"
    if abs(seconds) < 0.9995:
        return f"{seconds * 1e3:.2g} ms" if abs(seconds) < 0.0995 else f"{seconds * 1e3:.0f} ms"
    if abs(seconds) < 99.95:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min" if minutes and hours < 100 else f"{hours:,} h"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def percentage(share: float) -> str:
    """``64 %`` of 0.64."""
    return f"{share * 100:.0f} %"


_AMOUNT = re.compile(
    r"\b((?:requested|used|capacity|available|using|request is|limit of)(?::| is)?\s+)"
    r"(\d{5,})(Ki|Mi|k|M)?(?!\w|\.\d)"
)
_SUFFIXES = {None: 1, "Ki": 1 << 10, "Mi": 1 << 20, "k": 10**3, "M": 10**6}
_OF_BYTES = re.compile(r"memory|storage|hugepages|disk|\bfs\b|bytes", re.IGNORECASE)


def message(text: str) -> str:
    """A message of a component with sizes in place of its raw bytes."""
    if not _OF_BYTES.search(text):
        return text
    return _AMOUNT.sub(lambda match: match[1] + size(int(match[2]) * _SUFFIXES[match[3]]), text)


class Metric(NamedTuple):
    """What a figure of a run is called, and what it is counted in."""

    name: str
    unit: str
    """``s``, ``%``, or empty: a number of what its name says."""


METRICS = {
    "evictions": Metric("pods evicted", ""),
    "oom_kills": Metric("containers out of memory", ""),
    "pods_failed": Metric("pods failed", ""),
    "preemptions": Metric("pods preempted", ""),
    "admissions_rejected": Metric("pods rejected by kubelets", ""),
    "budget_violations": Metric("preempted beyond budgets", ""),
    "evictions_beyond_budget": Metric("evicted beyond budgets", ""),
    "waiting.p50_s": Metric("half of the pods waited", "s"),
    "waiting.p99_s": Metric("99 of 100 pods waited", "s"),
    "waiting.max_s": Metric("longest wait for a node", "s"),
    "ready.missing_pod_s": Metric("pods missing, summed up", "s"),
    "ready.fewest": Metric("fewest ready pods", ""),
    "work.killed_pod_s": Metric("work lost with killed pods", "s"),
    "overloaded_s": Metric("API server overloaded", "s"),
    "eviction_returns": Metric("evicted from the same node again", ""),
    "preemption_returns": Metric("preempted in turn", ""),
    "condition_changes": Metric("changes of node conditions", ""),
    "nodes_added": Metric("nodes added", ""),
    "utilisation.cpu": Metric("CPU requested", "%"),
    "utilisation.memory": Metric("memory requested", "%"),
    "pods_succeeded": Metric("pods succeeded", ""),
    "pods_running": Metric("starts of pods", ""),
}


def metric(name: str) -> Metric:
    """Of any figure; one without words of its own keeps its name."""
    if name in METRICS:
        return METRICS[name]
    return Metric(name.removesuffix("_s").replace("_", " "), "s") if name.endswith("_s") else Metric(name, "")


def figure(name: str, value: float, *, signed: bool = False) -> str:
    """A value of it: ``3 min 20 s``, ``64 %``, ``12``, ``12.4``."""
    sign = ("+" if value > 0 else "\N{MINUS SIGN}" if value < 0 else "") if signed else "\N{MINUS SIGN}" * (value < 0)
    value = abs(value)
    unit = metric(name).unit
    if unit == "s":
        return sign + duration(value)
    if unit == "%":
        return sign + percentage(value)
    return f"{sign}{value:,.0f}" if value == int(value) or value >= 100 else f"{sign}{value:.3g}"


def differs(figure: str) -> bool:
    """Whether a difference, as :func:`figure` writes it, is one that can be told."""
    return bool(figure.strip("+\N{MINUS SIGN}0. %sm"))

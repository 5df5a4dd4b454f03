"""Values in the text formats that Prometheus reads.

Own code, as the client library of Prometheus for Python cannot name a counter as kubelets do (``kubelet_evictions``),
adds series that no component has (``_created``), and takes no times that are not now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kemu.runtime.metrics.families import FAMILIES, Family
from kemu.runtime.metrics.values import Sample, Values, number_text

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def series(family: Family, sample: Sample, target: Mapping[str, str]) -> str:
    """A sample without its value. ``target``: labels that Prometheus would add."""
    pairs = [*target.items(), *zip(family.labels, sample.labels, strict=True)]
    if sample.le:
        pairs.append(("le", sample.le))
    text = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
    return f"{family.name}{sample.suffix}{{{text}}}" if text else f"{family.name}{sample.suffix}"


def head(family: Family, name: str = "", kind: str = "") -> list[str]:
    return [f"# HELP {name or family.name} {family.help}", f"# TYPE {name or family.name} {kind or family.type}"]


def of_component(
    component: str, *several: Values, instances: bool = True, only: Callable[[str], bool] = lambda instance: True
) -> str:
    """The metrics of all instances of a component. ``instances``: with their names as the label ``instance``; otherwise
    summed up. ``only``: whether an instance is among them."""
    lines: list[str] = []
    for family in FAMILIES.values():
        if family.component != component:
            continue
        found: dict[str, float] = {}
        for values in several:
            for instance in filter(only, values.instances(family)):
                target = {"instance": instance} if instances and instance else {}
                for sample in values.samples(family, instance):
                    name = series(family, sample, target)
                    found[name] = found.get(name, 0) + sample.value
        if found:
            lines += [*head(family), *(f"{name} {number_text(value)}" for name, value in found.items())]
    return joined(lines)


def joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value

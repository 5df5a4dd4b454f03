"""Makes the record of what real components expose, from what each answers at /metrics:

    python -m tests.telemetry.metrics.record kube-apiserver=api.txt kube-scheduler=scheduler.txt … > real.json

Only families that kemu tells are kept. Kubelets and kube-state-metrics were not asked: they need machines and an image.
What kube-state-metrics declares is read from its own documents (of commit c92fe0c, after v2.20.0), which stand in its
repository; what the kubelet declares, from Kubernetes' reference of metrics, is in the file already:

    python -m tests.telemetry.metrics.record --documents kube-state-metrics/docs/metrics > declared.json
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from kemu.runtime.metrics.families import FAMILIES, KUBELET, STATE
from tests import json_files


def named(sample: str) -> str:
    """The name of a counter: the parser adds ``_total`` where it has none."""
    plain = sample.removesuffix("_total")
    return plain if plain in FAMILIES else sample


def families(text: str) -> dict[str, Any]:
    """By name: the type, the names of the labels, the upper bounds of buckets."""
    found: dict[str, Any] = {}
    for family in text_string_to_metric_families(text):
        name = named(family.samples[0].name) if family.type == "counter" and family.samples else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        names = {
            sample.labels["name"] for sample in family.samples if name.startswith("workqueue_adds") and sample.labels
        }
        bounds = {float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels}
        found[name] = {"type": family.type, "labels": sorted(labels), "buckets": sorted(bounds - {float("inf")})}
        if names:
            found[name]["names"] = sorted(names)
    return found


KUBELETS = {
    "kubelet_evictions": ("counter", ["eviction_signal"]),
    "kubelet_node_name": ("gauge", ["node"]),
    "kubelet_running_pods": ("gauge", []),
    "kubelet_started_pods_total": ("counter", []),
}
"""Type and labels, of the reference of metrics on Kubernetes' pages, of v1.36."""
_CELL = re.compile(r"(?<!\\)\|")
_LABEL = re.compile(r"`([a-zA-Z_]+)(?:`\s*=|=`)\s*&lt;")
_UNITS = re.compile(r"&lt;(core|bytes?|integer)&gt;")


def documented(folder: Path) -> dict[str, Any]:
    """What kube-state-metrics' tables say: by name, the type and the names of the labels."""
    found: dict[str, Any] = {}
    for file in sorted(folder.rglob("*.md")):
        for line in file.read_text("utf-8").splitlines():
            cells = [cell.strip() for cell in _CELL.split(line)]
            if len(cells) < 5 or cells[1] not in FAMILIES:
                continue
            labels = max(({*_LABEL.findall(cell)} for cell in cells[3:] if not _UNITS.search(cell)), key=len)
            found[cells[1]] = {"type": cells[2].lower(), "labels": sorted(labels)}
    return found


def main(arguments: list[str]) -> None:
    record: dict[str, Any] = {}
    if arguments[0] == "--documents":
        record[STATE] = documented(Path(arguments[1]))
        record[KUBELET] = {name: {"type": kind, "labels": labels} for name, (kind, labels) in KUBELETS.items()}
        arguments = []
    for one in arguments:
        component, _, file = one.partition("=")
        real = families(Path(file).read_text("utf-8"))
        record[component] = {name: real[name] for name, family in FAMILIES.items() if family.component == component}
    print(json_files.text(record, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Makes the record of what real components expose, from what each answers at /metrics:

    python -m tests.telemetry.metrics.record kube-apiserver=api.txt kube-scheduler=scheduler.txt … > real.json

Only families that kemu tells are kept. Kubelets and kube-state-metrics were not asked: they need machines and an image;
their families follow Kubernetes' source and kube-state-metrics' documents.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from kemu.runtime.metrics.families import FAMILIES


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


def main(arguments: list[str]) -> None:
    record: dict[str, Any] = {}
    for one in arguments:
        component, _, file = one.partition("=")
        real = families(Path(file).read_text("utf-8"))
        record[component] = {name: real[name] for name, family in FAMILIES.items() if family.component == component}
    print(json.dumps(record, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Many pods through one scheduler while everything changes: what it keeps is what a cache made anew would hold."""

from __future__ import annotations

import pytest

from kemu.emulated.scheduler import feeds
from kemu.emulated.scheduler.cache.counts import Counts
from kemu.lab.bench.schedulers import soaks

NODES, PODS = 24, 3000


def test_after_a_long_run_nothing_differs_and_nothing_has_grown() -> None:
    found = soaks.soak(NODES, PODS)
    assert found["differences"] == []
    assert found["made"] == PODS
    assert found["sched_bind"] > PODS * 0.8
    assert found["sched_preemption"] > 10
    kept = found["reports"][-1]["kept"]
    most = found["nodes_made"] / 2
    assert kept["nodes"] < most
    # 64 may be spare.
    assert kept["taint_sets"] <= 2 * NODES + 66
    assert kept["label_values"] <= kept["label_columns"] * (2 * NODES + 66)
    assert kept["nominated_lists"] < most
    assert kept["queue_events"] == 0
    assert kept["queue_heaps"] <= kept["queue"] + 50
    assert kept["seen_pods"] <= NODES * soaks.PODS_PER_NODE
    assert kept["preempted_on"] == 0
    # Some hundred pods have asked for a device of their own; the kept templates still name some.
    assert kept["resources"] < 100
    assert kept["indexed_pods"] <= kept["pods"] <= NODES * soaks.PODS_PER_NODE


@pytest.mark.parametrize("forgotten", ["sum", "count", "row", "label"])
def test_what_is_not_kept_up_to_date_is_found(forgotten: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if forgotten == "sum":
        heard = feeds.PodFeed.on_delete

        def forget(self: feeds.PodFeed, pod: object) -> None:
            if not pod.metadata.name.endswith("77"):  # type: ignore[attr-defined]
                heard(self, pod)

        monkeypatch.setattr(feeds.PodFeed, "on_delete", forget)
    elif forgotten == "count":
        monkeypatch.setattr(Counts, "pod_went", lambda self, pod, node, capacity: None)
    elif forgotten == "row":
        monkeypatch.setattr(Counts, "permute", lambda self, sources: None)
    else:
        monkeypatch.setattr("kemu.emulated.scheduler.cache.columns.LabelColumn.write", lambda self, row, labels: None)
    assert soaks.soak(20, 400)["differences"]

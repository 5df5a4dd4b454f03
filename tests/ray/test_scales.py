"""Large clusters on Ray: the benchmark, its model, and 5,000 kubelets over three raylets for the nightly."""

from __future__ import annotations

import argparse
import os
from typing import Any

import pytest

from kemu.doors.cli.commands import bench
from kemu.lab.bench import registry
from kemu.lab.bench.clusters import scale_models, scales


@pytest.mark.ray
@pytest.mark.slow
def test_a_run_is_judged_and_its_cost_is_that_of_each_kind_of_cell() -> None:
    for _ in range(3):
        found = scales.ray_scale(nodes=20, pods=600, kubelets_per_cell=10)
        assert (found["verdict"], found["cells"]) == ("holds", 5)
        least = min(found[f"{role}_us"] for role in scales.ROLES.values())
        if least > 0:
            break  # On a busy machine a cell may do all its work between two looks at its CPU time.
    assert least > 0
    assert found["memory_mib"] > found["api_mib"] > 10
    assert found["pods_per_s"] > 0 < found["start_cpu_s"]


if os.environ.get("KEMU_FIVE_THOUSAND_KUBELETS"):  # Takes minutes: for the nightly.

    @pytest.mark.ray
    @pytest.mark.slow
    @pytest.mark.timeout(1800)
    def test_five_thousand_kubelets_over_three_raylets_in_eight_gibibytes() -> None:
        (settings,) = (each for each in scales.settings() if each["nodes"] == 5_000)
        assert settings["raylets"] == 3
        found = scales.ray_scale(**settings)  # raises unless the run holds
        print(found)
        assert found["memory_mib"] <= 8 * 1024


def rows() -> list[dict[str, Any]]:
    """As runs would measure it that follow the model exactly."""
    made = []
    for nodes, cells, raylets in ((100, 4, 1), (1000, 5, 1), (1000, 13, 3), (5000, 13, 3), (2000, 4, 3), (500, 8, 1)):
        row: dict[str, Any] = {"nodes": nodes, "cells": cells, "raylets": raylets, "pods_per_s": 200, "speed": 0.5}
        renewals = nodes / 10 * 0.5 / 200
        row["memory_mib"] = 100 + 150 * raylets + 60 * cells + 0.2 * nodes
        row["start_cpu_s"] = 3 + 0.5 * cells + 0.01 * nodes
        row |= {"api_us": 1000 + 400 * renewals, "store_us": 500 + 200 * renewals, "scheduler_us": 400}
        row |= {"kubelets_us": 500 + 40 * cells + 100 * renewals, "driver_us": 200 + 100 * renewals}
        made.append(row)
    return made


def test_the_model_finds_the_parts_and_says_how_wrong_it_is() -> None:
    models = scale_models.fit(rows())
    found = {part: round(amount, 3) for part, amount in models["memory_mib"].amounts.items()}
    assert found == {"run": 100, "raylets": 150, "cells": 60, "nodes": 0.2}
    assert {part: round(amount) for part, amount in models["api_us"].amounts.items()} == {"run": 1000, "renewals": 400}
    assert max(model.largest_error for model in models.values()) < 1e-6
    wrong = rows()
    wrong[3]["memory_mib"] *= 1.5
    assert scale_models.fit(wrong)["memory_mib"].largest_error > 0.2


def test_a_part_of_which_less_would_be_better_than_nothing_is_left_out() -> None:
    falling = [{**row, "store_us": 800 - row["nodes"] / 20} for row in rows()]
    assert scale_models.fit(falling)["store_us"].amounts["renewals"] == 0


def test_a_prediction_is_limited_by_the_busiest_process_or_by_all_cores() -> None:
    models = scale_models.fit(rows())
    row = {"nodes": 1000, "cells": 5, "raylets": 1, "kubelets_per_cell": 500, "api_servers": 1}
    few, many = (scale_models.prediction(models, row, cores) for cores in (2, 64))
    # 100 renewals a second take 80 ms of each second; of what is left, a pod takes 2.8 ms.
    assert (few["limit"], round(few["pods_per_s"])) == ("cores", round((2e6 - 80_000) / 2800))
    assert (many["limit"], round(many["pods_per_s"])) == ("api", round((1e6 - 40_000) / 1000))
    assert round(many["memory_mib"]) == 750
    three = scale_models.prediction(models, {**row, "api_servers": 3}, 64)
    assert (three["limit"], round(three["pods_per_s"])) == ("store", round((1e6 - 20_000) / 500))
    none = scale_models.prediction(models, {**row, "nodes": 60_000, "cells": 123, "api_servers": 9}, 64)
    assert (none["limit"], none["pods_per_s"]) == ("store", 0)


def test_a_size_is_chosen_among_the_settings_or_made_from_the_next_larger_one() -> None:
    def chosen(*nodes: int) -> list[tuple[int, int, int]]:
        options = argparse.Namespace(nodes=list(nodes), pods=None, workload=None)
        found = bench._settings(registry.BENCHMARKS["ray-scale"], options)
        return [(each["nodes"], each["raylets"], each["kubelets_per_cell"]) for each in found]

    assert chosen(5_000) == [(5_000, 3, 500)]
    assert chosen(100, 7_000) == [(100, 1, 500), (100, 1, 25), (7_000, 3, 1_000)]

"""The same seed draws the same scenarios everywhere; all of them can be loaded; all pairs of features meet."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kemu.emulated.settings import documents
from kemu.lab.exploration.shrinking import texts
from kemu.lab.fuzz import features
from kemu.lab.fuzz.drawing import drawn
from kemu.lab.scenario.loading import loader
from kemu.runtime.faults import kinds

ROOT = Path(__file__).resolve().parents[2]

DRAW = """
import json, sys
from kemu.lab.fuzz import features
from kemu.lab.fuzz.drawing import drawn
numbers = json.loads(sys.argv[1])
print(json.dumps([drawn.draw(5, number, features.Plan(5).levels(number)).data for number in numbers]))
"""


def test_every_level_meets_every_other_one() -> None:
    met = {
        frozenset(pair)
        for row in features.array()
        for pair in itertools.combinations(enumerate(row), 2)
    }  # fmt: skip
    assert len(met) == features.count_of_pairs()


def test_the_plan_of_whole_rows_has_all_pairs() -> None:
    plan = features.Plan(3)
    met: set[object] = set()
    for number in range(0, features.PART_OF_WHOLE_ROWS * len(features.array()), features.PART_OF_WHOLE_ROWS):
        met.update(features.pairs(plan.levels(number)))
    assert len(met) == features.count_of_pairs()


def test_a_new_kind_of_fault_is_drawn_or_named() -> None:
    drawn_kinds = set(features.FEATURES["fault"]) - {features.PLAIN}
    others = {*kinds.CLIENT_FAULTS, *kinds.PROCESS_FAULTS, *kinds.DEVICE_FAULTS, *features.DAMAGING}
    assert drawn_kinds | others == set(kinds.KINDS)


def test_scenarios_do_not_depend_on_the_process() -> None:
    numbers = list(range(40))
    found = []
    for order, hash_seed in ((numbers, "1"), (numbers[::-1], "2")):
        done = subprocess.run(
            [sys.executable, "-c", DRAW, json.dumps(order)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(done.stdout))
    assert found[0] == found[1][::-1]


def test_every_scenario_can_be_loaded() -> None:
    seed, count = 1, 2000 if os.environ.get("KEMU_NIGHTLY") else 100
    plan = features.Plan(seed)
    for number in range(count):
        data = drawn.draw(seed, number, plan.levels(number)).data
        loader.of_data(data, "drawn.yaml", None)
        (read,) = documents.parse(texts.text(data), "drawn.yaml")
        assert read.data == data


def test_a_pinned_feature_is_in_every_scenario() -> None:
    plan = features.Plan(1, {"fault": "pause"})
    assert {plan.levels(number)["fault"] for number in range(20)} == {"pause"}
    with pytest.raises(Exception, match="no such level"):
        features.Plan(1, {"fault": "earthquake"})

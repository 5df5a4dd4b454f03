"""Races with devices and gangs that searches with the default settings find:
python -m tests.exploration.races [SCENARIO … | --missing].

No time in these scenarios is chosen for the race, and nothing is held back. What is found is shrunk, and its file kept
in ``races/``; as many runs with the cure hold, and so do runs at other seeds without it. Writes ``races.json``; exit
code 1 if a race is not found.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.lab.exploration import executions, workers
from kemu.lab.exploration.searches import Options, Search
from kemu.lab.exploration.shrinking import shrinker
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from tests import searches
from tests.museum.explorations import Found, found_first

RECORD = Path(__file__).with_suffix(".json")
FILES = Path(__file__).with_suffix("")
SEED = 1
RUNS = 250
FEWEST_CURED = 64
SEEDS = range(1, 31)
MOST_SHRINKING_S = 150.0


@dataclass(frozen=True)
class Race:
    """By its scenario."""

    says: str
    """What goes wrong, in a sentence without a full stop."""
    breaks: str
    """The check or the expectation."""
    cure: Mapping[str, Any]
    """Settings."""
    cured_by: str
    """The same in words."""
    because: tuple[str, ...]
    """What its explanation has to say."""


ONE_SCHEDULER = {
    "schedulers": [{"name": "red", "config": {"profiles": [{"schedulerName": "red"}, {"schedulerName": "blue"}]}}]
}
"""For the pods of both."""
_FAST = {
    "deviceClassName": "gpu.example.com",
    "selectors": [{"cel": {"expression": 'device.attributes["gpu.example.com"].model == "fast"'}}],
}
RACES: Mapping[str, Race] = {
    "devices/one-device-after-the-other": Race(
        "two schedulers give one GPU to a claim each", "device-has-one-claim", ONE_SCHEDULER,
        "one scheduler for both", ("only afterwards",),
    ),
    "devices/partitions-of-a-device": Race(
        "two schedulers give away a GPU and a half of it", "one-of-them-runs", ONE_SCHEDULER,
        "one scheduler for both", ("only afterwards",),
    ),
    "devices/removed-by-force": Race(
        "the GPU of a pod that was deleted by force goes to the next one while the first still runs",
        "device-has-one-claim", {"events[0].delete.gracePeriodSeconds": 30},
        "a deletion with a grace period", ("first was removed reached kubelet",),
    ),
    "devices/lesser-device": Race(
        "a pod gets the slow GPU for life, as the end of the pod on the fast one was not known yet",
        "the-slow-one-is-not-needed",
        {"manifests[0].spec.spec.devices.requests": [{"name": "gpu", "exactly": _FAST}]},
        "a claim without an alternative", ("first", "slow"),
    ),
    "devices/shares-of-a-device": Race(
        "two schedulers give away more memory of a shared GPU than it has", "one-of-them-runs", ONE_SCHEDULER,
        "one scheduler for both", ("only afterwards",),
    ),
    "devices/withdrawn-device": Race(
        "a pod gets a device that its driver has withdrawn before, as the scheduler saw the pod before the slice",
        "gets-what-is-there", {"informers.streams": "shared"}, "one watch stream for all kinds",
        ("links was changed reached the scheduler only after",),
    ),
    "groups/gang-and-crash": Race(
        "an API server crashes between the bindings of a gang, and another pod gets the room of the second member",
        "gangs-are-whole", {"priorityClasses.important.value": 0},
        "no pod that is more important than the gang", ("crash",),
    ),
    "groups/gang-shares-a-claim": Race(
        "one of two members that share a claim is refused at its binding, and another pod gets its room",
        "gangs-are-whole",
        {"workloads[0].pods.spec.resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]},
        "a claim for each member", ("found no node for member",),
    ),
    "groups/group-made-anew": Race(
        "two of a gang of three are bound, as an earlier gang of two with its name has not gone yet",
        "gangs-are-whole",
        {
            "events[1].create.metadata.name": "training-2",
            "workloads[0].pods.spec.schedulingGroup.podGroupName": "training-2",
        },
        "another name for the new group", ("request to delete training reached",),
    ),
    "groups/pinned-pod": Race(
        "a kubelet rejects a member of a gang, as a pod with a nodeName came first", "gangs-are-whole",
        {
            "events[0].create.spec.nodeName": "",
            "events[0].create.spec.nodeSelector": {"kubernetes.io/hostname": "node-1"},
        },
        "a node selector", ("pinned", "OutOfcpu"),
    ),
    "groups/preempted-member": Race(
        "an important pod preempts a member of a gang, although there is room", "gangs-are-whole",
        {"priorityClasses.gang": 1000}, "a gang that is as important", ("preempt",),
    ),
}  # fmt: skip


def base(name: str, settings: Mapping[str, Any] | None = None) -> Scenario:
    return loader.load(catalog.find(name), overrides=settings or {})


def file(name: str) -> Path:
    """What the search found, as small as it became."""
    return FILES / f"{name.partition('/')[2]}.yaml"


def cured(name: str, found: Scenario) -> Scenario:
    """The scenario with the cure, and with the seed, the holds and the faults of what was found."""
    spec = found.resolved["spec"]
    kept = {key: spec[key] for key in ("seed", "holds", "chaos") if spec.get(key)}
    return base(name, {**RACES[name].cure, **kept})


def command(name: str) -> str:
    return f"kemu explore {name} --seed {SEED} --runs {RUNS}"


def searched(scenario: Scenario, runs: int) -> Found | None:
    """What the command finds first; None: nothing."""
    with tempfile.TemporaryDirectory(prefix="kemu-races-") as folder:
        options = Options(Path(folder), SEED, runs, failures=1, shrinks=False)
        with Search(scenario, options, executor=workers.Inline()) as search:
            for _record in search.go():
                pass
            return found_first(scenario, search.clusters())


def plain(name: str, seed: int) -> executions.Execution:
    return executions.execute(dataclasses.replace(base(name), seed=seed))


def find(name: str) -> dict[str, Any] | None:
    race, begun_s = RACES[name], time.process_time()
    for seed in SEEDS:
        if failures := plain(name, seed).failures:
            print(f"{name}: fails without a search at seed {seed}: {failures[0].detail}", flush=True)
            return None
    found = searched(base(name), RUNS)
    cpu_s = round(time.process_time() - begun_s, 1)
    if found is None or found.failure.id != race.breaks:
        print(f"{name}: {found and found.failure}", flush=True)
        return None
    cured_runs = max(found.runs, FEWEST_CURED)
    false = searched(base(name, race.cure), cured_runs)
    if false is not None:
        print(f"{name}: with the cure, too, after {false.runs} runs: {false.failure}", flush=True)
        return None
    small = shrinker.shrink(found.scenario, found.failure, most_s=MOST_SHRINKING_S)
    FILES.mkdir(exist_ok=True)
    file(name).write_text(small.yaml)
    return {
        "command": command(name),
        "runs": found.runs,
        "cpu_s": cpu_s,
        "strategy": found.strategy,
        "breaks": race.breaks,
        "cured_runs": cured_runs,
        "seeds": len(SEEDS),
        "shrunk": small.counts(),
        "why_not_minimal": small.why_not,
    }


def main(arguments: list[str]) -> int:
    return searches.search(RECORD, list(RACES), list(RACES), arguments, find, "NOT FOUND")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

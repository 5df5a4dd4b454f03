"""Whether exploration finds the bugs of the museum, and how small it makes them:
python -m tests.museum.explorations [NUMBER … | --missing].

Each search is what :func:`command` says, in a scenario of the bug's area in which no time is chosen for it. As many
runs without the bug have to hold. Writes ``explored.json``; exit code 1 if a bug is not found within its CPU time.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kemu.lab.exploration import workers
from kemu.lab.exploration.clusters import Cluster
from kemu.lab.exploration.executions import Failure
from kemu.lab.exploration.plans import Plan
from kemu.lab.exploration.searches import Options, Search
from kemu.lab.exploration.shrinking import shrinker
from kemu.lab.exploration.sources import Source
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from tests import searches
from tests.museum.pieces import PIECES, sides

EXPLORED = Path(__file__).parent / "explored.json"
BY_NUMBER = {str(piece.number): piece for piece in PIECES.values()}
SEED = 1
RUNS = 1000
"""The default of ``kemu explore``."""
MOST_CPU_S = 600.0
MOST_SHRINKING_S = 900.0
"""Real time, on a machine that others use, too. What is limited are the executions; CPU seconds are recorded."""
FEWEST_CURED = 32
RUNS_OF_GARBAGE = 50


@dataclass(frozen=True)
class Subject:
    """Where a bug is searched."""

    scenario: str
    bug: Mapping[str, Any]
    """Settings that bring it."""
    check: str = ""
    """The only check or expectation that counts; empty: all do."""
    strategies: tuple[str, ...] = ()
    """None: the usual ones."""
    cure: Mapping[str, Any] = field(default_factory=dict)
    """Settings without the bug; none: the scenario as it is."""
    runs: int = RUNS


def bugs(*numbers: int) -> dict[str, Any]:
    return {"bugs": [f"k8s-{number}" for number in numbers]}


def of_the_piece(number: int, check: str, *strategies: str, settings: Mapping[str, Any] | None = None) -> Subject:
    """The cluster of the piece with its claim, but with the times of a real cluster, and nothing is held back."""
    piece = BY_NUMBER[str(number)]
    bug, cure = sides(loader.load(catalog.find(piece.scenario)))
    own: dict[str, Any] = {"expect": [yaml.safe_load(piece.claim)], "timing": {"preset": "realistic"}}
    own |= settings or {}
    return Subject(piece.scenario, {**bug, **own}, check, strategies, {**cure, **own})


MULTI_POINT = "schedulers[0].config.profiles[0].plugins.multiPoint.enabled"
POST_FILTER = "schedulers[0].config.profiles[0].pluginConfig[0].args.postFilter"
RELABELLED = {
    "at": "10s",
    "patch": {"kind": "Node", "name": "node-1", "merge": {"metadata": {"labels": {"disk": "hdd"}}}},
}
PREFERRED = {
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 1,
                    "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
                }
            ]
        }
    },
    "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
}
NO_WAY_ROUND = ("seeds", "pos", "walk", "observe-late", "uniform")
"""Crashes break these claims, too, whatever the bug."""


def subjects() -> dict[int, Subject]:
    """By number of the issue."""
    drain, users = "races/drain-of-a-labelled-node", "races/impatient-users"
    return {
        117: Subject("races/two-gangs", {POST_FILTER: False}, "red-succeeds", ("seeds",)),
        59848: Subject(
            "races/evictions-at-once", {"apiServers.replicas": 2, "informers": "listWatch"}, "no-name-runs-twice",
            ("stale",), {"apiServers.replicas": 2},
        ),
        65240: Subject("races/nodes-under-pressure", bugs(65240), "few-agents-are-made", ("seeds",)),
        65257: of_the_piece(65257, "db.count.running", *NO_WAY_ROUND),
        71486: Subject("races/busy-scheduler", bugs(71486), "jobs-get-their-turn", ("seeds",)),
        72124: of_the_piece(72124, "no-priority-inversion", *NO_WAY_ROUND),
        72593: Subject(
            "races/replica-set-expectations",
            {"events[0].create.spec.template.spec.nodeName": "node-1", "duration": "8s"},
            "ten-pods-are-created", ("seeds",), {"duration": "8s"},
        ),
        82149: Subject(drain, bugs(82149), "voluntary-evictions-respect-budgets"),
        86373: Subject("races/busy-scheduler", {"schedulers[0].config": {}}, "jobs-get-their-turn", ("seeds",)),
        91492: Subject("races/preemption-under-a-budget", {}, "the-budget-is-kept"),
        91601: Subject(
            "races/nodes-join", {MULTI_POINT: [{"name": "node_tree:NodeTree"}]}, "an-agent-on-each-node", ("seeds",),
        ),
        92600: of_the_piece(92600, "high.running", *NO_WAY_ROUND),
        95752: of_the_piece(95752, "no-pod-starves", *NO_WAY_ROUND),
        95822: Subject(drain, bugs(95822), "nobody-is-rejected"),
        99708: Subject(
            drain, {"events[1]": RELABELLED}, "nobody-is-rejected", ("seeds",),
            {"events[1]": RELABELLED, "workloads[0].pods.spec": PREFERRED},
        ),
        102339: Subject(users, bugs(102339), "middle-runs-in-the-end", ("seeds",)),
        106361: Subject("races/more-pods-than-room", bugs(106361), "nobody-is-rejected", ("stale",)),
        106780: Subject("races/preemption-on-a-small-node", bugs(106780), "low-runs-beside-it", ("seeds",)),
        106884: Subject("races/jobs-on-a-small-node", bugs(106884), "nobody-is-rejected"),
        106946: Subject("races/nodes-join", {"events[0].addNode.taints": []}, "nobody-is-rejected", ("seeds",)),
        109236: of_the_piece(109236, "no-pod-starves", *NO_WAY_ROUND),
        120413: Subject("races/approvals", bugs(120413), "jobs-are-done", ("seeds",)),
        125491: Subject("races/scale-down", bugs(125491), "all-run", ("seeds",)),
        126479: Subject("races/waiting-in-line", {"schedulers[0].config": {}}, strategies=("seeds",)),
        126700: of_the_piece(
            126700, "p4.bound", *NO_WAY_ROUND,
            # As somebody did in the issue; the name p1 may be taken still.
            settings={"events[2].create.metadata.name": "p4", "expect": [{"pod": "p4", "bound": {"before": "1m"}}]},
        ),
        130429: of_the_piece(130429, "no-preemption-loop", *NO_WAY_ROUND),
        133602: of_the_piece(
            133602, "train.count.running", *NO_WAY_ROUND,
            settings={"workloads[0].arrivals": {"every": {"exponential": {"mean": "50ms"}}, "count": 13}},
        ),
        # With pos the answer to a deletion overtakes its news: then a victim is preempted twice without the bug, too.
        134249: of_the_piece(
            134249, "event.victim.Preempted", *(one for one in NO_WAY_ROUND if one != "pos")
        ),
        136782: of_the_piece(136782, "admissions_rejected", *NO_WAY_ROUND),
        141227: of_the_piece(141227, "no-pod-starves", *NO_WAY_ROUND),
        141694: of_the_piece(141694, "no-pod-starves", *NO_WAY_ROUND),
    }  # fmt: skip


SUBJECTS = subjects()
NOT_RECORDED: Mapping[int, str] = {
    59848: "a server that is behind, a reboot and a lost connection have to meet within seconds",
    448: "every crash of an only leader shows it",
    129795: "a watch has to be behind for five minutes; the strategy stale takes a minute",
    131867: "no strategy tells an actor to end",
}
"""By number of the issue: why there is no record of a search."""


def command(subject: Subject) -> str:
    """For a shell."""
    words = [f"kemu explore {subject.scenario} --seed {SEED} --failures 1"]
    words += [f"--runs {subject.runs}"] if subject.runs != RUNS else []
    words += [f"--strategy {name}" for name in subject.strategies]
    words += [f"--check {subject.check}"] if subject.check else []
    words += [f"--set '{path}={_flow(value)}'" for path, value in subject.bug.items()]
    return " ".join(words)


def _flow(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
    return text.removesuffix("...\n").strip().replace("'", '"')


@dataclass(frozen=True)
class Found:
    """The first run that fails."""

    runs: int
    """Up to and with that one."""
    strategy: str
    scenario: Scenario
    """With its seed and holds."""
    failure: Failure


def searched(subject: Subject, settings: Mapping[str, Any], runs: int) -> Found | None:
    """What the command finds first; None: nothing within the limits."""
    scenario = loader.load(catalog.find(subject.scenario), overrides=settings)
    checks = (subject.check,) if subject.check else ()
    begun_s = time.process_time()
    with tempfile.TemporaryDirectory(prefix="kemu-museum-") as folder:
        options = Options(
            Path(folder), SEED, runs, failures=1, strategies=subject.strategies, checks=checks, shrinks=False
        )
        with Search(scenario, options, executor=workers.Inline()) as search:
            for record in search.go():
                if record.number % RUNS_OF_GARBAGE == 0:
                    gc.collect()
                if time.process_time() - begun_s > MOST_CPU_S:
                    break
            return found_first(scenario, search.clusters())


def found_first(scenario: Scenario, clusters: Sequence[Cluster]) -> Found | None:
    """The first run that failed, as a scenario; None: none did."""
    if not clusters:
        return None
    first = clusters[0].first
    plan = Plan(first.plan.overrides, first.plan.seed, None, first.holds or first.plan.holds)
    return Found(first.number + 1, first.strategy, Source.of(scenario).scenario(plan), clusters[0].failure)


def shrunk(scenario: Scenario, failure: Failure) -> dict[str, Any]:
    """How small it becomes, in how many executions and CPU seconds."""
    begun_s = time.process_time()
    small = shrinker.shrink(scenario, failure, most_s=MOST_SHRINKING_S)
    cpu_s = round(time.process_time() - begun_s, 1)
    return {"shrunk": {**small.counts(), "cpu_s": cpu_s}, "why_not_minimal": small.why_not}


def explore(number: str) -> dict[str, Any] | None:
    """The record of one piece; None: the bug is not found, or what is found is there without it, too."""
    subject = SUBJECTS[int(number)]
    begun_s = time.process_time()
    found = searched(subject, subject.bug, subject.runs)
    cpu_s = round(time.process_time() - begun_s, 1)
    if found is None:
        return None
    cured_runs = max(found.runs, FEWEST_CURED)
    if subject.bug or subject.cure:
        false = searched(subject, subject.cure, cured_runs)
        if false is not None:
            print(f"{number}: without the bug, too, after {false.runs} runs: {false.failure.detail}", flush=True)
            return None
    return {
        "command": command(subject),
        "runs": found.runs,
        "cpu_s": cpu_s,
        "strategy": found.strategy,
        "breaks": found.failure.id,
        "cured_runs": cured_runs,
        **shrunk(found.scenario, found.failure),
    }


def main(arguments: list[str]) -> int:
    order = list(BY_NUMBER)
    asked = [number for number in order if int(number) in SUBJECTS]
    return searches.search(EXPLORED, order, asked, arguments, explore, f"not found in {MOST_CPU_S:g} CPU seconds")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

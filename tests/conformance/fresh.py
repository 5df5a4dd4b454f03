"""Fresh cases of every family: ``python -m tests.conformance.fresh --seed 7 [--cases 5500] [FAMILY …]``.

Draws cases, asks Kubernetes' own code (``scripts/record``, which needs Go; a real API server and garbage collector for
three families) and kemu, and compares. Prints a line for each family, and for each difference the commands that show
it again. Exits with 1 if there is one. Cases whose answer is left to chance are left out by the recorders.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kemu.lab.conformance import agreements, case_files, registry
from tests.conformance.generate import GENERATORS

ROOT = Path(__file__).parents[2]
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Asked:
    kind: str
    """Of ``kemu conformance``."""
    recorder: Sequence[str]
    families: Mapping[str, int]
    """Cases of 10,000: more of those that take the real code milliseconds than of those that take it half a second."""


def _kubernetes(kind: str) -> list[str]:
    return [str(ROOT / "scripts" / "record"), kind]


def _server(name: str) -> list[str]:
    return [sys.executable, "-m", f"tests.conformance.{name}_recorder"]


ASKED = (
    Asked(
        "scheduler",
        _kubernetes("scheduler"),
        {"sampling": 250, "profiles": 250, "features": 450, "batching": 250, "narrowed": 350, "volumes": 850},
    ),
    Asked(
        "timeline",
        _kubernetes("timeline"),
        dict.fromkeys(
            (
                *("backoff", "budgets", "extended", "mixed", "nominated", "overtaking", "permit", "priority", "random"),
                *("refused", "gangs", "group-decisions"),
            ),
            85,
        ),
    ),
    Asked(
        "kubelet",
        _kubernetes("kubelet"),
        {
            **dict.fromkeys(("allocations", "config-defaults", "critical", "eviction-rank", "qos", "resize"), 450),
            **dict.fromkeys(("admission", "readiness", "thresholds", "probes"), 350),
            **dict.fromkeys(("critical-preemption", "eviction-loop", "eviction-manager", "taint-eviction"), 250),
            "node-failure": 40,
        },
    ),
    Asked("attachments", _kubernetes("attachments"), {"attachments": 60}),
    Asked("autoscaling", _kubernetes("autoscaling"), {"autoscaling": 150}),
    Asked("elections", _kubernetes("elections"), {"elections": 200}),
    Asked("namespaces", _kubernetes("namespaces"), {"namespaces": 80}),
    Asked("patches", _kubernetes("patches"), {"patches": 400}),
    Asked("claims", _kubernetes("claims"), {"claims": 30, "device-taints": 30}),
    Asked("devices", _kubernetes("devices"), {"devices": 100, "device-search": 100}),
    Asked("jobs", _kubernetes("jobs"), {"jobs": 40, "cronjobs": 40, "schedules": 200}),
    Asked("quota", _kubernetes("quota"), {"quota": 100, "device-quota": 50}),
    Asked("volumes", _kubernetes("volumes"), {"pv-controller": 40, "volume-binding": 40}),
    Asked(
        "workloads",
        _kubernetes("workloads"),
        dict.fromkeys(("daemon-sets", "deployments", "replica-sets", "rollouts", "stale", "stateful-sets"), 50),
    ),
    Asked(
        "cluster-autoscaling",
        _kubernetes("cluster-autoscaling"),
        dict.fromkeys(("scale-up", "scale-down", "scaling"), 40),
    ),
    Asked("admitted", _server("admitted"), {"admitted": 40}),
    Asked("apply", _server("writes"), {"apply": 40}),
    Asked("bodies", _server("writes"), {"bodies": 40}),
    Asked("metadata", _server("writes"), {"metadata": 40}),
    Asked("fields", _server("writes"), {"fields": 40}),
    Asked("statuses", _server("writes"), {"statuses": 40}),
    Asked("warnings", _server("writes"), {"warnings": 40}),
    Asked("requests", _server("requests"), {"requests": 40}),
    Asked("garbage", _server("garbage"), {"garbage": 40}),
)
ELSEWHERE = {
    "tables": "tests/gateway/tables/test_printers.py compares what is printed",
    "stated": "few scenarios, each of which is shipped",
}
"""Families that are not drawn here, and why."""


def counts(cases: int) -> dict[str, int]:
    """How many cases of each family are drawn: at least one."""
    weights = {family: weight for one in ASKED for family, weight in one.families.items()}
    whole = sum(weights.values())
    return {family: max(1, round(cases * weight / whole)) for family, weight in weights.items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.fresh", description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", type=int, default=5500, help="of all families together")
    options = parser.parse_args()
    many = counts(options.cases)
    if unknown := sorted(set(options.families) - set(many)):
        parser.error(f"no family {', '.join(unknown)}; there are {', '.join(sorted(many))}")
    agree = total = 0
    unasked = []
    for one in ASKED:
        for family in options.families or one.families:
            if family not in one.families:
                continue
            try:
                report = compare(one, family, options.seed, many[family])
            except Unrecorded as error:
                unasked.append(family)
                print(f"{family:20} {error}", flush=True)
                continue
            agree, total = agree + report.agree, total + report.total
            print(f"{family:20} {report.agree:5} of {report.total:5} agree, of {many[family]} drawn", flush=True)
            for found in report.disagreements[:SHOWN]:
                tell(one, family, options.seed, found)
    without = f", without {', '.join(unasked)}" if unasked else ""
    print(f"fresh cases of seed {options.seed}: {agree} of {total} agree{without}")
    return 0 if agree == total and not unasked else 1


class Unrecorded(Exception):
    """A family of which there is no answer to compare with."""


def compare(asked: Asked, family: str, seed: int, count: int) -> agreements.Report:
    """Raises Unrecorded if the recorder fails, or leaves all cases out."""
    with tempfile.TemporaryDirectory() as folder:
        drawn, recorded = Path(folder) / "drawn.jsonl", Path(folder) / "recorded.jsonl"
        with drawn.open("w") as file:
            for number in range(count):
                print(json.dumps({"case": GENERATORS[family](family, seed, number)}, sort_keys=True), file=file)
        with recorded.open("wb") as out:
            done = subprocess.run([*asked.recorder, drawn], stdout=out, stderr=subprocess.PIPE, cwd=ROOT, check=False)
        if done.returncode:
            last = done.stderr.decode(errors="replace").rstrip().rpartition("\n")[2]
            raise Unrecorded(f"the recorder ended with {done.returncode}: {last}")
        if not recorded.stat().st_size:
            raise Unrecorded(f"the recorder leaves all {count} cases out")
        cases = list(case_files.read(recorded))
    return agreements.judge(registry.kind(asked.kind), cases, jobs=os.cpu_count() or 1)


def tell(asked: Asked, family: str, seed: int, found: agreements.Disagreement) -> None:
    print(f"  {found.id}")
    for difference in found.differences[:SHOWN]:
        print(f"    {difference}"[:200])
    recorder = " ".join(asked.recorder).replace(f"{ROOT}/", "").replace(sys.executable, "python")
    count = int(found.id.rpartition("-")[2]) + 1
    print(
        f"    again: python -m tests.conformance.generate {family} --seed {seed} --count {count} | tail -n 1 |"
        f" {recorder} > case.jsonl; kemu conformance {asked.kind} case.jsonl",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())

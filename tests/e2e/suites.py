"""Which of Kubernetes' e2e tests are run, and how.

    python -m tests.e2e.suites --seconds 600    all that the real control plane passed, in shards one after the other

``../shared/e2e/real.txt`` tells what a real control plane of v1.36.3 with three nodes of KWOK answered: outcome,
seconds and name of each test of [Conformance]. ``beyond.txt`` tells the same of others, chosen by hand: those without
[Slow], [Disruptive] and gates that are off by default, which need neither a cloud nor a network between pods. KWOK runs
no containers, so what passes there needs none.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from kemu.emulated.real import executables
from tests.e2e import converters

REAL = Path(__file__).resolve().parents[2].parent / "shared" / "e2e" / "real.txt"
BEYOND = Path(__file__).with_name("beyond.txt")
VERSION = "v1.36.3"
UP_S = 60.0


class Real(NamedTuple):
    """What the real control plane answered."""

    outcome: str
    seconds: float
    name: str


def real(*files: Path) -> list[Real]:
    """Of all files, unless some are named. Raises FileNotFoundError where one is not beside the project."""
    found = []
    for line in "".join(file.read_text() for file in files or (REAL, BEYOND)).splitlines():
        outcome, seconds, name = line.split(None, 2)
        found.append(Real(outcome, float(seconds), name.strip()))
    return found


def binary() -> Path:
    """The e2e.test that ``../shared/tools/kube build e2e.test`` has built. Raises FileNotFoundError."""
    found = executables.cache() / f"e2e.test-{VERSION}"
    if not found.is_file():
        raise FileNotFoundError(f"{found.name} is not in {found.parent}")
    return found


def kubectl() -> str:
    """That of the same version, if ``../shared/tools/kube build kubectl`` has built it; else whichever is on the
    PATH."""
    found = executables.cache() / f"kubectl-{VERSION.replace('v1', 'v0')}"
    return str(found) if found.is_file() else "kubectl"


def wanted(most_s: float, *files: Path, serial: bool) -> list[str]:
    """Names of the tests that passed on the real control plane within so many seconds each. ``serial``: those that want
    a cluster of their own, or the others."""
    return [
        one.name
        for one in real(*files)
        if one.outcome == "passed"
        and one.seconds <= most_s
        and (kubectl() != "kubectl" or "kuberc" not in one.name)  # a command that older ones do not have
        and ("[Serial]" in one.name) is serial
    ]


@contextmanager
def cluster(folder: Path) -> Iterator[Path]:
    """``kemu up`` with three nodes; its kubeconfig."""
    command = [sys.executable, "-m", "kemu.doors.cli.main", "up", "--nodes", "3", "--json", "--out", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield Path(json.loads(process.stdout.readline())["kubeconfig"])
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=UP_S)


def run(names: Sequence[str], folder: Path, seconds: float) -> dict[str, str]:
    """Outcomes by name, of a cluster of its own. ``seconds``: in all."""
    converts = any(name in converters.TESTS for name in names)
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.xml"
    focus = "|".join(re.escape(name).replace("/", "\\/") for name in names)
    with cluster(folder / "run") as kubeconfig, converters.converter(kubeconfig) if converts else nullcontext():
        command = [
            *(str(binary()), "--provider=skeleton", "--kubeconfig", str(kubeconfig), "--num-nodes=3"),
            f"--kubectl-path={kubectl()}",
            *("--disable-log-dump", f"--ginkgo.focus={focus}", f"--ginkgo.timeout={seconds:.0f}s", "--ginkgo.no-color"),
            f"--ginkgo.junit-report={report}",
        ]
        with (folder / "e2e.log").open("wb") as log:
            subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, check=False, timeout=seconds + 120
            )
    found = outcomes(report)
    return {name: found.get(name, "missing") for name in names}


def outcomes(report: Path) -> dict[str, str]:
    """Of a JUnit file of e2e.test, by the names that ``real.txt`` has."""
    found = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        status = case.get("status", "")
        if status in ("skipped", "pending") or not case.get("name", "").startswith("[It]"):
            continue
        found[_name(case.get("name", ""))] = status
    return found


def _name(text: str) -> str:
    """Without what the framework adds."""
    text = _LABELS.sub("", text.removeprefix("[It] "))
    return text.partition(" [Conformance]")[0].strip()


_LABELS = re.compile(r" \[sig-[^\[\]]*\]$")
"""``[sig-node, NodeConformance]``"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.suites", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0, help="of each shard")
    parser.add_argument("--at-once", type=int, default=1, help="so many shards, each with a cluster of its own")
    parser.add_argument("--out", type=Path, help="folder for runs, logs and reports (default: removed at the end)")
    options = parser.parse_args()
    shards = {}
    for file, serial, part in itertools.product((REAL, BEYOND), (False, True), range(options.at_once)):
        names = wanted(float("inf"), file, serial=serial)
        shards[f"{file.stem}-{'serial' if serial else 'parallel'}-{part + 1}"] = names[part :: options.at_once]
    shards["converted"] = [*converters.TESTS]
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="kemu-e2e-") as temporary, ThreadPoolExecutor(options.at_once) as pool:
        folder = options.out or Path(temporary)
        for of_shard in pool.map(lambda one: run(shards[one], folder / one, options.seconds), shards):
            found |= of_shard
    failed = {name: outcome for name, outcome in found.items() if outcome != "passed"}
    count = len(found)
    print(f"{count - len(failed)} of {count} tests pass that pass on a real control plane")
    for name, outcome in failed.items():
        print(f"{outcome:10} {name}")
    return int(len(failed) > count / 100)


if __name__ == "__main__":
    raise SystemExit(main())

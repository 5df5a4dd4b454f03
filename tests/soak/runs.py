"""One run of a soak: starts it, attacks it, and looks for what must hold when it is over."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kemu.runtime.host import segments
from kemu.runtime.ray.broker import nodes, raylets
from tests.soak import attacks, etcds, processes, scenarios, witnesses

STOPPED_RAYLET_S = 1.5
LOOK_S = 2.0
"""How often memory, ports and shared memory are looked at."""
WARM_S, WARM_CPU_S = 30.0, 2.0
"""Of the life of a process, in which its memory may grow: real time, and the CPU time that it takes in a minute."""
START_S = 240.0
END_S = 180.0
"""Longest times of the start and the end of a run, on a busy machine."""
GONE_S = 10.0
"""What a run uses is gone that soon after its end."""


@dataclass(frozen=True)
class Plan:
    seed: int
    minutes: float
    nodes: int
    etcd: bool = False
    raylets: int = 0
    """0: a Ray of its own, whose raylet nobody touches; else a cluster of so many, of which the first is spared."""

    @property
    def growth_mib(self) -> float:
        """Most MiB a minute by which the memory of a process may grow. Short lives are still filling their caches."""
        return 10.0 + 60.0 / self.minutes


@dataclass
class Outcome:
    """What is wrong stands in ``faults``; an empty list is what a soak wants."""

    seed: int
    store: str
    verdict: str = ""
    headline: str = ""
    kills: dict[str, int] = field(default_factory=dict)
    stops: dict[str, int] = field(default_factory=dict)
    told: int = 0
    """Disturbances in the verdict."""
    acknowledged: int = 0
    growth: dict[str, float] = field(default_factory=dict)
    most_mib: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    wall_s: float = 0.0
    folder: str = ""


class Run:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._duration_s = plan.minutes * 60
        self.outcome = Outcome(plan.seed, "etcd" if plan.etcd else "kemu")
        self._apart: dict[int, None] = {}
        """Pids of processes of the soak itself."""
        self._traces = processes.Traces(self._apart)
        self._stopped: dict[int, float] = {}
        """Pids of processes that are stopped, and until when."""
        self._etcd: etcds.Etcd | None = None
        self._raylets: dict[str, int] = {}
        """Those that may be attacked."""

    def carry_out(self) -> Outcome:
        began = time.monotonic()
        outcome = self.outcome
        # Ray's sockets need short names.
        base = Path(tempfile.mkdtemp(prefix="soak-", dir="/tmp"))
        outcome.folder = str(base)
        temporary = base / "t"
        temporary.mkdir()
        try:
            if self._plan.etcd:
                self._etcd = etcds.Etcd(base / "etcd")
                self._apart[self._etcd.pid] = None
            with self._cluster() as environment:
                self._run(base, temporary, environment)
            self._look_for_leavings()
            left = list(temporary.iterdir())
            outcome.faults += [f"folder {path.name} is left" for path in left]
        finally:
            if self._etcd is not None:
                self._etcd.end()
            for process in processes.below(()):
                process.kill()
                process.wait(10)
        outcome.wall_s = round(time.monotonic() - began, 1)
        if not outcome.faults:
            shutil.rmtree(base, ignore_errors=True)
        return outcome

    @contextlib.contextmanager
    def _cluster(self) -> Iterator[dict[str, str]]:
        """What the run has to know of Ray."""
        if not self._plan.raylets:
            yield {}
            return
        with raylets.started([{} for _ in range(self._plan.raylets)]) as cluster:
            self._raylets = {f"raylet/{number}": pid for number, pid in enumerate(cluster.pids) if number}
            token = os.environ["RAY_AUTH_TOKEN"]  # set by the context
            yield {**nodes.LOCAL, "RAY_ADDRESS": cluster.address, "RAY_AUTH_TOKEN": token}

    def _run(self, base: Path, temporary: Path, ray: dict[str, str]) -> None:
        outcome, plan = self.outcome, self._plan
        address = self._etcd.address if self._etcd is not None else ""
        path, folder = base / "soak.json", base / "run"
        path.write_text(json.dumps(scenarios.scenario(plan.seed, self._duration_s, plan.nodes, address)))
        command = [sys.executable, "-m", "kemu.doors.cli.main", "run", str(path), "--out", str(folder), "--json"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")} | ray
        with (base / "stdout").open("wb") as out, (base / "stderr").open("wb") as err:
            driver = subprocess.Popen(command, stdout=out, stderr=err, env={**environment, "TMPDIR": str(temporary)})
        try:
            self._attack(driver, folder)
            driver.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            outcome.faults.append(f"the run does not end within {END_S:g} s of its last pod")
            driver.kill()
            driver.wait()
        finally:
            self._let_go(float("inf"))
        self._judge(driver.returncode, base, folder)

    # While it runs

    def _attack(self, driver: subprocess.Popen[bytes], folder: Path) -> None:
        deadline = time.monotonic() + START_S
        while driver.poll() is None and not _has_begun(folder):
            if time.monotonic() > deadline:
                self.outcome.faults.append(f"the run has not begun within {START_S:g} s")
                return
            time.sleep(0.2)
        begun = time.monotonic()
        over = begun + self._duration_s - scenarios.quiet_s(self._duration_s)
        attacker = attacks.Attacker(self._plan.seed)
        look_at, attack_at = begun, begun + attacker.pause_s()
        while driver.poll() is None and time.monotonic() < begun + self._duration_s + END_S:
            now = time.monotonic()
            self._let_go(now)
            if self._etcd is not None:
                self._etcd.tend(now, self._apart)
            if now >= look_at:
                self._traces.look(now, {"driver": driver.pid, **processes.cells(folder)})
                look_at = now + LOOK_S
            if attack_at <= now < over:
                self._strike(attacker, folder, now)
                attack_at = now + attacker.pause_s()
            time.sleep(0.05)

    def _strike(self, attacker: attacks.Attacker, folder: Path, now: float) -> None:
        pids = {f"cell/{name}": pid for name, pid in processes.cells(folder).items()}
        if self._etcd is not None and self._etcd.runs:
            pids["etcd"] = self._etcd.pid
        pids |= self._raylets
        pids = {name: pid for name, pid in pids.items() if pid not in self._stopped}
        if not pids:
            return
        attack = attacker.draw(list(pids), now)
        pid = pids[attack.target]
        counted = self.outcome.kills if attack.how == "kill" else self.outcome.stops
        try:
            os.kill(pid, signal.SIGKILL if attack.how == "kill" else signal.SIGSTOP)
        except ProcessLookupError:
            return
        counted[attack.target] = counted.get(attack.target, 0) + 1
        is_raylet = attack.target in self._raylets
        if attack.how == "stop":
            # A raylet that does not answer for 3 s counts as dead.
            self._stopped[pid] = now + (min(attack.for_s, STOPPED_RAYLET_S) if is_raylet else attack.for_s)
        elif is_raylet:
            del self._raylets[attack.target]
        elif attack.target == "etcd":
            assert self._etcd is not None
            self._etcd.died(now)

    def _let_go(self, now: float) -> None:
        for pid, until in list(self._stopped.items()):
            if until <= now:
                del self._stopped[pid]
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    continue

    # When it is over

    def _look_for_leavings(self) -> None:
        deadline = time.monotonic() + GONE_S
        while (left := self._traces.left_behind()) and time.monotonic() < deadline:
            time.sleep(0.2)
        self.outcome.faults += [f"{one} is left" for one in left]

    def _judge(self, code: int, base: Path, folder: Path) -> None:
        outcome = self.outcome
        try:
            verdict: dict[str, Any] = json.loads((folder / "verdict.json").read_text())
        except (OSError, ValueError):
            said = (base / "stderr").read_text().strip().splitlines()[-3:]
            outcome.faults.append(f"no verdict, exit {code}: {' / '.join(said)}")
            return
        outcome.verdict, outcome.headline = verdict["verdict"], verdict["headline"]
        # A run may lose what it stands on together with a raylet: then it knows that it cannot judge.
        lost_raylet = any(target.startswith("raylet/") for target in outcome.kills)
        if (verdict["verdict"], code) not in {("holds", 0), *([("unknown", 3)] if lost_raylet else ())}:
            failing = [one["id"] for one in (*verdict["checks"], *verdict["expectations"]) if one["holds"] is False]
            outcome.faults.append(f"exit {code}: {verdict['headline']} ({', '.join(failing)})")
        outcome.told = len(verdict.get("disturbances", ()))
        self._compare_disturbances(verdict)
        held = witnesses.in_etcd(self._etcd.address) if self._etcd is not None else witnesses.on_disk(folder)
        outcome.acknowledged, lost = witnesses.lost_writes(folder, held)
        outcome.faults += [f"lost: {one}" for one in lost[:5]]
        if not outcome.acknowledged:
            outcome.faults.append("no write was acknowledged")
        self._judge_memory()

    def _compare_disturbances(self, verdict: dict[str, Any]) -> None:
        """Each kill of a cell stands in the verdict, as coming from outside. A raylet that is killed may take a cell
        along, once."""
        told: dict[str, int] = {}
        for one in verdict.get("disturbances", ()):
            if one["what"] == "died" and one["from"] == "outside":
                told[one["process"]] = told.get(one["process"], 0) + 1
        raylets = sum(target.startswith("raylet/") for target in self.outcome.kills)
        for target, kills in self.outcome.kills.items():
            found = told.get(target, 0)
            if target.startswith("cell/") and not kills <= found <= kills + raylets:
                self.outcome.faults.append(f"{target} was killed {kills} times, the verdict tells {found}")

    def _judge_memory(self) -> None:
        outcome = self.outcome
        outcome.growth = {name: round(slope, 1) for name, slope in self._traces.growth(WARM_S, WARM_CPU_S).items()}
        outcome.most_mib = {name: most >> 20 for name, most in self._traces.most_bytes().items()}
        for name, slope in outcome.growth.items():
            if slope > self._plan.growth_mib:
                outcome.faults.append(f"the memory of {name} grows by {slope:g} MiB a minute")


def _has_begun(folder: Path) -> bool:
    """Some cell has an event of a time after 0."""
    for path in (folder / "cells" / "logs").glob("*.segment"):
        try:
            if any(payload[1] != 0 for payload in segments.read_segment(path)):
                return True
        except (OSError, segments.DamagedSegment):
            continue
    return False

"""The cluster of ``deploy/ray-cluster.yaml`` on one machine: a network namespace for each of its machines.

Each namespace has an address of its own on a bridge, so cells listen there and use TLS, and the wall clocks of the
workers are two seconds ahead and behind. Ray is started by the commands of the file. Needs root and ``ip netns``.

    python -m tests.ray.namespaces [--speed N] [SCENARIO …]     # by default every scenario under seeds/
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kemu.lab.scenario import catalog
from kemu.runtime.host import wall_clocks

FILE = Path(__file__).parents[2] / "deploy" / "ray-cluster.yaml"
SKEWS_S = (0.0, 2.0, -2.0)
"""Of the wall clock of each machine; the first one is the head, where the driver runs."""
PORT = 6379
OWN_DISK = """set -e
mount --make-rprivate /
mount -t tmpfs tmpfs {folder}
echo {boot} > {folder}/boot
mount --bind {folder}/boot /proc/sys/kernel/random/boot_id
"""
"""Before a command of bash: ``folder`` is on a disk of its own, and the machine is another one for kemu."""


@dataclass(frozen=True)
class Machine:
    namespace: str
    address: str
    skew_s: float

    def command(self, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *command]


def obstacle() -> str:
    """Why there can be no namespaces here; empty: there can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if shutil.which("ip") is None:
        return "there is no program `ip` (Debian: iproute2)"
    name = f"kemu-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if made.returncode:
        return f"ip netns add: {made.stderr.strip()}"
    bridge = subprocess.run(
        ["ip", "-n", name, "link", "add", "name", "kemutry", "type", "bridge"], capture_output=True, text=True
    )
    subprocess.run(["ip", "netns", "del", name], check=True)
    return f"ip link add … type bridge: {bridge.stderr.strip()}" if bridge.returncode else ""


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


@contextlib.contextmanager
def machines(skews_s: Sequence[float] = SKEWS_S) -> Iterator[list[Machine]]:
    """Namespaces that reach each other over a bridge, and nothing else."""
    tag = f"{os.getpid() % 100_000}"
    hub = f"kemu-{tag}-hub"
    found = [Machine(f"kemu-{tag}-{n}", f"10.77.0.{n + 1}", skew_s) for n, skew_s in enumerate(skews_s)]
    made: list[str] = []
    try:
        # The bridge has a namespace, too: nothing of it is seen outside.
        _ip("netns", "add", hub)
        made.append(hub)
        _ip("-n", hub, "link", "add", "name", "bridge", "type", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        for number, machine in enumerate(found):
            _ip("netns", "add", machine.namespace)
            made.append(machine.namespace)
            _ip(
                "-n",
                hub,
                "link",
                "add",
                f"to{number}",
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                machine.namespace,
            )
            _ip("-n", hub, "link", "set", f"to{number}", "master", "bridge", "up")
            _ip("-n", machine.namespace, "addr", "add", f"{machine.address}/24", "dev", "eth0")
            _ip("-n", machine.namespace, "link", "set", "eth0", "up")
            _ip("-n", machine.namespace, "link", "set", "lo", "up")
            _ip("-n", machine.namespace, "route", "add", "default", "dev", "eth0")
        yield found
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def start_commands(machine: Machine, head: Machine, directory: str) -> list[str]:
    """What the file starts on that machine."""
    config = yaml.safe_load(FILE.read_text())
    lines = config["head_start_ray_commands" if machine == head else "worker_start_ray_commands"]
    # Not `ray stop`: it ends every Ray of this machine.
    starts = [line for line in lines if "ray start" in line]
    found = []
    for line in starts:
        line = line.replace("~/kemu-venv/bin/ray", f"{sys.executable} -m ray.scripts.scripts").replace(
            "$RAY_HEAD_IP", head.address
        )
        line = line.replace(" --autoscaling-config=~/ray_bootstrap_config.yaml", "")
        line += f" --node-ip-address={machine.address} --num-cpus=2 --object-store-memory=83886080"
        if machine == head:
            line += f" --temp-dir={directory}"
        found.append(line)
    return found


@contextlib.contextmanager
def cluster(machines: Sequence[Machine], own_disk: Path | None = None) -> Iterator[Mapping[str, str]]:
    """Ray on these machines. Yields the environment in which programs find it; no process of it is left at the end.

    ``own_disk``: a folder that is another one on each machine but the head, where the kernel also calls itself a boot
    of its own.
    """
    directory = tempfile.mkdtemp(prefix="kemu-ns-", dir="/tmp")
    head = machines[0]
    environment = {
        **os.environ,
        "RAY_ADDRESS": f"{head.address}:{PORT}",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_TMPDIR": directory,
        # On a busy machine Ray's own processes take their time.
        "RAY_raylet_start_wait_time_s": "120",
    }
    try:
        for machine in machines:
            own = {**environment, wall_clocks.OFFSET_VARIABLE: str(machine.skew_s)}
            del own["RAY_ADDRESS"]
            for line in start_commands(machine, head, directory):
                if own_disk is not None:
                    own["RAY_health_check_period_ms"] = own["RAY_health_check_initial_delay_ms"] = "1000"
                    if machine != head:
                        line = OWN_DISK.format(folder=own_disk, boot=machine.namespace) + line
                _start(machine, line, own)
        yield environment
    finally:
        _end(machines)
        shutil.rmtree(directory, ignore_errors=True)


def _start(machine: Machine, line: str, environment: Mapping[str, str]) -> None:
    """Ray waits for its own processes for a fixed time, which on a busy machine may be too short: then once more."""
    for attempts_left in (2, 1, 0):
        done = subprocess.run(
            machine.command("bash", "-c", line), env=environment, capture_output=True, text=True, timeout=300
        )
        if done.returncode == 0:
            return
        _end([machine])
        if not attempts_left:
            raise RuntimeError(f"{line}\n{done.stdout}\n{done.stderr}")


def _end(machines: Sequence[Machine]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in _pids(machines):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + 10
        while _pids(machines) and time.monotonic() < deadline:
            time.sleep(0.1)


def _pids(machines: Sequence[Machine]) -> list[int]:
    """Of all processes in the namespaces: Ray's, and those of runs."""
    found: list[int] = []
    for machine in machines:
        told = subprocess.run(["ip", "netns", "pids", machine.namespace], capture_output=True, text=True)
        found += [int(pid) for pid in told.stdout.split()]
    return found


def cells_seen(machine: Machine) -> set[tuple[str, int]]:
    """Where processes of cells listen just now on that machine."""
    told = subprocess.run(machine.command("ss", "-ltnpH"), capture_output=True, text=True).stdout
    found = set()
    for line in told.splitlines():
        where = line.split()[3].removeprefix("[::ffff:").replace("]", "")
        address, _, port = where.rpartition(":")
        if "KemuCell" in line and address == machine.address:
            found.add((address, int(port)))
    return found


PROBE = """
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.set_alpn_protocols(["h2"])
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as plain:
    print(context.wrap_socket(plain).version())
"""
"""Run in a namespace: which TLS a server speaks."""


@dataclass
class Outcome:
    scenario: str
    code: int
    verdict: str
    seconds: float
    listening: dict[str, str]
    """What was asked at each port of a cell's process: its own speaks TLS, that of Ray does not."""
    text: str


def run(
    machine: Machine, others: Sequence[Machine], environment: Mapping[str, str], scenario: str, speed: float
) -> Outcome:
    """``kemu run`` on that machine."""
    path = catalog.shipped()[scenario]
    begin = time.monotonic()
    listening: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="kemu-ns-run-") as out:
        command = [
            str(Path(sys.executable).parent / "kemu"),
            "run",
            str(path),
            "--runtime",
            "ray",
            "--speed",
            str(speed),
            "--json",
        ]
        with subprocess.Popen(
            machine.command(*command, "--out", f"{out}/run"),
            env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            while process.poll() is None and time.monotonic() - begin < 600:
                for each in (machine, *others):
                    for address, port in cells_seen(each) - {tuple(key.split()) for key in listening}:
                        if f"{address} {port}" not in listening:
                            with contextlib.suppress(subprocess.TimeoutExpired):
                                told = subprocess.run(
                                    machine.command(sys.executable, "-c", PROBE, address, str(port)),
                                    capture_output=True, text=True, timeout=30,
                                )  # fmt: skip
                                listening[f"{address} {port}"] = told.stdout.strip() or "in clear"
                time.sleep(1)
            if process.poll() is None:
                process.kill()
            text, errors = process.communicate()
    try:
        told: Any = json.loads(text)
        verdict = str(told.get("verdict"))
    except ValueError:
        verdict = "none"
    return Outcome(scenario, process.returncode, verdict, time.monotonic() - begin, listening, (errors or text)[-3000:])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    parser.add_argument("--speed", type=float, default=5)
    options = parser.parse_args()
    why = obstacle()
    if why:
        print(f"no namespaces here: {why}")
        return 0
    names = options.scenarios or [name for name in catalog.shipped() if name.startswith("seeds/")]
    failed = []
    with machines() as found, cluster(found) as environment:
        for name in names:
            outcome = run(found[0], found[1:], environment, name, options.speed)
            if outcome.code:
                # What milliseconds decide may need more time.
                outcome = run(found[0], found[1:], environment, name, options.speed / 3)
            secure = sorted(
                {where.split()[0] for where, spoken in outcome.listening.items() if spoken.startswith("TLS")}
            )
            ok = outcome.code == 0 and len(secure) > 1
            print(
                f"{'ok  ' if ok else 'FAIL'} {name}: {outcome.verdict}, {outcome.seconds:.0f} s, TLS at {secure}",
                flush=True,
            )
            if not ok:
                failed.append(name)
                print(outcome.text)
    print(f"{len(names) - len(failed)} of {len(names)} hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

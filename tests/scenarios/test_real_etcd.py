"""A real etcd in the store's place: the same run, the same checks."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from kemu.emulated.real import components
from kemu.errors import ActorFailed, KemuError
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from tests.scenarios.test_shipped import failures

DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Whatever the environment says of proxies."""

ETCD = shutil.which("etcd") or "/usr/bin/etcd"

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.skipif(not Path(ETCD).exists(), reason="etcd is not installed (Debian: etcd-server)"),
]


def start(directory: Path) -> tuple[subprocess.Popen[bytes], int]:
    client, peer = components.free_ports(2)
    process = subprocess.Popen(
        [
            ETCD, "--data-dir", str(directory), "--listen-client-urls", f"http://127.0.0.1:{client}",
            "--advertise-client-urls", f"http://127.0.0.1:{client}", "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-cluster", f"default=http://127.0.0.1:{peer}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return process, client


def serves(process: subprocess.Popen[bytes], port: int) -> bool:
    """False: it ended before it did."""
    deadline = time.monotonic() + 60
    while process.poll() is None:
        assert time.monotonic() < deadline, "etcd did not come up"
        try:
            with DIRECTLY.open(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                if json.load(answer)["health"] == "true":
                    return True
        except (OSError, ValueError):
            time.sleep(0.1)
    return False


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[str]:
    process, port = start(tmp_path / "etcd-0")
    try:
        # A port that was free may be somebody else's by the time it is taken: then etcd ends, and gets others.
        for attempt in range(1, 6):
            if serves(process, port):
                break
            assert attempt < 5, "etcd ended"
            process, port = start(tmp_path / f"etcd-{attempt}")
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.usefixtures("local_ray")
def test_a_run_on_a_real_etcd(etcd: str, tmp_path: Path) -> None:
    path = catalog.find("races/two-schedulers-one-node")
    # All is over after 20 s.
    scenario = loader.load(path, overrides={"store.etcd": etcd, "duration": "25s"})
    verdict, _ = runner.run_all(scenario, runner.Options(out=tmp_path / "run", runtime="ray", speed=2))
    assert verdict["verdict"] == "holds", failures(verdict)
    details = {found["id"]: found["detail"] for found in verdict["checks"]}
    assert details["acknowledged-writes-survive"] != "0 acknowledged writes"

    # It holds a cluster now, and a run wants one of its own.
    with pytest.raises(ActorFailed, match="the etcd is not empty"):
        runner.run_all(scenario, runner.Options(out=tmp_path / "again", runtime="ray", speed=2))


def test_virtual_time_has_no_room_for_it(tmp_path: Path) -> None:
    scenario = loader.load(catalog.find("races/two-schedulers-one-node"), overrides={"store.etcd": "127.0.0.1:1"})
    with pytest.raises(KemuError, match="--runtime wall or ray"):
        runner.run_all(scenario, runner.Options(out=tmp_path, runtime="sim"))

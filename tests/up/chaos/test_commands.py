"""``kemu step`` and ``kemu chaos`` on the command line, against clusters in processes of their own."""

from __future__ import annotations

import http.server
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli import exits, main
from kemu.lab.up import kubeconfigs
from kemu.lab.up.chaos import scripts
from tests.up.processes import up

MAPS = "/api/v1/namespaces/default/configmaps"


def _kemu(capsys: pytest.CaptureFixture[str], cluster: Any, *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main.main([*words, "--kubeconfig", str(cluster.up["kubeconfig"])])
    told = capsys.readouterr()
    return code, told.out + told.err


def _make(cluster: Any, name: str) -> None:
    cluster.ask(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})


def test_a_cluster_in_real_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with up(tmp_path, "--nodes", "1") as cluster:
        code, told = _kemu(capsys, cluster, "step", "10s")
        assert code == exits.INPUT
        assert "--virtual" in told
        code, fault = _kemu(capsys, cluster, "chaos", "refuse", "--code", "503", "--verb", "create", "--nth", "2")
        assert (code, fault) == (exits.HOLDS, "asked-1\n")
        _make(cluster, "a")
        with pytest.raises(urllib.error.HTTPError, match="503"):
            _make(cluster, "b")
        _make(cluster, "b")
        told = _kemu(capsys, cluster, "chaos", "list")[1]
        assert "asked-1: refuse code=503 verb=create nth=2" in told
        assert "struck 1" in told
        assert _kemu(capsys, cluster, "chaos", "heal", "asked-1") == (exits.HOLDS, "")
        assert _kemu(capsys, cluster, "chaos", "heal", "asked-1")[0] == exits.INPUT
        code, told = _kemu(capsys, cluster, "chaos", "pause", "--actor", "kubelet/node-9")
        assert code == exits.INPUT
        assert "kubelet/node-9" in told
        code, script = _kemu(capsys, cluster, "chaos", "record")
        (entry,) = scripts.read(script, "script")
        assert entry["refuse"]["nth"] == 2
        assert cluster.end()[0] == 0
    assert (cluster.folder / scripts.FILE).read_text() == script


def test_a_cluster_in_virtual_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("chaos:\n- {at: 100s, for: 60s, pause: {actor: kubelet/node-1}}\n")
    with up(tmp_path, "--nodes", "1", "--virtual", "--chaos", str(script)) as cluster:
        code, told = _kemu(capsys, cluster, "step", "90s")
        assert code == exits.HOLDS
        assert told.startswith("90.000 s have passed")
        code, told = _kemu(capsys, cluster, "step", "--until", "node/node-1 NotReady")
        assert (code, told.partition(";")[0]) == (exits.HOLDS, "node/node-1 NotReady: holds")
        code, told = _kemu(capsys, cluster, "step", "5s", "--until", "node/node-1 gone")
        assert (code, told.partition(";")[0]) == (exits.FAILS, "node/node-1 gone: does not hold")
        code, told = _kemu(capsys, cluster, "step", "--until", "node/node-1")
        assert code == exits.INPUT
        assert "write it as KIND/NAME CONDITION" in told
        assert _kemu(capsys, cluster, "chaos", "crash", "--node", "node-1", "--no-restart")[0] == exits.HOLDS
        _kemu(capsys, cluster, "step", "1s")
        assert "asked-1: crash nodes=node-1" in _kemu(capsys, cluster, "chaos", "list")[1]
        assert "struck 1" in _kemu(capsys, cluster, "chaos", "list")[1]
        script_text = _kemu(capsys, cluster, "chaos", "record")[1]
        assert {"node": ["node-1"], "restart": False} in [one.get("crash") for one in scripts.read(script_text, "it")]
        _make(cluster, "a")
        assert cluster.end()[0] == 0
    capsys.readouterr()
    assert main.main(["replay", str(cluster.folder)]) == exits.HOLDS
    assert ": the same, " in capsys.readouterr().out


def test_a_step_gives_up_on_a_cluster_that_hangs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with up(tmp_path, "--nodes", "1", "--virtual") as cluster:
        cluster.process.send_signal(signal.SIGSTOP)
        try:
            code, told = _kemu(capsys, cluster, "step", "10s", "--timeout", "1s")
        finally:
            cluster.process.send_signal(signal.SIGCONT)
        assert code == exits.INPUT
        assert f"{cluster.cluster['server']} has not answered for" in told
        cluster.eventually("/kemu/v1/clock", lambda found: found["virtual"])
        code, told = _kemu(capsys, cluster, "step", "100000h", "--until", "pod/a gone", "--timeout", "1s")
        assert (code, told.partition(";")[0]) == (exits.HOLDS, "pod/a gone: holds")
        assert cluster.end()[0] == 0


class _Standing(http.server.BaseHTTPRequestHandler):
    """A cluster in which time never passes."""

    def do_GET(self) -> None:
        clock = {"now_s": 12.5, "virtual": True, "waits_for": "its clients", "patience_s": 0.1}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(clock).encode())

    def do_POST(self) -> None:
        time.sleep(3)

    def log_message(self, *_: object) -> None:
        pass


def test_a_step_says_what_a_cluster_waits_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Standing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        file = tmp_path / "kubeconfig"
        kubeconfigs.write(file, kubeconfigs.document(f"http://127.0.0.1:{server.server_port}"))
        code = main.main(["step", "10s", "--timeout", "0.3s", "--kubeconfig", str(file)])
        server.shutdown()
    assert code == exits.INPUT
    told = capsys.readouterr().err
    assert "time stands at 12.500 s, for " in told
    assert "the cluster waits for its clients\n" in told


def test_an_interrupted_step_stops_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with up(tmp_path, "--nodes", "1", "--virtual") as cluster:
        words = ["-m", "kemu.doors.cli.main", "step", "100000h", "--kubeconfig", cluster.up["kubeconfig"]]
        step = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begun_s = cluster.ask("/kemu/v1/clock")["now_s"]
        cluster.eventually("/kemu/v1/clock", lambda found: found["now_s"] > begun_s + 1)
        step.send_signal(signal.SIGINT)
        assert step.wait(20) == exits.INTERRUPTED
        code, told = _kemu(capsys, cluster, "step", "10s")
        assert code == exits.HOLDS
        assert told.startswith("10.000 s have passed")
        assert cluster.end()[0] == 0

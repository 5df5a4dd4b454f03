"""kubectl prints the same with kemu as with a real kube-apiserver v1.36.3, but for what is argued."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.gateway.replays import recordings as exchanges
from tests.gateway.replays import replays
from tests.kubectl import comparisons, normalisers, proxies, recordings, scripts, servers, sessions
from tests.realkube import binaries, clusters

NIGHTLY = pytest.mark.nightly("hundreds of processes of kubectl; the first 80 run always")


#: Commands in CI: objects of all kinds are created, and shown in all ways. The others run at night.
SHORT = 80


def _check(results: list[sessions.Result]) -> None:
    found = comparisons.differences(recordings.outputs()[: len(results)], results)
    argued = comparisons.argued()
    unknown = [one for one in found if one.command not in argued]
    assert not unknown, "\n".join(f"=== {one.command}\n" + "\n".join(one.lines[2:]) for one in unknown)
    stale = sorted((set(argued) & {result.name for result in results}) - {one.command for one in found})
    assert not stale, f"these do not differ any more: {stale}"


def _run(
    steps: Iterable[scripts.Step], server: str, token: str, authority: Path | None, folder: Path
) -> list[sessions.Result]:
    recorder = proxies.Recorder(server, token, authority)
    try:
        return sessions.Session(recorder, folder).run(steps)
    finally:
        recorder.close()


@pytest.mark.slow
def test_kubectl_prints_what_it_prints_with_a_real_server(tmp_path: Path) -> None:
    binaries.require("kubectl")
    with servers.serving() as url:
        _check(_run(scripts.beginning(SHORT), url, "", None, tmp_path))


@NIGHTLY
def test_all_commands_print_what_they_print_with_a_real_server(tmp_path: Path) -> None:
    binaries.require("kubectl")
    with servers.serving() as url:
        _check(_run(scripts.script(), url, "", None, tmp_path))


SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: empty, description: Nobody but an API server}
spec:
  duration: 24h
  nodes: []
  schedulers: []
  controllers: []
  apiServers: {disableAdmissionPlugins: [ServiceAccount]}
"""


@NIGHTLY
def test_all_commands_print_the_same_with_kemu_up(tmp_path: Path) -> None:
    """The command itself, with TLS and a token; it ends cleanly on Ctrl-C."""
    binaries.require("kubectl")
    scenario, out = tmp_path / "empty.yaml", tmp_path / "run"
    scenario.write_text(SCENARIO)
    command = [sys.executable, "-m", "kemu.doors.cli.main", "up", str(scenario), "--out", str(out)]
    up = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert up.stdout is not None
        for line in up.stdout:
            if "Ctrl-C" in line:
                break
        _check(_run(scripts.script(), *proxies.access(out / "kubeconfig", tmp_path), tmp_path))
    finally:
        up.send_signal(signal.SIGINT)
        told, _ = up.communicate(timeout=60)
    # The script states the counts of a Job, of which no pod has ended. Nothing else is wrong.
    wrong = [line.split()[1] for line in told.splitlines() if line.startswith("✗")]
    assert (wrong, up.returncode) == (["job-counts-each-pod-once"], 1), told


@NIGHTLY
def test_the_real_server_still_says_what_is_recorded(tmp_path: Path) -> None:
    binaries.require("kubectl", "kube-apiserver", "etcd")
    with clusters.Cluster.start(tmp_path) as cluster:
        results = _run(scripts.script(), cluster.url, cluster.token, cluster.authority, tmp_path)
    changed = comparisons.differences(recordings.outputs(), results)
    assert not changed, changed


def test_the_requests_of_kubectl_are_answered_as_by_the_real_server() -> None:
    """What the script made kubectl ask, replayed without kubectl."""
    records = [exchanges.Record(row, number) for number, row in enumerate(recordings.exchanges(), 1)]
    outcomes = replays.run(records, is_complete=True)
    found = [
        f"{outcome.record.step} | {outcome.record.title()} | {difference}"
        for outcome in outcomes
        for difference in outcome.differences
    ]
    argued = comparisons.argued_exchanges()
    unknown = [line for line in found if not any(part in line for part in argued)]
    assert not unknown, "\n".join(unknown)
    stale = [part for part in argued if not any(part in line for line in found)]
    assert not stale, f"these do not differ any more: {stale}"
    assert sum(not outcome.left_out for outcome in outcomes) > 600


def test_ages_and_uids_are_no_difference_but_amounts_and_words_are() -> None:
    def text(shown: str) -> str:
        return sessions.Result("get", 0, shown, "").text

    assert text("a   1/1   Running   3s\n") == text("a   1/1   Running   1m4s\n")
    assert text("a   1/1   Running   3s\n") != text("a   0/1   Running   3s\n")
    assert text("cpu: 100m\n") != text("cpu: 200m\n")
    assert text("tolerationSeconds for 300s") != text("tolerationSeconds for 30s")
    one, other = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
    assert normalisers.normalise(f"uid: {one}") == normalisers.normalise(f"uid: {other}")
    assert normalisers.normalise("evicting pod b\nevicting pod a") == "evicting pod a\nevicting pod b"


def test_each_command_has_its_own_text() -> None:
    names = [step.name for step in scripts.script() if not isinstance(step, scripts.Write)]
    assert names == [name for name, _ in recordings.outputs()]
    assert len(names) > 250

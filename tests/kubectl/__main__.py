"""``python -m tests.kubectl record``, and ``compare``: see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.kubectl import comparisons, proxies, recordings, scripts, servers, sessions
from tests.realkube import clusters


def record() -> None:
    with tempfile.TemporaryDirectory() as folder, clusters.Cluster.start(Path(folder)) as cluster:
        recorder = proxies.Recorder(cluster.url, cluster.token, cluster.authority)
        results = sessions.Session(recorder, Path(folder)).run(scripts.script())
        recorder.close()
    recordings.write_outputs(results)
    recordings.write_exchanges(recorder.exchanges)
    print(f"{len(results)} commands, {len(recorder.exchanges)} exchanges")


def compare(kubeconfig: Path | None) -> int:
    with tempfile.TemporaryDirectory() as folder:
        if kubeconfig is None:
            with servers.serving() as url:
                results = _run(proxies.Recorder(url, "", None), Path(folder))
        else:
            results = _run(proxies.Recorder(*proxies.access(kubeconfig, Path(folder))), Path(folder))
    print(comparisons.report(results))
    found = comparisons.differences(recordings.outputs(), results)
    return int(any(one.command not in comparisons.argued() for one in found))


def _run(recorder: proxies.Recorder, folder: Path) -> list[sessions.Result]:
    try:
        return sessions.Session(recorder, folder).run(scripts.script())
    finally:
        recorder.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.kubectl")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record", help="run the script against a real kube-apiserver, and keep what it printed")
    against = commands.add_parser("compare", help="run the script against kemu, and show what differs")
    against.add_argument("--kubeconfig", type=Path, help="of a kemu up with no nodes, schedulers and controllers")
    given = parser.parse_args()
    if given.command == "record":
        record()
        sys.exit(0)
    sys.exit(compare(given.kubeconfig))

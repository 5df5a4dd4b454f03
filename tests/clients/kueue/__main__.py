"""``python -m tests.clients.kueue [--on kemu|real] [--jobs 500]``: prints the figures as JSON; exit 1 if something is
broken."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from kemu.emulated.real import components
from tests.clients import emulated
from tests.clients.kueue import manager, runs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.kueue", description=__doc__)
    parser.add_argument("--on", choices=(runs.KEMU, runs.REAL), default=runs.KEMU)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--qps", type=int, default=50, help="limit of the manager's client; 50 is Kueue's own")
    parser.add_argument("--folder", type=Path, help="keeps logs and the run there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kemu-kueue-") as passing:
        folder = options.folder or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        port = components.free_ports(1)[0]
        with runs.cluster(options.on, folder, port) as cluster:
            manager.install(cluster, port, service_is_local=options.on == runs.REAL, qps=options.qps)
            found = runs.run(cluster, options.jobs)
            cluster.stop()
            if isinstance(cluster, emulated.Emulated):
                verdict = cluster.end()
                print(verdict["headline"])
                found.broken.extend([verdict["headline"]] if verdict["verdict"] != "holds" else [])
    print(json.dumps(found.figures, indent=2))
    for sentence in found.broken[:20]:
        print(sentence)
    print(f"{len(found.broken)} sentences about what is broken")
    return int(bool(found.broken))


if __name__ == "__main__":
    raise SystemExit(main())

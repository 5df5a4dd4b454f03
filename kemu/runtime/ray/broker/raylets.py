"""Ray clusters of several raylets on this machine, for tests and measurements. As a program: the process that starts
one."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kemu.runtime.ray import processes
from kemu.runtime.ray.broker import nodes


@dataclass(frozen=True)
class Raylets:
    address: str
    """To give as ``ray_address``."""
    pids: list[int]
    """Pids of the raylets, in the order of their resources."""
    gcs: int
    """Its pid."""
    directory: str
    """With Ray's files."""


@contextlib.contextmanager
def started(resources: Sequence[Mapping[str, float]]) -> Iterator[Raylets]:
    """One raylet for each. No process and no folder of them is left at the end."""
    directory = tempfile.mkdtemp(prefix="kemu-", dir="/tmp")
    token = {"RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN", secrets.token_hex(32))}
    settings = {**nodes.LOCAL, **token}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kemu.runtime.ray.broker.raylets",
            directory,
            json.dumps([dict(each) for each in resources]),
        ],
        env={**nodes.environment(local=True), "RAY_TMPDIR": directory},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield Raylets(**json.loads(process.stdout.readline()), directory=directory)
    finally:
        running = processes.descendants(process.pid)
        process.kill()
        process.communicate()
        left = processes.end([*running, *processes.using(directory)], grace_s=0.0)
        shutil.rmtree(directory, ignore_errors=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        assert not left


@contextlib.contextmanager
def raylets(resources: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """The same; yields the address."""
    with started(resources) as found:
        yield found.address


def main(directory: str, resources: Sequence[Mapping[str, float]]) -> None:
    head: str | None = None
    pids = []
    made = []
    for number, offered in enumerate(resources):
        folder = os.path.join(directory, str(number))
        os.mkdir(folder)
        made.append(nodes.Node(folder, cpus=1, resources=offered, head=head))
        head = made[0].address
        pids.append(made[-1].pid("raylet"))
    print(json.dumps({"address": head, "pids": pids, "gcs": made[0].pid("gcs_server")}), flush=True)
    # Its processes end with this one; this one ends with the process that started it.
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))

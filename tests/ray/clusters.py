"""A Ray cluster of several raylets on this machine, for tests."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


@contextlib.contextmanager
def raylets(resources: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """One raylet for each; yields the address to give as ``ray_address``. No process of them is left at the end."""
    directory = tempfile.mkdtemp(prefix="kemu-", dir="/tmp")
    os.mkdir(f"{directory}/ray")  # Ray notes the address there, and expects the folder
    settings = {
        "RAY_TMPDIR": directory,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN", secrets.token_hex(32)),
        "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        logging.getLogger("ray").setLevel(logging.ERROR)
        cluster = _started(resources)
        try:
            yield cluster.address
        finally:
            cluster.shutdown()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(directory, ignore_errors=True)


def _started(resources: Sequence[Mapping[str, float]]) -> Any:
    """Ray waits for its own processes for a fixed time, which on a busy machine may be too short: then once more."""
    from ray.cluster_utils import Cluster

    for attempts_left in (2, 1, 0):
        cluster = Cluster()
        try:
            for number, offered in enumerate(resources):
                head = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
                cluster.add_node(resources=dict(offered), num_cpus=1, wait=False, **({} if number else head))
            cluster.wait_for_nodes(timeout=60)
            return cluster
        except Exception:
            cluster.shutdown()
            if not attempts_left:
                raise
    raise AssertionError

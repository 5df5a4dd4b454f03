"""KWOK, which plays kubelets."""

from __future__ import annotations

from pathlib import Path

from kemu.emulated.real import executables
from kemu.lab.bench.clients import parts, servers

STAGES = Path(__file__).parent / "stages.yaml"


def start(server: servers.Server, folder: Path) -> parts.Process:
    """For all nodes. Raises KemuError where it is not there."""
    command: list[str | Path] = [
        executables.find("kwok")["kwok"],
        f"--kubeconfig={server.kubeconfig}",
        f"--config={STAGES}",
        "--manage-all-nodes=true",
        "--node-ip=10.0.0.1",
        "--node-lease-duration-seconds=0",
    ]
    return parts.Process("kwok", command, folder)

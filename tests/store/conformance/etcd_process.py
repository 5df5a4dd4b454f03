"""A real etcd for tests: one member on loopback, in a directory of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from kemu.emulated.real import components
from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc

START_TIMEOUT_S = 20


def binary() -> str | None:
    """Where etcd is; ``KEMU_ETCD`` says so where it is not on the path."""
    return shutil.which(os.environ.get("KEMU_ETCD", "etcd"))


@contextmanager
def running(directory: Path) -> Iterator[str]:
    """Yields the target to dial."""
    program = binary()
    assert program is not None
    client_port, peer_port = components.free_ports(2)
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    with open(directory / "etcd.log", "wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--data-dir={directory / 'data'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--logger=zap",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            target = f"127.0.0.1:{client_port}"
            _wait(target, process, directory)
            yield target
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(target: str, process: subprocess.Popen[bytes], directory: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    with grpc.insecure_channel(target) as channel:
        status = rpc_pb2_grpc.MaintenanceStub(channel).Status
        while True:
            try:
                status(rpc_pb2.StatusRequest(), timeout=1, wait_for_ready=True)
                return
            except grpc.RpcError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((directory / "etcd.log").read_text()[-2000:]) from None

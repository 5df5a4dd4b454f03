"""Asks for a worker of Ray that is forked (see `forks`), and ends. Run as a script, by a raylet, with the arguments of
Ray's ``default_worker.py``.

It imports little, because it runs once for each worker.
"""

import json
import os
import socket
import sys
import time

FORKED = b"."
STREAMS = (0, 1, 2)
_RAYLET = "--raylet-name="
_START_S = 60.0
"""For the imports of the process that forks, on a busy machine; a raylet gives up after as long."""


def socket_of(raylet: str) -> str:
    """Where workers are asked for. No longer than Ray's own names: many systems take a hundred characters."""
    return f"{raylet}-fork"


def ask(arguments: list[str]) -> None:
    """Raises OSError where nobody forks."""
    path = socket_of(next(each.removeprefix(_RAYLET) for each in arguments if each.startswith(_RAYLET)))
    with _connected(path) as connection:
        socket.send_fds(connection, [FORKED], STREAMS)
        connection.sendall(json.dumps({"arguments": arguments, "environment": dict(os.environ)}).encode())
        connection.shutdown(socket.SHUT_WR)
        if connection.recv(len(FORKED)) != FORKED:
            raise ConnectionError(f"{path}: no worker was forked")


def _connected(path: str) -> socket.socket:
    deadline = time.monotonic() + _START_S
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


if __name__ == "__main__":
    ask(sys.argv[1:])

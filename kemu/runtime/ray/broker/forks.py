"""Forks workers of Ray from a process that has imported what a cell needs. Run as a script, by a raylet, with the path
of that raylet's socket.

To import Ray and kemu takes half a second of CPU time. So one process for each raylet does that, and stands in for its
agent for runtime environments (see `standins`): it begins and ends with the raylet. Who asks is `workers`.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from pathlib import Path

_NO_JOB = "ffffffff"
"""What Ray tells workers that it starts before there is a job. ``import ray`` reads it, and keeps it."""


def serve(raylet: str) -> None:
    """Returns in each worker, which has the arguments, environment and streams of who asked."""
    processes.end_with_parent()
    if os.getppid() == 1:  # the raylet had gone before the kernel knew
        sys.exit()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    _import()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for workers
    with _listening(raylet) as listener:
        while not _is_worker(listener):
            pass
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _import() -> None:
    os.environ["RAY_JOB_ID"] = _NO_JOB
    importlib.import_module("ray")
    with contextlib.suppress(ImportError):  # the cell will say what is missing
        importlib.import_module("kemu.runtime.host.control")
    gc.collect()
    gc.freeze()  # workers share this memory as long as nobody writes there


def _listening(raylet: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o077)
    listener.bind(workers.socket_of(raylet))
    os.umask(before)
    listener.listen(socket.SOMAXCONN)
    return listener


def _is_worker(listener: socket.socket) -> bool:
    """Forks a worker for the next one who asks; True there."""
    connection, _ = listener.accept()
    with connection, contextlib.suppress(ConnectionError):
        _, streams, *_ = socket.recv_fds(connection, len(workers.FORKED), len(workers.STREAMS))
        asked = json.loads(b"".join(iter(lambda: connection.recv(1 << 16), b"")))
        forked = os.fork()
        if forked:
            connection.sendall(workers.FORKED)
        else:
            for stream, place in zip(streams, workers.STREAMS, strict=True):
                os.dup2(stream, place)
            os.environ.clear()
            os.environ.update(asked["environment"])
            sys.argv[1:] = asked["arguments"]
            _be_as_rays_own()
        for stream in streams:
            os.close(stream)
        return not forked
    return False


def _be_as_rays_own() -> None:
    """A process group of its own, so that the raylet ends what a worker leaves behind; and the first to be ended when
    memory runs out."""
    os.setpgid(0, 0)
    with contextlib.suppress(OSError):  # not on Linux
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    ours = str(Path(__file__).resolve().parents[4])
    if ours not in sys.path:
        sys.path.append(ours)
    from kemu.runtime.ray import processes
    from kemu.runtime.ray.broker import workers

    serve(sys.argv[1])
    import ray

    runpy.run_path(str(Path(ray.__file__).parent / "_private" / "workers" / "default_worker.py"), run_name="__main__")

"""Whether a GCS answers: it does when an HTTP/2 connection to it comes about."""

from __future__ import annotations

import contextlib
import os
import socket

import grpc

_CONNECT_S = 3.0
_OPTIONS = (
    # A connection of its own each time, and no second attempt.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
)


def is_gone(address: str) -> bool:
    """Whether no process listens at ``host:port``. A process that was stopped does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def refusal(address: str, timeout_s: float) -> str:
    """Why no GCS can be reached at ``host:port``; empty: one answers."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        return "write it as HOST:PORT, or auto"
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s).close()
    except socket.gaierror:
        return f"there is no host {host}"
    except TimeoutError:
        return f"nobody answers within {timeout_s:g} s"
    except (OSError, OverflowError) as error:
        return getattr(error, "strerror", None) or str(error)
    if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
        return ""
    with contextlib.closing(grpc.insecure_channel(address, options=_OPTIONS)) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=timeout_s)
        except grpc.FutureTimeoutError:
            return f"whoever listens there does not answer within {timeout_s:g} s as Ray does"
    return ""

"""A network of its own for a process: controllers that listen on fixed ports run beside each other in several trials.

It has loopback, and reaches nothing else. Linux gives it to root, and elsewhere to whoever may make user namespaces.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import os
import socket
import struct
import sys
import threading
from pathlib import Path

_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000
_SET_FLAGS, _UP = 0x8914, 0x1


@functools.cache
def enter() -> bool:
    """From now on this thread, and threads and processes that it starts, have it. Whether that is so: where the system
    refuses it, all stays as it is."""
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK) != 0 and not _as_user(libc):
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
    return True


def _as_user(libc: ctypes.CDLL) -> bool:
    """As the same user, in a user namespace."""
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_NEW_USER | _NEW_NETWORK) != 0:
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path(f"/proc/self/{name}").write_text(text)
    return True

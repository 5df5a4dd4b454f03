"""The garbage collector around the runs of a process, and the pages of its memory.

A run leaves parts of its cluster behind in cycles. While it goes on, what lived before it is frozen, as there is no
use in looking at that again and again; but the collector does not count what it gets back from :func:`gc.unfreeze`,
so it would let the leavings of many runs pile up. Hence they are collected before the next run.

A process that knows what it holds to its end (a session of tests with thousands of tests) calls :func:`settle`; then
that stays frozen, and a collection between runs looks at little more than what runs have left, once that is much.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator

_PAGE = 4096
_LARGE_PAGE = 2 << 20
_MADV_COLLAPSE = 25
_GROWTH_PAGES = (32 << 20) // _PAGE
"""How much more memory makes it worth another look, in pages; or a sixteenth of what there was, if that is more."""
_LEFT_PAGES = (64 << 20) // _PAGE
"""How much more memory is worth a collection between runs, where it is known."""

_is_settled = False
_has_run = False
_collected_at = 0
"""How many pages were resident after the last collection between runs."""
_look_at = 0
"""How many resident pages make :func:`use_large_pages` look."""
_may_move = sys.platform == "linux" and os.sysconf("SC_PAGE_SIZE") == _PAGE
"""Not when the process has forked: pages that two processes share would be copied."""


def settle() -> None:
    """What lives now lives as long as the process."""
    global _is_settled
    gc.collect()
    gc.freeze()
    _is_settled = True


def freeze() -> None:
    """Look at nothing that lives now, until :func:`unfreeze`."""
    if not _is_settled:
        gc.freeze()


def unfreeze() -> None:
    if not _is_settled:
        gc.unfreeze()


def look_rarely() -> None:
    """For the rest of the process: most of what is made lives on (modules), or goes at once (the objects of a request),
    so young collections find nothing, and whole ones hold everything up."""
    gc.set_threshold(50_000, 20, 100)


def collect_leavings() -> None:
    """Before a run: what earlier ones have left."""
    global _collected_at, _has_run
    if _has_run and not (_is_settled and 0 < _resident() < _collected_at + _LEFT_PAGES):
        unfreeze()
        gc.collect()
        _collected_at = _resident()
    _has_run = True


def _resident() -> int:
    """In pages; 0 where nobody says."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])
    except OSError:
        return 0


def give_back() -> None:
    """What the C library keeps of memory that was freed, after a large run. Where it can (glibc)."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Nothing is collected meanwhile, and what has been made is not looked at before :func:`unfreeze`."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        freeze()
        if was_enabled:
            gc.enable()


def use_large_pages() -> None:
    """Have the kernel put what lives now into pages of 2 MiB, where it can (Linux 6.1). A cluster is some hundred MiB
    of small objects that are visited in no order: a twelfth of a run is spent looking up their addresses otherwise."""
    global _look_at
    if not _may_move:
        return
    import ctypes

    resident = _resident()
    if resident < _look_at:
        return
    _look_at = resident + max(_GROWTH_PAGES, resident // 16)
    try:
        with open("/proc/self/maps") as file:
            regions = [line.split() for line in file]
    except OSError:
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for addresses, rights, *_, inode_or_path in regions:
        if rights == "rw-p" and inode_or_path in ("0", "[heap]"):
            begin, end = (int(address, 16) for address in addresses.split("-"))
            begin = -(-begin // _LARGE_PAGE) * _LARGE_PAGE
            end = end // _LARGE_PAGE * _LARGE_PAGE
            if begin < end:
                madvise(begin, end - begin, _MADV_COLLAPSE)  # what cannot be moved stays as it is


def _forked() -> None:
    global _may_move
    _may_move = False


if _may_move:
    os.register_at_fork(after_in_parent=_forked, after_in_child=_forked)

"""The garbage collector around the runs of a process.

A run leaves parts of its cluster behind in cycles. While it goes on, what lived before it is frozen, as there is no
use in looking at that again and again; but the collector does not count what it gets back from :func:`gc.unfreeze`,
so it would let the leavings of many runs pile up. Hence they are collected before the next run.

A process that knows what it holds to its end (a session of tests with thousands of tests) calls :func:`settle`; then
that stays frozen, and a collection between runs looks at little more than what a run has left.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_is_settled = False
_has_run = False


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
    global _has_run
    if _has_run:
        unfreeze()
        gc.collect()
    _has_run = True


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

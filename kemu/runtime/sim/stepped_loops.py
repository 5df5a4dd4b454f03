"""A virtual loop that runs in slices, between which it stands still: another event loop decides when it goes on.

    loop = SteppedLoop()
    loop.outside = drive       # what run() does between the beginning and the end of main
    loop.run(main())

    def drive() -> None:
        while not loop.go(lambda next_ns: next_ns is not None and next_ns <= deadline_ns):
            ...                # it stands: look, inject(…), wait for the world outside

Everything happens in one thread. While a slice runs, this is the running loop; the loop outside waits for the slice to
end. Nothing that happens here depends on how time is cut into slices, only on what is injected when.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from kemu.runtime import garbage
from kemu.runtime.sim.loops import RUNTIME_CONTEXT, MainDone, VirtualLoop

T = TypeVar("T")

Gate = Callable[[int | None], bool]
"""Asked when nothing is left to do in this instant: may time pass to the next one, at that time of the loop? None:
nothing is to come. It must not allow that."""


class _Standing(BaseException):
    """Leaves the loop when the gate is closed."""


class SteppedLoop(VirtualLoop):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: Callable[[], object] = lambda: self.go(lambda next_ns: True)
        """Calls :meth:`go` until that returns True. By default it lets everything happen."""
        self._gate: Gate = lambda next_ns: False
        self._main: asyncio.Task[Any] | None = None
        self._collects = False

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        self._begin(main)
        try:
            self.outside()
            assert self._main is not None
            result: T = self._main.result()
            return result
        finally:
            self._end()

    def _begin(self, main: Coroutine[Any, Any, Any]) -> None:
        if self._closed or self._running:
            main.close()
            raise RuntimeError("a virtual loop runs once")
        self._running = True
        # A caller that makes many runs has disabled the collector, and collects between them.
        self._collects = self._freezes = gc.isenabled()
        if self._collects:
            gc.disable()
            garbage.freeze()
        with self.entered():
            self._main = self.create_task(main, name="main", context=contextvars.Context())
            self._main.add_done_callback(self._main_done, context=RUNTIME_CONTEXT)

    def go(self, gate: Gate) -> bool:
        """Run until the gate is closed, or to the end (True). Raises what ``main`` raises, or what ended the run."""
        self._gate = gate
        main = self._main
        assert main is not None, "go() is for what stands outside of run()"
        with self.entered():
            try:
                while not main.done():
                    self._run_until_crash()
            except MainDone:
                pass
            except _Standing:
                return False
        main.result()
        return True

    def inject(self, context: contextvars.Context, callback: Callable[..., T], *args: object) -> T:
        """Call between two slices what belongs into this loop; ``context``: that of an actor."""
        with self.entered():
            return context.run(callback, *args)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """This is the running loop for a while."""
        outside = asyncio._get_running_loop()
        hooks = sys.get_asyncgen_hooks()
        # Loop by loop: asyncio remembers the current task of each of them.
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(firstiter=None, finalizer=self._finalise_generator)
        try:
            yield
        finally:
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(outside)

    def _end(self) -> None:
        """Drop what is left."""
        self._closed = True
        with self.entered():
            self._drop_all()
        self._running = False
        if self._collects:
            garbage.unfreeze()
            gc.enable()

    def next_ns(self) -> int | None:
        """When something happens next; None: nothing is to come."""
        times = [when_ns for when_ns in (self.foreground.next_ns(), self.background.next_ns()) if when_ns is not None]
        return min(times) if times else None

    def pass_to(self, when_ns: int) -> None:
        """Let time pass up to there, between two slices; nothing is to come until then."""
        next_ns = self.next_ns()
        assert not self.ready
        assert next_ns is None or when_ns < next_ns
        self.now_ns = max(self.now_ns, when_ns)

    def _advance(self) -> None:
        if not self._gate(self.next_ns()):
            raise _Standing
        super()._advance()

"""A deterministic asyncio event loop with virtual time.

Time is an integer number of nanoseconds that jumps to the next event; events of one instant run in the order in which
they were scheduled. There is no other input: threads, sockets, signals and executors raise ``Nondeterminism``. The
garbage collector runs at fixed points of the run only, so that what it finalises cannot differ between two runs.

Tasks and callbacks have owners (actors): what belongs to a dead owner never runs again, what belongs to a paused one
is kept until it is resumed. Neighbours: ``owners`` says whose a context is, ``agendas`` holds future events, ``wires``
posts messages here, ``clocks`` sets timers, ``simulation`` starts the loop and is told of failures.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import gc
import heapq
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from typing import Any, NoReturn, TypeVar

from kemu import errors
from kemu.runtime import garbage, tasks
from kemu.runtime.rpc.ends import Plain
from kemu.runtime.sim.agendas import Agenda, Callback, Entry, LoopTimer, fire
from kemu.runtime.sim.owners import OWNER, Condition, Held, Owner

T = TypeVar("T")

_GC_YOUNG_STEPS = 100_000
_GC_FULL_EVERY = 50
_GC_FEW = 1_000
"""Where a collection finds no more than that, of some hundred thousand objects that it looked at …"""
_GC_SPARED = 3
"""… so many times what has been made is not looked at at all."""
_LIVELOCK_SAMPLE = 1_000


class _Fixed:
    """The handle of what was scheduled with an explicit context, as tasks and futures do: it cannot be cancelled."""

    __slots__ = ()

    def cancel(self) -> NoReturn:
        raise errors.Nondeterminism("a callback that was scheduled with an explicit context cannot be cancelled")

    def cancelled(self) -> bool:
        return False


_FIXED = _Fixed()


def _raise(error: BaseException) -> NoReturn:
    raise error


class MainDone(BaseException):
    """Leaves the loop when the main coroutine has ended."""


class VirtualLoop(asyncio.AbstractEventLoop, Plain):
    """See the module. ``now_ns`` is the loop's own time; what actors see is in ``clocks``."""

    def __init__(self, *, max_steps_per_instant: int = 1_000_000) -> None:
        self.now_ns = 0
        self.foreground = Agenda()
        self.background = Agenda()
        self.ready: deque[Entry] = deque()
        self.steps = 0
        """Callbacks run so far."""
        self.explain_stall: Callable[[], str] = str
        """Adds to the text of a deadlock."""
        self.explain_failure: Callable[[Owner, Exception], Exception] = lambda owner, error: error
        """Makes the error that ends the run when a callback of an owner raises."""
        self.tell_resumed: Callable[[Owner, Held], object] = lambda owner, held: None
        """Called when an owner has done what a pause had held back."""
        self.at_rest: Callable[[], object] = lambda: None
        """Called now and then between two instants, when garbage has been collected and no actor's code runs."""
        self.create_future = functools.partial(asyncio.Future, loop=self)  # type: ignore[method-assign]
        """Makes one without a frame of Python."""
        self._guarded = False
        self._idle_waiters: list[asyncio.Future[str]] = []
        self.max_steps_per_instant = max_steps_per_instant
        self._driver = Owner("main")
        """Keeps the tasks of the driver's own code, which has no owner."""
        self._owners: dict[Owner, None] = {self._driver: None}
        """Those that have had a task and are not dead."""
        self._task_count = 0
        self._running = False
        self._closed = False
        self.grows = True
        """Actors are being set up: nearly all that is made lives to the end of the run."""
        self._freezes = False
        self._next_gc = _GC_YOUNG_STEPS
        self._gc_count = 0
        self._gc_spared = 0
        """How many times more."""

    # Scheduling

    def post(self, when_ns: int, callback: Callback, args: tuple[Any, ...]) -> None:
        """Schedule a step of the runtime itself (a message, say): it cannot be cancelled and keeps the run alive."""
        if when_ns <= self.now_ns:
            self.ready.append((callback, args, None))
            return
        # Agenda.push, inlined: every message that is steered goes this way.
        agenda = self.foreground
        bucket = agenda.buckets.get(when_ns)
        if bucket is None:
            agenda.buckets[when_ns] = [(callback, args, None)]
            heapq.heappush(agenda.times, when_ns)
        else:
            bucket.append((callback, args, None))

    def set_timer(
        self,
        when_ns: int,
        callback: Callback,
        args: tuple[Any, ...],
        context: contextvars.Context | None,
        background: bool = False,
    ) -> LoopTimer:
        """Call at a time of the loop; at once where that is past."""
        if when_ns <= self.now_ns:
            timer = LoopTimer(None, when_ns, callback, args)
            self.ready.append((fire, (timer,), context))
            return timer
        agenda = self.background if background else self.foreground
        timer = LoopTimer(agenda, when_ns, callback, args)
        bucket = agenda.buckets.get(when_ns)  # Agenda.push, inlined
        if bucket is None:
            agenda.buckets[when_ns] = [(fire, (timer,), context)]
            heapq.heappush(agenda.times, when_ns)
        else:
            bucket.append((fire, (timer,), context))
        return timer

    def call_soon(  # type: ignore[override]
        self, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> LoopTimer | _Fixed:
        if context is not None:
            self.ready.append((callback, args, context))
            return _FIXED
        return self.set_timer(self.now_ns, callback, args, contextvars.copy_context())

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> LoopTimer:
        return self.set_timer(self.now_ns + round(delay * 1e9), callback, args, context or contextvars.copy_context())

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callback, *args: Any, context: contextvars.Context | None = None
    ) -> LoopTimer:
        return self.set_timer(round(when * 1e9), callback, args, context or contextvars.copy_context())

    def time(self) -> float:
        return self.now_ns / 1e9

    # Tasks and futures

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
        on_done: Callable[[asyncio.Task[Any]], object] | None = None,
    ) -> asyncio.Task[T]:
        """``on_done`` takes the place of ``Owner.forget_task``, and calls it."""
        if context is None:
            context = contextvars.copy_context()
        owner = context.get(OWNER)
        if name is None:
            self._task_count += 1
            name = f"{owner.name if owner else 'main'}: task {self._task_count}"
        keeper = owner or self._driver
        return self.create_owned_task(coro, name, context, keeper, on_done or keeper.forget_task)

    def create_owned_task(
        self,
        coro: Coroutine[Any, Any, T],
        name: str,
        context: contextvars.Context,
        owner: Owner,
        on_done: Callable[[asyncio.Task[Any]], object],
    ) -> asyncio.Task[T]:
        """The same, where the owner of the context is known."""
        if owner.condition is Condition.DEAD:
            coro.close()
            raise asyncio.CancelledError(f"{owner.name} has crashed")
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        asyncio._unregister_task(task)  # its owner knows it: the weak set of all tasks would take as much memory again
        self._owners[owner] = None
        owner.tasks[task] = context
        if len(owner.tasks) >= owner.prune_at:
            owner.prune()
        task.add_done_callback(on_done, context=RUNTIME_CONTEXT)
        return task

    def create_quiet_task(
        self, coro: Coroutine[Any, Any, None], name: str, context: contextvars.Context, owner: Owner
    ) -> asyncio.Task[None]:
        """A cheaper task, for coroutines that handle all exceptions and return nothing."""
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        asyncio._unregister_task(task)  # its owner knows it: the weak set of all tasks would take as much memory again
        self._owners[owner] = None
        owner.tasks[task] = context
        if len(owner.tasks) >= owner.prune_at:
            owner.prune()
        return task

    def step_context(self) -> contextvars.Context:
        """For steps of the actor that runs: its own context, which is never within a step that has another one."""
        owner: Any = OWNER.get()
        return getattr(owner, "context", None) or contextvars.copy_context()

    def fail(self, error: BaseException) -> None:
        """End the run with this error, before any other step."""
        self.ready.appendleft((_raise, (error,), None))

    # Owners

    def move_timers(self, owner: Owner, to_ns: Callable[[int], int]) -> None:
        """The owner's clock has changed its pace: move its timers to other times of the loop, but not into the past."""
        for agenda in (self.foreground, self.background):
            agenda.move(owner, lambda when_ns: max(self.now_ns, to_ns(when_ns)))

    def pause(self, owner: Owner) -> None:
        owner.condition = Condition.PAUSED
        owner.held.cut = True
        owner.held = Held()
        owner.withheld = [*owner.withheld]
        self._guarded = True

    def resume(self, owner: Owner) -> None:
        owner.condition = Condition.RUNNING
        withheld, owner.withheld = owner.withheld, []
        self.ready.extend(withheld)
        if owner.held.since_ns:
            self.ready.append((self._went_on, (owner, owner.held), None))

    def _went_on(self, owner: Owner, held: Held) -> None:
        if owner.condition is Condition.RUNNING and not held.cut:
            self.tell_resumed(owner, held)

    def bury(self, owner: Owner) -> None:
        """Drop everything that belongs to the owner. Its code unwinds, but nothing that it does has an effect."""
        owner.condition = Condition.DEAD
        self._guarded = True
        self.foreground.note_dead()
        self.background.note_dead()
        owner.withheld = []
        self._owners.pop(owner, None)
        left, owner.tasks = owner.tasks, {}
        for task, context in left.items():
            tasks.drop(task, context)

    def _withhold(self, entry: Entry, owner: Owner) -> None:
        if owner.condition is Condition.PAUSED:
            callback, args, context = entry
            held = owner.held
            owner.withheld.append((held.do, (len(held.since_ns), callback, args), context))
            held.since_ns.append(self.now_ns)

    # Running

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run to the end of ``main``, then drop what is left. Raises what ``main`` raises, or what ended the run."""
        if self._closed or self._running:
            main.close()
            raise RuntimeError("a virtual loop runs once")
        # The loop of a notebook stands still meanwhile, as it does while any cell computes.
        outer = asyncio._get_running_loop()
        if isinstance(outer, VirtualLoop):
            main.close()
            raise RuntimeError("a simulation cannot run inside another simulation")
        self._running = True
        hooks = sys.get_asyncgen_hooks()
        # A caller that makes many runs has disabled the collector, and collects between them.
        gc_was_enabled = gc.isenabled()
        self._freezes = gc_was_enabled
        if gc_was_enabled:
            gc.disable()
            garbage.freeze()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(firstiter=None, finalizer=self._finalise_generator)
        try:
            main_task = self.create_task(main, name="main", context=contextvars.Context())
            main_task.add_done_callback(self._main_done, context=RUNTIME_CONTEXT)
            with contextlib.suppress(MainDone):
                while True:
                    self._run_until_crash()
            return main_task.result()
        finally:
            self._closed = True
            self._drop_all()
            self._running = False
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(outer)
            if gc_was_enabled:
                garbage.freeze()  # else what is left would be looked at now, and again by whoever wants it collected
                garbage.unfreeze()
                gc.enable()

    def fork(self) -> int:
        """``os.fork`` from within the run, by what belongs to no actor: it can go on in both processes."""
        pid = os.fork()
        if pid == 0:
            asyncio._set_running_loop(self)  # asyncio remembers it with its process
        return pid

    def _drop_all(self) -> None:
        owners = list(self._owners)
        for owner in owners:
            owner.condition = Condition.DEAD
        for owner in owners:
            self.bury(owner)
        self.ready.clear()
        self.foreground = Agenda()
        self.background = Agenda()

    def _main_done(self, task: asyncio.Task[Any]) -> None:
        raise MainDone

    def _run_until_crash(self) -> None:
        """Returns when an actor has crashed in one of its own callbacks; everything else raises."""
        ready = self.ready
        popleft, extend = ready.popleft, ready.extend
        context: contextvars.Context | None = None
        is_free = type(self)._advance is VirtualLoop._advance
        """Nobody decides when time passes."""
        steps = 0
        try:
            while True:
                if ready:
                    # The limit grows with the actors that are launched meanwhile.
                    for steps in range(1, self.max_steps_per_instant + 1):  # noqa: B007  # it is used after the loop
                        callback, args, context = popleft()
                        if context is None:
                            callback(*args)
                        elif self._guarded and (owner := context.get(OWNER)) is not None and owner.condition:
                            self._withhold((callback, args, context), owner)
                        else:
                            context.run(callback, *args)
                        if not ready:
                            break
                    else:
                        self._raise_livelock()
                    self.steps += steps
                    if self.steps >= self._next_gc:
                        self.collect_garbage()
                        self.at_rest()
                # The usual case of _advance, inlined: what is next is due before anything in the background.
                foreground = self.foreground
                times = foreground.times
                if is_free and times and not foreground.has_dead:
                    when_ns = times[0]
                    bucket = foreground.buckets[when_ns]
                    if (
                        bucket
                        and (bucket[0][0] is not fire or bucket[0][1][0].callback is not None)
                        and (not (later := self.background.times) or when_ns < later[0])
                    ):
                        self.now_ns = when_ns
                        del foreground.buckets[heapq.heappop(times)]
                        extend(bucket)
                        continue
                self._advance()
        except errors.SimulationError:
            raise
        except asyncio.CancelledError:
            owner = context.get(OWNER) if context is not None else None
            if owner is None or owner.condition is not Condition.DEAD:
                raise
        except Exception as error:
            owner = context.get(OWNER) if context is not None else None
            if owner is None:
                raise
            raise self.explain_failure(owner, error) from error

    def _advance(self) -> None:
        """Nothing is ready: go to the next instant, or report that the run is idle."""
        foreground_ns = self.foreground.next_ns()
        if foreground_ns is not None and (not (later := self.background.times) or foreground_ns < later[0]):
            self.now_ns = foreground_ns
            self.ready.extend(self.foreground.pop())
            return
        if foreground_ns is None and self._idle_waiters:
            waiters, self._idle_waiters = self._idle_waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result("idle")
            return
        background_ns = self.background.next_ns()
        if foreground_ns is not None and (background_ns is None or foreground_ns <= background_ns):
            self.now_ns = foreground_ns
            self.ready.extend(self.foreground.pop())
            if foreground_ns == background_ns:
                self.ready.extend(self.background.pop())
        elif background_ns is not None:
            self.now_ns = background_ns
            self.ready.extend(self.background.pop())
        else:
            raise errors.Deadlock(
                "nothing is ready and no timer is set, but the run is not over\n"
                + self.explain_stall()
                + tasks.describe(task for owner in self._owners for task in owner.tasks)
            )

    def wait_idle(self) -> asyncio.Future[str]:
        """Done, with "idle", when only background timers are left."""
        waiter: asyncio.Future[str] = self.create_future()
        self._idle_waiters = [*(other for other in self._idle_waiters if not other.done()), waiter]
        return waiter

    def is_idle(self) -> bool:
        return not self.ready and self.foreground.next_ns() is None

    def _raise_livelock(self) -> NoReturn:
        counts: dict[str, int] = {}
        for _ in range(_LIVELOCK_SAMPLE):
            if not self.ready:
                break
            callback, args, context = self.ready.popleft()
            owner = context.get(OWNER) if context is not None else None
            if owner is not None and owner.condition:
                continue
            label = tasks.describe_callback(callback, args)
            counts[label] = counts.get(label, 0) + 1
            if context is None:
                callback(*args)
            else:
                context.run(callback, *args)
        busiest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]
        raise errors.Livelock(
            f"more than {self.max_steps_per_instant} steps in one instant of virtual time"
            f" (at {self.now_ns / 1e9:.9f} s of the loop); the last {sum(counts.values())} were:\n"
            + "\n".join(f"  {count:5} x {label}" for label, count in busiest)
        )

    def collect_garbage(self) -> None:
        """As much as is worth it now."""
        self._next_gc = self.steps + _GC_YOUNG_STEPS
        if self._freezes and (self.grows or self._gc_spared):
            # It need not be looked at once, let alone again and again.
            self._gc_spared = max(0, self._gc_spared - 1)
            garbage.freeze()
        else:
            self._gc_count += 1
            found = gc.collect(2 if self._gc_count % _GC_FULL_EVERY == 0 else 0)
            self._gc_spared = _GC_SPARED if found <= _GC_FEW else 0
        garbage.use_large_pages()

    def _finalise_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        owner = OWNER.get()
        if not self._closed and (owner is None or owner.condition is not Condition.DEAD):
            self.create_task(generator.aclose(), name="close of an async generator")  # type: ignore[arg-type]

    # What asyncio asks of a loop

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Called by asyncio for an exception that was not retrieved: it ends the run."""
        if self._closed:
            return
        failure = errors.ActorFailed(context.get("message", "unhandled exception"))
        failure.__cause__ = context.get("exception")
        self.fail(failure)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    get_debug = staticmethod(bool)
    """False. Each future and task asks when it is made, and this answers without a frame of Python."""

    def set_debug(self, enabled: bool) -> None:
        pass

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True


RUNTIME_CONTEXT = contextvars.Context()
"""Runtime context of callbacks that belong to no actor, and run even if the actor that they concern is dead."""


def _refuse(method: str) -> Callable[..., NoReturn]:
    def refuse(self: VirtualLoop, *args: Any, **kwargs: Any) -> NoReturn:
        raise errors.Nondeterminism(
            f"loop.{method}() reaches outside of the simulated world; actors touch it through env alone"
        )

    refuse.__name__ = method
    return refuse


def _forbidden_methods() -> Iterator[str]:
    ours = {*vars(VirtualLoop), "create_future"}
    for name, member in vars(asyncio.AbstractEventLoop).items():
        if callable(member) and not name.startswith("_") and name not in ours:
            yield name


for _name in list(_forbidden_methods()):
    setattr(VirtualLoop, _name, _refuse(_name))

"""Lets the time of a world pass: as much as its clients' requests need, and as far as it is stepped.

Between steps the world stands still. A request lets it go on until the answer is there; after a write a moment longer
(:data:`HEARD_S`), in which the watches of clients hear of it. A step goes from event to event up to its goal. Whenever
a client outside has been told something on the way (an answer, an event of a watch), the world stands until the client
has had time to react: its clock is not ours, so we wait until nothing has come from outside for ``settle_s`` of real
time. So a controller sees each change at its time, and acts on it before much else happens, however fast the world is.
A client that never falls silent is not waited for, for longer and longer spells of virtual time; the others are.

A process outside that an actor asks (a webhook) has all the time of the world: it stands until the answer is there.
Only requests that come meanwhile let it go on, as far as they need: the process may ask the cluster in its turn.

All of it happens on the event loop outside, in slices of :data:`SLICE_S`; nothing here needs a lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.gateway.deliveries import Deliveries
from kemu.emulated.gateway.limits.connections import Heard
from kemu.errors import KemuError
from kemu.lab.up.callers import Caller
from kemu.lab.up.virtual import conditions, inputs
from kemu.lab.up.virtual.worlds import Deaf, Hearer, Input, World
from kemu.runtime import outside
from kemu.runtime.env import SECOND_NS

ANSWER_S = 5.0
"""Virtual time that may pass for the sake of a request while no client steps it. What then has no answer (a part of the
cluster is away) gets it when time is stepped."""
HEARD_S = 0.02
"""Virtual time after a write, or when a watch begins, in which clients hear of it."""
REACTION_S = 0.02
"""Virtual time that may pass before a client that has been told something could have reacted."""
SETTLE_S = 0.02
"""Real time without a word from outside after which clients are taken to have reacted."""
_TURNS = 12
"""Turns of the loop outside from the bytes of a request to what it asks for."""
BUSY_S = 0.003
"""Real time between two looks at clients that are at work."""
NAP_S, NAPS = 0.1, 100
"""How soon a client wakes up that is waited for, and how often it is seen asleep before it no longer is, after clients
were heard of; not for how long, as it may have to wait for a core."""
LEAST_S, LOOK_S = 0.001, 0.002
"""Real time that clients have to wake up, where it is known whether they are at work; and between two looks at them."""
RESTLESS_S, RESTLESS_TIMES = 5.0, 20
"""Real time that a second of virtual time may take because clients react: so long at least, and so many times the time
without a word that is asked of them. Clients that go on for longer never fall silent."""
BUSY_TIMES = 6
"""So many times as long where they have neither said as much meanwhile as who never falls silent says at least, nor
computed for half of that time: the machine is busy with other things."""
WEBHOOK_S = 30.0
"""Real time that a webhook has at least, as time stands meanwhile: the most that Kubernetes lets it have."""
HURRY_S, LONGEST_HURRY_S = 10.0, 300.0
"""Virtual time that then passes without waiting for them: twice as much each time, up to the second one."""
FORGIVEN_S = 1.0
"""Real time without a word after which a client is waited for as before."""
SLICE_S = 0.01
"""Real time after which a slice lets the loop outside have a turn."""

_READS = ("/Get", "/List")


class Ended(KemuError):
    """The cluster is no more."""


@dataclass(eq=False)
class Step:
    """Let time pass, at most to ``until_ns``; less far if ``idle`` and nothing is left to do, or ``reached``, or so
    much real time is over."""

    until_ns: int
    idle: bool = False
    real_s: float = math.inf
    late_at: float = math.inf
    """When its real time is over, as ``time.monotonic`` counts."""
    missing: Callable[[], str] = lambda: ""
    """What has to be there before time passes, in words; "": all is."""
    reached: bool = False
    """Set within a slice by the part that sees what is waited for: the world stands at the end of that instant."""
    done: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """``reached``, ``idle``, ``deadline`` or ``late``."""


@dataclass
class _Restless:
    """A client that has not fallen silent."""

    until_ns: int
    """Virtual time up to which nobody waits for it."""
    spell_s: float
    """How long that was."""
    told: str
    """What it did instead, in words."""


@dataclass
class _Activity:
    """What a client has said since others wait for it."""

    requests: int
    last: str
    last_at: float


class Driver:
    """Driver of one world; on the event loop that runs when it is made."""

    def __init__(
        self,
        world: World,
        record: inputs.Record | None = None,
        settle_s: float = SETTLE_S,
        deliveries: Deliveries | None = None,
        on_time: Callable[[int], None] = lambda now_ns: None,
    ) -> None:
        """``deliveries``: what watches of clients have delivered, for steps that wait for that. ``on_time``: told the
        virtual time whenever it has passed, before clients can ask for it."""
        self.world = world
        self._on_time = on_time
        self._told_time_ns = -1
        self.deliveries = deliveries
        self.settle_s = settle_s
        self.restless_s = RESTLESS_S
        self.is_busy: Callable[[], bool] = lambda: False
        """Whether a client is known to be at work, however long it has been silent."""
        self.rest_s: Callable[[], float | None] | None = None
        """Real time for which clients are known to do nothing by themselves. None: it is not known, or never."""
        self.computed_s: Callable[[], float] = lambda: 0.0
        """CPU time of clients, of those of which it is known."""
        self.naps: Callable[[], bool] = lambda: False
        """Whether one is known to wake up by itself within :data:`NAP_S`, and to do something then."""
        self.failure: BaseException | None = None
        self.record = record
        self._pending: list[tuple[Input, Hearer]] = []
        self._wake = asyncio.Event()
        self._steps: list[Step] = []
        """The first one is under way."""
        self._sleepers: list[_Sleeper] = []
        self._number = 0
        self._unanswered: dict[int, int] = {}
        """Unary calls, and the virtual time up to which they may let it pass."""
        self._heard_ns = 0
        """Up to here time passes for writes to be heard of."""
        self._told_ns: int | None = None
        """When a client outside was told something first, since all had time to react."""
        self._patience = (0.0, -SECOND_NS)
        """Since when clients have time to react, in real and in virtual time."""
        self._said = 0
        """How much they have said since then."""
        self._computed_s = 0.0
        """How long they had computed until then."""
        self._hurries_until_ns = -1
        self.hurried = 0
        """How many times time went on although a client outside had not fallen silent."""
        self.kept_by = ""
        """What the latest step waited for whose real time was over."""
        self._heard_at = 0.0
        """Real time at which a client that is waited for was told something, or said something."""
        self._naps = (0.0, 0)
        """Since when something was heard of clients, and how often one was then seen to wake up soon."""
        self._activities: dict[str, _Activity] = {}
        """By agent: of those that have been heard since :attr:`_patience` began."""
        self._restless: dict[str, _Restless] = {}
        """By agent."""
        self._begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ends = False
        self._slice_over = 0.0
        self._questions: list[tuple[int, outside.Question]] = []
        """Those that no process outside has been asked yet."""
        self._asking: dict[int, asyncio.Task[None]] = {}
        """Those that one is being asked."""
        self._holds: dict[str, None] = {}
        """What time waits for, in words, until it is released; requests are answered meanwhile."""
        self._held: set[int] = set()
        """Calls that were unanswered when it was: they may be what it is about, and let no time pass meanwhile."""
        world.asked = self._asked

    # For clients

    def next_number(self) -> int:
        """The number of the next call."""
        self._number += 1
        return self._number

    def put(self, given: Input, hearer: Hearer | None = None, caller: Caller | None = None) -> None:
        """From outside, into the world, as soon as it stands. Raises Ended."""
        if self._over.done() or self._ends:
            raise Ended("the cluster has ended")
        if caller is None or not self._hear(caller):
            self._heard_at = time.monotonic()
        self._pending.append((given, hearer or Deaf()))
        self._said += 1
        self._ends = given[0] == "end"
        self._wake.set()

    def ask(self, number: int, method: str) -> None:
        """A unary call of this number has been put: time passes until it is answered."""
        self._unanswered[number] = self.world.now_ns + round(ANSWER_S * SECOND_NS)
        if not method.endswith(_READS):
            self._heard_ns = -1  # counted from when it is answered

    def _hear(self, caller: Caller) -> bool:
        """A client says something. Whether nobody waits for it."""
        agent, now = caller.agent, time.monotonic()
        known = self._activities.get(agent)
        if known is not None and now - known.last_at > FORGIVEN_S:
            self._restless.pop(agent, None)
            known = None
        requests = 1 if known is None else known.requests + 1
        self._activities[agent] = _Activity(requests, caller.what, now)
        return self._is_restless(caller)

    def _is_restless(self, caller: Caller | None) -> bool:
        found = None if caller is None else self._restless.get(caller.agent)
        return found is not None and self.world.now_ns < found.until_ns

    def answered(self, number: int, caller: Caller | None = None) -> None:
        """Within a slice."""
        self._unanswered.pop(number, None)
        if self._heard_ns < 0 and not self._unanswered:
            self._heard_ns = self.world.now_ns + round(HEARD_S * SECOND_NS)
        if not self._is_restless(caller):
            self.told()

    def stir(self) -> None:
        """A watch begins."""
        self._heard_ns = max(self._heard_ns, self.world.now_ns + round(HEARD_S * SECOND_NS))

    def _asked(self, number: int, question: outside.Question) -> None:
        """Within a slice."""
        self._questions.append((number, question))
        self._held.update(self._unanswered)

    async def _ask(self, number: int, question: outside.Question) -> None:
        question = question._replace(timeout_s=max(question.timeout_s, WEBHOOK_S))
        try:
            answer = await outside.ask(question)
        except outside.Unanswered as error:
            answer = outside.Answer(0, str(error).encode())
        except outside.BadAuthorities as error:
            answer = outside.Answer(-1, str(error).encode())
        del self._asking[number]
        if not self._asking:
            self._held.clear()
        with contextlib.suppress(Ended):
            self.put(["answer", number, *answer])

    def _begin_asking(self) -> None:
        questions, self._questions = self._questions, []
        for number, question in questions:
            self._asking[number] = asyncio.create_task(self._ask(number, question))

    def hold(self, what: str) -> None:
        """Time waits for something outside, in words, until :meth:`release`; what asks meanwhile is answered."""
        self._holds[what] = None
        self._wake.set()

    def release(self, what: str) -> None:
        """May be repeated."""
        if self._holds.pop(what, self) is None:
            self._be_patient(time.monotonic())
            self.told()
            self._wake.set()

    def told(self) -> None:
        """Within a slice: a client outside learns something."""
        self._heard_at = time.monotonic()
        if self._told_ns is None and self.world.now_ns > self._hurries_until_ns:
            self._told_ns = self.world.now_ns

    async def step(
        self,
        seconds: float,
        *,
        idle: bool = False,
        real_s: float = math.inf,
        watch: Callable[[Step], Any] | None = None,
    ) -> str:
        """Let so much virtual time pass, or less: see :class:`Step`. ``watch``: is given the step when its turn comes,
        to set ``reached``. One step after the other. Raises Ended."""
        step = Step(-1, idle, real_s)
        self._steps.append(step)
        try:
            while self._steps[0] is not step:
                await self._first(self._steps[0].done)
                self._check()
            step.until_ns = self.world.now_ns + round(seconds * SECOND_NS)
            step.late_at = time.monotonic() + real_s
            self._be_patient(time.monotonic())
            self._hurries_until_ns = -1
            self._restless.clear()
            if watch is not None:
                watch(step)
            self._wake.set()
            await self._first(step.done)
            if not step.done.done():
                self._check()
            return step.done.result()
        finally:
            step.done.cancel()
            self._steps.remove(step)

    async def step_until(
        self, text: str, seconds: float, namespace: str = "default", *, seen_by: str = "", real_s: float = math.inf
    ) -> str:
        """Until conditions hold (:mod:`conditions`), or so much virtual time has passed. ``seen_by``: and watches of
        this client (a pattern of agents) have delivered the objects with which they hold.

        Raises BadCondition and Ended.
        """
        wanted = conditions.parse(text, namespace)
        waits: list[_Wait] = []
        deliveries = self.deliveries if seen_by else None
        if seen_by and deliveries is None:
            raise conditions.BadCondition("nobody notes here what watches deliver")

        def watch(step: Step) -> None:
            for condition in wanted:
                wait = _Wait(condition, lambda: self._reach(step, waits), deliveries, seen_by)
                waits.append(wait)
                resource = condition.resource.plural
                number = wait.number = self.next_number()
                self.put(["observe", number, resource, condition.namespace, condition.field_selector], wait)
            if deliveries is not None:
                deliveries.changed = lambda: self._reach(step, waits)
                step.missing = lambda: next(filter(None, (wait.missing() for wait in waits)), "")

        try:
            return await self.step(seconds, real_s=real_s, watch=watch)
        finally:
            if deliveries is not None:
                deliveries.changed = None
            for wait in waits:
                with contextlib.suppress(Ended):
                    self.put(["unobserve", wait.number])

    def _reach(self, step: Step, waits: Sequence[_Wait]) -> None:
        """Something that a step waits for has changed."""
        step.reached = all(wait.holds and not wait.missing() and wait.is_seen() for wait in waits)
        self._wake.set()

    def now_ns(self) -> int:
        return self.world.now_ns

    @property
    def waits_for(self) -> str:
        """What keeps time from passing now, in words; "": nothing that is outside."""
        if not self.world.stands:
            return "the cluster to be set up"
        if self._asking:
            return "the answer of a webhook"
        if self._holds:
            return ", ".join(self._holds)
        missing = "" if self._under_way is None else self._under_way.missing()
        if missing:
            return missing
        loud = ", ".join(self._loud(time.monotonic()).values())
        if self._told_ns is None and not (loud and self._under_way is not None):
            return ""
        text = f"its clients to be silent for {self.settle_s:g} s (--settle of kemu up)"
        return f"{text}: {loud}" if loud else text

    @property
    def restless(self) -> list[str]:
        """Who never fell silent in the last step, in words."""
        return [each.told for each in self._restless.values()]

    def _loud(self, now: float) -> dict[str, str]:
        """By agent: who keeps time from passing, and how."""
        since_s = now - self._patience[0]
        least_s = max(5 * self.settle_s, 0.1)
        return {
            agent: f"{agent} has made {each.requests} request{'s'[: each.requests != 1]} in the last {since_s:.1f} s, "
            f"the last one {each.last}"
            for agent, each in self._activities.items()
            if now - each.last_at <= least_s and agent not in self._restless
        }

    def _be_patient(self, now: float) -> None:
        """All clients have time to react, from now on."""
        self._patience = now, self.world.now_ns
        self._said, self._computed_s = 0, self.computed_s()
        self._activities = {agent: each for agent, each in self._activities.items() if agent in self._restless}

    @property
    def patience_s(self) -> float:
        """Real time for which clients that do not fall silent can keep time from passing, at most."""
        return BUSY_TIMES * self._patience_s

    @property
    def _patience_s(self) -> float:
        """Where the machine is not busy."""
        return max(self.restless_s, RESTLESS_TIMES * self.settle_s)

    def _is_enough(self, real_s: float) -> bool:
        """Whether clients have had more than enough time to react."""
        least_s = self._patience_s
        if real_s <= least_s:
            return False
        much = self._said >= least_s / self.settle_s or self.computed_s() - self._computed_s >= least_s / 2
        return much or real_s > self.patience_s

    async def sleep(self, seconds: float) -> None:
        """Sleep in virtual time for something outside: it makes no time pass. Raises Ended."""
        sleeper = _Sleeper(self.world.now_ns + round(seconds * SECOND_NS))
        self._sleepers.append(sleeper)
        self._wake.set()
        try:
            await self._first(sleeper.over)
            if not sleeper.over.done():
                self._check()
        finally:
            self._sleepers.remove(sleeper)

    async def _first(self, done: asyncio.Future[Any]) -> None:
        """Until that, or the end of the world."""
        await asyncio.wait([done, self._over], return_when=asyncio.FIRST_COMPLETED)

    def _check(self) -> None:
        if self._over.done():
            raise Ended("the cluster has ended") from self.failure

    async def begun(self) -> None:
        """Until the cluster is set up. Raises what its set-up raised."""
        await self._first(self._begun)
        if self.failure is not None:
            raise self.failure

    # Time

    async def run(self) -> None:
        """Until ``["end", …]`` has come, or the world broke: raises what it raised."""
        world = self.world
        try:
            while True:
                self._wake.clear()
                self._take()
                if self._slice():
                    return
                self._begin_asking()
                if world.stands and not self._begun.done():
                    self._begun.set_result(None)
                await self._between()
        except BaseException as error:
            self.failure = error
            raise
        finally:
            for task in self._asking.values():
                task.cancel()
            self._over.set_result(None)
            await outside.close()

    def _take(self) -> None:
        world = self.world
        if self._pending and world.stands:
            given, self._pending = self._pending, []
            if self.record is not None:
                self.record.add(inputs.Batch(world.now_ns, [each for each, _ in given]))
            world.take(given)

    def _slice(self) -> bool:
        self._slice_over = time.monotonic() + SLICE_S
        is_over = self.world.loop.go(self._may_pass)
        self._tell_time()
        return is_over

    def _tell_time(self) -> None:
        now_ns = self.world.now_ns
        if now_ns != self._told_time_ns and self.world.stands:
            self._told_time_ns = now_ns
            self._on_time(now_ns)

    async def _between(self) -> None:
        """The world stands: the loop outside has its turn."""
        if not self.world.stands:
            await asyncio.sleep(0)
            return
        if self._asking:
            if self._pending or self._goes_on():
                await asyncio.sleep(0)
            else:
                await self._wake.wait()
            return
        if self._told_ns is not None and (self._under_way is not None or self._goes_on()):
            if await self._quiet():
                self._told_ns = None
            self._end_late_step()
            return
        self._wake_sleepers()
        self._settle_step()
        self._end_late_step()
        self._tell_time()
        is_told = self._told_ns is not None and self._under_way is not None
        if self._pending or is_told or self._goes_on():
            await asyncio.sleep(0)
        else:
            late_at = math.inf if self._under_way is None else self._under_way.late_at
            left_s = None if late_at == math.inf else max(0.0, late_at - time.monotonic())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), left_s)

    async def _quiet(self) -> bool:
        """Whether nothing has come from outside for long enough, or all have had more than enough time."""
        now, (since, since_ns) = time.monotonic(), self._patience
        if self.world.now_ns - since_ns >= SECOND_NS:
            self._be_patient(now)
        elif self._under_way is not None and self._is_enough(now - since):
            self._lose_patience(now)
            return True
        left_s = self._heard_at + self.settle_s - now
        if left_s > 0 and not self._pending and await self._is_asleep():
            return True
        if left_s <= 0:
            if await self._is_silent() and not self._wakes_soon():
                return True
            left_s = BUSY_S
        if not self._pending:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), left_s if self.rest_s is None else min(left_s, LOOK_S))
        return False

    def _wakes_soon(self) -> bool:
        """Whether a client is known to go on by itself in a moment, as one that tries again after an error. One that
        wakes up for nothing, again and again, is not waited for for long."""
        if not self.naps():
            return False
        heard_at, looks = self._naps
        self._naps = self._heard_at, looks + 1 if heard_at == self._heard_at else 1
        return self._naps[1] <= NAPS

    async def _is_silent(self) -> bool:
        """Whether no client is at work, nor gets to work by what the loop outside does first: that accepts connections
        and shakes hands, of which nobody hears."""
        return not self.is_busy() and await self._has_nothing_come() and not self.is_busy()

    async def _is_asleep(self) -> bool:
        """Whether clients are known to have reacted: they do nothing by themselves for as long as they would be waited
        for, on two looks between which they would have woken up."""
        for look in range(2):
            now = time.monotonic()
            if now - self._heard_at < LEAST_S:
                return False
            rest_s = None if self.rest_s is None else self.rest_s()
            waited_for_s = max(NAP_S, self._heard_at + self.settle_s - now)
            if rest_s is None or rest_s <= waited_for_s:
                return False
            if look == 0 and not await self._has_nothing_come():
                return False
        return not self._pending

    async def _has_nothing_come(self) -> bool:
        """Whether the loop outside has heard of nothing, also not of what came while this process had no core."""
        heard_at, times = self._heard_at, Heard.times
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        return not self._pending and self._heard_at == heard_at and Heard.times == times

    def _lose_patience(self, now: float) -> None:
        """Time goes on without whoever has not fallen silent."""
        self.hurried += 1
        loud = self._loud(now)
        for agent, told in loud.items():
            before = self._restless.get(agent)
            spell_s = HURRY_S if before is None else min(2 * before.spell_s, LONGEST_HURRY_S)
            self._restless[agent] = _Restless(self.world.now_ns + round(spell_s * SECOND_NS), spell_s, told)
        if not loud:  # nobody knows who it is
            self._hurries_until_ns = self.world.now_ns + round(HURRY_S * SECOND_NS)
        self._be_patient(now)

    def _end_late_step(self) -> None:
        """The real time that a step may take is over."""
        step = self._under_way
        if step is not None and time.monotonic() >= step.late_at:
            self.kept_by = self.waits_for
            step.done.set_result("late")

    @property
    def _under_way(self) -> Step | None:
        """The step for which time is to pass."""
        step = self._steps[0] if self._steps else None
        return None if step is None or step.until_ns < 0 or step.done.done() else step

    def _goes_on(self) -> bool:
        """Whether something is to happen now, or at a time that may come."""
        loop = self.world.loop
        if self._ends or loop.ready:
            return True
        next_ns, waking_ns = loop.next_ns(), self._waking_ns()
        goal_ns = self.world.loop_ns(self._goal_ns())
        return any(when_ns is not None and when_ns <= goal_ns for when_ns in (next_ns, waking_ns))

    def _waking_ns(self) -> int | None:
        """When the first of those outside wakes, by the loop's time."""
        return min((self.world.loop_ns(each.until_ns) for each in self._sleepers if not each.over.done()), default=None)

    def _wake_sleepers(self) -> None:
        """Those whose time has come, or comes before anything else happens."""
        loop, when_ns = self.world.loop, self._waking_ns()
        if when_ns is None or self._pending or loop.ready or when_ns > self.world.loop_ns(self._goal_ns()):
            return
        next_ns = loop.next_ns()
        if next_ns is None or when_ns < next_ns:
            loop.pass_to(when_ns)
            for sleeper in self._sleepers:
                if self.world.loop_ns(sleeper.until_ns) <= when_ns and not sleeper.over.done():
                    sleeper.over.set_result(None)
                    self.told()

    def _goal_ns(self) -> int:
        """How far time may go."""
        world = self.world
        if self._asking or self._questions:
            newer = [until_ns for number, until_ns in self._unanswered.items() if number not in self._held]
            return max([world.now_ns, *newer])
        goal_ns = max(world.now_ns, self._heard_ns, *self._unanswered.values())
        step = None if self._holds else self._under_way
        if step is not None and not step.reached and not (step.idle and world.loop.is_idle()) and not step.missing():
            goal_ns = max(goal_ns, step.until_ns)
        return goal_ns

    def _may_pass(self, next_ns: int | None) -> bool:
        """The gate of the loop: nothing is left to do in this instant."""
        world = self.world
        if self._ends or not world.stands:
            return self._ends or time.monotonic() < self._slice_over
        if next_ns is None or self._pending:
            return False
        if self._sleepers and (waking_ns := self._waking_ns()) is not None and waking_ns < next_ns:
            return False
        asks = bool(self._asking or self._questions)
        if (
            not asks
            and self._told_ns is not None
            and next_ns > world.loop_ns(self._told_ns) + round(REACTION_S * SECOND_NS)
        ):
            return False
        return next_ns <= world.loop_ns(self._goal_ns()) and time.monotonic() < self._slice_over

    def _settle_step(self) -> None:
        """All that may happen now has: a step that has come to its goal is over."""
        loop, step = self.world.loop, self._under_way
        if step is None or self._pending or loop.ready or self._told_ns is not None or self._holds:
            return
        next_ns = loop.next_ns()
        if step.missing():
            return
        if step.reached:
            step.done.set_result("reached")
        elif step.idle and loop.is_idle():
            step.done.set_result("idle")
        elif next_ns is None or next_ns > self.world.loop_ns(step.until_ns):
            loop.pass_to(self.world.loop_ns(step.until_ns))
            step.done.set_result("deadline")


@dataclass(eq=False)
class _Sleeper:
    until_ns: int
    over: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class _Wait(Deaf):
    """For one condition."""

    def __init__(
        self,
        condition: conditions.Condition,
        changed: Callable[[], None],
        deliveries: Deliveries | None = None,
        agent: str = "",
    ) -> None:
        """``deliveries``, ``agent``: whose watches are to have delivered what it holds with; None: nobody's."""
        self.condition = condition
        self.number = 0
        self.holds = False
        self._changed = changed
        self._deliveries = deliveries
        self._agent = agent
        self._shown: list[Any] = []
        """Objects with which it holds; of ``gone`` those that went."""

    def see(self, objects: Mapping[str, Any]) -> None:
        held = self.holds
        found = self.condition.matching(objects.values())
        self.holds = self.condition.holds(objects.values())
        if not self.condition.is_gone or found:
            self._shown = found
        if self.holds or held:
            self._changed()

    def missing(self) -> str:
        """The watch that is to see it, while there is none."""
        plural = self.condition.resource.plural
        if self._deliveries is None or self._deliveries.is_watched(self._agent, plural):
            return ""
        return f"a watch of {plural} by {self._agent}"

    def is_seen(self) -> bool:
        """Whether the client has been told of what it holds with."""
        deliveries = self._deliveries
        if deliveries is None:
            return True
        later = int(self.condition.is_gone)  # it went by a change after the last one of itself
        plural = self.condition.resource.plural
        return all(
            deliveries.have_shown(self._agent, plural, each, int(each.metadata.resourceVersion or 0) + later)
            for each in self._shown
        )

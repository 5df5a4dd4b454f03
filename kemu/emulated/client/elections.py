"""Leader election over a Lease, as client-go does it (``tools/leaderelection`` with a ``LeaseLock``).

    elector = Elector(env, client, Settings("kube-scheduler"))
    await elector.acquire()
    …  # work, beside
    why = await elector.renew()  # the lease is lost

Candidates never compare clocks: each measures with its own monotonic clock how long ago it saw the record change. So a
wrong wall clock does no harm, while one that runs too fast takes the lease too early. Nothing keeps a leader that was
held up beyond its lease from writing until it notices: the API server does not know who leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from kemu import errors
from kemu.emulated.objects import meta
from kemu.emulated.settings.declared import setting
from kemu.emulated.settings.shapes import NAME, POSITIVE_DURATION, Switch
from kemu.messages.k8s import coordination_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.faults.handlers import Assignment
from kemu.runtime.runlog.events import (
    LeaseAcquired,
    LeaseLost,
    LeaseObserved,
    LeaseReleased,
    LeaseReleaseFailed,
    OnLease,
)

T = TypeVar("T")

JITTER_FACTOR = 1.2
"""A candidate looks again after the retry period, stretched at random by up to this part of it."""

DEFAULT_LEASE_S, DEFAULT_DEADLINE_S, DEFAULT_RETRY_S = 15.0, 10.0, 2.0

LOST, TERMINATED = "leader election lost", "terminated"
"""Why a process has ended itself."""
STALE_RELEASE = "k8s-131867"


@dataclass(frozen=True, slots=True)
class Settings:
    """``LeaderElectionConfig``."""

    name: str
    """Name of the Lease."""
    namespace: str = "kube-system"
    lease_duration_s: float = DEFAULT_LEASE_S
    """So long a candidate must see no change of the record before it takes the lease."""
    renew_deadline_s: float = DEFAULT_DEADLINE_S
    """So long the leader tries to renew before it gives up."""
    retry_period_s: float = DEFAULT_RETRY_S
    """Between two tries."""
    release_on_cancel: bool = True
    settles_ns: int = 0
    """Until then the run must not end because candidates merely wait."""

    @property
    def request_timeout_ns(self) -> int:
        """Request timeout of one request: ``NewFromKubeconfig`` of ``resourcelock``, so that one that hangs does not
        cost the lease."""
        return int(max(SECOND_NS, self.renew_deadline_s * SECOND_NS / 2))

    def mistake(self) -> tuple[str, str] | None:
        """What is wrong: the field of a LeaderElectionConfiguration, and why.

        By ``ValidateLeaderElectionConfiguration`` of component-base and ``NewLeaderElector``.
        """
        if not self.name:
            return "resourceName", "is required"
        if not self.namespace:
            return "resourceNamespace", "is required"
        if self.lease_duration_s <= self.renew_deadline_s:
            return "leaseDuration", "must be greater than renewDeadline"
        if self.renew_deadline_s <= self.retry_period_s * JITTER_FACTOR:
            return "renewDeadline", f"must be greater than {JITTER_FACTOR} times retryPeriod"
        if self.lease_duration_s < 1:
            return "leaseDuration", "must be at least 1s, as a Lease counts whole seconds"
        return None


@dataclass(frozen=True, kw_only=True)
class LeaderElection:
    """A LeaderElectionConfiguration, with the defaults of kube-controller-manager."""

    leader_elect: bool = setting(Switch(), "Whether one leads; {default} by default. Otherwise all of them work.", True)
    lease_duration_ns: int = setting(
        POSITIVE_DURATION, "So long the others must see no renewal; {default} by default.", f"{DEFAULT_LEASE_S:g}s"
    )
    renew_deadline_ns: int = setting(
        POSITIVE_DURATION, "So long the leader tries to renew; {default} by default.", f"{DEFAULT_DEADLINE_S:g}s"
    )
    retry_period_ns: int = setting(
        POSITIVE_DURATION, "Between two tries; {default} by default.", f"{DEFAULT_RETRY_S:g}s"
    )
    resource_name: str | None = setting(NAME, "Of the Lease; the controller's name by default.")
    resource_namespace: str = setting(NAME, "Of the Lease; {default} by default.", "kube-system")
    release_on_cancel: bool = setting(
        Switch(),
        "Whether a leader that is told to end gives the lease up: the feature gate "
        "ControllerManagerReleaseLeaderElectionLockOnExit, {default} by default.",
        False,
    )

    def of(self, name: str) -> Settings:
        """For the candidates of that name."""
        return Settings(
            self.resource_name or name,
            self.resource_namespace,
            self.lease_duration_ns / SECOND_NS,
            self.renew_deadline_ns / SECOND_NS,
            self.retry_period_ns / SECOND_NS,
            self.release_on_cancel,
        )


class Record(NamedTuple):
    """What a Lease says (``LeaderElectionRecord``)."""

    holder: str
    duration_s: int
    acquired_unix_ns: int
    renewed_unix_ns: int
    transitions: int

    @property
    def raw(self) -> tuple[str, int, int, int, int]:
        """What is compared to find a change: ``metav1.Time`` has seconds."""
        times = self.acquired_unix_ns // SECOND_NS, self.renewed_unix_ns // SECOND_NS
        return self.holder, self.duration_s, *times, self.transitions


_NOBODY = Record("", 0, 0, 0, 0)


class Leases(Protocol):
    """What an election asks of a client."""

    def get(self, resource: str, name: str, namespace: str) -> Awaitable[Any]: ...

    def create(self, obj: coordination_v1_pb2.Lease) -> Awaitable[coordination_v1_pb2.Lease]: ...

    def update(self, obj: coordination_v1_pb2.Lease) -> Awaitable[coordination_v1_pb2.Lease]: ...


class LeaseLock:
    """A Lease as the record of an election (``resourcelock.LeaseLock``); all methods raise ApiError."""

    def __init__(self, env: Env, leases: Leases, settings: Settings) -> None:
        self._env = env
        self._leases = leases
        self._settings = settings
        self._lease: coordination_v1_pb2.Lease | None = None
        """As last seen."""

    async def get(self, deadline_ns: int | None) -> Record:
        settings = self._settings
        lease = await self._ask(lambda: self._leases.get("leases", settings.name, settings.namespace), deadline_ns)
        self._lease = coordination_v1_pb2.Lease.FromString(lease.SerializeToString())
        spec = lease.spec
        return Record(
            spec.holderIdentity,
            spec.leaseDurationSeconds,
            meta.unix_ns(spec.acquireTime),
            meta.unix_ns(spec.renewTime),
            spec.leaseTransitions,
        )

    async def create(self, record: Record, deadline_ns: int | None) -> None:
        lease = coordination_v1_pb2.Lease()
        lease.metadata.name, lease.metadata.namespace = self._settings.name, self._settings.namespace
        _write(lease, record)
        # As in client-go, a failure leaves nothing that an update could begin with.
        self._lease = None
        self._lease = await self._ask(lambda: self._leases.create(lease), deadline_ns)

    async def update(self, record: Record, deadline_ns: int | None) -> None:
        """Only if the Lease is still as last seen."""
        if self._lease is None:
            raise errors.ApiError("lease not initialized, call get or create first")
        lease = coordination_v1_pb2.Lease.FromString(self._lease.SerializeToString())
        _write(lease, record)
        self._lease = await self._ask(lambda: self._leases.update(lease), deadline_ns)

    async def _ask(self, request: Callable[[], Awaitable[T]], deadline_ns: int | None) -> T:
        """Raises :class:`kemu.errors.ServerTimeout` at the deadline, or after the timeout of a request; the request may
        be carried out all the same."""
        clock = self._env.clock
        now_ns = clock.now_ns()
        if deadline_ns is not None and now_ns >= deadline_ns:
            raise errors.ServerTimeout("no time is left for a request of the leader election")
        timeout_ns = now_ns + self._settings.request_timeout_ns
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def ask() -> None:
            try:
                found = await request()
            except errors.ApiError as error:
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(found)

        task = self._env.spawn(ask(), "request of the leader election")

        def give_up() -> None:
            if not answer.done():
                answer.set_exception(errors.ServerTimeout("the request of the leader election has timed out"))
            task.cancel()

        until_ns = timeout_ns if deadline_ns is None else min(timeout_ns, deadline_ns)
        timer = clock.call_at_ns(until_ns, give_up, background=True)
        try:
            return await answer
        finally:
            timer.cancel()
            if not answer.done() or answer.cancelled():
                task.cancel()


def _write(lease: coordination_v1_pb2.Lease, record: Record) -> None:
    spec = lease.spec
    spec.holderIdentity = record.holder
    spec.leaseDurationSeconds = record.duration_s
    spec.leaseTransitions = record.transitions
    # metav1.MicroTime
    meta.set_time(spec.acquireTime, record.acquired_unix_ns // 1000 * 1000)
    meta.set_time(spec.renewTime, record.renewed_unix_ns // 1000 * 1000)


class Elector:
    """One candidate (``LeaderElector``)."""

    def __init__(self, env: Env, leases: Leases, settings: Settings, identity: str = "") -> None:
        """``identity``: by default the actor's name and something that no other incarnation has."""
        self.identity = identity or f"{env.name}_{_unique(env)}"
        self._env = env
        self._settings = settings
        self._lock = LeaseLock(env, leases, settings)
        self._observed = _NOBODY
        self._observed_ns = 0
        """When, by the own monotonic clock."""
        self._raw: tuple[str, int, int, int, int] | None = None
        self._reported = ""
        """The leader of whom the log knows."""
        self._is_calm = False
        """The latest look has found what was to be expected: a candidate that merely waits for the next one does not
        keep a run going."""

    @property
    def is_leader(self) -> bool:
        """As far as the candidate knows."""
        return self._observed.holder == self.identity

    async def acquire(self) -> None:
        """Try until the lease is ours."""
        period_ns = int(self._settings.retry_period_s * SECOND_NS)
        while not await self._try(None):
            self._report()
            await self._pause(period_ns + int(self._env.random.random() * JITTER_FACTOR * period_ns))
        self._report()
        self._env.log(LeaseAcquired(**self._who(), transitions=self._observed.transitions))

    async def renew(self) -> None:
        """Keep the lease; returns when it is lost."""
        try:
            while await self._renewed():
                self._report()
                await self._pause(int(self._settings.retry_period_s * SECOND_NS))
        finally:
            self._report()
        self._env.log(LeaseLost(**self._who(), holder=self._observed.holder))

    async def release(self) -> bool:
        """Give the lease up, if that is set, so that others need not wait. False: that has failed."""
        if not self._settings.release_on_cancel:
            return True
        deadline_ns = self._env.clock.now_ns() + int(self._settings.renew_deadline_s * SECOND_NS)
        try:
            transitions = await self._transitions(deadline_ns)
            if not self.is_leader:
                return True
            unix_ns = self._env.clock.unix_ns()
            record = Record("", 1, unix_ns, unix_ns, transitions)
            await self._lock.update(record, deadline_ns)
        except errors.ApiError as error:
            self._env.log(LeaseReleaseFailed(**self._who(), why=error.message))
            return False
        self._observe(record)
        self._env.log(LeaseReleased(**self._who()))
        return True

    async def _transitions(self, deadline_ns: int) -> int:
        """Another renewal may have been carried out without our knowledge: the next update needs its version."""
        return (await self._lock.get(deadline_ns)).transitions

    async def _renewed(self) -> bool:
        """``PollUntilContextTimeout``: at once, then at each tick of the retry period, until the renew deadline."""
        clock, period_ns = self._env.clock, int(self._settings.retry_period_s * SECOND_NS)
        start_ns = clock.now_ns()
        deadline_ns, tick_ns = start_ns + int(self._settings.renew_deadline_s * SECOND_NS), start_ns + period_ns
        while not await self._try(deadline_ns):
            if clock.now_ns() < min(tick_ns, deadline_ns):
                await clock.sleep_until_ns(min(tick_ns, deadline_ns))
            now_ns = clock.now_ns()
            if now_ns >= deadline_ns:
                return False
            # Go's tickers keep one tick for a reader that comes late, and drop the others.
            tick_ns += period_ns * (1 + (now_ns - tick_ns) // period_ns)
        return True

    async def _try(self, deadline_ns: int | None) -> bool:
        """``tryAcquireOrRenew``: whether the lease is ours now."""
        clock, settings = self._env.clock, self._settings
        now_ns, unix_ns = clock.now_ns(), clock.unix_ns()
        wanted = Record(self.identity, int(settings.lease_duration_s), unix_ns, unix_ns, 0)
        self._is_calm = False
        if self.is_leader and self._is_valid(now_ns):
            # The fast path: what was seen last is probably still there.
            observed = self._observed
            wanted = wanted._replace(acquired_unix_ns=observed.acquired_unix_ns, transitions=observed.transitions)
            try:
                await self._lock.update(wanted, deadline_ns)
            except errors.ApiError:
                # What was filled in stays, as in client-go: a Lease that was deleted is made with its old times.
                pass
            else:
                self._observe(wanted)
                self._is_calm = True
                return True
        try:
            old = await self._lock.get(deadline_ns)
        except errors.NotFound:
            try:
                await self._lock.create(wanted, deadline_ns)
            except errors.ApiError:
                return False
            self._observe(wanted)
            return True
        except errors.ApiError:
            return False
        if self._raw != old.raw:
            self._observe(old)
            self._raw = old.raw
            self._is_calm = True
        if old.holder and self._is_valid(now_ns) and not self.is_leader:
            return False
        if self.is_leader:
            wanted = wanted._replace(acquired_unix_ns=old.acquired_unix_ns, transitions=old.transitions)
        else:
            wanted = wanted._replace(transitions=old.transitions + 1)
        try:
            await self._lock.update(wanted, deadline_ns)
        except errors.ApiError:
            return False
        self._observe(wanted)
        return True

    def _is_valid(self, now_ns: int) -> bool:
        """``isLeaseValid``: by when the record was seen, whatever times stand in it."""
        return self._observed_ns + self._observed.duration_s * SECOND_NS > now_ns

    def _observe(self, record: Record) -> None:
        self._observed = record
        self._observed_ns = self._env.clock.now_ns()

    async def _pause(self, duration_ns: int) -> None:
        clock = self._env.clock
        now_ns = clock.now_ns()
        background = self._is_calm and now_ns >= self._settings.settles_ns
        await clock.sleep_until_ns(now_ns + duration_ns, background=background)

    def _report(self) -> None:
        """``maybeReportTransition``."""
        holder = self._observed.holder
        if holder != self._reported:
            self._reported = holder
            if holder not in ("", self.identity):
                self._env.log(LeaseObserved(**self._who(), holder=holder))

    def _who(self) -> OnLease:
        return {"lease": f"{self._settings.namespace}/{self._settings.name}", "identity": self.identity}


def _unique(env: Env) -> str:
    """A random UUID."""
    digits = f"{env.random.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Candidate:
    """A process that works while it leads, or always, if there is no election.

    It obeys the fault ``terminate``, as a program obeys SIGTERM.
    """

    def __init__(self, env: Env, elector: Elector | None) -> None:
        self._env = env
        self._elector = elector
        self._main: asyncio.Task[Any] | None = None
        """The task of the actor."""
        self._renewals: asyncio.Task[None] | None = None
        """Renewals of a leader."""
        self._is_ending = False
        env.on_fault("terminate", self._terminate)

    @property
    def is_elected(self) -> bool:
        """Whether there is an election."""
        return self._elector is not None

    async def win(self) -> None:
        """Wait until the lease is ours. When it is lost the process ends, as kube-scheduler and kube-controller-manager
        do (``os.Exit`` in ``OnStoppedLeading``)."""
        assert self._elector is not None
        self._main = asyncio.current_task()
        await self._elector.acquire()
        self._renewals = self._env.spawn(self._keep(self._elector), "leader election")

    async def _keep(self, elector: Elector) -> None:
        await elector.renew()
        self._is_ending = True
        await elector.release()
        self._env.exit(LOST)

    def _terminate(self, fault: Assignment) -> None:
        fault.hit("")
        self._env.spawn(self._end(), "termination")

    async def _end(self) -> None:
        if self._is_ending:
            return
        self._is_ending = True
        for task in (self._main, self._renewals):
            if task is not None:
                task.cancel()
        if self._elector is not None and self._renewals is not None:
            await self._elector.release()
        self._env.exit(TERMINATED)

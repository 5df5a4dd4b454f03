"""The check that only the leader of an election works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from kemu.lab.checks.history import History
from kemu.lab.checks.results import Check, Result, seconds, several
from kemu.messages.k8s import coordination_v1_pb2
from kemu.runtime.runlog.events import ApiRequest, FaultBegun, LeaseAcquired, Transaction
from kemu.runtime.words import counted

LEASES = "/registry/leases/"


class _Term(NamedTuple):
    """Term of a candidate that was elected."""

    lease: str
    identity: str


class OneLeaderAtATime(Check):
    """A leader creates, binds, evicts and deletes pods only while its Lease names it.

    What counts is what the Lease said when the API server carried the request out, not who believed to lead: a lease
    has no fencing, so a leader that was held up goes on until it notices. A lease that has run out but that no
    candidate has taken still names its holder.
    """

    id: ClassVar[str] = "one-leader-at-a-time"
    keys: ClassVar[tuple[str, ...]] = (LEASES,)

    def __init__(self) -> None:
        self._terms: dict[str, _Term] = {}
        """By actor: the latest one."""
        self._holders: dict[str, list[tuple[int, str]]] = {}
        """By lease: who holds it from which revision on."""
        self._findings: dict[tuple[str, str], list[str]] = {}
        """By who wrote and who held the lease."""
        self._count = 0

    def taker(self, kind: str) -> Callable[[int, str, Any], None] | None:
        return None if kind == ApiRequest.KIND and not self._terms else self.on_event

    def on_event(self, time_ns: int, actor: str, event: Transaction | ApiRequest | LeaseAcquired) -> None:
        if isinstance(event, Transaction):
            for op, key, value, _create, _version in event.changes:
                if key.startswith(LEASES):
                    holder = coordination_v1_pb2.Lease.FromString(value).spec.holderIdentity if op == 0 else ""
                    held = self._holders.setdefault(key.removeprefix(LEASES), [])
                    if not held or held[-1][1] != holder:
                        held.append((event.rev, holder))
        elif isinstance(event, LeaseAcquired):
            self._terms[actor] = _Term(event.lease, event.identity)
            if len(self._terms) == 1:
                self.ask_again()
        else:
            term = self._terms.get(event.by)
            if term is not None:
                self._wrote(time_ns, event, term)

    def _wrote(self, time_ns: int, event: ApiRequest, term: _Term) -> None:
        self._count += 1
        holder = next((who for rev, who in reversed(self._holders[term.lease]) if rev <= event.rev), "")
        if holder == term.identity:
            return
        leader = f"{_name(holder)} leads" if holder else "nobody leads"
        who = _name(term.identity)
        where = f"{event.verb} {event.namespace}/{event.name}"
        found = self._findings.setdefault((term.identity, holder), [])
        found.append(f"{seconds(time_ns)}: {who} made the request {where}, while {leader} ({term.lease})")

    def result(self, history: History) -> Result:
        if self._findings:
            texts = [
                found[0] + (f", and {counted(len(found) - 1, 'more request')}" if len(found) > 1 else "")
                for found in self._findings.values()
            ]
            return Result(self.id, False, several(texts))
        if not self._count:
            return Result(self.id, None, "no leader that was elected made a request about a pod")
        return Result(self.id, True, f"{counted(self._count, 'request')} of leaders")


class LeasesAreTakenWhenTheyRunOut(Check):
    """A lease changes hands only when its holder has given it up, or has not renewed it for ``leaseDurationSeconds``.

    A candidate counts from when it saw the last renewal, by its own clock (``tryAcquireOrRenew`` of client-go), so
    never from before that was written. Where clocks are skewed by a fault no candidate is judged.
    """

    id: ClassVar[str] = "leases-are-taken-when-they-run-out"
    keys: ClassVar[tuple[str, ...]] = (LEASES,)

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, int, int]] = {}
        """By lease: who holds it, the last renewal, and for how long it counts."""
        self._are_clocks_right = True
        self._taken = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, event: Transaction | FaultBegun) -> None:
        if isinstance(event, FaultBegun):
            self._are_clocks_right &= not event.what.startswith("clock")
            return
        for op, key, value, _create, _version in event.changes:
            if not key.startswith(LEASES):
                continue
            if op != 0:
                self._held.pop(key, None)
                continue
            spec = coordination_v1_pb2.Lease.FromString(value).spec
            holder, lasts_ns = spec.holderIdentity, spec.leaseDurationSeconds * 1_000_000_000
            before, renewed_ns, lasted_ns = self._held.get(key, ("", 0, 0))
            self._held[key] = holder, time_ns, lasts_ns
            if not before or not holder or before == holder or not self._are_clocks_right:
                continue
            self._taken += 1
            if time_ns - renewed_ns < lasted_ns:
                self._findings.append(
                    f"{seconds(time_ns)}: {_name(holder)} takes {key.removeprefix(LEASES)}, which {_name(before)} "
                    f"renewed at {seconds(renewed_ns)} for {seconds(lasted_ns)}"
                )

    def rolled_back(self, time_ns: int, history: History) -> None:
        """A renewal that the store has lost does not count; how old the one before is, the next write tells."""
        self._held.clear()

    def result(self, history: History) -> Result:
        good = f"{counted(self._taken, 'lease')} taken"
        return self.concluded(self._findings, self._taken, "no lease was taken from its holder", good)


def _name(identity: str) -> str:
    """The actor in an identity."""
    return identity.rpartition("_")[0] or identity

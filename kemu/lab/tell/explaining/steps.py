"""The events of a run log that a story can consist of, in words: decisions, writes, and what became of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.explaining import knowledge
from kemu.lab.tell.explaining.knowledge import NEVER, PODS, Change, Knowledge, Moment
from kemu.lab.tell.explaining.names import Names, listed
from kemu.runtime.faults.kinds import KINDS
from kemu.runtime.holds import short_name
from kemu.runtime.runlog import frames
from kemu.runtime.runlog.events import (
    ActorCrashed,
    ActorExited,
    ActorStarted,
    AdmissionDecided,
    ApiRequest,
    Event,
    FaultBegun,
    NodeTainted,
    NodeUnknown,
    OfPodDeletion,
    OfVictim,
    PodAttempted,
    PodBound,
    PodCreated,
    PodNominated,
    PodPreempting,
    PodQueued,
    PreemptionPlanned,
    RequestRefused,
    RunEnded,
    Transaction,
    UserActed,
    handlers,
)
from kemu.runtime.runlog.events.words import DECISION, OUTCOME, USUAL, WRITE, filled

BEGINNING = Moment(0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One event of the log, or one change of a transaction."""

    at: Moment
    actor: str
    what: str
    """A word, to compare steps of two runs."""
    text: str
    """With its subject, in the past tense, without a full stop."""
    short: str
    """For a picture, beside the line of the actor."""
    weight: int
    pod: str = ""
    """``namespace/name``, the pod that it is about."""
    uid: str = ""
    node: str = ""
    which: int = 0
    """Of several pods of that name, in the order of their creation."""
    others: tuple[str, ...] = ()
    """Further pods: victims, a preemptor."""
    begun: Moment = BEGINNING
    """What it knew until then counted."""
    change: Change | None = None
    """What was written."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The data of the event."""

    @property
    def sign(self) -> tuple[str, ...]:
        """Equal for steps of two runs that are the same but for their time."""
        return self.actor, self.what, self.pod, str(self.which), self.node

    @property
    def is_decision(self) -> bool:
        return self.weight >= OUTCOME and self.change is None


class Teller:
    """Turns the events of one run into steps."""

    def __init__(self, scenario: Scenario, events: Sequence[frames.Event], known: Knowledge, names: Names) -> None:
        self._scenario = scenario
        self._events = events
        self._known = known
        self._names = names
        self._handlers: dict[str, Callable[[Moment, str, Any], Step | None]] = handlers.of(self)
        self._ended: dict[str, int] = {}
        self._chosen: set[tuple[str, str]] = set()
        """UIDs of pods and the nodes that schedulers have chosen for them."""

    def steps(self) -> list[Step]:
        """In the order of the log, until the shutdown."""
        found: list[Step] = []
        for index, (time_ns, actor, kind, data) in enumerate(self._events):
            at = Moment(time_ns, index)
            if isinstance(data, RunEnded):
                break
            if isinstance(data, Transaction):
                changes = [one for one in self._known.by_revision.get(data.rev, ()) if one.at == at]
                found += [step for one in changes if (step := self._written(at, actor, one)) is not None]
                continue
            handler = self._handlers.get(kind)
            step = handler(at, actor, data) if handler is not None else self._deed(at, actor, data)
            if step is not None:
                found.append(step)
        return found

    # --- who decided what --------------------------------------------------------------------------------------------

    def _on_attempt(self, at: Moment, actor: str, event: PodAttempted) -> Step | None:
        who, pod, result = self._names.actor(actor), self._pod(event), event.result
        if result == "scheduled":
            self._chosen.add((event.uid, event.node))
            text, short = f"{who} chose {event.node} for {pod}", f"{pod} → {event.node}"
        elif result == "unschedulable":
            text, short = f"{who} found no node for {pod}{_why(event.message)}", f"no node for {pod}"
        elif result == "skipped":
            text, short = f"{who} skipped {pod}", f"skips {pod}"
        else:
            text, short = f"{who} failed to schedule {pod}{_why(event.message)}", f"error with {pod}"
        begun = _begun(at, event)
        return self._step(at, actor, f"attempt {result}", text, short, DECISION, event, begun=begun)

    def _on_preemption(self, at: Moment, actor: str, event: PreemptionPlanned) -> Step | None:
        if not event.node:
            return None
        others = tuple(key for key, _uid, _priority in event.victims)
        whom = f", to preempt {listed(map(short_name, others))} there" if others else ", to preempt pods there"
        text = f"{self._names.actor(actor)} chose {event.node} for {self._pod(event)}{whom}"
        short = f"preempts for {self._pod(event)}"
        return self._step(at, actor, "preemption", text, short, DECISION, event, others=others, begun=_begun(at, event))

    def _on_queued(self, at: Moment, actor: str, event: PodQueued) -> Step | None:
        if event.queue == "active":
            return None
        text = f"{self._names.actor(actor)} requeued {self._pod(event)} ({event.event})"
        return self._step(at, actor, "requeued", text, f"requeues {self._pod(event)}", USUAL, event)

    def _on_tainted(self, at: Moment, actor: str, event: NodeTainted) -> Step | None:
        node, who = event.node, self._names.actor(actor)
        added = listed(taint.removeprefix("node.kubernetes.io/") for taint in event.add)
        text = f"{who} tainted {node} ({added})" if added else f"{who} took taints off {node}"
        return Step(at, actor, "tainted" if added else "untainted", text, f"taints {node}", OUTCOME, node=node)

    def _on_unknown(self, at: Moment, actor: str, event: NodeUnknown) -> Step | None:
        text = f"{self._names.actor(actor)} heard nothing of {event.node} any more"
        return Step(at, actor, "unknown", text, f"{event.node} is silent", OUTCOME, node=event.node)

    def _on_victim(self, at: Moment, actor: str, event: OfVictim) -> Step | None:
        if not event.ok:
            return None
        verb = "turned away" if event.get("how") == "rejected" else "deleted"
        by = f" to make room for {short_name(event.by)}" if event.by else ""
        text = f"{self._names.actor(actor)} {verb} {self._pod(event)} on {event.node}{by}"
        others = (event.by,) if event.by else ()
        return self._step(at, actor, "victim", text, f"deletes {self._pod(event)}", OUTCOME, event, others=others)

    def _on_nominated(self, at: Moment, actor: str, event: PodNominated) -> Step | None:
        if event.node:
            verb, short = f"nominated {event.node} for {self._pod(event)}", f"nominates {event.node}"
        else:
            verb, short = f"cleared the nomination of {self._pod(event)}", f"clears {self._pod(event)}"
        return self._step(at, actor, "nominated", f"{self._names.actor(actor)} {verb}", short, WRITE, event)

    def _on_bind(self, at: Moment, actor: str, event: PodBound) -> Step | None:
        if event.ok:
            return None  # The write itself is told.
        pod, who = self._pod(event), self._names.actor(actor)
        text = f"{who} was told that its binding of {pod} to {event.node} failed ({event.reason})"
        return self._step(at, actor, "bind refused", text, f"{pod}: {event.reason}", OUTCOME, event)

    def _on_request(self, at: Moment, actor: str, event: ApiRequest) -> Step | None:
        if event.resource != "pods" or event.verb not in ("delete", "evict"):
            return None
        by, pod = event.by, self._names.pod(_key(event), event.uid)
        verb = "deleted" if event.verb == "delete" else "evicted"
        who = self._names.actor(by)
        what = f"{event.verb} by {by}"
        # A kubelet deletes what has ended; a user is told of by the event of the scenario.
        weight = USUAL if by.startswith("kubelet/") else OUTCOME
        return Step(at, by, what, f"{who} {verb} {pod}", f"{verb} {pod}", weight, _key(event), event.uid)

    def _on_refused(self, at: Moment, actor: str, event: RequestRefused) -> Step | None:
        by, key = self._names.actor(event.by), _key(event)
        is_pod = event.resource == "pods"
        about = short_name(key) if is_pod else f"{event.resource}/{short_name(key)}"
        text = f"{self._names.actor(actor)} refused the {event.verb} of {about} by {by} ({event.reason})"
        what = f"{event.verb} refused {event.reason}"
        # A scheduler tells of its binding itself; writes that collide are made again.
        weight = OUTCOME if is_pod and event.verb != "bind" and event.reason != "ServiceUnavailable" else USUAL
        short = f"refuses {event.verb}"
        return Step(at, actor, what, text, short, weight, key if is_pod else "", event.uid or "")

    def _on_admit(self, at: Moment, actor: str, event: AdmissionDecided) -> Step | None:
        who, pod = self._names.actor(actor), self._pod(event)
        begun = Moment(at.time_ns, NEVER)
        if event.ok:
            return self._step(
                at, actor, "admitted", f"{who} admitted {pod}", f"admits {pod}", WRITE, event, begun=begun
            )
        text = f"{who} rejected {pod} ({event.reason})"
        return self._step(at, actor, "rejected", text, f"rejects {pod}", DECISION, event, begun=begun)

    def _on_kubelet_preempting(self, at: Moment, actor: str, event: PodPreempting) -> Step | None:
        text = f"{self._names.actor(actor)} killed {self._pod(event)} to make room for {short_name(event.by)}"
        short = f"kills {self._pod(event)}"
        return self._step(at, actor, "kubelet preempts", text, short, DECISION, event, others=(event.by,))

    def _on_user_event(self, at: Moment, actor: str, event: UserActed) -> Step | None:
        asked = next((one for one in self._scenario.events if one.index == event.index), None)
        if asked is None or asked.what == "create":  # The write is told.
            return None
        about = f"{asked.namespace or 'default'}/{asked.name}"
        text = f"the user's event: {asked.what} {short_name(about) if asked.name else ''}".rstrip()
        if asked.what in ("delete", "evict"):
            text = f"the user asked to {asked.what} {short_name(about)}"
        is_pod = asked.resource in ("pods", "")
        key, node = (about, "") if is_pod and asked.name else ("", asked.name if asked.resource == "nodes" else "")
        return Step(at, actor, f"user {asked.what} {asked.name}", text, f"{asked.what} {asked.name}", OUTCOME, key,
                    node=node)  # fmt: skip

    def _on_controller_pod(self, at: Moment, actor: str, event: PodCreated) -> Step | None:
        place = f" in place of {short_name(event.replaces)}" if event.replaces else ""
        text = f"{self._names.actor(actor)} created {self._pod(event)} for {event.owner}{place}"
        others = (event.replaces,) if event.replaces else ()
        return self._step(at, actor, "created", text, f"creates {self._pod(event)}", OUTCOME, event, others=others)

    def _on_deletion(self, at: Moment, actor: str, event: OfPodDeletion) -> Step | None:
        if not event.ok:
            return None
        why = f" ({event.why})" if event.why else ""
        text = f"{self._names.actor(actor)} deleted {self._pod(event)}{why}"
        return self._step(at, actor, "deletes", text, f"deletes {self._pod(event)}", OUTCOME, event)

    # --- what happened -----------------------------------------------------------------------------------------------

    def _deed(self, at: Moment, actor: str, event: Event) -> Step | None:
        """As its class says."""
        deed = event.DEED
        if deed is None:
            return None
        words = {"pod": self._pod(event), "say": "succeed" if event.get("ok") else "fail"}
        text = f"{self._names.actor(actor)} {filled(deed.text, event, **words)}"
        what = event.KIND.partition(".")[2]
        return self._step(at, actor, what, text, filled(deed.short, event, **words), deed.weight, event)

    def _written(self, at: Moment, actor: str, change: Change) -> Step | None:
        """Where nobody says why: told by what is stored."""
        clause = knowledge.told(change)
        if not clause:
            return None
        state = change.pod or (change.before.pod if change.before is not None else None)
        if change.key.startswith(PODS):
            key = change.key.removeprefix(PODS)
            uid = state.uid if state is not None else ""
            name, node = self._names.pod(key, uid), state.node if state is not None else ""
            weight = WRITE if "bound" in clause or "removed" in clause else USUAL
            is_chosen = (uid, node) in self._chosen or not self._chosen
            if clause.endswith(" again") or ("bound to" in clause and not is_chosen):
                # Nobody wanted that.
                weight = DECISION
            short = f"{name} {clause.removeprefix('was ')}"
            what = f"written {clause}"
            text = f"{name} {clause}" if name.startswith("the ") else f"pod {name} {clause}"
            return Step(
                at, actor, what, text, short, weight, key, uid, node, self._names.which(key, uid), change=change
            )
        if change.key.startswith(knowledge.NODES):
            weight = USUAL if clause == "joined" else OUTCOME
            name = change.name
            what = f"written {clause}"
            return Step(at, actor, what, f"node {name} {clause}", f"{name} {clause}", weight, node=name, change=change)
        return None

    def revision(self, change: Change) -> Step:
        """A write that a check names, whatever it is about."""
        writer = self._known.writer(change.revision)
        who = self._names.actor(writer) if writer else "somebody"
        verb = "removed" if change.value is None else "created" if change.before is None else "changed"
        text = f"{who} {verb} {knowledge.plural_of(change.key)}/{change.name} (revision {change.revision})"
        key = change.key.removeprefix(PODS) if change.key.startswith(PODS) else ""
        short = f"writes {change.name}"
        return Step(change.at, writer or "store", "write", text, short, OUTCOME, key, change=change)

    # --- faults ------------------------------------------------------------------------------------------------------

    def _on_fault(self, at: Moment, actor: str, event: FaultBegun) -> Step | None:
        kind = KINDS.get(event.what)
        if kind is None or event.what == "crash":
            return None
        words = {name: self._plain(value) for name, value in event.items()}
        text = kind.begins.format_map(words)
        return Step(at, actor, f"fault {event.what}", text, str(event.what), DECISION, facts=event)

    def _on_crashed(self, at: Moment, actor: str, event: ActorCrashed | ActorExited) -> Step | None:
        self._ended[actor] = at.time_ns
        step = f" at its step {event.step}" if isinstance(event, ActorCrashed) and event.step else ""
        why = f": {event.why}" if isinstance(event, ActorExited) and event.why else ""
        text = f"{self._names.actor(actor)} crashed{step}{why}"
        return Step(at, actor, "crashed", text, "crashes", DECISION)

    def _on_started(self, at: Moment, actor: str, event: ActorStarted) -> Step | None:
        if actor not in self._ended:
            return None
        return Step(at, actor, "started again", f"{self._names.actor(actor)} started again", "starts again", OUTCOME)

    def _plain(self, value: Json) -> Json:
        """A parameter of a fault: actors by their names, two sides one by one."""
        if isinstance(value, list):
            if value and isinstance(value[0], list):
                return [self._plain(side) for side in value]
            return listed(self._names.actor(str(one)) for one in value)
        if isinstance(value, str):
            return self._names.actor(value)
        return f"{value:g}" if isinstance(value, float) else value

    # --- helpers -----------------------------------------------------------------------------------------------------

    def _pod(self, event: Event) -> str:
        return self._names.pod(event["pod"], event.get("uid", ""))

    def _step(
        self,
        at: Moment,
        actor: str,
        what: str,
        text: str,
        short: str,
        weight: int,
        event: Event,
        *,
        others: tuple[str, ...] = (),
        begun: Moment | None = None,
    ) -> Step:
        node = event.get("node") or ""
        pod, uid = event["pod"], event.get("uid", "")
        when = begun if begun is not None else at
        which = self._names.which(pod, uid)
        return Step(at, actor, what, text, short, weight, pod, uid, node, which, others, when, facts=event)


def _key(event: ApiRequest | RequestRefused) -> str:
    return f"{event.namespace}/{event.name}" if event.namespace else event.name


def _begun(at: Moment, event: Event) -> Moment:
    """An attempt that takes time decides on what was known at its beginning."""
    start = event.get("start", at.time_ns)
    return at if start == at.time_ns else Moment(start, NEVER)


def _why(message: str) -> str:
    """A scheduler's message without what says nothing here."""
    text = message.replace("no new claims to deallocate, ", "").partition(" preemption: ")[0].strip().rstrip(".")
    return f" ({text})" if text else ""

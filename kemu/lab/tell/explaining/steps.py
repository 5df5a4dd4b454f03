"""The events of a run log that a story can consist of, in words: decisions, writes, and what became of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import resources
from kemu.emulated.objects.plain import Json
from kemu.lab.checks.history.claims import text_of
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.explaining import knowledge
from kemu.lab.tell.explaining.knowledge import NEVER, PODS, Change, Knowledge, Moment
from kemu.lab.tell.explaining.names import Names
from kemu.runtime.faults.kinds import KINDS
from kemu.runtime.runlog import events as log_events
from kemu.runtime.runlog import frames
from kemu.runtime.runlog.events import handlers
from kemu.runtime.runlog.events.words import DECISION, OUTCOME, USUAL, WRITE
from kemu.runtime.words import listed, short

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
    """The number among several pods of that name, in the order of their creation."""
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


class StepMaker:
    """Turns the events of one run into steps."""

    def __init__(self, scenario: Scenario, events: Sequence[frames.Entry], known: Knowledge, names: Names) -> None:
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
            if isinstance(data, log_events.RunEnded):
                break
            if isinstance(data, log_events.Transaction):
                changes = [one for one in self._known.by_revision.get(data.rev, ()) if one.at == at]
                found += [step for one in changes if (step := self._written(at, actor, one)) is not None]
                continue
            handler = self._handlers.get(kind)
            step = handler(at, actor, data) if handler is not None else self._deed(at, actor, data)
            if step is not None:
                found.append(step)
        return found

    def _deed(self, at: Moment, actor: str, event: log_events.Event) -> Step | None:
        """As the class of the event says."""
        key, uid = event.get("pod", ""), event.get("uid") or ""
        deed = event.deed(self._names.pod(key, uid) if key else "", self._names)
        if deed is None:
            return None
        who, what = deed.who or actor, deed.what or event.KIND.partition(".")[2]
        text = f"{self._names.actor(who)} {deed.text}"
        node = "" if deed.about else event.get("node") or ""
        if not key:
            return Step(at, who, what, text, deed.short, deed.weight, deed.about, uid, node)
        return Step(
            at, who, what, text, deed.short, deed.weight, key, uid, node,
            self._names.which(key, uid), deed.others, _begun(at, event), facts=event,
        )  # fmt: skip

    def _on_attempt(self, at: Moment, actor: str, event: log_events.PodAttempted) -> Step | None:
        if event.result == "scheduled":
            self._chosen.add((event.uid, event.node))
        return self._deed(at, actor, event)

    def _on_ended(self, at: Moment, actor: str, event: log_events.ActorCrashed | log_events.ActorExited) -> Step | None:
        self._ended[actor] = at.time_ns
        return self._deed(at, actor, event)

    def _on_started(self, at: Moment, actor: str, event: log_events.ActorStarted) -> Step | None:
        return self._deed(at, actor, event) if actor in self._ended else None

    def _on_user_event(self, at: Moment, actor: str, event: log_events.UserActed) -> Step | None:
        asked = next((one for one in self._scenario.events if one.index == event.index), None)
        if asked is None or asked.what == "create":  # The write is told.
            return None
        resource, namespace, name = asked.target
        about = f"{namespace or 'default'}/{name}"
        text = f"the user's event: {asked.what} {short(about) if name else ''}".rstrip()
        if asked.what in ("delete", "evict"):
            text = f"the user asked to {asked.what} {short(about)}"
        key, node = (about, "") if resource in ("pods", "") and name else ("", name if resource == "nodes" else "")
        return Step(at, actor, f"user {asked.what} {name}", text, f"{asked.what} {name}", OUTCOME, key, node=node)

    def _on_fault(self, at: Moment, actor: str, event: log_events.FaultBegun) -> Step | None:
        kind = KINDS.get(event.what)
        if kind is None or event.what == "crash":
            return None
        words = {name: self._plain(value) for name, value in event.items()}
        text = kind.begins.format_map(words)
        return Step(at, actor, f"fault {event.what}", text, str(event.what), DECISION, facts=event)

    def _plain(self, value: Json) -> Json:
        """A parameter of a fault: actors by their names, two sides one by one."""
        if isinstance(value, list):
            if value and isinstance(value[0], list):
                return [self._plain(side) for side in value]
            return listed(self._names.actor(str(one)) for one in value)
        if isinstance(value, str):
            return self._names.actor(value)
        return f"{value:g}" if isinstance(value, float) else value

    def _written(self, at: Moment, actor: str, change: Change) -> Step | None:
        """Where no reason is said: told by what is stored."""
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
                # That was not wanted.
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
        if change.given and change.claim is not None and change.claim.pods:
            return self._given(at, actor, change, *change.claim.pods[0])
        return None

    def _given(self, at: Moment, actor: str, change: Change, key: str, uid: str) -> Step:
        """A claim was given its devices, for a pod."""
        who = self._known.writer(change.revision) or actor
        name, devices = self._names.pod(key, uid), listed(map(text_of, sorted(change.given)))
        text = f"{self._names.actor(who)} gave {devices} to claim {change.name} of {name}"
        return Step(
            at, who, "devices given", text, f"{name} gets {listed(sorted(one[-1] for one in change.given))}", OUTCOME,
            key, uid, which=self._names.which(key, uid), change=change,
        )  # fmt: skip

    def revision(self, change: Change) -> Step:
        """A write that a check names, whatever it is about."""
        writer = self._known.writer(change.revision)
        who = self._names.actor(writer) if writer else "somebody"
        verb = "removed" if change.value is None else "created" if change.before is None else "changed"
        text = f"{who} {verb} {resources.plural_of(change.key)}/{change.name} (revision {change.revision})"
        key = change.key.removeprefix(PODS) if change.key.startswith(PODS) else ""
        short = f"writes {change.name}"
        return Step(change.at, writer or "store", "write", text, short, OUTCOME, key, change=change)


def _begun(at: Moment, event: log_events.Event) -> Moment:
    """What an actor knew until then counted: a decision that takes time is made on what was known at its beginning."""
    if isinstance(event, log_events.AdmissionDecided):
        return Moment(at.time_ns, NEVER)
    if not isinstance(event, (log_events.PodAttempted, log_events.PreemptionPlanned)) or event.start == at.time_ns:
        return at
    return Moment(event.start, NEVER)

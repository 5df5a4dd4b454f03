"""The because chain: at most six sentences, from the holds (or the fault, or the first decision) to what failed.

A walk back from what the check found gathers causes: what was done before to the same pod, changes that an actor did
not know when it decided, who else was on the node, crashes. Of these the weightiest are told, first of all those that
the passing run does not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kemu.emulated import variants
from kemu.lab.exploration.executions import BROKEN, Failure
from kemu.lab.tell.explaining import mentions
from kemu.lab.tell.explaining.differences import Difference
from kemu.lab.tell.explaining.knowledge import NEVER, PODS, Change, Moment
from kemu.lab.tell.explaining.names import amount, at, lasting, sentence
from kemu.lab.tell.explaining.recordings import Flight
from kemu.lab.tell.explaining.siblings import Sibling
from kemu.lab.tell.explaining.steps import Step
from kemu.lab.tell.explaining.tellings import Telling
from kemu.runtime.env import MILLISECOND_NS
from kemu.runtime.holds import HAPPENINGS, Hold
from kemu.runtime.runlog.events import HoldKept, HoldReleased
from kemu.runtime.runlog.events.words import OUTCOME, WRITE

MOST = 6
"""Sentences of a chain."""
NO_EVENT = -1
_FAR = 12
"""Steps that the walk goes back at most."""


@dataclass(frozen=True)
class Sentence:
    """One link of the chain."""

    text: str
    event: int
    """Its place in the run log; -1: it is about none."""
    time_ns: int
    actor: str
    hold: int | None = None
    is_of_passing: bool = False
    """The event is one of the passing run."""


@dataclass(frozen=True)
class Chain:
    sentences: tuple[Sentence, ...]
    steps: tuple[Step, ...]
    """Those that are told, in their order."""
    slice: tuple[Step, ...]
    """All that the walk has met."""
    mentioned: mentions.Mentions


def of(
    failure: Failure,
    telling: Telling,
    sibling: Sibling | None,
    other: Telling | None,
    difference: Difference | None,
) -> Chain:
    """``other``: the run that passes; ``difference``: where they part."""
    about = mentions.of(failure, telling)
    found = mentions.anchors(about, telling, other)
    walk = _Walk(telling, other, mentions.check_of(failure, telling))
    if walk.check.startswith("watch-"):
        walk.far = 0  # What a watch delivers does not depend on why it was written.
    met = walk.back(found)
    first = _lacks(telling, sibling)
    first += [_of_hold(index, flight, telling) for index, flight in telling.held.items()]
    first = first[: MOST - 2]
    faults = _faults(telling, sibling, found, about)
    room = MOST - 1 - len(first)
    chosen = _choose([*met, *faults], [*found, *faults], walk, room)
    told = [_of_step(step, telling, walk) for step in chosen]
    links = [*first, *told, *_never_heard(about, telling)[: max(MOST - 1 - len(first) - len(told), 0)]]
    if len(links) < MOST - 1 and difference is not None and _is_missing(difference, about, other):
        links.append((Moment(difference.time_ns, NEVER), _missing(difference)))
    sentences = [link[1] for link in sorted(links, key=lambda one: (one[0], one[1].event))]
    end_ns = max((one.time_ns for one in sentences), default=0)
    sentences.append(Sentence(_verdict(failure, telling), NO_EVENT, end_ns, ""))
    return Chain(tuple(sentences), tuple(chosen), tuple(sorted(met, key=lambda step: step.at)), about)


def _lacks(telling: Telling, sibling: Sibling | None) -> list[tuple[Moment, Sentence]]:
    """What is wrong with the components themselves: safeguards that are taken away, a bug."""
    begin = Moment(-1, -1)
    found = []
    for name in telling.recording.scenario.ablate:
        does = variants.VARIANTS[name].does.rstrip(".")
        text = f'The safeguard {name} is taken away ("{does}").'
        found.append((begin, Sentence(text, NO_EVENT, 0, "")))
    if sibling is not None and sibling.kind == "bug":
        text = f'The bug {sibling.name} is there ("{variants.VARIANTS[sibling.name].does.rstrip(".")}").'
        found.append((begin, Sentence(text, NO_EVENT, 0, "")))
    return found


def _faults(telling: Telling, sibling: Sibling | None, found: list[Step], about: mentions.Mentions) -> list[Step]:
    """Those of the fault without which the run passes, its beginning or the crashes that it brings; without a passing
    run, the last one that struck whom the failure is about."""
    end = max((step.at for step in found), default=Moment(1 << 62, 0))
    if sibling is None or sibling.kind != "fault":
        struck = [
            step
            for step in telling.steps
            if step.what.startswith(("fault ", "crashed"))
            and any(actor == step.actor or f"'{actor}'" in str(step.facts) for actor in about.actors)
        ]
        return struck[-1:]
    own = [step for step in telling.steps if step.facts.get("id") == sibling.name and step.at <= end]
    fault = next(one for one in telling.recording.scenario.chaos if one.id == sibling.name)
    crashes = [step for step in telling.steps if step.what == "crashed" and fault.what == "crash" and step.at <= end]
    return own[:1] or crashes[-1:]


def _never_heard(about: mentions.Mentions, telling: Telling) -> list[tuple[Moment, Sentence]]:
    """News that did not come, where a check is about news."""
    found = []
    for change in [one for revision in about.revisions for one in telling.known.by_revision.get(revision, ())[:1]]:
        for actor in about.actors:
            if telling.known.watches(actor, change) and telling.known.heard(actor, change.revision) is None:
                text = sentence(f"{telling.names.actor(actor)} never heard that {telling.changed(change)}.")
                found.append((change.at, Sentence(text, change.at.place, change.at.time_ns, actor)))
    return found


class _Walk:
    """From what was found to what caused it."""

    def __init__(self, telling: Telling, other: Telling | None, check: str) -> None:
        self._telling = telling
        self.check = check
        self.far = _FAR
        self._other = other
        self.depth: dict[Step, int] = {}
        """How far back a step is."""
        self._unheard: dict[Step, list[Change]] = {}

    def back(self, found: Iterable[Step]) -> list[Step]:
        met: list[Step] = []
        queue = [(step, 0) for step in found]
        while queue:
            step, depth = queue.pop(0)
            if step in self.depth or depth > self.far:
                continue
            self.depth[step] = depth
            met.append(step)
            queue += [(parent, depth + 1) for parent in self._parents(step)]
        return met

    def unheard(self, step: Step) -> list[Change]:
        changes = self._unheard.get(step)
        if changes is None:
            changes = self._unheard[step] = self._telling.unheard(step)
        return changes

    def differs(self, step: Step) -> bool:
        """Whether the passing run lacks it, or knew more at it."""
        return self._other is not None and step.sign not in self._other.signs

    def may_matter(self, step: Step) -> bool:
        """What happened in the passing run too matters only if it is a decision, or was news to an actor."""
        return self._other is None or self.differs(step) or step.weight >= OUTCOME

    def score(self, step: Step) -> float:
        score = float(step.weight)
        if self.differs(step):
            score += 4
        if self.unheard(step):
            score += 3
        return score - 0.25 * self.depth.get(step, 0)

    def _parents(self, step: Step) -> list[Step]:
        telling = self._telling
        found = []
        before = [one for one in telling.of_pod.get(step.pod, ()) if one.at < step.at and one.weight >= WRITE]
        if before:
            found.append(before[-1])
        for change in self.unheard(step):
            cause = telling.step_of(change)
            if cause is not None:
                found.append(cause)
        if step.change is not None and step.change.pod is not None and "bound to" in step.what:
            node = step.change.pod.node
            chose = [one for one in before if one.what == "attempt scheduled" and one.node == node]
            found += chose[-1:]
        is_overcommitted = self.check == "no-node-overcommitted" and step.what in ("running", "admitted")
        if step.node and (step.what == "rejected" or is_overcommitted):
            found += self._rivals(step)
        found += [one for one in telling.steps if one.what in _FAULTS and one.at < step.at and _strikes(one, step)][-1:]
        return found

    def _rivals(self, step: Step) -> list[Step]:
        """How the other pods came to the node."""
        found = []
        for key, _ in self._telling.known.on_node("", step.node, step.at):
            pod = key.removeprefix(PODS)
            if pod != step.pod:
                came = [
                    one
                    for one in self._telling.of_pod.get(pod, ())
                    if one.at < step.at and one.node == step.node and one.weight >= WRITE and one.pod == pod
                ]
                found += came[-1:]
        return found


_FAULTS = ("crashed", "started again")


def _strikes(fault: Step, step: Step) -> bool:
    """Everybody depends on the store and the API servers."""
    return fault.actor in (step.actor, "store") or fault.actor.startswith("apiserver/")


def _choose(met: list[Step], found: list[Step], walk: _Walk, room: int) -> list[Step]:
    """What the check found, then the weightiest; nothing twice in other words."""
    ranked = sorted(met, key=lambda step: (step not in found, -walk.score(step), step.at))
    chosen: list[Step] = []
    for step in ranked:
        if len(chosen) >= room:
            break
        if step not in found and (step.weight < WRITE or not walk.may_matter(step)):
            continue
        if any(_says_the_same(step, one) or step.text == one.text for one in chosen):
            continue
        chosen = [one for one in chosen if not _says_the_same(one, step)]
        chosen.append(step)
    return sorted(chosen, key=lambda step: step.at)


def _says_the_same(one: Step, other: Step) -> bool:
    """Whether ``one`` says no more than ``other``: the write that a decision led to, admission beside the start."""
    if one is other or one.pod != other.pod or not one.pod:
        return one is other
    if one.change is not None and other.change is None:
        if one.what == "written runs":
            return other.what in ("running", "admitted")
        if "bound to" in one.what:
            return other.what == "attempt scheduled" and one.node == other.node and "again" not in one.what
        if "deleted" in one.what or "removed" in one.what:
            return other.what.startswith(_DELETIONS)
        return "created" in one.what and other.what == "created"
    if one.what in ("victim", "attempt unschedulable") and other.what == "preemption":
        return one.what == "victim" or one.actor == other.actor
    if one.what.startswith("delete by"):
        return other.what.startswith(_DELETIONS) and other.what != one.what
    return one.what == "admitted" and other.what == "running"


_DELETIONS = ("delete by", "evict by", "victim", "preemption", "user delete", "user evict", "deletes", "evicting")


# --- sentences ------------------------------------------------------------------------------------------------------


def _of_step(step: Step, telling: Telling, walk: _Walk) -> tuple[Moment, Sentence]:
    text = _decided(step, telling, walk) if step.is_decision else step.text
    return step.at, Sentence(sentence(text) + ".", step.at.place, step.at.time_ns, step.actor)


def _decided(step: Step, telling: Telling, walk: _Walk) -> str:
    """With what its actor knew, or did not."""
    unheard = walk.unheard(step)
    if not unheard:
        room = telling.room(step)
        if room is None:
            return f"{step.text}{telling.who_holds(step)}"
        return f"{step.text}, although {room.node} had {amount(room.resource, room.true)} free"
    held = [change for change in unheard if telling.hold_of(step.actor, change.revision) is not None]
    free = telling.free(step)
    who = telling.names.actor(step.actor)
    if free is not None:
        counted = amount(free.resource, free.counted)
        wants = amount(free.resource, free.wanted)
        pod = step.text.rpartition(" for ")[2]
        # What takes time is decided on what was there at its beginning.
        looked = f" at {at(step.begun.time_ns)}" if step.at.time_ns - step.begun.time_ns > MILLISECOND_NS else ""
        text = f"{who} still counted {counted} free on {step.node}{looked} and chose it for {pod}, which wants {wants}"
        return f"so {text}" if held else f"{text}: {_before(step, unheard, telling)}"
    if held:
        return f"so {step.text}"
    return f"{step.text}: {_before(step, unheard, telling)}"


def _before(step: Step, unheard: list[Change], telling: Telling) -> str:
    """What it could not know, without a hold."""
    latest = unheard[-1]
    clause = telling.changed(latest)
    if latest.at > step.begun:
        return f"{clause} only afterwards ({at(latest.at.time_ns)})"
    heard = telling.known.heard(step.actor, latest.revision)
    news = f"that news came at {at(heard.time_ns)}" if heard is not None else "that news never came"
    return f"it did not know yet that {clause} ({at(latest.at.time_ns)}; {news})"


def _of_hold(index: int, flight: Flight, telling: Telling) -> tuple[Moment, Sentence]:
    hold = telling.recording.scenario.holds[index]
    names = telling.names
    source, target = names.actor(flight.source), names.actor(flight.target)
    what, verb = _message(flight, telling, source)
    late = _late(hold, flight, target, telling)
    text = f"{what} {verb} {target} {late}"
    kept = _event(telling, HoldKept, index)
    released = _event(telling, HoldReleased, index)
    event = released if released >= 0 and hold.until is not None else kept
    time_ns = telling.events[event].time_ns if event >= 0 else flight.due_ns
    return Moment(flight.due_ns, -1), Sentence(sentence(text) + ".", event, time_ns, flight.target, index)


def _message(flight: Flight, telling: Telling, source: str) -> tuple[str, str]:
    """What a message was, and how it gets there."""
    label = flight.label
    if flight.is_news:
        changes = telling.known.by_revision.get(flight.revision, ())
        clause = telling.changed(changes[0]) if changes else str(label)
        if label.what == "deleted" and "removed" not in clause:
            clause = f"{label.name} is over" if "ended" not in clause else clause
        return f"the news that {clause}", "reached"
    thing = label.name or label.kind or "the connection"
    if label.what.endswith(("-answered", "-refused")):
        verb, _, how = label.what.rpartition("-")
        answer = "refusal" if how == "refused" else "answer"
        return f"{source}'s {answer} to the {verb} of {thing}", "reached"
    if flight.is_request:
        return f"{source}'s request to {label.what.replace('-', ' ')} {thing}", "reached"
    return f"{source}'s message that {thing} was {label.what}", "reached"


def _late(hold: Hold, flight: Flight, target: str, telling: Telling) -> str:
    if flight.arrived_ns < 0:
        return f"never (sent at {at(flight.sent_ns)})"
    held = f"held for {lasting(flight.arrived_ns - flight.due_ns)}, until {at(flight.arrived_ns)}"
    until = hold.until
    if until is None:
        return f"late ({held})"
    index = telling.recording.scenario.holds.index(hold)
    released = (entry.data for entry in telling.events if isinstance(entry.data, HoldReleased))
    if any(event.hold == index and event.why == "limit" for event in released):
        return f"late ({held})"
    actor = telling.names.actor(until.actor) if until.actor else "somebody"
    who = telling.names.again(until.actor) if actor == target else actor
    return f"only after {who} {_happened(until.what, until.pod or until.node)} ({held})"


def _happened(what: str, thing: str) -> str:
    known = HAPPENINGS.get(what)
    past = f"had logged {what} of {{}}" if known is None else known.past
    return past.format(thing or "a pod").rstrip()


def _event(telling: Telling, kind: type[HoldKept | HoldReleased], hold: int) -> int:
    found = (i for i, (*_, event) in enumerate(telling.events) if isinstance(event, kind) and event.hold == hold)
    return next(found, NO_EVENT)


def _is_missing(difference: Difference, about: mentions.Mentions, other: Telling | None) -> bool:
    """What the passing run has and this one has not says why nothing better came, if it is about the same."""
    if not difference.is_of_passing or difference.later_ns is not None or other is None:
        return False
    steps = [step for step in other.steps if step.at.place == difference.event]
    if about.counter or not about.pods:
        return bool(steps)
    return not steps or steps[0].pod in about.pods or not steps[0].pod


def _missing(difference: Difference) -> Sentence:
    text = f"In the passing run {difference.text} at {at(difference.time_ns)}; here that did not happen."
    return Sentence(text, difference.event, difference.time_ns, difference.actor, is_of_passing=True)


def _verdict(failure: Failure, telling: Telling) -> str:
    check = mentions.check_of(failure, telling)
    detail = mentions.first_finding(failure, telling).replace("default/", "")
    if failure.id == BROKEN:
        return f"The run broke: {detail}"
    what = f"Check {check}" if check else f"Expectation {failure.id}"
    return f"{what} fails: {detail.rstrip('.')}."

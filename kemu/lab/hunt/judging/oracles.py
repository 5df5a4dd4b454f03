"""Whether a trial went wrong, told from what the reference came to: no property has to be stated for that.

A symptom is a bug, or a cost: more work than in the reference, by which nothing is lost, and which is made good until
the end. See :mod:`states` for what is no difference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from kemu.errors import KemuError
from kemu.lab.hunt.courses import Course, manifest
from kemu.lab.hunt.judging import safety, states
from kemu.lab.hunt.judging.states import Difference, Fields
from kemu.lab.hunt.projects import SECOND, STABLE_S, Ignored, Step
from kemu.lab.hunt.running.trials import Outcome
from kemu.runtime.env import SECOND_NS

_K = TypeVar("_K")

_HOT_TIMES, _HOT_LEAST, _HOT_STILL = 5, 50, 20
"""A controller that writes so many times as often as in the reference, and so often at least, runs hot; and still does
in the end if it has written so often while all should stand still."""
_NAMED_FIELDS = 3
_DURABLE = ("PersistentVolumeClaim", "PersistentVolume", "StatefulSet", "Namespace", "Secret")
"""Kinds whose objects are not the same when they are deleted and made anew; custom kinds likewise."""
_OF_MUTATED = ("property", "crash", "stuck", "missing", "surplus", "different", "hot", "restless")
"""What is a bug where another client has changed a field, and has taken that back."""
_MADE_GOOD = (safety.MOUNT, safety.FLAPPING, safety.FINALIZER)
"""Harms that are a cost where they were made good."""
_STALE_HARMS = (safety.SCALED,)
"""What no controller can avoid that decides by what it sees: a cost where what it sees is old, and it makes it good."""


@dataclass(frozen=True)
class Symptom:
    """One thing that went wrong."""

    what: str
    """``property crash exit stuck refused missing surplus different created deleted hot restless`` and those of
    :mod:`safety`"""
    subject: str
    """The kind, or the controller, or the step."""
    text: str
    is_bug: bool = True
    """False: it only costs requests or time."""
    key: str = ""
    """The object, where there is one."""
    time_ns: int = -1
    """When; -1: in the end."""
    by: str = ""
    """The key of another object by whose change it happened."""

    @property
    def signature(self) -> tuple[str, str]:
        """Symptoms that are alike have one."""
        return self.what, self.subject


def bugs(symptoms: Sequence[Symptom]) -> list[Symptom]:
    """Those that are no mere costs."""
    return [one for one in symptoms if one.is_bug]


class Unsettled(KemuError):
    """The steps do not come to an end without perturbations either."""


class Reference:
    """What the steps come to without perturbations: at least two runs of them."""

    def __init__(
        self, outcomes: Sequence[Outcome], ignored: Sequence[Ignored], steps: Sequence[Step], stable_s: float = STABLE_S
    ) -> None:
        self.outcomes = outcomes
        self._ignored = ignored
        self._steps = steps
        self._stable_ns = round(stable_s * SECOND_NS)
        self._written = frozenset(one.key for outcome in outcomes for one in outcome.course.writes)
        all_states = [states.normalised(outcome.course, self._written) for outcome in outcomes]
        self._state = all_states[0]
        self._unsteady = set[str]()
        """Objects that are not there in each of them."""
        self._free = set[tuple[str, str]]()
        """Fields that differ between them, with their objects."""
        for other in all_states[1:]:
            self._unsteady |= self._state.keys() ^ other.keys()
            for name in self._state.keys() & other.keys():
                found = states.differences(self._state[name], other[name])
                self._free |= {(name, each.path) for each in found}
        self._random = states.patterns([self._unsteady & one.keys() for one in all_states])
        """Names of objects that are called otherwise each time."""
        counts = [outcome.counted() for outcome in outcomes]
        self._counted = {what: _most([one[what] for one in counts]) for what in ("created", "deleted")}
        self._writes = _most([Counter(one.controller for one in outcome.course.writes) for outcome in outcomes])
        self._harms = _most([Counter((one.what, one.key) for one in self._harms_of(outcome)) for outcome in outcomes])
        self._cleaned = [
            {one.key: one.cleaned for one in safety.endings(outcome.course, outcome.begun_ns)} for outcome in outcomes
        ]
        self._restless = {name for outcome in outcomes for name, _, _ in self._late(outcome)}

    @property
    def problems(self) -> list[str]:
        """Why it is none: what went wrong without any perturbation."""
        found = []
        for outcome in self.outcomes:
            found += [f"step {place + 1} ({self._steps[place]}) waited in vain" for place in outcome.stuck]
            found += [f"step {place + 1} ({self._steps[place]}): {why}" for place, why in outcome.refused.items()]
            ends = (*outcome.crashes.items(), *outcome.exits.items())
            found += [f"controller {name}: {why}" for name, all_ in ends for why in all_]
            found += [f"property {name} does not hold" for name in outcome.failed]
        return list(dict.fromkeys(found))

    def symptoms(self, outcome: Outcome) -> list[Symptom]:
        """In the order of their weight, bugs first."""
        found = list(self._symptoms(outcome))
        if outcome.is_mutated:  # a controller may act upon what it is told wrongly, and has to come back from it
            found = [one if one.what in _OF_MUTATED else replace(one, is_bug=False) for one in found]
        return [one for one in found if one.is_bug] + [one for one in found if not one.is_bug]

    def _symptoms(self, outcome: Outcome) -> Iterator[Symptom]:
        for name in outcome.failed:
            yield Symptom("property", name, f"property {name} does not hold")
        for name, crashes in outcome.crashes.items():
            yield Symptom("crash", name, f"controller {name} fails: {crashes[0]}")
        for name, exits in outcome.exits.items():
            yield Symptom("exit", name, f"controller {name} has to be started again: {exits[0]}", False)
        yield from self._unsafe(outcome)
        for place in outcome.stuck:
            step = self._steps[place]
            yield Symptom("stuck", str(step), f"step {place + 1} waits in vain: {step}")
        for place, why in outcome.refused.items():
            yield Symptom("refused", str(self._steps[place]), f"step {place + 1} is refused: {why}")
        written = self._written | {one.key for one in outcome.course.writes}
        yield from self._ends(outcome.course, states.with_keys(outcome.course, written))
        yield from self._counts(outcome)
        late = [each for each in self._late(outcome) if each[0] not in self._restless]
        for name, key, time_ns in late[:_NAMED_FIELDS]:
            before_s = outcome.now_s - time_ns / SECOND_NS
            text = f"{_shown(name)} does not come to rest: it still changes {before_s:.1f} s before the end"
            yield Symptom("restless", _kind(name), text, True, key, time_ns)

    def _unsafe(self, outcome: Outcome) -> Iterator[Symptom]:
        found = self._harms_of(outcome)
        found += safety.unfinished(outcome.course, outcome.begun_ns, self._cleaned)
        counts: Counter[tuple[str, str]] = Counter()
        for harm in found:
            counts[harm.what, harm.key] += 1
            if counts[harm.what, harm.key] <= self._harms[harm.what, harm.key]:
                continue
            is_bug = harm.lasts or not ((outcome.is_stale and harm.what in _STALE_HARMS) or harm.what in _MADE_GOOD)
            yield Symptom(
                harm.what, outcome.course.named(harm.key).kind, harm.text, is_bug, harm.key, harm.time_ns, harm.by
            )

    def _harms_of(self, outcome: Outcome) -> list[safety.Harm]:
        return safety.harms(outcome.course, outcome.begun_ns, round(outcome.now_s * SECOND_NS), self._stable_ns)

    def _ends(self, course: Course, found: Mapping[str, tuple[str, Fields]]) -> Iterator[Symptom]:
        """How the end differs."""
        others = sorted(found.keys() & self._unsteady)
        for name in sorted(self._state.keys() - found.keys() - self._unsteady):
            yield Symptom("missing", _kind(name), f"{_shown(name)} is missing in the end")
        for name in sorted(found.keys() - self._state.keys() - self._unsteady):
            if any(pattern.fits(name) for pattern in self._random):
                others.append(name)
                continue
            key = found[name][0]
            yield Symptom("surplus", _kind(name), f"{_shown(name)} is there in the end, and should not be", True, key)
        for pattern in self._random:
            alike = [name for name in others if pattern.fits(name)]
            if len(alike) < pattern.least:
                text = f"{_shown(str(pattern))} is missing in the end: {len(alike)} of {pattern.least}"
                yield Symptom("missing", _kind(str(pattern)), text)
            for name in alike[pattern.most :]:
                text = f"{_shown(name)} is there in the end, and should not be: {len(alike)} and not {pattern.most}"
                yield Symptom("surplus", _kind(name), text, True, found[name][0])
        for name in sorted(self._state.keys() & found.keys()):
            key, fields = found[name]
            changed = [each for each in states.differences(self._state[name], fields) if self._counts_in(name, each)]
            if changed:
                more = f" and {len(changed) - _NAMED_FIELDS} more" if len(changed) > _NAMED_FIELDS else ""
                shown = ", ".join(_said(each) for each in changed[:_NAMED_FIELDS])
                yield Symptom("different", _kind(name), f"{_shown(name)} differs in the end: {shown}{more}", True, key)

    def _counts_in(self, name: str, found: Difference) -> bool:
        """Whether a difference says something."""
        if (name, found.path) in self._free or self._is_ignored(name, found.path):
            return False
        return not states.is_opaque(found) or self._was_current(found.after)

    def _was_current(self, value: object) -> bool:
        """Whether a hash was right at some time in the reference, and so is old now."""
        sought = str(value).encode()
        if len(sought) < 6 or sought.isdigit():
            return False
        return any(sought in one.value for one in self.outcomes[0].course.changes if one.value is not None)

    def _counts(self, outcome: Outcome) -> Iterator[Symptom]:
        for what, now in outcome.counted().items():
            before = self._counted[what]
            for kind, count in sorted(now.items()):
                kept = kind in states.NEVER_COMPARED or kind in states.KEPT_BY_KUBERNETES
                if not kept and count > before[kind]:
                    is_bug = what == "deleted" and (kind in _DURABLE or "." in kind)
                    text = f"{count} {kind} objects were {what}, in the reference {before[kind]}"
                    yield Symptom(what, kind, text, is_bug)
        writes = Counter(one.controller for one in outcome.course.writes)
        since_ns = round(outcome.now_s * SECOND_NS) - self._stable_ns
        for name, count in writes.items():
            usual = max(self._writes[name], self._writes[name.removesuffix(SECOND)])  # a replica that takes over
            if count >= _HOT_LEAST and count > _HOT_TIMES * usual:
                still = sum(one.controller == name and one.time_ns >= since_ns for one in outcome.course.writes)
                idle = _idle(outcome.course, name)
                text = f"controller {name} has made {count} writes, {idle} of which changed nothing; in the reference"
                yield Symptom("hot", name, f"{text} {usual}", still >= _HOT_STILL)

    def _late(self, outcome: Outcome) -> list[tuple[str, str, int]]:
        """Objects that were otherwise than in the end when all should stand still, with their keys and when they last
        changed."""
        since_ns = max(round(outcome.now_s * SECOND_NS) - self._stable_ns, outcome.begun_ns)
        course = outcome.course
        before: dict[str, bytes | None] = {}
        changed: dict[str, list[tuple[int, bytes | None]]] = defaultdict(list)
        for change in course.changes:
            if change.time_ns < since_ns:
                before[change.key] = change.value
            else:
                changed[change.key].append((change.time_ns, change.value))
        found = []
        for key, series in changed.items():
            named = course.named(key)
            if not states.is_compared(named.kind, key, self._written):
                continue
            values = [(since_ns, before.get(key)), *series]
            name = f"{named.kind} {named.namespace}/{states.plain(named.name, {})}"
            plain = [None if value is None else self._plain(name, key, value) for _, value in values]
            moves = [index for index in range(1, len(plain)) if plain[index] != plain[index - 1]]
            if moves:
                found.append((states.stem_of(name) if name not in self._state else name, key, values[moves[-1]][0]))
        return found

    def _plain(self, name: str, key: str, value: bytes) -> Fields:
        one = manifest(key, value)
        fields = states.fields_of(one, states.names_of([one]))
        return {
            path: each
            for path, each in fields.items()
            if (name, path) not in self._free and not self._is_ignored(name, path)
        }

    def _is_ignored(self, name: str, path: str) -> bool:
        return any(
            (not one.kind or one.kind in (_kind(name), _kind(name).partition(".")[0]))
            and (path == one.path or path.startswith((f"{one.path}.", f"{one.path}[")))
            for one in self._ignored
        )


def _idle(course: Course, controller: str) -> int:
    """Writes of a controller that changed nothing."""
    own = [one for one in course.writes if one.controller == controller and one.status < 300]
    return len(own) - sum(course.made_by(one) == controller for one in course.changes)


def _said(found: Difference) -> str:
    if found.after is None:
        return f"{found.path} is not there and should be {found.before!r}"
    if found.before is None:
        return f"{found.path} is {found.after!r} and should not be there"
    return f"{found.path} is {found.after!r} and should be {found.before!r}"


def _most(counters: Sequence[Counter[_K]]) -> Counter[_K]:
    found: Counter[_K] = Counter()
    for one in counters:
        found |= one
    return found


def _kind(identity: str) -> str:
    return identity.partition(" ")[0]


def _shown(identity: str) -> str:
    kind, _, name = identity.partition(" ")
    return f"{kind} {name.removeprefix('default/').removeprefix('/')}"

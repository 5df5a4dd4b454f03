"""A finding as a space-time picture: the user, the objects that it is about, and the controller."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from kemu.lab.hunt import perturbations
from kemu.lab.hunt.courses import Change, Notice, Write
from kemu.lab.hunt.explaining import causes
from kemu.lab.hunt.explaining.causes import Cause
from kemu.lab.hunt.judging.oracles import Symptom
from kemu.lab.hunt.perturbations import Kind, Perturbation, Plan
from kemu.lab.hunt.projects import Named, Step
from kemu.lab.hunt.running.trials import Outcome
from kemu.lab.tell.explaining import names
from kemu.lab.tell.explaining.diagrams import Arrow, Diagram, Mark
from kemu.lab.tell.explaining.drawings import svgs
from kemu.runtime.env import SECOND_NS

_MOST_OBJECTS = 3
_MOST_CHANGES = 5
"""Of one object that are shown, beside those that matter."""
_MOST_TEXT = 26
_MOST_TITLE, _MOST_HEAD = 32, 76
_LATE_NS = SECOND_NS // 2
"""News that come later than that are late."""
_AT_ONCE_NS = SECOND_NS // 5
_LETTERS = 110
_VERBS = {"create": "create", "update": "update", "patch": "patch", "delete": "delete"}


def diagram(outcome: Outcome, steps: Sequence[Step], plan: Plan, cause: Cause, symptoms: Sequence[Symptom]) -> Diagram:
    """What it shows."""
    return _Drawing(outcome, steps, plan, cause, symptoms[0]).diagram()


def within(shown: Diagram) -> str:
    """SVG for a page that says the rest."""
    return svgs.page("", [_panel(shown)], [])


def alone(shown: Diagram, plan: Plan, cause: Cause, symptoms: Sequence[Symptom]) -> str:
    """One SVG file, which stands alone."""
    words = [
        (line, "bad") for line in textwrap.wrap(f"{names.sentence(cause.text)}.", _LETTERS, break_on_hyphens=False)
    ]
    told = f"Perturbation: {perturbations.shown(plan)}."
    words += [(line, "faint") for line in textwrap.wrap(told, _LETTERS, break_on_hyphens=False)]
    title = textwrap.shorten(symptoms[0].text, _MOST_HEAD, placeholder=" …")
    return svgs.page(title, [_panel(shown)], words)


def _panel(shown: Diagram) -> svgs.Panel:
    longest = max(map(len, shown.titles))
    return svgs.Panel(shown, "", "bad", "", least_gap=longest * 8 + 24)


class _Drawing:
    def __init__(self, outcome: Outcome, steps: Sequence[Step], plan: Plan, cause: Cause, symptom: Symptom) -> None:
        self._outcome = outcome
        self._course = outcome.course
        self._steps = steps
        self._plan = plan
        self._cause = cause
        self._symptom = symptom
        self._controllers = list(dict.fromkeys(one.controller for one in plan))
        self._keys = self._objects()
        self._order = 0
        users = ["user"] if self._by_user(self._shown_changes()) else []
        write = cause.write
        last = [key for key in self._keys[1:] if write is not None and key == write.key]
        first = [key for key in self._keys if key not in last]
        # From left to right, as it came about: the user, what the controller sees, the controller, what it writes.
        self._columns = {name: index for index, name in enumerate([*users, *first, *self._controllers, *last])}

    def diagram(self) -> Diagram:
        course = self._course
        titles = [str(course.named(one)) if "/" in one else one for one in self._columns]
        found = Diagram(tuple(self._columns), tuple(_title(one) for one in titles))
        for change in self._shown_changes():
            self._add_change(found, change)
        for write in self._unchanged():
            self._add_write(found, write, is_bad=write is self._cause.write)
        for one in self._plan:
            at_ns = causes.struck(course, one)
            if at_ns >= 0:
                column = self._columns[one.controller]
                found.marks.append(Mark(at_ns, self._next(), column, _doing(one), True, 0, ()))
        cause = self._cause
        if cause.write is not None:
            for each in cause.ignorance[:1]:
                column = self._columns[cause.write.controller]
                text = (
                    f"sees {_what(course.named(each.key))} as of change {each.known.nth}" if each.known else "sees none"
                )
                made = [
                    one for one in course.changes if one.key == cause.write.key and one.revision <= cause.write.revision
                ]
                at_ns = min([cause.write.time_ns, *(one.time_ns for one in made[-1:])]) - 1
                found.marks.append(Mark(at_ns, self._next(), column, text, True, 0, ()))
        key = causes.place(course, self._plan[0])[0]
        if cause.write is None and key in self._columns:
            end_ns = round(self._outcome.now_s * SECOND_NS)
            found.marks.append(Mark(end_ns, self._next(), self._columns[key], "so until the end", True, 0, ()))
        key = self._symptom.key
        if (
            key in self._columns
            and self._symptom.what in ("different", "surplus", "orphan")
            and cause.write is not None
        ):
            end_ns = round(self._outcome.now_s * SECOND_NS)
            text = {"different": "differs in the end", "surplus": "should not be there"}.get(
                self._symptom.what, "orphaned"
            )
            found.marks.append(Mark(end_ns, self._next(), self._columns[key], text, True, 0, ()))
        return found

    def _next(self) -> int:
        self._order += 1
        return self._order

    def _objects(self) -> list[str]:
        """Keys: what the controller did not see, what it wrote, and where the perturbation was."""
        cause, course = self._cause, self._course
        found = [one.key for one in cause.ignorance[:1]]
        found += [cause.write.key] if cause.write is not None else []
        found += [self._symptom.key] if self._symptom.key else []
        for one in self._plan:
            found += [course.key(point.subject) for point in (one.at, one.restart_at) if point is not None]
            found.append(causes.place(course, one)[0])
        there = {one.key for one in course.changes}
        return list(dict.fromkeys(key for key in found if key in there))[:_MOST_OBJECTS]

    def _shown_changes(self) -> list[Change]:
        """Of each object those that matter, and some before."""
        found = []
        cause = self._cause
        for key in self._keys:
            own = [one for one in self._course.changes if one.key == key and one.time_ns >= self._outcome.begun_ns]
            wanted = {id(one) for each in cause.ignorance if each.key == key for one in (each.known, *each.missed[-3:])}
            points = [point for one in self._plan for point in (one.at, one.restart_at) if point is not None]
            nths = {point.nth for point in points if self._course.key(point.subject) == key}
            nths |= {nth for other, nth in (causes.place(self._course, one) for one in self._plan) if other == key}
            wanted |= {id(one) for one in own if one.nth in nths or one.value is None or one.is_new}
            if cause.write is not None and cause.write.key == key:
                until = cause.write.revision
                wanted |= {id(next((one for one in reversed(own) if one.revision <= until), None))}
            others = [one for one in own if id(one) not in wanted]
            wanted |= {id(one) for one in others[: max(0, _MOST_CHANGES - len(wanted))]}
            found += [one for one in own if id(one) in wanted][-2 * _MOST_CHANGES :]
        return sorted(found, key=lambda one: one.revision)

    def _add_change(self, found: Diagram, change: Change) -> None:
        column = self._columns[change.key]
        maker = self._course.made_by(change)
        write = self._write_of(change) if maker else None
        is_fatal = write is not None and write is self._cause.write
        if maker in self._columns and write is not None:
            self._add_write(found, write, is_bad=is_fatal, at_ns=change.time_ns)
        elif self._by_user([change]):
            self._arrow(found, change.time_ns, change.time_ns, self._columns["user"], column, self._deed(change))
        text = self._said(change)
        found.marks.append(Mark(change.time_ns, self._next(), column, text, is_fatal, 0, ()))
        if maker in self._columns:
            return  # it knows what it wrote
        for controller in self._controllers:
            notice = self._notice(controller, change)
            target = self._columns[controller]
            thing = f"change {change.nth}"
            missed = any(change in each.missed for each in self._cause.ignorance)
            if notice is not None:
                late_ns = notice.time_ns - change.time_ns
                late_ns = late_ns if late_ns >= _LATE_NS else 0
                # Behind the mark of the same instant.
                self._arrow(found, change.time_ns, notice.time_ns + 1, column, target, thing, late_ns=late_ns)
            elif missed:
                self._arrow(found, change.time_ns, -1, column, target, thing)

    def _add_write(self, found: Diagram, write: Write, *, is_bad: bool, at_ns: int = -1) -> None:
        answer = "no answer" if not write.status else str(write.status) if write.status >= 300 else ""
        text = _VERBS.get(write.verb, write.verb) + (f": {answer}" if answer else "")
        time_ns = write.time_ns if at_ns < 0 else at_ns
        column = self._columns[write.controller]
        self._arrow(found, time_ns, time_ns, column, self._columns[write.key], text, is_bad=is_bad or bool(answer))

    def _unchanged(self) -> Iterator[Write]:
        """Writes to the objects that were refused."""
        for write in self._course.writes:
            is_shown = write.controller in self._columns and write.key in self._columns
            if is_shown and write.status >= 300 and write.time_ns >= self._outcome.begun_ns:
                yield write

    def _arrow(
        self,
        found: Diagram,
        sent_ns: int,
        arrived_ns: int,
        source: int,
        target: int,
        text: str,
        *,
        late_ns: int = 0,
        is_bad: bool = False,
    ) -> None:
        sign = ("message",)
        order = self._next()
        found.arrows.append(
            Arrow(sent_ns, order, arrived_ns, source, target, text, late_ns, False, sign, False, is_bad, "not seen")
        )

    def _write_of(self, change: Change) -> Write | None:
        own = [one for one in self._course.writes if one.key == change.key and one.revision >= change.revision]
        return next((one for one in own if one.status < 300 and one.time_ns >= change.time_ns - _AT_ONCE_NS), None)

    def _notice(self, controller: str, change: Change) -> Notice | None:
        until_ns = self._cause.write.time_ns if self._cause.write is not None else 1 << 62
        missed = any(change in each.missed for each in self._cause.ignorance)
        return next(
            (
                one
                for one in self._course.notices
                if one.controller == controller
                and (one.key, one.revision) == (change.key, change.revision)
                and (not missed or one.time_ns > until_ns)
            ),
            None,
        )

    def _by_user(self, changes: Sequence[Change]) -> bool:
        return any(self._deed(change) for change in changes)

    def _deed(self, change: Change) -> str:
        """The step of the user that made a change; empty: none did."""
        named = self._course.named(change.key)
        for time_ns, place in self._outcome.deeds:
            step = self._steps[place] if place < len(self._steps) else None
            is_deletion = change.value is None or "deleted" in self._said(change)
            if (
                step is not None
                and (step.what == "delete") == is_deletion
                and 0 <= change.time_ns - time_ns <= _AT_ONCE_NS
                and _concerns(step, named)
            ):
                return step.what
        return ""

    def _said(self, change: Change) -> str:
        """A change in a few words."""
        if change.value is None:
            return f"{change.nth}: gone"
        if change.is_new:
            return f"{change.nth}: created"
        before = next(
            (one for one in reversed(self._course.changes) if one.key == change.key and one.nth == change.nth - 1), None
        )
        _, after = causes.differing(before, change) if before is not None else ("", "")
        return f"{change.nth}: {textwrap.shorten(after.strip(' ()') or 'changed', _MOST_TEXT, placeholder='…')}"


def _concerns(step: Step, named: Named) -> bool:
    if step.subject is not None:
        return step.what in ("patch", "scale", "delete") and (
            step.subject.kind.partition(".")[0],
            step.subject.name,
        ) == (
            named.kind.partition(".")[0],
            named.name,
        )
    return any(
        (one["kind"], one["metadata"]["name"]) == (named.kind.partition(".")[0], named.name) for one in step.objects
    )


def _doing(one: Perturbation) -> str:
    """A perturbation in a few words."""
    if one.what == Kind.FREEZE:
        return f"starts again, sees {_what(one.at.subject)} of change {one.at.nth}"
    if one.what == Kind.CRASH:
        return "crashes, starts again"
    return {
        "pause": f"is cut off for {one.lasts_s:g} s",
        "lag": f"hears nothing for {one.lasts_s:g} s",
        "hide": "does not see that",
        "conflict": "meets a conflict",
        "refuse": f"is refused: {one.code or 500}",
        "loseAnswer": "gets no answer",
        "slowWrites": "writes take long",
        "outage": "API server out of order",
        "expire": "watch expired (410)",
        "endWatch": "watch ends",
        "delay": f"hears {one.lasts_s:g} s late",
    }.get(one.what, one.what)


def _what(named: Named) -> str:
    return named.kind.partition(".")[0]


def _title(text: str) -> str:
    """Of a column: without the group of a kind."""
    kind, space, name = text.partition(" ")
    plain = f"{kind.partition('.')[0]}{space}{name}"
    return plain if len(plain) <= _MOST_TITLE else f"{plain[: _MOST_TITLE - 1]}…"

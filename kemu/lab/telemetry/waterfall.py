"""``kemu trace RUN POD``: the trace of one pod, drawn in a terminal.

    at       took     what                   who                0                                        65.2s
    5.000s   60.2s    pod default/c          user               ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
    5.000s   2ms      · admission            apiserver          ╸

A row for each span; beneath it, where there is something to say, why. What repeats itself is folded.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from kemu.errors import KemuError
from kemu.lab.telemetry import drafts, indexes, spans
from kemu.lab.telemetry.spans import NODE, OPEN, REASON, Span
from kemu.runtime import words
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from kemu.runtime.words import short

FOLD_ABOVE = 3
"""Attempts (or restarts, or refusals) in a row with one result: more are folded, but for the first and the last."""
_DEFAULT_NAMESPACE = re.compile(r"(?<![^ ])default/")
_PLAIN_LETTERS = str.maketrans({"·": "-", "…": "~", "µ": "u"})
_TOLD_OF = {
    spans.BIND: ("to", NODE),
    spans.NOMINATION: ("on", NODE),
    spans.PREEMPTED: ("by", "kemu.preemptor"),
    spans.REPLACED: ("by", "kemu.replaced_by"),
    spans.WON: ("against", "kemu.conflict.loser"),
    spans.CONTAINER: ("", "k8s.container.name"),
    spans.OOM_KILL: ("of", "k8s.container.name"),
    spans.PROBE: ("of", "k8s.container.name"),
    spans.KILLED: ("of", "k8s.container.name"),
}
"""Where a span names an actor or pod, for people: its name alone would not say much."""
_LEAST_WIDTH = 60
_MOST_WIDTH = 200
_LEAST_BAR = 8
"""Narrower bars tell nothing: there are none, and the words have the room."""
_STYLES = {"user": "magenta", "apiserver": "blue", "kubelet": "green"}
_SCHEDULER_STYLES = ("cyan", "yellow", "bright_magenta", "bright_blue")


@dataclass(frozen=True)
class Trace:
    """All spans of one pod, by start; the root, if there is one, comes first. Times count from the run's start."""

    pod: str
    uid: str
    spans: list[Span]
    namesakes: tuple[str, ...]
    """UIDs of other pods that had the same name, the oldest first."""
    replicated: frozenset[str] = frozenset()
    """Services ``scheduler NAME`` of which the run has several replicas."""


@dataclass(frozen=True)
class _Row:
    """A span, or several of them that tell nothing new."""

    span: Span
    folded: tuple[Span, ...] = ()


def show(console: Console, folder: Path, pod_name: str) -> Trace:
    """Print the waterfall of a pod, given as ``name``, ``namespace/name`` or UID; of several, the latest.

    Raises KemuError for a pod that the run does not have, RunLogError for a folder that cannot be read.
    """
    trace = load(folder, pod_name)
    width = max(_LEAST_WIDTH, min(console.width, _MOST_WIDTH))
    for line in render(trace, str(folder), width, ascii_only=console.options.ascii_only):
        console.print(_ascii(line) if console.options.ascii_only else line, soft_wrap=True)
    return trace


def load(folder: Path, pod_name: str) -> Trace:
    """The trace of a pod; errors as of :func:`show`."""
    with Reader(folder / FILE_NAME) as reader:
        index = indexes.of(folder, reader)
        uids = _named(folder, index, pod_name)
        found: dict[str, list[Span]] = {}
        for span in index.spans(reader, uids):
            found.setdefault(span.uid, []).append(span)
    if not found:
        raise KemuError(_unknown(folder, pod_name, index, []))
    by_age = sorted(found, key=lambda uid: min(span.start_ns for span in found[uid]))
    uid = by_age[-1]
    trace = sorted(found[uid], key=lambda span: (span.parent_id is not None, span.start_ns, span.end_ns))
    return Trace(trace[0].pod, uid, trace, tuple(by_age[:-1]), replicated(index.schedulers))


def _named(folder: Path, index: indexes.Index, pod_name: str) -> list[str]:
    """UIDs. Of another namespace than default the name alone will do where it is the only one."""
    if pod_name in index.keys:
        return [pod_name]
    wanted = pod_name if "/" in pod_name else f"default/{pod_name}"
    if uids := index.uids(wanted):
        return uids
    elsewhere = list(dict.fromkeys(key for key in index.keys.values() if key.rpartition("/")[2] == pod_name))
    if len(elsewhere) != 1:
        raise KemuError(_unknown(folder, pod_name, index, elsewhere))
    return index.uids(elsewhere[0])


def replicated(schedulers: Iterable[str]) -> frozenset[str]:
    """The services of which there are several replicas. ``schedulers``: actors."""
    counts = Counter(map(spans.service_of, schedulers))
    return frozenset(service for service, count in counts.items() if count > 1)


def _unknown(folder: Path, pod_name: str, index: indexes.Index, elsewhere: list[str]) -> str:
    if elsewhere:
        return f"{folder}: several pods are named {pod_name}: {', '.join(sorted(elsewhere))}"
    text = f"{folder}: no pod {pod_name}"
    names = {short(key): None for key in index.keys.values()}
    if not names:
        return f"{text}; the run has no pods"
    close = words.nearest(short(pod_name), names, 4, words.ALIKE)
    if close:
        return f"{text}; did you mean {' or '.join(close)}?"
    some = ", ".join(list(names)[:6])
    return f"{text}; there are {some}{f' and {len(names) - 6} more' if len(names) > 6 else ''}"


# --- drawing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
    what: int
    who: int
    bar: int
    begin_ns: int
    end_ns: int
    styles: dict[str, str]
    """By who."""
    replicated: frozenset[str]
    ascii_only: bool

    AT = 10
    TOOK = 8

    @property
    def indent(self) -> int:
        """Where the names stand."""
        return self.AT + self.TOOK + 2


def render(trace: Trace, folder: str, width: int, *, ascii_only: bool = False) -> list[Text]:
    """The lines, none wider than ``width`` except for commands to copy."""
    rows = _rows(trace.spans)
    layout = _layout(trace, rows, width, ascii_only)
    lines = [*_heading(trace, width), Text(), _axis(layout)]
    last = ""
    told: dict[tuple[str, str], None] = {}
    for row in rows:
        lines.append(_line(row, layout))
        why = _why(row)
        # The same words again and again would hide what changes.
        if why and why != last:
            lines += _note(why, layout, width, bad=not row.span.ok)
        last = why or last
        for event in row.span.events:
            # The root has most of them; each is told once.
            if (event.fault, event.name) not in told:
                told[event.fault, event.name] = None
                text = f"fault at {_seconds(event.time_ns)}: {event.name} ({event.fault})"
                lines += _note(text, layout, width, bad=True)
    lines += _stories(trace, folder)
    return lines


def _layout(trace: Trace, rows: list[_Row], width: int, ascii_only: bool) -> _Layout:
    names = {_who(span.instance, trace.replicated): _STYLES.get(span.service, "") for span in trace.spans}
    schedulers = [name for name, style in names.items() if not style]
    styles = names | {name: _SCHEDULER_STYLES[i % len(_SCHEDULER_STYLES)] for i, name in enumerate(schedulers)}
    fixed = _Layout.AT + _Layout.TOOK + 2 + 1 + 1
    free = width - fixed
    who = min(max(map(len, styles)), max(9, free // 5))
    what = min(
        max(len(_label(row, trace.replicated)) for row in rows if not row.folded), max(27, (free - who) * 2 // 5)
    )
    bar = free - who - what
    if bar < _LEAST_BAR:
        longest = max(len(_label(row, trace.replicated)) for row in rows if not row.folded)
        who, bar = min(max(map(len, styles)), max(free // 3, free - longest)), 0
        what = free - who
    begin_ns = min(span.start_ns for span in trace.spans)
    end_ns = max(span.end_ns for span in trace.spans)
    return _Layout(what, who, bar, begin_ns, end_ns, styles, trace.replicated, ascii_only)


def _heading(trace: Trace, width: int) -> list[Text]:
    root = trace.spans[0] if trace.spans[0].parent_id is None else None
    title = Text.assemble((trace.pod, "bold"), (f"  uid {trace.uid}", "dim"))
    facts = []
    if root is not None:
        node = root.attributes.get(NODE)
        outcome = str(root.attributes.get("kemu.outcome", ""))
        facts.append(f"created at {_seconds(root.start_ns)}")
        bound = next((span for span in trace.spans if span.kind == spans.BIND and span.ok), None)
        if bound is not None:
            facts.append(f"bound after {_duration(bound.end_ns - root.start_ns)}")
        elif node is None:
            facts.append("never bound")
        if node is not None:
            facts.append(f"on {node}")
        if outcome and outcome != drafts.NEVER_BOUND:
            facts.append(_plain(outcome))
        facts.append(
            "still there when the run ended" if root.attributes.get(OPEN) else f"over at {_seconds(root.end_ns)}"
        )
    attempts = sum(span.kind == spans.ATTEMPT for span in trace.spans)
    if attempts:
        facts.append(f"{attempts} attempt{'s' if attempts > 1 else ''}")
    lines = [title, *(Text(line) for line in textwrap.wrap(" · ".join(facts), width))]
    if trace.namesakes:
        count = len(trace.namesakes)
        text = f"the latest of {count + 1} pods of this name; the others: {', '.join(trace.namesakes[:3])}"
        lines += [Text(line, "dim") for line in textwrap.wrap(text + (", …" if count > 3 else ""), width)]
    return lines


def _axis(layout: _Layout) -> Text:
    left, right = _seconds(layout.begin_ns), _seconds(layout.end_ns)
    room = layout.bar - len(left)
    # Where only one has room, the beginning; a time that is cut would be another time.
    scale = left + right.rjust(room) if room > len(right) else left if room >= 0 and layout.bar else ""
    text = f"{'at':>{layout.AT}}{'took':>{layout.TOOK}}  {'what':<{layout.what}} {'who':<{layout.who}} {scale}"
    return Text(text, "dim")


def _line(row: _Row, layout: _Layout) -> Text:
    span = row.span
    end_ns = row.folded[-1].end_ns if row.folded else span.end_ns
    who = _who(span.instance, layout.replicated)
    style = layout.styles[who]
    is_root = span.parent_id is None
    name_style = "dim italic" if row.folded else "bold" if is_root else "red" if not span.ok else ""
    line = Text(no_wrap=True)
    line.append(f"{_seconds(span.start_ns):>{layout.AT}}", "dim")
    line.append(f"{_duration(end_ns - span.start_ns):>{layout.TOOK}}  ", "dim" if row.folded else "")
    if row.folded:
        room = layout.what + 1 + layout.who
        line.append(f"{_cut(_label(row, layout.replicated), room):<{room}} ", name_style)
    else:
        line.append(f"{_cut(_label(row, layout.replicated), layout.what):<{layout.what}} ", name_style)
        line.append(f"{_cut(who, layout.who):<{layout.who}} ", style)
    bar_style = f"dim {style}" if row.folded or is_root else "red" if not span.ok else style
    if layout.bar:
        line.append(_bar(span.start_ns, end_ns, layout), bar_style)
    line.rstrip()
    return line


def _bar(start_ns: int, end_ns: int, layout: _Layout) -> str:
    """In half cells, and at least one of them, so that short spans are seen too."""
    halves = 2 * layout.bar
    whole_ns = max(layout.end_ns - layout.begin_ns, 1)
    first = min((start_ns - layout.begin_ns) * halves // whole_ns, halves - 1)
    end = max(-(-(end_ns - layout.begin_ns) * halves // whole_ns), first + 1)
    if layout.ascii_only:
        return " " * (first // 2) + "=" * (-(-end // 2) - first // 2)
    cells = [" "] * (first // 2)
    for cell in range(first // 2, -(-end // 2)):
        left, right = first <= 2 * cell < end, first <= 2 * cell + 1 < end
        cells.append("━" if left and right else "╸" if left else "╺")
    return "".join(cells)


def _label(row: _Row, replicated: frozenset[str]) -> str:
    span = row.span
    if row.folded:
        count = sum(each.kind in (spans.ATTEMPT, spans.RUNNING, spans.REFUSED) for each in row.folded)
        noun = {spans.ATTEMPT: "attempts", spans.RUNNING: "restarts"}.get(_family(span)[0], "refusals")
        same = len({str(each.attributes.get(REASON, "")) for each in row.folded if each.kind == spans.ATTEMPT}) <= 1
        return f"  … {count} more {noun}{', same result' if same and noun == 'attempts' else ''}"
    indent = "  " if span.parent_id in (None, spans.root_id(span.trace_id)) else "    "
    return f"{'' if span.parent_id is None else indent}{label_of(span, replicated)}"


def label_of(span: Span, replicated: frozenset[str]) -> str:
    """What a span is called: its name, and whom it names."""
    attributes = span.attributes
    if span.parent_id is None:
        return f"{span.name} {span.pod}"
    label = span.name
    if span.kind == spans.ATTEMPT:
        label = f"attempt {attributes['kemu.attempt']} {attributes['kemu.result']}"
    elif span.kind in ("delete", "evict"):
        label = f"{span.name} by {_who(str(attributes['kemu.by']), replicated)}"
    elif span.name in _TOLD_OF:
        preposition, attribute = _TOLD_OF[span.name]
        label = " ".join(filter(None, (span.name, preposition, str(attributes[attribute]))))
    if attributes.get(OPEN):
        label += " …"
    return _plain(label)


def _why(row: _Row) -> str:
    return "" if row.folded else reason_of(row.span)


def reason_of(span: Span) -> str:
    """What is worth saying of a span in words."""
    if span.parent_id is None:
        return ""
    if span.kind == spans.ATTEMPT:
        rejected = [
            f"{key.removeprefix('kemu.rejected.')} {value}"
            for key, value in span.attributes.items()
            if key.startswith("kemu.rejected.")
        ]
        reason = str(span.attributes.get(REASON, "")).replace("no new claims to deallocate, ", "")
        parts = [reason, f"nodes rejected by {', '.join(rejected)}" if rejected else ""]
        return " · ".join(part for part in parts if part)
    return _plain(span.message or str(span.attributes.get(REASON, "")))


def _note(why: str, layout: _Layout, width: int, *, bad: bool) -> list[Text]:
    indent = " " * (layout.indent + 4)
    return [
        Text(indent + line, "red" if bad else "dim")
        for line in textwrap.wrap(why, width - len(indent), max_lines=4, placeholder=" …")
    ]


def _stories(trace: Trace, folder: str) -> list[Text]:
    """The links in words, each pod once for each relation, and the commands that show the other side."""
    relations: dict[str, dict[str, None]] = {}
    others: dict[str, None] = {}
    for span in trace.spans:
        for link in span.links:
            relations.setdefault(link.relation, {})[link.target] = None
            if link.pod != trace.pod:
                others[link.pod] = None
    if not relations:
        return []
    lines = [Text()]
    for relation, targets in relations.items():
        names = [short(target) for target in targets]
        shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
        lines.append(Text.assemble((relation, "bold"), " ", shown))
    lines += [Text.assemble(("see: ", "dim"), f"kemu trace {folder} {short(pod)}") for pod in list(others)[:3]]
    if len(others) > 3:
        lines.append(Text(f"     and {len(others) - 3} others in the same way", "dim"))
    return lines


# --- folding ----------------------------------------------------------------------------------------------------------


def _family(span: Span) -> tuple[str, str]:
    """Spans that may be folded together: what they are counted by, and what must be equal."""
    if span.kind in (spans.QUEUE, spans.ATTEMPT):
        return spans.ATTEMPT, ""
    if span.kind in (spans.RUNNING, spans.BACK_OFF):
        return spans.RUNNING, ""
    if span.kind == spans.REFUSED:
        return spans.REFUSED, span.name
    return "", ""


def _result(span: Span) -> str:
    return str(span.attributes.get("kemu.result", span.message))


def _rows(ordered: list[Span]) -> list[_Row]:
    """Fold each stretch of more than ``FOLD_ABOVE`` attempts with one result, all but its first and last."""
    rows: list[_Row] = []
    position = 0
    while position < len(ordered):
        family = _family(ordered[position])
        if not family[0]:
            rows.append(_Row(ordered[position]))
            position += 1
            continue
        end = position
        counted: list[int] = []
        while end < len(ordered) and _family(ordered[end]) == family:
            if ordered[end].kind == family[0]:
                if counted and _result(ordered[end]) != _result(ordered[counted[0]]):
                    break
                counted.append(end)
            end += 1
        if len(counted) > FOLD_ABOVE:
            first, last = counted[0] + 1, counted[-1]
            rows += [_Row(span) for span in ordered[position:first]]
            # The waits before the last attempt go with those that are folded.
            rows.append(_Row(ordered[first], tuple(ordered[first:last])))
            rows += [_Row(span) for span in ordered[last:end]]
        else:
            rows += [_Row(span) for span in ordered[position:end]]
        position = end
    return rows


# --- words ------------------------------------------------------------------------------------------------------------


def _who(actor: str, replicated: frozenset[str]) -> str:
    """The service of an actor; a scheduler's own name tells enough, and the usual one's nothing. Replicas have their
    numbers, but for the first of a scheduler that has no other."""
    service = spans.service_of(actor)
    family, _, name = actor.partition("/")
    if family == "scheduler" and (service in replicated or name.partition("/")[2] not in ("", "0")):
        return name
    return "scheduler" if service == "scheduler default-scheduler" else service.removeprefix("scheduler ")


def _ascii(line: Text) -> Text:
    """For terminals that know no more: a letter for a letter, so that columns stay."""
    return Text(line.plain.translate(_PLAIN_LETTERS).encode("ascii", "replace").decode())


def _plain(text: str) -> str:
    """Pods of the namespace default by their names."""
    return _DEFAULT_NAMESPACE.sub("", text)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _seconds(time_ns: int) -> str:
    return f"{time_ns / 1e9:.3f}s"


def _duration(span_ns: int) -> str:
    """At most seven characters, with about three digits that mean something."""
    if span_ns <= 0:
        return "0"
    if span_ns < 1_000_000:
        return f"{max(span_ns // 1000, 1)}µs"
    if span_ns < 1_000_000_000:
        return f"{span_ns / 1e6:.3g}ms" if span_ns < 999_500_000 else "1s"
    seconds = span_ns / 1e9
    if seconds < 100:
        return f"{seconds:.3g}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"

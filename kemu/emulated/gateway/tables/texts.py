"""How values look in cells: ages, labels, selectors, quantities.

Mirrors helpers of ``pkg/printers/internalversion``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from google.protobuf.message import Message

from kemu.emulated.objects import selectors
from kemu.emulated.objects.amounts import quantities
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"

SECOND_NS = 1_000_000_000


def duration(nanoseconds: int) -> str:
    """``duration.HumanDuration``: two or three significant figures."""
    seconds = _truncated(nanoseconds, SECOND_NS)
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes, second = divmod(seconds, 60)
    if minutes < 10:
        return f"{minutes}m{second}s" if second else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours, minute = divmod(minutes, 60)
    if hours < 8:
        return f"{hours}h{minute}m" if minute else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days, hour = divmod(hours, 24)
    if hours < 24 * 8:
        return f"{days}d{hour}h" if hour else f"{days}d"
    if hours < 24 * 365 * 2:
        return f"{days}d"
    years, day = divmod(days, 365)
    if hours < 24 * 365 * 8:
        return f"{years}y{day}d" if day else f"{years}y"
    return f"{years}y"


def _truncated(number: int, by: int) -> int:
    """Division towards zero, as Go's."""
    return number // by if number >= 0 else -(-number // by)


def nanoseconds(time: meta_v1_pb2.MicroTime | meta_v1_pb2.Time) -> int:
    """Nanoseconds of a Time or MicroTime; 0 for one that is not set."""
    return int(time.seconds) * SECOND_NS + int(time.nanos)


def since(time: meta_v1_pb2.MicroTime | meta_v1_pb2.Time, now_ns: int) -> str:
    """``translateTimestampSince``, also for a MicroTime."""
    then_ns = nanoseconds(time)
    return duration(now_ns - then_ns) if then_ns else UNKNOWN


def age(obj: KubernetesObject, now_ns: int) -> str:
    return since(obj.metadata.creationTimestamp, now_ns)


def labels(pairs: Mapping[str, str]) -> str:
    """``labels.FormatLabels``."""
    return ",".join(sorted(f"{key}={pairs[key]}" for key in pairs)) or NONE


def selector(message: Message, field: str = "selector", empty: str = NONE, wrong: str = "<error>") -> str:
    """``FormatLabelSelector`` of a field."""
    try:
        return _selector_text(message, field) or empty
    except selectors.SelectorError:
        return wrong


def _selector_text(message: Message, field: str) -> str:
    """``Selector.String``: by key, values in order. Raises SelectorError."""
    compiled = selectors.compile_labels_field(message, field)
    equal = len(getattr(message, field).matchLabels)
    written = [
        (one.key, f"{one.key}={one.values[0]}" if index < equal else _requirement(one))
        for index, one in enumerate(compiled.requirements)
    ]
    return ",".join(text for _, text in sorted(written, key=lambda pair: pair[0]))


def _requirement(one: selectors.Requirement) -> str:
    if one.operator in ("Exists", "DoesNotExist"):
        return one.key if one.operator == "Exists" else f"!{one.key}"
    return f"{one.key} {'in' if one.operator == 'In' else 'notin'} ({','.join(sorted(one.values))})"


def quantity(text: str) -> str:
    """The canonical text; that of nothing is 0."""
    try:
        return str(quantities.parse(text)) if text else "0"
    except ValueError:
        return text


def amount(amounts: Mapping[str, meta_v1_pb2.Quantity], name: str) -> str:
    """The amount of a resource in a list."""
    return quantity(amounts[name].string if name in amounts else "")


def optional(message: Message, field: str, otherwise: str) -> str:
    """The text of a field, or what stands for an absent one."""
    return str(getattr(message, field)) if message.HasField(field) else otherwise


def int_or_string(value: meta_v1_pb2.IntOrString) -> str:
    return str(value.strVal) if value.type == 1 else str(value.intVal)


def some(items: Iterable[str], most: int = 3, otherwise: str = UNSET) -> str:
    """``listWithMoreString``: the first ones, and how many more there are."""
    every = list(items)
    shown = ",".join(every[:most])
    if len(every) > most:
        return f"{shown} + {len(every) - most} more..."
    return shown or otherwise


def listed(items: Iterable[str]) -> str:
    return ",".join(items) or NONE


def trimmed(text: str) -> str:
    """``strings.TrimSpace``."""
    return text.strip(_BLANK)


_BLANK = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def access_modes(modes: Iterable[str]) -> str:
    """``GetAccessModesAsString``."""
    present = set(modes)
    return ",".join(short for mode, short in _ACCESS_MODES if mode in present)


_ACCESS_MODES = (
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
)

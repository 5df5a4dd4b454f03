"""The keys of faults, made from the table of their kinds (:mod:`kemu.runtime.faults.kinds`).

:mod:`kemu.lab.scenario.loading.faults` makes faults of what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.settings import values
from kemu.emulated.settings.distributed import TIME
from kemu.emulated.settings.shapes import (
    DURATION,
    POSITIVE_DURATION,
    SECONDS,
    SHARE,
    Choice,
    Key,
    ListOf,
    ListOr,
    Number,
    Reading,
    Record,
    Shape,
    Switch,
    Text,
    Whole,
)
from kemu.lab.scenario.format.keys.expectation_keys import EXPECTATION
from kemu.runtime.faults.kinds import CODES, KINDS, OF_ACTORS, STEPS, Form, Kind, Parameter

_ACTOR = Text(
    r"(store|apiserver|scheduler|extender|kubelet|controller|\*)[^\s]*",
    "an actor: store, apiserver/0, scheduler/<name>/<replica>, extender/<name>, kubelet/<node>, controller/<name>, "
    "or a pattern",
)


_PEER = Text(
    r"(store|user|apiserver|scheduler|extender|kubelet|controller|\*)[^\s]*",
    "an actor: store, user, apiserver/0, scheduler/<name>/<replica>, extender/<name>, kubelet/<node>, "
    "controller/<name>, or a pattern",
)
"""One who has connections: the user of the scenario, too."""


def _bytes(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a quantity of bytes such as 64Ki or 1M")
    amount = quantities.milli(value if isinstance(value, str) else str(value)) / 1000
    if amount <= 0:
        raise ValueError("must be more than 0")
    return amount


def _code(value: object) -> int:
    if value not in CODES or isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be one of {', '.join(map(str, CODES))}")
    return value


_SHAPES: Mapping[Form, Shape] = {
    Form.ACTORS: ListOr(_ACTOR),
    Form.SIDES: ListOf(ListOr(_PEER), 2),
    Form.NODES: ListOr(Text(r"[^\s/]+", "a node, or a pattern")),
    Form.ZONE: Text(r"[^\s/]+", "a zone: what topology.kubernetes.io/zone says of a node"),
    Form.API_SERVERS: ListOr(Text(r"apiserver/[^\s]+", "an API server such as apiserver/0, or a pattern")),
    Form.TIME: TIME,
    Form.SECONDS: SECONDS,
    Form.SIGNED_SECONDS: Reading(values.signed_duration_s, {"type": "string", "pattern": values.SIGNED_PATTERN}),
    Form.NUMBER: Number(),
    Form.SHARE: SHARE,
    Form.SWITCH: Switch(),
    Form.BYTES: Reading(_bytes, {"anyOf": [{"type": "string"}, {"type": "number", "exclusiveMinimum": 0}]}),
    Form.PROCESSES: ListOr(Text(r"(cell/|raylet/|gcs$|etcd$)[^\s]*", "a process: cell/<name>, raylet/0, gcs or etcd")),
    Form.RAYLETS: ListOr(Text(r"raylet/[^\s]+", "a raylet such as raylet/0, or a pattern")),
    Form.TEXT: Text(),
    Form.TEXTS: ListOr(Text()),
    Form.COUNT: Whole(1),
    Form.CODE: Reading(_code, {"enum": list(CODES)}),
    Form.STEP: Choice(tuple(step for steps in STEPS.values() for step in steps)),
}

_CHOICE = {
    "all": Key(Switch(), "All that match a pattern."),
    "count": Key(Whole(1), "So many of those that match a pattern, picked by the seed."),
    "share": Key(SHARE, "Such a part of those that match a pattern, picked by the seed: 10%."),
}


def _key(parameter: Parameter) -> Key:
    shape = Choice(parameter.choices) if parameter.form is Form.CHOICE else _SHAPES[parameter.form]
    return Key(shape, parameter.doc, parameter.required)


def record(kind: Kind) -> Record:
    """What stands below the name of that kind."""
    choice = _CHOICE if any(one.form in OF_ACTORS for one in kind.parameters) else {}
    return Record(
        {one.name: _key(one) for one in kind.parameters if not one.alternative} | choice,
        choices={one.name: _key(one) for one in kind.parameters if one.alternative},
        noun="victim",
    )


_JUDGED_AT_THE_END = ("pdb", "check", "metric", "object", "compare")
assert isinstance(EXPECTATION.shape, Record)
_WHEN = Record(
    {
        "nth": Key(Whole(1), "Which time, from the start of the run; the first by default."),
        "after": Key(DURATION, "How much later the fault comes; at once by default."),
    },
    choices={name: key for name, key in EXPECTATION.shape.choices.items() if name not in _JUDGED_AT_THE_END},
    noun="subject",
    companions={
        name: record for name, record in EXPECTATION.shape.companions.items() if name not in _JUDGED_AT_THE_END
    },
)

CHAOS = Record(
    {
        "at": Key(DURATION, "When the fault happens."),
        "every": Key(TIME, "It happens again and again, after such times."),
        "when": Key(_WHEN, "It happens once, when this comes true."),
        "from": Key(DURATION, "With every: not before."),
        "until": Key(DURATION, "With every: not after."),
        "for": Key(POSITIVE_DURATION, "When the fault ends by itself; of a crash: how long the actor is away."),
        "id": Key(Text(), "Its name in the run log."),
    },
    choices={kind.name: Key(record(kind), kind.doc) for kind in KINDS.values()},
    noun="fault",
)

"""Faults of a drawn scenario: made from the table of kinds, so that a new kind is drawn at once."""

from __future__ import annotations

from typing import Any

from kemu.errors import KemuError
from kemu.lab.fuzz.drawing.canvases import ZONE, Canvas, Data, seconds
from kemu.lab.fuzz.drawing.dice import Dice
from kemu.runtime.faults import kinds
from kemu.runtime.faults.kinds import Form

OF_THE_STORE = ("diskFull", "slowDisk", "failingFsync", "tornWrite")
"""Faults of disks: only the store has something on its disk that matters."""
OF_PROCESSES_THAT_LEAD = ("terminate",)
TIMES: tuple[Any, ...] = (
    "20ms",
    "300ms",
    "2s",
    {"uniform": {"min": "10ms", "max": "1s"}},
    {"exponential": {"mean": "200ms"}},
)


def draw(canvas: Canvas, controllers: list[str]) -> None:
    """``controllers``: names of those that run."""
    for feature in ("fault", "second_fault"):
        if canvas.has(feature):
            dice = canvas.dice("chaos", feature)
            made = fault(canvas, dice, kinds.KINDS[canvas.level(feature)], controllers)
            if made is not None:
                canvas.fault(made)


def fault(canvas: Canvas, dice: Dice, kind: kinds.Kind, controllers: list[str]) -> Data | None:
    """An entry of ``chaos``."""
    made = _times(canvas, dice, kind)
    alternatives = [one for one in kind.parameters if one.alternative]
    if not canvas.has("zones"):
        alternatives = [one for one in alternatives if one.form is not Form.ZONE]
    chosen = dice.pick(alternatives).name if alternatives else ""
    victims: Data = {}
    for parameter in kind.parameters:
        if parameter.alternative and parameter.name != chosen:
            continue
        if not parameter.required and not parameter.alternative and dice.chance(0.7):
            continue
        if parameter.name in ("restart", "step", "powerOff", "belowGrpc"):
            if parameter.name == "step" and chosen == "actor":
                part = dice.pick(list(kinds.STEPS))
                victims["actor"] = {"store": "store", "apiserver": "apiserver/0"}.get(part, f"{part}/*")
                victims["step"] = dice.pick(kinds.STEPS[part])
            elif parameter.name == "powerOff" and chosen in ("node", "zone"):
                victims["powerOff"] = True
            continue
        if parameter.name in victims:
            continue
        victims[parameter.name] = _value(canvas, dice, kind, parameter, controllers)
    if kind.name == "delay" and "resource" in victims:
        victims["from"] = "apiserver/*"
    if "between" in victims or "from" in victims:
        victims["all"] = True
    elif any(isinstance(value, str) and "*" in value for value in victims.values()):
        victims |= dice.pick(({}, {}, {"all": True}, {"count": 2}))
    if kind.name == "clockSkew" and not {"by", "drift"} & victims.keys():
        victims["by"] = "30s"
    return {**made, kind.name: victims}


def _times(canvas: Canvas, dice: Dice, kind: kinds.Kind) -> Data:
    made: Data = {}
    longest = 60 if canvas.is_one("fault_times", "long") else 15
    last = max(2, canvas.active_s - longest)
    if canvas.is_one("fault_times", "every"):
        made["every"] = dice.pick(("20s", {"exponential": {"mean": "15s"}}))
        made["from"] = seconds(dice.whole(1, 10))
        made["until"] = seconds(max(11, last))
    else:
        made["at"] = seconds(dice.whole(0, last * 1000) / 1000 if dice.chance(0.3) else dice.whole(1, last))
    if kind.lasts:
        made["for"] = seconds(dice.log_whole(1, longest))
    return made


def _value(canvas: Canvas, dice: Dice, kind: kinds.Kind, parameter: kinds.Parameter, controllers: list[str]) -> Any:
    form = parameter.form
    if form is Form.ACTORS:
        if parameter.name == "to":
            return dice.pick(("apiserver/*", "apiserver/*", "scheduler/*", "kubelet/*"))
        if parameter.name == "from":
            return dice.pick(("kubelet/*", "scheduler/*", "controller/*", "apiserver/*"))
        return _actor(canvas, dice, kind, controllers)
    if form is Form.SIDES:
        return dice.pick(
            (
                ["kubelet/*", "apiserver/*"],
                ["scheduler/*", "apiserver/*"],
                ["controller/*", "apiserver/*"],
                ["apiserver/*", "store"],
                [["kubelet/*", "scheduler/*"], "apiserver/*"],
            )
        )
    if form is Form.NODES:
        return dice.pick(canvas.node_names)
    if form is Form.ZONE:
        zones = [node["labels"][ZONE] for node in canvas.spec["nodes"] if ZONE in node.get("labels", {})]
        return dice.pick(zones)
    if form is Form.API_SERVERS:
        return "apiserver/0"
    if form is Form.TIME:
        return dice.pick(TIMES)
    if form is Form.SECONDS:
        return f"{dice.whole(1, 20)}s"
    if form is Form.SIGNED_SECONDS:
        return f"{dice.pick((-1, 1)) * dice.whole(1, 120)}s"
    if form is Form.SHARE:
        return dice.pick((0.05, 0.3, 1))
    if form is Form.SWITCH:
        return True
    if form is Form.TEXTS:
        return dice.pick(("pods", "nodes", "*s"))
    if form is Form.BYTES:
        return dice.pick(("2k", "100k"))
    if form is Form.NUMBER:
        return dice.pick((-0.05, 0.05)) if parameter.name == "drift" else 1
    raise KemuError(f"nothing is known to draw for {kind.name}.{parameter.name}")


def _actor(canvas: Canvas, dice: Dice, kind: kinds.Kind, controllers: list[str]) -> str:
    if kind.name in OF_THE_STORE:
        return "store"
    if kind.name in OF_PROCESSES_THAT_LEAD:
        return dice.pick(["scheduler/*", *(f"controller/{name}*" for name in controllers)])
    options = ["store", "apiserver/*", "scheduler/*", "kubelet/*", "kubelet/*"]
    options += [f"controller/{name}*" for name in controllers]
    return dice.pick(options)

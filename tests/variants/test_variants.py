"""Each variant has its class or its setting, each class overrides what is there, and chosen classes combine."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from kemu.emulated import variants
from kemu.emulated.scheduler.experiments import switches
from kemu.emulated.scheduler.queue.queues import SchedulingQueue
from kemu.emulated.settings.declared import settings_of
from kemu.emulated.settings.shapes import Choice, Shape, Switch
from kemu.emulated.variants import ABLATION, BUG, EXPERIMENT, FIX, VARIANTS
from kemu.lab.scenario import catalog
from tests.museum.pieces import PIECES
from tests.variants import classes

FOUND = Path(__file__).resolve().parents[1] / "ablations" / "found.json"
SWITCHES = ("nomination", "clear-lower-nominations")
"""Ablations that are switches of experiments, too."""


def test_every_variant_but_experiments_has_a_class() -> None:
    entered = {name for _, name, _ in classes.replacements()}
    for name, variant in VARIANTS.items():
        assert name in entered or variant.kind == EXPERIMENT or name in SWITCHES, name


def test_a_variant_overrides_only_what_is_there() -> None:
    for base, name, kind in classes.replacements():
        overridden = classes.overridden(kind)
        assert kind.__doc__, kind
        assert overridden, (name, kind)
        for method in overridden:
            assert hasattr(base, method), f"{name}: {base.__name__} has no {method}"


def _values(shape: Shape) -> tuple[object, ...]:
    return shape.words if isinstance(shape, Choice) else (True, False) if isinstance(shape, Switch) else ()


def test_the_experiments_are_the_switches_and_their_values() -> None:
    stated = [name for name in variants.names(EXPERIMENT) if VARIANTS[name].actors == variants.SCHEDULER]
    wanted = []
    for name, (_, declared) in settings_of(switches.Policy).items():
        values = _values(declared.shape)
        texts = [value if isinstance(value, str) else "on" if value else "off" for value in values]
        wanted += [f"{name}: {text}" for value, text in zip(values, texts, strict=True) if value != declared.default]
        wanted += [] if values else [name]
    assert sorted(stated) == sorted(wanted)


def test_the_scenarios_that_show_them() -> None:
    found = json.loads(FOUND.read_text())
    shipped = set(catalog.shipped())
    for name, variant in VARIANTS.items():
        assert not variant.scenario or variant.scenario in shipped, name
        if variant.kind == ABLATION:
            assert variant.scenario == found[name]["scenario"]
        elif variant.kind in (BUG, FIX):
            assert PIECES[variant.scenario].number == int(name.removeprefix("k8s-"))
            assert name in catalog.find(variant.scenario).read_text()


def test_variants_of_one_class_combine() -> None:
    assert variants.choose(SchedulingQueue, ()) is SchedulingQueue
    assert variants.choose(SchedulingQueue, ("assume-cache",)) is SchedulingQueue
    both = variants.choose(SchedulingQueue, ("in-flight-events", "requeue: all"))
    assert [one.__name__ for one in both.__mro__[:4]] == [
        "SchedulingQueue", "_RequeuesAll", "_ForgetsFlights", "SchedulingQueue",
    ]  # fmt: skip
    assert variants.choose(SchedulingQueue, ("requeue: all", "in-flight-events")) is both


def test_an_actor_refuses_a_name_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="unknown variant 'bind-twice'"):
        variants.active({"ablate": ["bind-twice"]})
    assert variants.active({"ablate": ["bind-once"], "bugs": ["k8s-65240"]}) == {"bind-once", "k8s-65240"}


def test_the_alternatives_of_a_policy_are_named_as_in_the_table() -> None:
    default = switches.policy_of({})
    assert switches.alternatives(default) == ()
    for field in dataclasses.fields(default):
        for value in _values(settings_of(switches.Policy)[field.name][1].shape):
            for name in switches.alternatives(switches.policy_of({field.name: value})):
                assert name in VARIANTS

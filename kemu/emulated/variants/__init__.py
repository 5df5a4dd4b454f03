"""Variants: what can be other than in today's Kubernetes, in one table, and the choice of classes that follows from it.

A variant takes one safeguard away (``ablate:``, docs/ablations.md), brings a fixed bug back (``bugs:``), fixes an open
one (``fixes:``, docs/museum), or carries out an alternative of the design documents (``policy:`` of a scheduler or a
node, docs/experiments.md). The scenario format takes the words of ``ablate``, ``bugs`` and ``fixes`` from the table
(:mod:`kemu.emulated.variants.table`), the documents their rows.

Most variants are a class each, in the module ``variants`` of the package of the class that it :func:`replaces`
(:mod:`kemu.emulated.scheduler.variants`, …), and override a few of its methods; docs/ablations.md lists which. Whoever
makes an object asks once for its class, with :func:`choose`; an actor that varies itself is a :class:`Varied`. Nothing
is decided later, and without variants every actor is made of the same classes as ever. The rest of the experiments are
values of settings (:mod:`kemu.emulated.scheduler.experiments.switches`).
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self, TypeVar

from kemu.emulated.variants.table import (
    ABLATION,
    ALL,
    APISERVER,
    BUG,
    CANDIDATES,
    CLIENTS,
    CONTROLLERS,
    EXPERIMENT,
    FIX,
    KUBELET,
    SCHEDULER,
    STORE,
    Variant,
)
from kemu.runtime.env import Env

__all__ = [
    "ABLATE_KEY",
    "ABLATION",
    "APISERVER",
    "BUG",
    "BUGS_KEY",
    "CONTROLLERS",
    "EXPERIMENT",
    "FIX",
    "KUBELET",
    "OF_THE_STORE",
    "REPLACEMENTS",
    "SCHEDULER",
    "VARIANTS",
    "Varied",
    "active",
    "bugs_of",
    "choose",
    "names",
    "replaces",
]

ABLATE_KEY, BUGS_KEY = "ablate", "bugs"
"""In the config of an actor: lists of names."""

VARIANTS: Mapping[str, Variant] = MappingProxyType({one.name: one for one in ALL})
"""By name."""


def names(kind: str) -> tuple[str, ...]:
    """The variants of a kind."""
    return tuple(one.name for one in ALL if one.kind == kind)


OF_THE_STORE = tuple(one.name for one in ALL if one.kind == ABLATION and one.actors == STORE)
"""Safeguards that only kemu's own store can lack."""


def bugs_of(actors: str, switched: Iterable[str]) -> list[str]:
    """Those of the bugs and fixes that concern these actors."""
    concerned = [actors]
    if actors != APISERVER:
        concerned.append(CLIENTS)
    if actors in (SCHEDULER, CONTROLLERS):
        concerned.append(CANDIDATES)
    return [name for name in switched if VARIANTS[name].actors in concerned]


def active(config: Mapping[str, Any]) -> frozenset[str]:
    """The ablations, bugs and fixes of an actor, by its config. Raises ValueError for a name that does not exist."""
    found = (*config.get(ABLATE_KEY, ()), *config.get(BUGS_KEY, ()))
    for name in found:
        if name not in VARIANTS:
            raise ValueError(f"unknown variant {name!r}; there are {', '.join(VARIANTS)}")
    return frozenset(found)


T = TypeVar("T")

REPLACEMENTS: dict[type, dict[str, type]] = {}
"""By the class that varies and by variant. Only the modules ``variants`` that are loaded have entered theirs."""


def replaces(base: type, variant: str) -> Callable[[type[T]], type[T]]:
    """Enters the decorated class as the one that takes the place of its base class under this variant.

    Several variants of one class combine; the one that was entered first overrides the others.
    """

    def enter(kind: type[T]) -> type[T]:
        assert variant in VARIANTS, f"no variant {variant}"
        assert issubclass(kind, base), f"{kind} is no {base}"
        REPLACEMENTS.setdefault(base, {})[variant] = kind
        return kind

    return enter


def choose(base: type[T], variants: Collection[str]) -> type[T]:
    """The class, or one of it with those of the variants that replace it."""
    if not variants:
        return base
    _load_beside(base.__module__)
    found = tuple(kind for name, kind in REPLACEMENTS.get(base, {}).items() if name in variants)
    composed: type[T] = _compose((base, *found)) if found else base
    return composed


@functools.cache
def _load_beside(module: str) -> None:
    """Load the module ``variants`` that is nearest above a module."""
    package = module.rpartition(".")[0]
    while package:
        if importlib.util.find_spec(f"{package}.variants") is not None:
            importlib.import_module(f"{package}.variants")
            return
        package = package.rpartition(".")[0]


@functools.cache
def _compose(kinds: tuple[type[T], ...]) -> type[T]:
    base, *others = kinds
    return type(base.__name__, tuple(others), {"__slots__": ()})


class Varied:
    """An actor that is made of its class, or of one of it with the variants that its config names."""

    def __new__(cls, env: Env, config: Mapping[str, Any]) -> Self:
        return object.__new__(choose(cls, active(config)))

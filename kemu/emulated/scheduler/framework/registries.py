"""The registry: which plugins a profile may name, and what is enabled without being named.

The plugins in the tree are registered by :mod:`kemu.emulated.scheduler.plugins.in_tree`, as by ``NewInTreeRegistry``
(``pkg/scheduler/framework/plugins``); a scheduler may be given more (:meth:`Registry.extended`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.scheduler.framework.interfaces import Handle, Plugin

Factory = Callable[[Mapping[str, Any], Handle], Plugin]
"""(arguments, handle) → the plugin, made once for each profile."""


@dataclass(frozen=True, slots=True)
class Registry:
    default: Mapping[str, Factory]
    """By name, in the order of the default ``multiPoint`` set."""
    weights: Mapping[str, int] = field(default_factory=dict)
    """Default weights of scores, where they are not 1."""
    inert: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Extension points at which plugins of kube-scheduler may be named and do nothing here; most of these plugins do
    nothing at all."""
    further: Mapping[str, Factory] = field(default_factory=dict)
    """Plugins that take part only where a profile names them."""

    def extended(self, further: Mapping[str, Factory]) -> Registry:
        """The same with more plugins to name; one of the name of a default plugin takes its place."""
        return dataclasses.replace(self, further={**self.further, **further})

    def factory(self, name: str) -> Factory | None:
        return self.further.get(name) or self.default.get(name)

    def has(self, name: str) -> bool:
        return name in self.default or name in self.inert or name in self.further

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys((*self.default, *self.inert, *self.further)))

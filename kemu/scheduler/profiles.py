"""A profile: which plugins take part in which extension point, with their weights.

The default set and what a configuration changes in it are merged as ``pkg/scheduler/apis/config/v1`` (mergePlugins) and
``pkg/scheduler/framework/runtime`` (expandMultiPointPlugins) do.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any, TypeVar

from kemu.scheduler import configurations
from kemu.scheduler.configurations import ConfigurationError, PluginRef, PluginSet, ProfileConfiguration
from kemu.scheduler.events import Event, Hint
from kemu.scheduler.framework import (
    ArgumentError,
    BindPlugin,
    FilterPlugin,
    Handle,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ReservePlugin,
    Scope,
    ScorePlugin,
)
from kemu.scheduler.plugins import in_tree

P = TypeVar("P", bound=Plugin)

ENTRY_POINTS = "kemu.scheduler.plugins"
"""Group of entry points under which packages offer plugins. ``module:Class`` in place of a name works as well."""

_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "NodeResourcesFit": ("ignoredResources", "ignoredResourceGroups", "scoringStrategy"),
    "NodeResourcesBalancedAllocation": ("resources",),
    "NodeAffinity": ("addedAffinity",),
    "InterPodAffinity": ("hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"),
    "PodTopologySpread": ("defaultConstraints", "defaultingType"),
    "DefaultPreemption": ("minCandidateNodesPercentage", "minCandidateNodesAbsolute"),
    "VolumeBinding": ("bindTimeoutSeconds", "shape"),
    "DynamicResources": ("filterTimeout", "bindingTimeout"),
}


class Profile:
    """The plugins of one scheduler name, made and in order."""

    def __init__(
        self,
        configuration: ProfileConfiguration,
        handle: Handle,
        registry: Mapping[str, Callable[[Mapping[str, Any], Handle], Plugin]] | None = None,
    ) -> None:
        """``registry``: further plugins by name. Raises :class:`ConfigurationError`."""
        self.scheduler_name = configuration.scheduler_name
        self.percentage_of_nodes_to_score = configuration.percentage_of_nodes_to_score
        self.handle = handle
        resolved = _Resolver(configuration, handle, registry or {})
        self.plugins: dict[str, Plugin] = resolved.made
        """All plugins that take part somewhere, by name."""
        self.pre_enqueue: list[PreEnqueuePlugin] = resolved.at("preEnqueue", PreEnqueuePlugin)
        queue_sort = resolved.at("queueSort", QueueSortPlugin)
        if len(queue_sort) != 1:
            names = ", ".join(plugin.name for plugin in queue_sort) or "none"
            raise ConfigurationError(f"{configuration.path}.plugins.queueSort", f"exactly one is needed, not {names}")
        self.queue_sort: QueueSortPlugin = queue_sort[0]
        self.filters: list[FilterPlugin] = resolved.at("filter", FilterPlugin)
        self.post_filters: list[PostFilterPlugin] = resolved.at("postFilter", PostFilterPlugin)
        self.scorers: list[ScorePlugin] = resolved.at("score", ScorePlugin)
        # A plugin of module:Class has another name than the one it is configured by.
        configured_as = {plugin: name for name, plugin in resolved.made.items()}
        self.weights: list[int] = [resolved.weights.get(configured_as[plugin], 1) for plugin in self.scorers]
        self.reserve: list[ReservePlugin] = resolved.at("reserve", ReservePlugin)
        self.permit: list[PermitPlugin] = resolved.at("permit", PermitPlugin)
        self.pre_bind: list[PreBindPlugin] = resolved.at("preBind", PreBindPlugin)
        self.bind: list[BindPlugin] = resolved.at("bind", BindPlugin)
        self.post_bind: list[PostBindPlugin] = resolved.at("postBind", PostBindPlugin)
        if not self.bind:
            raise ConfigurationError(f"{configuration.path}.plugins.bind", "at least one plugin is needed")
        self.local_filters = [(place, one) for place, one in enumerate(self.filters) if one.scope is not Scope.CLUSTER]
        self.cluster_filters = [(place, one) for place, one in enumerate(self.filters) if one.scope is Scope.CLUSTER]
        self.hints: dict[Event, dict[str, Hint | None]] = {event: {} for event in Event}
        """For each event, the plugins that want to hear of it, with their hints."""
        for plugin in self.plugins.values():
            if isinstance(plugin, PreEnqueuePlugin | FilterPlugin | ReservePlugin | PermitPlugin):
                for event, hint in plugin.events():
                    self.hints[event][plugin.name] = hint


class _Resolver:
    def __init__(
        self,
        configuration: ProfileConfiguration,
        handle: Handle,
        registry: Mapping[str, Callable[[Mapping[str, Any], Handle], Plugin]],
    ) -> None:
        self._configuration = configuration
        self._handle = handle
        self._registry = registry
        self._path = configuration.path
        self.made: dict[str, Plugin] = {}
        self.weights: dict[str, int] = {}
        self._unused: dict[str, Plugin] = {}
        sets = configuration.plugins
        default = PluginSet(tuple(PluginRef(name, in_tree.DEFAULT_WEIGHTS.get(name, 0)) for name in in_tree.IN_TREE))
        self._multi_point = _merged(default, sets.get("multiPoint", PluginSet()))
        for name in configuration.arguments:
            self._check_known(name, f"{self._path}.pluginConfig")
        for ref in self._multi_point:
            self._weigh(ref)
        for ref in sets.get("score", PluginSet()).enabled:
            self._weigh(PluginRef(ref.name, ref.weight or 1))

    def _weigh(self, ref: PluginRef) -> None:
        if ref.weight:
            self.weights[ref.name] = ref.weight

    def at(self, point: str, kind: type[P]) -> list[P]:
        """The plugins of an extension point, in order."""
        own = self._configuration.plugins.get(point, PluginSet())
        for name in own.disabled:
            if name != "*":
                self._check_known(name, f"{self._path}.plugins.{point}.disabled")
        enabled = [ref.name for ref in own.enabled]
        found: dict[str, P] = {}
        from_multi_point: list[str] = []
        if "*" not in own.disabled:
            for ref in self._multi_point:
                plugin = self._plugin(ref.name, f"{self._path}.plugins.multiPoint.enabled")
                if isinstance(plugin, kind) and ref.name not in own.disabled:
                    from_multi_point.append(ref.name)
        # Those named here that multiPoint has too come first, then the rest of multiPoint, then the others named here.
        order = [name for name in enabled if name in from_multi_point]
        order += [name for name in from_multi_point if name not in enabled]
        order += [name for name in enabled if name not in from_multi_point]
        for number, name in enumerate(enabled):
            path = f"{self._path}.plugins.{point}.enabled[{number}]"
            if name in enabled[:number]:
                raise ConfigurationError(path, f"plugin {name!r} is enabled twice")
            plugin = self._plugin(name, path)
            if plugin is not None and not isinstance(plugin, kind):
                raise ConfigurationError(path, f"plugin {name!r} does not take part in {point}")
        for name in order:
            plugin = self._plugin(name, f"{self._path}.plugins.{point}")
            if isinstance(plugin, kind):
                found[name] = plugin
                self.made[name] = plugin
        return list(found.values())

    def _plugin(self, name: str, path: str) -> Plugin | None:
        """The plugin of that name, made at its first use; None for one that does nothing here."""
        plugin = self._unused.get(name)
        if plugin is not None:
            return plugin
        self._check_known(name, path)
        if name in in_tree.INERT:
            return None
        make = self._registry.get(name) or in_tree.IN_TREE.get(name) or _load(name, path)
        arguments = dict(self._configuration.arguments.get(name, {}))
        arguments.pop("apiVersion", None)
        arguments.pop("kind", None)
        place = f"{self._path}.pluginConfig[{name}].args"
        if name in in_tree.IN_TREE:
            configurations.check_keys(arguments, place, _ARGUMENTS.get(name, ()))
        try:
            plugin = make(arguments, self._handle)
        except ArgumentError as error:
            raise ConfigurationError(f"{place}.{error.path}", error.message, error.suggestion) from None
        self._unused[name] = plugin
        return plugin

    def _check_known(self, name: str, path: str) -> None:
        known = [*in_tree.IN_TREE, *in_tree.INERT, *self._registry]
        if name in known or ":" in name or name in _offered():
            return
        close = difflib.get_close_matches(name, known, 1)
        raise ConfigurationError(path, f"there is no plugin {name!r}", f'did you mean "{close[0]}"?' if close else "")


def _merged(default: PluginSet, custom: PluginSet) -> list[PluginRef]:
    """The default plugins without the disabled ones, replaced in place where configured anew, then the new ones."""
    by_name = {ref.name: ref for ref in custom.enabled}
    kept = [] if "*" in custom.disabled else [ref for ref in default.enabled if ref.name not in custom.disabled]
    merged = [by_name.pop(ref.name, ref) for ref in kept]
    return [*merged, *by_name.values()]


def _offered() -> dict[str, metadata.EntryPoint]:
    return {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINTS)}


def _load(name: str, path: str) -> Callable[[Mapping[str, Any], Handle], Plugin]:
    """A plugin from outside: by entry point, or as ``module:Class``."""
    try:
        if ":" in name:
            module, _, attribute = name.partition(":")
            loaded = getattr(importlib.import_module(module), attribute)
        else:
            loaded = _offered()[name].load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(path, f"plugin {name!r} cannot be loaded: {error}") from None
    if not (isinstance(loaded, type) and issubclass(loaded, Plugin)):
        raise ConfigurationError(path, f"{name!r} is not a plugin: a subclass of kemu.scheduler.framework.Plugin is")
    return loaded

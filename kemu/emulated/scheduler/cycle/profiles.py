"""A profile: which plugins take part in which extension point, with their weights.

The default set and what a configuration changes in it are merged as ``pkg/scheduler/apis/config/v1`` (mergePlugins) and
``pkg/scheduler/framework/runtime`` (expandMultiPointPlugins) do.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar, cast

from kemu.emulated.scheduler.configuration import arguments, old
from kemu.emulated.scheduler.configuration.configurations import (
    ConfigurationError,
    PluginRef,
    PluginSet,
    ProfileConfiguration,
)
from kemu.emulated.scheduler.cycle import half_plugins, signatures
from kemu.emulated.scheduler.cycle.line_ups import LineUp
from kemu.emulated.scheduler.framework import answers, results
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import (
    MAX_SCORE,
    ArgumentError,
    BindPlugin,
    Cycle,
    Diagnosis,
    FilterPlugin,
    Handle,
    NodeFilterPlugin,
    NodeScorePlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    VictimOrderPlugin,
)
from kemu.emulated.scheduler.framework.registries import Factory, Registry
from kemu.emulated.scheduler.framework.results import PostFilterResult
from kemu.emulated.scheduler.framework.statuses import Status
from kemu.runtime import user_code, words

P = TypeVar("P", bound=Plugin)

ENTRY_POINTS = "kemu.scheduler.plugins"
"""Group of entry points under which packages offer plugins. ``module:Class`` in place of a name works as well."""

EXTENDER = "Extender"
"""The plugin name under which rejections by extenders count; every event may help them."""

_MAX_TOTAL_SCORE = 2**63 - 1


class Profile:
    """The plugins of one scheduler name, in order."""

    def __init__(
        self,
        configuration: ProfileConfiguration,
        handle: Handle,
        registry: Registry,
        last_filters: Sequence[FilterPlugin] = (),
    ) -> None:
        """``last_filters`` are asked after those of the configuration. Raises :class:`ConfigurationError`."""
        self.scheduler_name = configuration.scheduler_name
        self.percentage_of_nodes_to_score = configuration.percentage_of_nodes_to_score
        self.handle = handle
        resolved = _Resolver(configuration, handle, registry)
        self.plugins: dict[str, Plugin] = resolved.made
        """All plugins that take part in some extension point, by name."""
        self.pre_enqueue: list[PreEnqueuePlugin] = _acting(resolved.at("preEnqueue", PreEnqueuePlugin))
        queue_sort = resolved.at("queueSort", QueueSortPlugin)
        if len(queue_sort) != 1:
            names = ", ".join(plugin.name for plugin in queue_sort) or "none"
            raise ConfigurationError(f"{configuration.path}.plugins.queueSort", f"exactly one is needed, not {names}")
        self.queue_sort: QueueSortPlugin = queue_sort[0]
        filters, self.filter_failure = _filters(resolved)
        """``filter_failure``: a place, and the error of the filter there on nodes that passed the filters before it."""
        self.plugins.update((plugin.name, plugin) for plugin in last_filters)
        self.post_filters: list[PostFilterPlugin] = resolved.at("postFilter", PostFilterPlugin)
        self._order_victims(resolved, configuration.path)
        scorers, self.score_failure = _scorers(resolved)
        """``score_failure``: the error of scoring, if it always fails."""
        if sum(resolved.weights.get(name, 1) for name in resolved.made) > _MAX_TOTAL_SCORE // MAX_SCORE:
            raise ConfigurationError(f"{configuration.path}.plugins.score", "the total score of a node could overflow")
        # A plugin of module:Class has another name than the one it is configured by.
        configured_as = {plugin: name for name, plugin in resolved.made.items()}
        weights = [resolved.weights.get(configured_as[plugin], 1) for plugin in scorers]
        self.line_up = LineUp([*filters, *last_filters], scorers, weights)
        self.signer: signatures.Signer | None = None
        """None: results are never reused."""
        if configuration.batches and not configuration.extended:
            self.signer = signatures.signer_of([*_signing(resolved), *last_filters])
        self.reserve: list[ReservePlugin] = _acting(resolved.at("reserve", ReservePlugin))
        self.permit: list[PermitPlugin] = resolved.at("permit", PermitPlugin)
        self.pre_bind: list[PreBindPlugin] = _acting(resolved.at("preBind", PreBindPlugin))
        self.bind: list[BindPlugin] = resolved.at("bind", BindPlugin)
        self.post_bind: list[PostBindPlugin] = resolved.at("postBind", PostBindPlugin)
        if not self.bind:
            raise ConfigurationError(f"{configuration.path}.plugins.bind", "at least one plugin is needed")
        self.hints: dict[Event, dict[str, Hint | None]] = {event: {} for event in Event}
        """For each event, the plugins that registered it, with their hints."""
        for plugin in self.plugins.values():
            if isinstance(plugin, PreEnqueuePlugin | FilterPlugin | ReservePlugin | PermitPlugin):
                wanted = dict(plugin.events())
                if Event.NODE_ADD in wanted:
                    # Upstream's fix of its issue 109437: plugins that register new nodes also get changes of taints.
                    wanted.setdefault(Event.NODE_TAINTS, None)
                for event, hint in wanted.items():
                    self.hints[event][plugin.name] = hint
        if configuration.extended:
            for hints in self.hints.values():
                hints[EXTENDER] = None

    def _order_victims(self, resolved: _Resolver, path: str) -> None:
        """Tell those who preempt of the plugin that orders victims. Raises :class:`ConfigurationError`."""
        orders = resolved.at("victimOrder", VictimOrderPlugin)
        if not orders:
            return
        place = f"{path}.plugins.multiPoint"
        if len(orders) > 1:
            raise ConfigurationError(place, f"{' and '.join(one.name for one in orders)} both order victims")
        try:
            followers = [one for one in self.post_filters if one.order_victims(orders[0])]
            if not followers:
                raise ConfigurationError(
                    place, f"{orders[0].name} orders victims, but DefaultPreemption is not enabled"
                )
        except ArgumentError as error:
            raise ConfigurationError(place, f"{orders[0].name} {error.message}") from None

    def post_filter(self, diagnosis: Diagnosis) -> PostFilterResult:
        """Ask until a plugin makes room or fails; what the others say is joined (``RunPostFilterPlugins``)."""
        found = PostFilterResult()
        for plugin in self.post_filters:
            try:
                result = plugin.post_filter(diagnosis)
            except answers.InvalidAnswer as wrong_order:  # of the plugin that orders victims
                result = PostFilterResult(message=wrong_order.status.message, failed=True)
            if not isinstance(result, PostFilterResult):
                wrong = answers.status_of("post_filter", result, "a PostFilterResult").message
                result = PostFilterResult(message=f'running PostFilter plugin "{plugin.name}": {wrong}', failed=True)
            efforts, write = (*found.efforts, *result.efforts), found.write or result.write
            if result.node or result.failed:
                return dataclasses.replace(result, efforts=efforts, write=write, before=found.message)
            node = found.node if result.node is None else result.node
            found = PostFilterResult(node, results.joined(found.message, result.message), efforts=efforts, write=write)
        return found

    def unreserve(self, cycle: Cycle, node: str) -> None:
        """Take back what Reserve plugins claimed, in reverse order (``RunReservePluginsUnreserve``)."""
        for plugin in reversed(self.reserve):
            plugin.unreserve(cycle, node)


def _acting(plugins: list[P]) -> list[P]:
    return [one for one in plugins if not one.is_idle]


def _filters(resolved: _Resolver) -> tuple[list[FilterPlugin], tuple[int, Status] | None]:
    """PreFilter and Filter in one list, in the order of Filter; those of PreFilter alone last."""
    pre_filters = resolved.at("preFilter", FilterPlugin, half_plugins.has_pre_filter)
    asked = resolved.at("filter", FilterPlugin)
    filters: list[FilterPlugin] = []
    failure: tuple[int, Status] | None = None
    for plugin in asked:
        if half_plugins.has_pre_filter(plugin) and plugin not in pre_filters:
            status = half_plugins.filter_failure(plugin)
            if status is not None:
                failure = failure or (len(filters), status)
                continue
            plugin.without_pre_filter()
        filters.append(plugin)
    # Of those that only leave notes for their Filter, PreFilter alone does nothing.
    alone = [
        plugin
        for plugin in pre_filters
        if plugin not in asked and (half_plugins.filter_failure(plugin) is None or isinstance(plugin, PostFilterPlugin))
    ]
    filters += [half_plugins.PreFilterAlone(plugin) for plugin in alone]
    return filters, failure


def _scorers(resolved: _Resolver) -> tuple[list[ScorePlugin], Status | None]:
    pre_scorers = resolved.at("preScore", ScorePlugin, half_plugins.has_pre_score)
    scorers = _acting(resolved.at("score", ScorePlugin))
    failing = (
        half_plugins.score_failure(plugin)
        for plugin in scorers
        if half_plugins.has_pre_score(plugin) and plugin not in pre_scorers
    )
    return scorers, next((status for status in failing if status is not None), None)


def _signing(resolved: _Resolver) -> list[Plugin]:
    """The plugins on which results depend: those of PreFilter, Filter, PreScore and Score."""
    found: list[Plugin] = []
    found += resolved.at("preFilter", FilterPlugin, half_plugins.has_pre_filter)
    found += resolved.at("filter", FilterPlugin)
    found += resolved.at("preScore", ScorePlugin, half_plugins.has_pre_score)
    found += resolved.at("score", ScorePlugin)
    return list(dict.fromkeys(found))


class _Resolver:
    def __init__(
        self,
        configuration: ProfileConfiguration,
        handle: Handle,
        registry: Registry,
    ) -> None:
        self._configuration = configuration
        self._handle = handle
        self._registry = registry
        self._path = configuration.path
        self.made: dict[str, Plugin] = {}
        self.weights: dict[str, int] = {}
        self._unused: dict[str, Plugin] = {}
        sets = configuration.plugins
        default = PluginSet(tuple(PluginRef(name, registry.weights.get(name, 0)) for name in registry.default))
        self._multi_point = _merged(default, sets.get("multiPoint", PluginSet()))
        self._check_multi_point(sets.get("multiPoint", PluginSet()))
        for name in configuration.arguments:
            self._check_known(name, configuration.argument_paths.get(name, f"{self._path}.pluginConfig"))
        self._weigh([*sets.get("score", PluginSet()).enabled, *self._multi_point])

    def _check_multi_point(self, own: PluginSet) -> None:
        for number, ref in enumerate(own.enabled):
            if ref.name in [other.name for other in own.enabled[:number]]:
                path = f"{self._path}.plugins.multiPoint.enabled[{number}]"
                raise ConfigurationError(path, f"plugin {ref.name!r} is enabled twice")

    def _weigh(self, refs: Sequence[PluginRef]) -> None:
        """A weight under ``score`` takes precedence; a weight of 0 is 1."""
        for ref in refs:
            self.weights.setdefault(ref.name, ref.weight or 1)

    def at(self, point: str, kind: type[P], takes_part: Callable[[Plugin], bool] | None = None) -> list[P]:
        """The plugins of an extension point, in order (``expandMultiPointPlugins``).

        Those take part that are of this kind and that ``takes_part`` admits.
        """

        def is_part(plugin: Plugin | None) -> TypeGuard[P]:
            return isinstance(plugin, kind) and (takes_part is None or takes_part(plugin))

        own = self._configuration.plugins.get(point)
        if own is None:
            there: list[P] = []
            for place in _places_of(self._multi_point_classes, cast(Hashable, kind)):
                part: Any
                name, part = self._multi_point_plugins[place]
                if takes_part is None or takes_part(part):
                    self.made[name] = part
                    there.append(part)
            return there
        for number, name in enumerate(own.disabled):
            if name != "*":
                self._check_known(name, f"{self._path}.plugins.{point}.disabled[{number}]")
        enabled = [ref.name for ref in own.enabled]
        from_multi_point: list[str] = []
        if "*" not in own.disabled:
            for name, plugin in self._multi_point_plugins:
                if is_part(plugin) and name not in own.disabled:
                    from_multi_point.append(name)
        for number, name in enumerate(enabled):
            path = f"{self._path}.plugins.{point}.enabled[{number}]"
            if name in enabled[:number]:
                raise ConfigurationError(path, f"plugin {name!r} is enabled twice")
            plugin = self._plugin(name, path)
            if not is_part(plugin) and point not in self._registry.inert.get(name, ()):
                raise ConfigurationError(path, f"plugin {name!r} does not take part in {point}")
        # Those named here that multiPoint has too come first, then the rest of multiPoint, then the others named here.
        order = [name for name in enabled if name in from_multi_point]
        order += [name for name in from_multi_point if name not in enabled]
        order += [name for name in enabled if name not in from_multi_point]
        found: list[P] = []
        for name in order:
            plugin = self._plugin(name, f"{self._path}.plugins.{point}")
            if is_part(plugin):
                found.append(plugin)
                self.made[name] = plugin
        return found

    @functools.cached_property
    def _multi_point_plugins(self) -> list[tuple[str, Plugin | None]]:
        path = f"{self._path}.plugins.multiPoint.enabled"
        own = self._configuration.plugins.get("multiPoint", PluginSet()).enabled
        paths = {ref.name: f"{path}[{number}]" for number, ref in enumerate(own)}
        return [(ref.name, self._plugin(ref.name, paths.get(ref.name, path))) for ref in self._multi_point]

    @functools.cached_property
    def _multi_point_classes(self) -> tuple[type, ...]:
        return tuple([type(plugin) for _, plugin in self._multi_point_plugins])

    def _plugin(self, name: str, path: str) -> Plugin | None:
        """The plugin of that name, made at its first use; None for an inert one."""
        plugin = self._unused.get(name)
        if plugin is not None:
            return plugin
        self._check_known(name, path)
        make = self._registry.factory(name)
        if make is None and name in self._registry.inert:
            return None
        make = make or _load(name, path)
        try:
            plugin = make(self._arguments(name), self._handle)
        except ArgumentError as error:
            place = self._configuration.argument_paths.get(name, f"{self._path}.pluginConfig[{name}].args")
            place = f"{place}.{error.path}" if error.path else path
            raise ConfigurationError(place, error.message, error.suggestion) from None
        self._unused[name] = plugin
        return plugin

    def _arguments(self, name: str) -> Mapping[str, Any]:
        given = self._configuration.arguments.get(name)
        if given is None:
            return arguments.defaults(name)
        return {key: value for key, value in given.items() if key not in ("apiVersion", "kind")}

    def _check_known(self, name: str, path: str) -> None:
        if self._registry.has(name) or ":" in name or name in _offered():
            return
        module, dot, class_name = name.rpartition(".")
        own = f"a class of your own is {module}:{class_name}" if dot else ""
        hint = (
            own
            or old.plugin_hint(name, self._configuration.path)
            or words.did_you_mean(name, self._registry.names, '"')
        )
        raise ConfigurationError(path, f"there is no plugin {name!r}", hint)


@functools.lru_cache(maxsize=1024)
def _places_of(classes: tuple[type, ...], kind: Any) -> tuple[int, ...]:
    """Where the plugins of this kind stand: to ask each plugin is slow, and most profiles have the same ones."""
    return tuple([place for place, one in enumerate(classes) if issubclass(one, kind)])


def _merged(default: PluginSet, custom: PluginSet) -> list[PluginRef]:
    """The default plugins without the disabled ones, replaced in place where configured again, then the new ones."""
    by_name = {ref.name: ref for ref in custom.enabled}
    kept = [] if "*" in custom.disabled else [ref for ref in default.enabled if ref.name not in custom.disabled]
    merged = [by_name.pop(ref.name, ref) for ref in kept]
    return [*merged, *by_name.values()]


def _offered() -> dict[str, Any]:
    """Entry points by name."""
    # Imported on use: it takes a tenth of the time that a command needs to start.
    from importlib import metadata

    return {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINTS)}


def _load(name: str, path: str) -> Factory:
    """A plugin from outside: by entry point, or as ``module:Class``."""
    try:
        if ":" in name:
            loaded = user_code.load(name)
        else:
            loaded = _offered()[name].load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(path, f"plugin {name!r} cannot be loaded: {error}") from None
    if not (isinstance(loaded, type) and issubclass(loaded, Plugin)):
        raise ConfigurationError(
            path, f"{name!r} is not a plugin: a subclass of kemu.emulated.scheduler.framework.Plugin is"
        )
    for method, base in _CALLED.items():
        called = any(
            method in vars(each) for each in loaded.__mro__ if each.__module__.startswith("kemu.emulated.scheduler.")
        )
        if hasattr(loaded, method) and not called:
            text = f"{name!r} has the method {method}, but is no {base.__name__}: nobody would call it"
            raise ConfigurationError(path, text, f"derive it from {base.__name__}, or rename the method")
    return loaded


_CALLED: dict[str, type[Plugin]] = {
    "pre_enqueue": PreEnqueuePlugin,
    "pre_filter": NodeFilterPlugin,
    "filter": NodeFilterPlugin,
    "post_filter": PostFilterPlugin,
    "may_preempt": VictimOrderPlugin,
    "importance": VictimOrderPlugin,
    "cost": VictimOrderPlugin,
    "sort_key": QueueSortPlugin,
    "score": NodeScorePlugin,
    "reserve": ReservePlugin,
    "unreserve": ReservePlugin,
    "permit": PermitPlugin,
    "pre_bind": PreBindPlugin,
    "post_bind": PostBindPlugin,
}
"""The simplest base class whose method of this name is called. Without one a plugin would do nothing there, and nobody
would notice."""

"""A ``KubeSchedulerConfiguration`` (kubescheduler.config.k8s.io/v1), checked, with its defaults.

Every mistake gets its path in the document. What the configuration says of plugins is resolved in
:mod:`kemu.scheduler.profiles`; fields that make no difference here (leader election, client connection, …) are
accepted.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.errors import KemuError

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER = "default-scheduler"

_WITHOUT_EFFECT = (
    "leaderElection",
    "clientConnection",
    "enableProfiling",
    "enableContentionProfiling",
    "healthzBindAddress",
    "metricsBindAddress",
    "delayCacheUntilActive",
)
_POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "multiPoint",
)

_PAIRED = {"preFilter": "filter", "preScore": "score"}
"""A plugin takes part in both of a pair or in none."""


class ConfigurationError(KemuError, ValueError):
    """A mistake in a scheduler's configuration. ``path`` leads to it from the top of the configuration."""

    def __init__(self, path: str, message: str, suggestion: str = "") -> None:
        hint = f" ({suggestion})" if suggestion else ""
        super().__init__(f"{path}: {message}{hint}")
        self.path = path
        self.message = message
        self.suggestion = suggestion


@dataclass(frozen=True, slots=True)
class PluginRef:
    name: str
    weight: int = 0
    """0: not given."""


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What a profile says about one extension point."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[str, ...] = ()
    """Names; ``*`` is all."""


@dataclass(frozen=True, slots=True)
class ProfileConfiguration:
    scheduler_name: str = DEFAULT_SCHEDULER
    percentage_of_nodes_to_score: int | None = None
    plugins: Mapping[str, PluginSet] = field(default_factory=dict)
    """By extension point, ``multiPoint`` among them."""
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By plugin name."""
    path: str = "profiles[0]"


@dataclass(frozen=True, slots=True)
class Configuration:
    profiles: tuple[ProfileConfiguration, ...]
    percentage_of_nodes_to_score: int = 0
    """0: adaptive."""
    initial_backoff_s: float = 1.0
    max_backoff_s: float = 10.0
    parallelism: int = 16
    """How many victims of one preemption are told to go at the same time."""
    pops_from_backoff: bool = True
    """Feature gate SchedulerPopFromBackoffQ."""


def configuration_of(data: Mapping[str, Any], default_name: str = DEFAULT_SCHEDULER) -> Configuration:
    """Read a configuration; an empty one is the default. Raises :class:`ConfigurationError`.

    ``default_name`` serves profiles that name no scheduler. ``featureGates`` may stand in the document, although
    kube-scheduler takes them from its command line.
    """
    known: dict[str, Callable[[Any, str], Any]] = {
        "apiVersion": _constant(API_VERSION),
        "kind": _constant(KIND),
        "profiles": _list,
        "percentageOfNodesToScore": _whole(0, 100),
        "podInitialBackoffSeconds": _whole(1, None),
        "podMaxBackoffSeconds": _whole(1, None),
        "parallelism": _whole(1, None),
        "featureGates": _mapping,
        "extenders": _no_extenders,
        **dict.fromkeys(_WITHOUT_EFFECT, lambda value, path: value),
    }
    fields = _fields(data, "", known)
    profiles = [
        profile_of(entry, f"profiles[{number}]", default_name)
        for number, entry in enumerate(fields.get("profiles") or [{}])
    ]
    names = [profile.scheduler_name for profile in profiles]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ConfigurationError(f"profiles[{number}].schedulerName", f"{name!r} has a profile already")
    initial, longest = fields.get("podInitialBackoffSeconds", 1), fields.get("podMaxBackoffSeconds", 10)
    if longest < initial:
        raise ConfigurationError("podMaxBackoffSeconds", f"must not be below podInitialBackoffSeconds ({initial})")
    gates = _fields(fields.get("featureGates") or {}, "featureGates", {"SchedulerPopFromBackoffQ": _boolean})
    return Configuration(
        profiles=tuple(profiles),
        percentage_of_nodes_to_score=fields.get("percentageOfNodesToScore", 0),
        initial_backoff_s=float(initial),
        max_backoff_s=float(longest),
        parallelism=fields.get("parallelism", 16),
        pops_from_backoff=gates.get("SchedulerPopFromBackoffQ", True),
    )


def profile_of(data: Any, path: str, default_name: str = DEFAULT_SCHEDULER) -> ProfileConfiguration:
    """One element of ``profiles``."""
    fields = _fields(
        data,
        path,
        {
            "schedulerName": _text,
            "percentageOfNodesToScore": _whole(0, 100),
            "plugins": _mapping,
            "pluginConfig": _list,
        },
    )
    plugins = {
        point: _plugin_set(entry, f"{path}.plugins.{point}")
        for point, entry in _fields(
            fields.get("plugins") or {}, f"{path}.plugins", dict.fromkeys(_POINTS, _mapping)
        ).items()
    }
    for point, other in _PAIRED.items():
        if point in plugins:
            raise ConfigurationError(f"{path}.plugins.{point}", f"cannot be set apart from {other}")
    arguments: dict[str, Mapping[str, Any]] = {}
    for number, entry in enumerate(fields.get("pluginConfig") or []):
        place = f"{path}.pluginConfig[{number}]"
        one = _fields(entry, place, {"name": _text, "args": _mapping})
        name = one.get("name", "")
        if not name:
            raise ConfigurationError(f"{place}.name", "a plugin must be named")
        if name in arguments:
            raise ConfigurationError(place, f"repeated configuration of plugin {name!r}")
        arguments[name] = one.get("args") or {}
    return ProfileConfiguration(
        scheduler_name=fields.get("schedulerName") or default_name,
        percentage_of_nodes_to_score=fields.get("percentageOfNodesToScore"),
        plugins=plugins,
        arguments=arguments,
        path=path,
    )


def _plugin_set(data: Any, path: str) -> PluginSet:
    fields = _fields(data, path, {"enabled": _list, "disabled": _list})
    enabled, disabled = [], []
    for number, entry in enumerate(fields.get("enabled") or []):
        place = f"{path}.enabled[{number}]"
        one = _fields(entry, place, {"name": _text, "weight": _whole(0, None)})
        if not one.get("name"):
            raise ConfigurationError(f"{place}.name", "a plugin must be named")
        enabled.append(PluginRef(one["name"], one.get("weight", 0)))
    for number, entry in enumerate(fields.get("disabled") or []):
        place = f"{path}.disabled[{number}]"
        one = _fields(entry, place, {"name": _text, "weight": _whole(0, None)})
        if not one.get("name"):
            raise ConfigurationError(f"{place}.name", "a plugin must be named, or *")
        disabled.append(one["name"])
    return PluginSet(tuple(enabled), tuple(disabled))


# Kinds of values ----------------------------------------------------------------------------------------------------


def check_keys(data: Mapping[str, Any], path: str, known: Iterable[str]) -> None:
    """Raise :class:`ConfigurationError` for the first key that is not known."""
    names = list(known)
    for key in data:
        if key not in names:
            close = difflib.get_close_matches(str(key), names, 1)
            place = f"{path}.{key}" if path else str(key)
            suggestion = f'did you mean "{close[0]}"?' if close else ""
            raise ConfigurationError(place, "unknown field", suggestion)


def _fields(data: Any, path: str, known: Mapping[str, Callable[[Any, str], Any]]) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise ConfigurationError(path or "configuration", f"must be a mapping, not {type(data).__name__}")
    check_keys(data, path, known)
    return {
        key: known[key](value, f"{path}.{key}" if path else str(key))
        for key, value in data.items()
        if value is not None
    }


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(path, f"must be text: {value!r}")
    return value


def _boolean(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(path, f"must be true or false: {value!r}")
    return value


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ConfigurationError(path, "must be a list")
    return list(value)


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(path, "must be a mapping")
    return value


def _constant(expected: str) -> Callable[[Any, str], str]:
    def check(value: Any, path: str) -> str:
        if value != expected:
            raise ConfigurationError(path, f"must be {expected!r}, not {value!r}")
        return expected

    return check


def _whole(lowest: int, highest: int | None) -> Callable[[Any, str], int]:
    def check(value: Any, path: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
            raise ConfigurationError(path, f"must be a whole number of at least {lowest}: {value!r}")
        if highest is not None and value > highest:
            raise ConfigurationError(path, f"must be at most {highest}: {value!r}")
        return value

    return check


def _no_extenders(value: Any, path: str) -> Any:
    if value:
        raise ConfigurationError(path, "extenders are not supported")
    return value

"""A ``KubeSchedulerConfiguration`` (kubescheduler.config.k8s.io/v1), checked, with its defaults.

Every mistake is reported with its path in the document: what ``pkg/scheduler/apis/config/validation`` refuses, and what
kemu does not support. Arguments of plugins are checked in :mod:`kemu.emulated.scheduler.configuration.arguments`; which
plugins take part where is resolved in :mod:`kemu.emulated.scheduler.cycle.profiles`. Which fields act, cannot matter or
are refused in scenarios is listed in :mod:`kemu.emulated.objects.fields.scheduler_configuration`;
docs/scheduler-configuration.md explains them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kemu.emulated.client import elections
from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.plain import Json
from kemu.emulated.scheduler.configuration import arguments, fields, old
from kemu.emulated.scheduler.configuration.fields import API_VERSION as API_VERSION
from kemu.emulated.scheduler.configuration.fields import ConfigurationError as ConfigurationError

KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER = "default-scheduler"

LEASE = "kube-scheduler"
"""For which schedulers are elected, unless they say another one."""

DEFAULT_EXTENDER_TIMEOUT_S = 5.0

_WHOLE = 100
"""Percent."""

ACTOR_PREFIX = "kemu://"
OUTSIDE_PREFIXES = ("grpc://", "grpcs://")
"""Outside prefixes of extenders that are no actors: the other end of a socket, without and with TLS."""

POINTS = (
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
"""Extension points, and ``multiPoint``, which stands for all of them."""

GROUP_GATES = {
    "GenericWorkload": "",
    "GangScheduling": "GenericWorkload",
    "TopologyAwareWorkloadScheduling": "GenericWorkload",
    "WorkloadAwarePreemption": "GangScheduling",
    "DRAWorkloadResourceClaims": "GenericWorkload",
}
"""The gates of groups of pods, each with the one that it needs."""
FEATURE_GATES = {
    "OpportunisticBatching": True,
    "SchedulerPopFromBackoffQ": True,
    "StorageCapacityScoring": False,
    **dict.fromkeys(GROUP_GATES, False),
}
"""Gates that make a difference, with their defaults."""
FIXED_GATES = {
    "SchedulerAsyncPreemption": True,
    "SchedulerQueueingHints": True,
    "NodeInclusionPolicyInPodTopologySpread": True,
    "MatchLabelKeysInPodAffinity": True,
    "MatchLabelKeysInPodTopologySpread": True,
    "MinDomainsInPodTopologySpread": True,
    "PodSchedulingReadiness": True,
    "PodDisruptionConditions": True,
    "InPlacePodVerticalScaling": True,
}
"""Gates whose feature kemu always has, as Kubernetes by default: they may be named, not switched."""

_LEADER_ELECTION = {
    "leaderElect": fields.boolean,
    "leaseDuration": fields.duration_s,
    "renewDeadline": fields.duration_s,
    "retryPeriod": fields.duration_s,
    "resourceLock": fields.constant("leases"),
    "resourceName": fields.text,
    "resourceNamespace": fields.text,
}
_CLIENT_CONNECTION = {
    "kubeconfig": fields.text,
    "acceptContentTypes": fields.text,
    "contentType": fields.text,
    "qps": fields.number,
    "burst": fields.whole(0, None),
}
_WITHOUT_EFFECT: dict[str, fields.Check] = {
    "enableProfiling": fields.boolean,
    "enableContentionProfiling": fields.boolean,
    "healthzBindAddress": fields.text,
    "metricsBindAddress": fields.text,
}
_TLS = {
    "insecure": fields.boolean,
    **dict.fromkeys(
        ("serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"),
        fields.text,
    ),
}
_PROFILE: dict[str, fields.Check] = {
    "schedulerName": fields.text,
    "percentageOfNodesToScore": fields.whole(0, 100),
    "plugins": fields.mapping,
    "pluginConfig": fields.entries,
}
_EXTENDER: dict[str, fields.Check] = {
    **dict.fromkeys(("urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "bindVerb"), fields.text),
    "weight": fields.whole(None, None),
    "enableHTTPS": fields.boolean,
    "tlsConfig": fields.record(_TLS),
    "httpTimeout": fields.duration_s,
    "nodeCacheCapable": fields.boolean,
    "managedResources": fields.entries,
    "ignorable": fields.boolean,
}
_CONFIGURATION: dict[str, fields.Check] = {
    "apiVersion": fields.constant(API_VERSION),
    "kind": fields.constant(KIND),
    "profiles": fields.entries,
    "percentageOfNodesToScore": fields.whole(0, 100),
    "podInitialBackoffSeconds": fields.whole(1, None),
    "podMaxBackoffSeconds": fields.whole(1, None),
    "parallelism": fields.whole(1, None),
    "featureGates": fields.mapping,
    "extenders": fields.entries,
    "leaderElection": fields.record(_LEADER_ELECTION),
    "delayCacheUntilActive": fields.boolean,
    "clientConnection": fields.record(_CLIENT_CONNECTION),
    **_WITHOUT_EFFECT,
}


def field_paths() -> list[str]:
    """Every field that may be set, by path; ``[]`` stands for every item of a list. Plugin arguments are left out."""
    below: dict[str, Iterable[str]] = {
        "profiles[]": _PROFILE,
        "extenders[]": _EXTENDER,
        "featureGates": FEATURE_GATES | FIXED_GATES,
        "leaderElection": _LEADER_ELECTION,
        "clientConnection": _CLIENT_CONNECTION,
    }
    whole = {name.removesuffix("[]") for name in below}
    paths = [name for name in _CONFIGURATION if name not in whole]
    return paths + [f"{name}.{key}" for name, keys in below.items() for key in keys]


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
    """By plugin name; those of plugins in the tree are complete."""
    argument_paths: Mapping[str, str] = field(default_factory=dict)
    """Where they stand, by plugin name."""
    path: str = "profiles[0]"
    extended: bool = False
    """Whether there are extenders: any event may help a pod that they rejected."""
    batches: bool = True
    """Feature gate OpportunisticBatching."""


@dataclass(frozen=True, slots=True)
class ExtenderConfiguration:
    """One element of ``extenders``. A verb switches a call on; its text is ignored, because gRPC has methods."""

    url_prefix: str
    """``kemu://extender/NAME``, an actor, or ``grpc://host:port``."""
    filters: bool = False
    prioritizes: bool = False
    preempts: bool = False
    binds: bool = False
    weight: int = 0
    timeout_s: float = DEFAULT_EXTENDER_TIMEOUT_S
    node_cache_capable: bool = False
    """It receives names of nodes instead of nodes."""
    managed_resources: tuple[str, ...] = ()
    """It is asked only about pods that request one of these; empty: about all pods."""
    ignorable: bool = False
    """If it fails, the attempt goes on without it."""

    @property
    def peer(self) -> str:
        """What to dial."""
        return self.url_prefix.removeprefix(ACTOR_PREFIX)


@dataclass(frozen=True, slots=True)
class Configuration:
    profiles: tuple[ProfileConfiguration, ...]
    percentage_of_nodes_to_score: int = 0
    """0: adaptive."""
    initial_backoff_s: float = 1.0
    max_backoff_s: float = 10.0
    parallelism: int = 16
    """How many victims of one preemption are evicted at the same time."""
    pops_from_backoff: bool = True
    """Feature gate SchedulerPopFromBackoffQ."""
    extenders: tuple[ExtenderConfiguration, ...] = ()
    """In the order in which they are asked: the ignorable ones last."""
    election: elections.Settings | None = None
    """None: every replica works."""
    groups: frozenset[str] = frozenset()
    """Those of :data:`GROUP_GATES` that are on. Empty: pods are scheduled one by one."""
    delays_cache: bool = False
    """``delayCacheUntilActive``: its informers begin when it leads."""


def configuration_of(
    data: Mapping[str, Any], default_name: str = DEFAULT_SCHEDULER, *, caps_percentages: bool = False
) -> Configuration:
    """Read a configuration; an empty one is the default. Raises :class:`ConfigurationError`.

    ``default_name`` serves profiles that name no scheduler. ``featureGates`` may stand in the document, although
    kube-scheduler takes them from its command line. ``caps_percentages``: a percentageOfNodesToScore above 100 acts as
    100, instead of being refused.
    """
    old.refuse(data)
    if caps_percentages:
        data = _capped(data)
    found = fields.read(data, "", _CONFIGURATION)
    gates = _feature_gates(found.get("featureGates", {}))
    groups = frozenset(name for name in GROUP_GATES if gates[name])
    extenders, ignored = _extenders(found.get("extenders", []))
    profiles = [
        profile_of(entry, f"profiles[{number}]", default_name, gates, ignored, extended=bool(extenders))
        for number, entry in enumerate(found.get("profiles") or [{}])
    ]
    _check_profiles(profiles)
    initial, longest = found.get("podInitialBackoffSeconds", 1), found.get("podMaxBackoffSeconds", 10)
    if longest < initial:
        raise ConfigurationError("podMaxBackoffSeconds", f"must not be below podInitialBackoffSeconds ({initial})")
    return Configuration(
        profiles=tuple(profiles),
        percentage_of_nodes_to_score=found.get("percentageOfNodesToScore", 0),
        initial_backoff_s=float(initial),
        max_backoff_s=float(longest),
        parallelism=found.get("parallelism", 16),
        pops_from_backoff=gates["SchedulerPopFromBackoffQ"],
        extenders=extenders,
        groups=groups,
        election=_election(found.get("leaderElection")),
        delays_cache=found.get("delayCacheUntilActive", False),
    )


def _capped(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document with no percentageOfNodesToScore above 100; what is wrong otherwise is left to the checks."""
    key = "percentageOfNodesToScore"

    def capped(one: Json) -> Json:
        value = one.get(key) if isinstance(one, Mapping) else None
        above = isinstance(value, int) and not isinstance(value, bool) and value > _WHOLE
        return {**one, key: _WHOLE} if above and isinstance(one, Mapping) else one

    whole = cast(Mapping[str, Any], capped(data))
    entries = whole.get("profiles") if isinstance(whole, Mapping) else None
    return {**whole, "profiles": [capped(one) for one in entries]} if isinstance(entries, list | tuple) else whole


def _election(found: Mapping[str, Any] | None) -> elections.Settings | None:
    """With the defaults of Kubernetes, but for a document that does not speak of it: there is none."""
    if found is None or not found.get("leaderElect", True):
        return None
    settings = elections.Settings(
        found.get("resourceName") or LEASE,
        found.get("resourceNamespace") or "kube-system",
        found.get("leaseDuration") or elections.DEFAULT_LEASE_S,
        found.get("renewDeadline") or elections.DEFAULT_DEADLINE_S,
        found.get("retryPeriod") or elections.DEFAULT_RETRY_S,
    )
    if mistake := settings.mistake():
        raise ConfigurationError(f"leaderElection.{mistake[0]}", mistake[1])
    return settings


def _feature_gates(data: Mapping[str, Any]) -> dict[str, bool]:
    known = FEATURE_GATES | FIXED_GATES
    given = fields.read(data, "featureGates", dict.fromkeys(known, fields.boolean))
    for name, value in given.items():
        if name in FIXED_GATES and value is not FIXED_GATES[name]:
            raise ConfigurationError(f"featureGates.{name}", f"is always {str(FIXED_GATES[name]).lower()} here")
    gates = known | given
    for name, needed in GROUP_GATES.items():
        if gates[name] and needed and not gates[needed]:
            raise ConfigurationError(f"featureGates.{name}", f"needs the feature gate {needed}")
    return gates


# Profiles -----------------------------------------------------------------------------------------------------------


def profile_of(
    data: Json,
    path: str,
    default_name: str = DEFAULT_SCHEDULER,
    gates: Mapping[str, bool] = FEATURE_GATES,
    ignored_resources: Sequence[str] = (),
    *,
    extended: bool = False,
) -> ProfileConfiguration:
    """One element of ``profiles``.

    ``ignored_resources`` of extenders replace those in the arguments of NodeResourcesFit.
    """
    found = fields.read(data, path, _PROFILE)
    plugins = {
        point: _plugin_set(entry, f"{path}.plugins.{point}")
        for point, entry in fields.read(
            found.get("plugins", {}), f"{path}.plugins", dict.fromkeys(POINTS, fields.mapping)
        ).items()
    }
    made: dict[str, Mapping[str, Any]] = {}
    paths: dict[str, str] = {}
    for number, entry in enumerate(found.get("pluginConfig", [])):
        place = f"{path}.pluginConfig[{number}]"
        one = fields.read(entry, place, {"name": fields.text, "args": fields.mapping})
        name = one.get("name", "")
        if not name:
            raise ConfigurationError(f"{place}.name", "a plugin must be named")
        if name in made:
            raise ConfigurationError(place, f"repeated configuration of plugin {name!r}")
        paths[name] = f"{place}.args"
        made[name] = one.get("args", {})
        if arguments.is_known(name):
            made[name] = arguments.checked(name, made[name], paths[name], gates)
    if ignored_resources:
        fit = made.get("NodeResourcesFit") or arguments.defaults("NodeResourcesFit")
        made["NodeResourcesFit"] = {**fit, "ignoredResources": list(ignored_resources)}
    return ProfileConfiguration(
        scheduler_name=found.get("schedulerName") or default_name,
        percentage_of_nodes_to_score=found.get("percentageOfNodesToScore"),
        plugins=plugins,
        arguments=made,
        argument_paths=paths,
        path=path,
        extended=extended,
        batches=gates.get("OpportunisticBatching", True),
    )


def _plugin_set(data: Json, path: str) -> PluginSet:
    found = fields.read(data, path, {"enabled": fields.entries, "disabled": fields.entries})
    enabled, disabled = [], []
    for number, entry in enumerate(found.get("enabled", [])):
        place = f"{path}.enabled[{number}]"
        one = fields.read(entry, place, {"name": fields.text, "weight": fields.whole(0, None)})
        if not one.get("name"):
            raise ConfigurationError(f"{place}.name", "a plugin must be named")
        enabled.append(PluginRef(one["name"], one.get("weight", 0)))
    for number, entry in enumerate(found.get("disabled", [])):
        place = f"{path}.disabled[{number}]"
        one = fields.read(entry, place, {"name": fields.text, "weight": fields.whole(0, None)})
        if not one.get("name"):
            raise ConfigurationError(f"{place}.name", "a plugin must be named, or *")
        disabled.append(one["name"])
    return PluginSet(tuple(enabled), tuple(disabled))


def _check_profiles(profiles: Sequence[ProfileConfiguration]) -> None:
    """Names must differ, and the queue sort must not, because there is one queue."""
    first = profiles[0].plugins.get("queueSort", PluginSet())
    if len(first.enabled) > 1:
        path = f"{profiles[0].path}.plugins.queueSort.enabled"
        raise ConfigurationError(path, f"only one queue sort plugin can be enabled, not {len(first.enabled)}")
    seen: list[str] = []
    for profile in profiles:
        if profile.scheduler_name in seen:
            message = f"{profile.scheduler_name!r} has a profile already"
            raise ConfigurationError(f"{profile.path}.schedulerName", message)
        seen.append(profile.scheduler_name)
        if profile.plugins.get("queueSort", PluginSet()) != first:
            raise ConfigurationError(f"{profile.path}.plugins.queueSort", "must be the same for all profiles")
        for ref in first.enabled:
            if profile.arguments.get(ref.name, {}) != profiles[0].arguments.get(ref.name, {}):
                path = profile.argument_paths.get(ref.name, f"{profile.path}.pluginConfig")
                raise ConfigurationError(path, "must be the same for all profiles, as those of every queue sort plugin")


# Extenders ----------------------------------------------------------------------------------------------------------


def _extenders(entries: Sequence[Any]) -> tuple[tuple[ExtenderConfiguration, ...], list[str]]:
    """The extenders in the order in which they are asked, and the resources that the scheduler itself ignores."""
    found: list[ExtenderConfiguration] = []
    managed: list[str] = []
    ignored: list[str] = []
    for number, entry in enumerate(entries):
        found.append(_extender(entry, f"extenders[{number}]", managed, ignored))
    binders = sum(extender.binds for extender in found)
    if binders > 1:
        raise ConfigurationError("extenders", f"only one extender can implement bind, not {binders}")
    return tuple(sorted(found, key=lambda extender: extender.ignorable)), ignored


def _extender(data: Json, path: str, managed: list[str], ignored: list[str]) -> ExtenderConfiguration:
    """``managed`` and ``ignored`` grow by the resources that this extender names."""
    found = fields.read(data, path, _EXTENDER)
    if found.get("prioritizeVerb") and found.get("weight", 0) <= 0:
        raise ConfigurationError(f"{path}.weight", f"must be positive with a prioritizeVerb: {found.get('weight', 0)}")
    resources = []
    for number, entry in enumerate(found.get("managedResources", [])):
        here = f"{path}.managedResources[{number}]"
        one = fields.read(entry, here, {"name": fields.text, "ignoredByScheduler": fields.boolean})
        name = one.get("name", "")
        problems = names.label_key(name)
        if problems or not requests.is_extended(name):
            reason = problems[0] if problems else "is not the name of an extended resource"
            raise ConfigurationError(f"{here}.name", f"{name!r}: {reason}")
        if name in managed:
            raise ConfigurationError(f"{here}.name", f"an extender manages {name!r} already")
        managed.append(name)
        resources.append(name)
        if one.get("ignoredByScheduler"):
            ignored.append(name)
    return ExtenderConfiguration(
        url_prefix=_address(found, path),
        filters=bool(found.get("filterVerb")),
        prioritizes=bool(found.get("prioritizeVerb")),
        preempts=bool(found.get("preemptVerb")),
        binds=bool(found.get("bindVerb")),
        weight=found.get("weight", 0),
        timeout_s=found.get("httpTimeout", 0.0) or DEFAULT_EXTENDER_TIMEOUT_S,
        node_cache_capable=found.get("nodeCacheCapable", False),
        managed_resources=tuple(resources),
        ignorable=found.get("ignorable", False),
    )


def _address(found: Mapping[str, Any], path: str) -> str:
    """Where the extender is. Actors are called without TLS, whatever is said of it."""
    url = str(found.get("urlPrefix", "")).rstrip("/")
    if re.fullmatch(rf"{ACTOR_PREFIX}extender/[a-z0-9]([-a-z0-9.]*[a-z0-9])?", url):
        return url
    if not re.fullmatch(r"grpcs?://([^\s/:\[\]]+|\[[0-9a-fA-F:.]+\]):[0-9]+", url):
        message = f"must be kemu://extender/NAME (an actor) or grpc://HOST:PORT: {url!r}"
        raise ConfigurationError(f"{path}.urlPrefix", message)
    secure = found.get("enableHTTPS", False) or url.startswith("grpcs://")
    if any(found.get("tlsConfig", {}).values()):
        message = "cannot be set: with enableHTTPS a server is verified against the roots that gRPC is told of"
        raise ConfigurationError(f"{path}.tlsConfig", f"{message} (GRPC_DEFAULT_SSL_ROOTS_FILE_PATH)")
    return f"grpcs://{url.partition('://')[2]}" if secure else url

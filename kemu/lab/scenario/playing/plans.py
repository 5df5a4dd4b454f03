"""From a scenario to the actors that play it.

Role: between :mod:`kemu.lab.scenario.scenarios` and the runner. Everything here is plain data, so that a cell can make
the actors in another process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kemu.emulated import variants
from kemu.emulated.autoscaler import clouds
from kemu.emulated.client import clients, limits, recorders
from kemu.emulated.controllers.settings import Controller
from kemu.emulated.kubelet.devices import drivers
from kemu.emulated.objects import identities
from kemu.emulated.objects.devices import claims
from kemu.emulated.objects.kinds import service_ranges
from kemu.emulated.scheduler.extenders import servers
from kemu.emulated.settings.declared import plain
from kemu.lab.scenario import expectations
from kemu.lab.scenario.format.clusters import Node
from kemu.lab.scenario.format.keys import controller_keys, timing_keys
from kemu.lab.scenario.loading import controllers as loading
from kemu.lab.scenario.loading.objects import volumes
from kemu.lab.scenario.playing import machines, workloads
from kemu.lab.scenario.playing import user as users
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import NodeGroup, Scenario
from kemu.runtime import user_code
from kemu.runtime.env import ActorSpec

STORE = "store"
USER = "user"
CLOUD_FACTORY = "kemu.emulated.autoscaler.clouds:Cloud"

STORE_FACTORY = "kemu.emulated.store.server:Store"
APISERVER_FACTORY = "kemu.emulated.apiserver.server:ApiServer"
SCHEDULER_FACTORY = "kemu.emulated.scheduler.scheduler:Scheduler"
EXTENDER_FACTORY = "kemu.emulated.scheduler.extenders.servers:ExtenderActor"
KUBELET_FACTORY = "kemu.emulated.kubelet.kubelet:Kubelet"


_OF_OTHERS = (controller_keys.RESCHEDULER, controller_keys.CLUSTER_AUTOSCALER, controller_keys.CSI_DRIVERS)
"""Controllers that are none of kube-controller-manager."""
_UNSTATED = limits.ClientConnection()
_NONE: dict[str, Any] = {}
_NO_PODS: list[bytes] = []
"""They are not changed: one for all kubelets."""


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What all kubelets of a kind may share: nobody changes it."""
    return settings if type(settings) is dict else dict(settings) or _NONE


def _spec(scenario: Scenario, name: str, factory: str, config: Mapping[str, Any]) -> ActorSpec:
    if scenario.ablate:
        config = {**config, variants.ABLATE_KEY: list(scenario.ablate)}
    return ActorSpec(name, factory, config)


def names(scenario: Scenario, beats: Heartbeats) -> list[str]:
    """Names of the actors that the scenario launches before its clock starts, but for its user."""
    specs = [*store(scenario), *apiservers(scenario), *extenders(scenario), *schedulers(scenario), *cloud(scenario)]
    specs += controllers(scenario, beats)
    return [spec.name for spec in specs] + [f"kubelet/{node.name}" for node in scenario.nodes]


def code(scenario: Scenario) -> list[str]:
    """What the processes of its actors may load by ``module:Class``: kemu's actors, and what the scenario names."""
    found = {STORE_FACTORY, APISERVER_FACTORY, SCHEDULER_FACTORY, EXTENDER_FACTORY, KUBELET_FACTORY, CLOUD_FACTORY}
    found.add(users.FACTORY)
    found.update(kind.factory for kind in controller_keys.KINDS.values())
    found.update(servers.BUILT_IN.values())
    for spec in (*schedulers(scenario), *extenders(scenario)):
        found.add(spec.factory)
        found.update(user_code.named_in(spec.config))
    servers_set = scenario.api_servers
    found.update(one["hook"] for one in (*servers_set.admission_hooks, *servers_set.conversion_hooks))
    return sorted(found)


def _bugs(scenario: Scenario, actors: str) -> dict[str, Any]:
    """The key of an actor's configuration, where there are any; for clients with that of their Watch streams."""
    found = variants.bugs_of(actors, scenario.bugs)
    config: dict[str, Any] = {variants.BUGS_KEY: found} if found else {}
    if actors != variants.APISERVER and scenario.streams != clients.SHARED:
        config["streams"] = scenario.streams
    return config


def _measured(scenario: Scenario) -> dict[str, bool]:
    """The key of the configuration of an actor that logs what metrics need."""
    return {"measured": True} if scenario.metrics else {}


def _limits(scenario: Scenario, stated: bool, rates: limits.Rates) -> dict[str, Any]:
    """The key of the configuration of an actor that may not send any number of requests."""
    acts = stated or scenario.timing.get(timing_keys.CLIENT_LIMITS) == timing_keys.KUBERNETES
    return {"limits": rates} if acts else {}


def _limits_of_scheduler(scenario: Scenario, config: Mapping[str, Any]) -> dict[str, Any]:
    stated = config.get("clientConnection") or {}
    connection = limits.ClientConnection(qps=stated.get("qps") or 0, burst=stated.get("burst") or 0)
    return _limits(scenario, connection != _UNSTATED, limits.of_scheduler(connection.rate.over(limits.SCHEDULER)))


def _limits_of_controller(scenario: Scenario, name: str, settings: Controller) -> dict[str, Any]:
    kind = controller_keys.KINDS[name]
    rate = (settings.client_connection or _UNSTATED).rate.over(kind.rate)
    rate = limits.Rate(rate.qps * kind.more[0], rate.burst * kind.more[1])
    return _limits(scenario, settings.client_connection is not None, limits.of_controller(rate))


def _limits_of_kubelet(scenario: Scenario, stated: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("kubeAPIQPS", "kubeAPIBurst", "eventRecordQPS", "eventBurst")
    found = [stated.get(key, default) for key, default in zip(keys, limits.KUBELET * 2, strict=True)]
    rates = limits.of_kubelet(limits.Rate(*found[:2]), limits.Rate(*found[2:]))
    return _limits(scenario, any(key in stated for key in keys), rates)


def store(scenario: Scenario) -> list[ActorSpec]:
    """None where a real etcd takes its place."""
    if scenario.store.etcd_address:
        return []
    return [_spec(scenario, STORE, STORE_FACTORY, dict(scenario.store.configuration()))]


def _rights(scenario: Scenario) -> dict[str, Any]:
    """Who may do what, beside what every cluster has. Schedulers of the user's own get all rights."""
    users = {name: one.rights() for name, one in scenario.users.items()}
    for one in scenario.schedulers:
        if one.factory:
            name = identities.of_actor(f"scheduler/{one.name}/0").name
            users.setdefault(name, {"groups": [], "roles": [{"role": "cluster-admin", "namespace": ""}]})
    return {"users": users} if users else {}


def gates(scenario: Scenario) -> list[str]:
    """Those of a scheduler that all others have then, too: PodGroups have claims of devices."""
    stated = [one.config.get("featureGates", {}) for one in scenario.schedulers if not one.factory]
    return [claims.GATE] if any(one.get(claims.GATE) for one in stated) else []


def service_ranges_of(scenario: Scenario) -> list[str]:
    """Of the addresses of Services; none: they follow from names."""
    has_controller = controller_keys.SERVICE_CIDR in scenario.controllers
    return scenario.api_servers.service_ranges or (list(service_ranges.USUAL) if has_controller else [])


def apiservers(scenario: Scenario) -> list[ActorSpec]:
    config: dict[str, Any] = {
        "store": STORE,
        **scenario.api_servers.configuration(),
        "lives": [workloads.plain_lives(each) for each in scenario.lives],
        **_rights(scenario),
        "service_time": scenario.timing.get("apiService"),
        **_measured(scenario),
        **_bugs(scenario, variants.APISERVER),
    }
    if ranges := service_ranges_of(scenario):
        config["service_ranges"] = ranges
    if on := gates(scenario):
        config["gates"] = on
    specs = []
    for n in range(scenario.api_servers.replicas):
        if scenario.store.etcd_address:
            # A real etcd writes no run log: the first API server does it, from what it watches.
            address = f"etcd://{scenario.store.etcd_address}"
            config = {**config, "store": address, "store_is_etcd": True, "record_store": n == 0}
        specs.append(_spec(scenario, f"apiserver/{n}", APISERVER_FACTORY, config))
    return specs


def apiserver_stages(scenario: Scenario) -> list[list[ActorSpec]]:
    """The one that records a real etcd has to find it empty, before the others write to it."""
    specs = apiservers(scenario)
    return [specs[:1], specs[1:]] if scenario.store.etcd_address and len(specs) > 1 else [specs]


def apiservers_of(scenario: Scenario, index: int) -> str | list[str]:
    """Clients are spread over the API servers in turn. The first one is where the client begins, the others are where
    it goes when that is lost; a plain name if there is only one."""
    count = scenario.api_servers.replicas
    names = [f"apiserver/{(index + n) % count}" for n in range(count)]
    return names if count > 1 else names[0]


def user(scenario: Scenario) -> list[ActorSpec]:
    return [users.spec(scenario, USER, apiservers_of(scenario, 0))]


def kubelet(scenario: Scenario, node: Node, index: int, beats: Heartbeats) -> ActorSpec:
    config: dict[str, Any] = {
        "node": node.data,
        "apiserver": apiservers_of(scenario, index),
        "kubelet": {name: value for name, value in node.kubelet.items() if name != "staticPods"} or _NONE,
        "staticPods": [pod.SerializeToString(deterministic=True) for pod in node.static_pods] or _NO_PODS,
        "timing": _plain(scenario.timing),
        "images": _plain(scenario.images),
        "usage": _plain(node.usage),
        "machine": _plain(node.machine),
        "policy": _plain(node.policy),
        "events": scenario.event_objects,
        "podStatuses": scenario.pod_statuses,
        "preemptsForAll": any(one.policy.get("preemptor") == "kubelet" for one in scenario.schedulers),
        "standing": beats.standing(node.name),
        "boot": {"id": machines.boot_id(scenario.seed, node.name, 0)},
        **({"programs": True} if scenario.programs else {}),
        **_bugs(scenario, variants.KUBELET),
        **_limits_of_kubelet(scenario, node.kubelet),
    }
    if scenario.storage is not None:
        config["storage"] = plain(scenario.storage.drivers)
        if volumes.may_grow(scenario.storage, scenario.setup, scenario.events):
            config["growingVolumes"] = True
    if scenario.devices:
        config["devices"] = list(node.devices)
        if gates(scenario):
            config["claimsOfGroups"] = True
    if scenario.references is not None:
        config["references"] = plain(scenario.references)
    return _spec(scenario, f"kubelet/{node.name}", KUBELET_FACTORY, config)


def kubelets(scenario: Scenario, beats: Heartbeats) -> list[ActorSpec]:
    return [kubelet(scenario, node, index, beats) for index, node in enumerate(scenario.nodes)]


def extenders(scenario: Scenario) -> list[ActorSpec]:
    specs = []
    for index, extender in enumerate(scenario.extenders):
        config = {
            "plugin": extender.plugin,
            "args": dict(extender.args),
            "apiserver": apiservers_of(scenario, index),
        }
        specs.append(_spec(scenario, f"extender/{extender.name}", EXTENDER_FACTORY, config))
    return specs


def schedulers(scenario: Scenario) -> list[ActorSpec]:
    specs: list[ActorSpec] = []
    for scheduler in scenario.schedulers:
        for replica in range(scheduler.replicas):
            config: dict[str, Any] = {
                "name": scheduler.name,
                "replica": replica,
                "apiserver": apiservers_of(scenario, len(specs)),
                "config": dict(scheduler.config),
            }
            if scheduler.factory:
                specs.append(ActorSpec(f"scheduler/{scheduler.name}/{replica}", scheduler.factory, config))
                continue
            if scenario.storage is not None:
                config["storage"] = True
            if scenario.devices:
                config["devices"] = True
            config |= {
                "policy": dict(scheduler.policy),
                "timing": dict(scenario.timing),
                "events": scenario.event_objects,
                **_bugs(scenario, variants.SCHEDULER),
                **_limits_of_scheduler(scenario, scheduler.config),
            }
            if "leaderElection" in scheduler.config:
                config["settles_ns"] = loading.settles_ns(scenario)
            if expectations.speaks_of_scores((*scenario.expectations, *filter(None, [scenario.until]))):
                config["scores"] = True
            specs.append(_spec(scenario, f"scheduler/{scheduler.name}/{replica}", SCHEDULER_FACTORY, config))
    return specs


def cloud(scenario: Scenario) -> list[ActorSpec]:
    """The provider of the machines that an autoscaler adds, if there is one."""
    if scenario.autoscaler is None:
        return []
    groups = [
        {**plain(group.settings), "initial": list(group.initial), "template": None}
        for group in scenario.autoscaler.groups
    ]
    return [_spec(scenario, clouds.NAME, CLOUD_FACTORY, {"groups": groups})]


def _autoscaler(scenario: Scenario) -> dict[str, Any]:
    """What its actor is told beside what all controllers are."""
    assert scenario.autoscaler is not None
    groups = [
        {
            "name": group.name,
            "min": group.settings.min,
            "max": group.settings.max,
            "price": group.settings.price,
            "template": group.template.message.SerializeToString(deterministic=True),
            **_slices(group),
        }
        for group in scenario.autoscaler.groups
    ]
    flags = dataclasses.replace(scenario.autoscaler.settings, node_groups=[])
    told = {"autoscaler": plain(flags), "groups": groups, "events": scenario.event_objects}
    return {**told, "devices": True} if scenario.devices else told


def _slices(group: NodeGroup) -> dict[str, list[bytes]]:
    """Of the nodes to come, as their drivers will publish them."""
    found = drivers.slices_of(group.template.name, group.template.devices)
    return {"slices": [one.SerializeToString(deterministic=True) for one in found]} if found else {}


def _lag(scenario: Scenario, name: str, settings: Controller) -> Any:
    """From what a controller hears until it acts; None: its own default."""
    if settings.lag is not None or name in _OF_OTHERS:
        return settings.lag
    return scenario.timing.get(timing_keys.CONTROLLER_LAG)


def controllers(scenario: Scenario, beats: Heartbeats) -> list[ActorSpec]:
    specs: list[ActorSpec] = []
    chosen = dict(scenario.controllers)
    rescheduled = [one for one in scenario.schedulers if one.policy.get("preemptor") == "rescheduler"]
    if rescheduled:
        chosen.setdefault(controller_keys.RESCHEDULER, Controller())
    if scenario.autoscaler is not None:
        chosen.setdefault(controller_keys.CLUSTER_AUTOSCALER, Controller())
    for name, settings in chosen.items():
        config: dict[str, Any] = {**_bugs(scenario, variants.CONTROLLERS), **_measured(scenario)}
        if own := plain(settings.own):
            config["settings"] = own
        if name in controller_keys.OF_DEVICES and gates(scenario):
            config["settings"] = {"feature_gates": {"dra_workload_resource_claims": True}}
        if (lag := _lag(scenario, name, settings)) is not None:
            config["lag"] = lag
        election = settings.election(name)
        if election is not None:
            config["election"] = {**dataclasses.asdict(election), "settles_ns": loading.settles_ns(scenario)}
        if name == controller_keys.RESCHEDULER:
            config["schedulers"] = [
                {"name": one.name, "config": dict(one.config), "policy": dict(one.policy)} for one in rescheduled
            ]
        if name == controller_keys.CLUSTER_AUTOSCALER:
            config |= _autoscaler(scenario)
        if name == controller_keys.KUEUE:
            config["settings"] = plain(scenario.queues)
        if name == controller_keys.DESCHEDULER:
            config |= {"settings": plain(scenario.descheduler), "events": scenario.event_objects}
        if (
            name in (*controller_keys.OF_VOLUMES, *controller_keys.OF_DEVICES)
            or scenario.event_objects != recorders.NOTABLE
        ):
            config["events"] = scenario.event_objects
        if name == controller_keys.CSI_DRIVERS:
            config["drivers"] = plain(scenario.storage.drivers) if scenario.storage else {}
        if (
            name == controller_keys.VOLUME_PROTECTION
            and scenario.storage is not None
            and volumes.may_have_attributes(scenario.storage, scenario.setup, scenario.events)
        ):
            config["attributes"] = True
        if name == controller_keys.RESOURCE_QUOTA and scenario.devices:
            config["devices"] = True
        if name == controller_keys.NODE_LIFECYCLE:
            config["settles_ns"] = loading.settles_ns(scenario)
            config["watch_ns"] = beats.watch_ns
        if settings.client_connection is not None:
            config["connection"] = dataclasses.asdict(settings.client_connection)
        config |= _limits_of_controller(scenario, name, settings)
        for actor in settings.actors(name):
            config = {**config, "apiserver": apiservers_of(scenario, len(specs))}
            specs.append(_spec(scenario, actor, controller_keys.KINDS[name].factory, config))
    return specs

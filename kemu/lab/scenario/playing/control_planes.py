"""The runtime ``real``: a scenario on real components of Kubernetes, and what it may not ask of them.

refuse(scenario, speed)              before anything starts
made = make(scenario, directory, recorder, writer.date)
made = make(…, guest_of(scenario, Cluster(kubeconfig)))      on a cluster that stands
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from kemu.emulated import variants
from kemu.emulated.apiserver.registry import bind_checks
from kemu.emulated.apiserver.settings import ApiServers
from kemu.emulated.bridge import tenants
from kemu.emulated.controllers.settings import Controller
from kemu.emulated.objects import resources
from kemu.emulated.real import components, control_planes, executables, guests, standing
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.store.settings import Store
from kemu.errors import KemuError
from kemu.lab.scenario import expectations
from kemu.lab.scenario.format.keys import controller_keys
from kemu.lab.scenario.loading import clusters
from kemu.lab.scenario.playing import plans
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import LogSink
from kemu.runtime.real import runtime

REAL = "real"
FOLDER = "control-plane"
"""Beside the disks of actors: certificates, configurations, data and logs of the components."""


@dataclass(frozen=True)
class Cluster:
    """One that stands, in which a run is a guest."""

    kubeconfig: Path
    context: str = ""


def refuse(scenario: Scenario, speed: float, *, find: bool = True, is_guest: bool = False) -> None:
    """Raises KemuError for everything that a real control plane cannot do and, if ``find``, for programs that are
    missing. ``is_guest``: the control plane is somebody else's."""
    problems = list(dict.fromkeys(_problems(scenario)))
    if is_guest:
        problems += _problems_of_guests(scenario)
    if speed not in (0.0, 1.0):
        problems.insert(0, f"speed {speed:g}: the time of real components is the machine's")
    if problems:
        raise KemuError(f"{scenario.name} asks for what --runtime real cannot do:\n  " + "\n  ".join(problems))
    if not find:
        return
    needed = [] if is_guest else ["etcd", "kube-apiserver"]
    needed += ["kube-scheduler"] if any(not one.factory for one in scenario.schedulers) else []
    needed += ["kube-controller-manager"] if scenario.controllers and not is_guest else []
    executables.find(*needed)


def guest_of(scenario: Scenario, cluster: Cluster) -> guests.Guest:
    """The run, once the cluster has nothing against it. Raises KemuError that says everything that it has."""
    made: list[Any] = [manifest.message for manifest in scenario.setup]
    made += [message for event in scenario.events for message in event.objects]
    found = [(resources.of(message), message.metadata.name) for message in made]
    everywhere = {("namespaces", name) for name in clusters.NAMESPACES}
    everywhere |= {("priorityclasses", name) for name in clusters.SYSTEM_PRIORITY_CLASSES}
    objects = [(kind.plural, name) for kind, name in found if not kind.namespaced and kind.plural != "nodes"]
    guest = guests.Guest(
        kubeconfig=str(cluster.kubeconfig),
        context=cluster.context,
        run=tenants.new_run(),
        nodes=[node.name for node in scenario.nodes],
        objects=[one for one in dict.fromkeys(objects) if one not in everywhere and one[0] != "namespaces"],
        creates=sorted({kind.plural for kind, _ in found} | {"pods"}),
        schedules=any(not one.factory for one in scenario.schedulers),
        goes_anywhere=_goes_anywhere(made, scenario),
    )
    guests.check(guest)
    return guest


def _goes_anywhere(made: Sequence[Any], scenario: Scenario) -> str:
    """What of the scenario tolerates the taints of foreign nodes; "": nothing."""
    templates = [workload.template for workload in scenario.workloads if workload.template is not None]
    for message in (*made, *templates):
        kind = type(message).__name__
        if kind == "DaemonSet" or _tolerates_all(message):
            return f"{kind} {message.metadata.name}"
    return ""


def _tolerates_all(message: Message) -> bool:
    for field, value in message.ListFields():
        for one in value if field.is_repeated else (value,):
            if isinstance(one, core_v1_pb2.Toleration) and not one.key:
                return True
            if isinstance(one, Message) and _tolerates_all(one):
                return True
    return False


def make(
    scenario: Scenario,
    directory: Path,
    sink: LogSink,
    on_date: Callable[[int], None],
    guest: guests.Guest | None = None,
) -> runtime.RealRuntime:
    """``directory``: for the disks of actors. ``on_date``: see :class:`kemu.runtime.real.runtime.RealRuntime`.
    ``guest``: of a cluster that stands; None: a control plane is started."""
    programs: runtime.Programs
    if guest is not None:
        schedulers = (name for name in _programs(scenario) if name.startswith(control_planes.SCHEDULER))
        programs = standing.StandingCluster(directory / FOLDER, guest, frozenset(schedulers))
    else:
        settings = control_planes.Settings(
            directory / FOLDER,
            _programs(scenario),
            scenario.store,
            scenario.api_servers,
            is_cut=any(fault.what in runtime.ON_LINKS for fault in scenario.chaos),
            gates=gates(scenario),
        )
        programs = control_planes.ControlPlane(settings)
    return runtime.RealRuntime(
        scenario.seed,
        sink,
        directory=directory,
        programs=programs,
        on_date=on_date,
        never_idle=bool(scenario.controllers) or guest is not None,
        timing=scenario.timing,
    )


def gates(scenario: Scenario) -> list[str]:
    """Those of groups of pods that a kube-scheduler has on, and the one that the Job controller's needs."""
    stated = [one.config.get("featureGates", {}) for one in scenario.schedulers if not one.factory]
    job = scenario.controllers.get(controller_keys.JOB)
    if job is not None and job.own.feature_gates.workload_with_job:
        stated.append({"GenericWorkload": True})
    return [gate for gate in configurations.GROUP_GATES if any(one.get(gate) for one in stated)]


def _programs(scenario: Scenario) -> list[str]:
    """The actors that are processes."""
    own = tuple(f"scheduler/{one.name}/" for one in scenario.schedulers if one.factory)
    names = plans.names(scenario, Heartbeats(scenario, REAL))
    kinds = (control_planes.STORE, control_planes.APISERVER, control_planes.SCHEDULER, control_planes.CONTROLLER)
    return [name for name in names if name.startswith(kinds) and not name.startswith(own or ("-",))]


def _problems(scenario: Scenario) -> Iterator[str]:
    code = "is of kemu's own components: a real one has no such switch"
    for key, names in (("ablate", scenario.ablate), ("bugs", scenario.bugs)):
        for name in names:
            if variants.VARIANTS[name].actors != variants.KUBELET:  # kubelets are kemu's own
                yield f"{key}: {name}: {code}"
    for stated, key, why in (
        (scenario.holds, "holds", "nobody decides when a message between processes arrives"),
        (scenario.extenders, "extenders", "kemu's extenders do not speak HTTP"),
        (scenario.autoscaler, "autoscaler", "no Cluster Autoscaler is started"),
        (scenario.descheduler, "descheduler", "no descheduler is started"),
        (scenario.queues, "queues", "no Kueue is started"),
        (scenario.storage, "storage", "no CSI drivers are started"),
        (scenario.users, "users", "no users with rights of their own are made"),
        (scenario.lives, "lives", "a real API server does not annotate pods"),
        (scenario.store.etcd, "store.etcd", "it starts an etcd of its own"),
        (scenario.store.segment_bytes, "store.segmentBytes", "etcd's log is not configured"),
    ):
        if stated:
            yield f"{key}: {why}"
    servers = scenario.api_servers
    for is_set, key in (
        (servers.cache_lag_ns, "cacheLag"),
        (servers.most_events, "mostEvents"),
        (servers.removed_betas, "removedBetas"),
        (servers.queue_length_limit is not None, "queueLengthLimit"),
        (servers.limited_resources, "limitedResources"),
        (servers.bind_check != bind_checks.NONE, "bindCheck"),
    ):
        if is_set:
            yield f"apiServers.{key}: {code}"
    yield from _problems_of_schedulers(scenario, code)
    for name, settings in scenario.controllers.items():
        if name not in components.CONTROLLERS:
            yield f"controllers.{name}: kube-controller-manager has no such controller"
        elif components.COMPANIONS.get(name) in scenario.controllers:
            other = components.COMPANIONS[name]
            yield f"controllers.{name}: beside {other} it cannot have a process of its own, which needs one"
        elif settings.lag is not None:
            yield f"controllers.{name}.lag: {code}"
    yield from _problems_of_faults(scenario)


def _problems_of_schedulers(scenario: Scenario, code: str) -> Iterator[str]:
    for one in scenario.schedulers:
        for key in one.policy:
            yield f"schedulers: {one.name}: policy.{key}: {code}"
        for profile in () if one.factory else one.config.get("profiles") or ():
            for point in (profile.get("plugins") or {}).values():
                for plugin in point.get("enabled") or ():
                    if ":" in plugin["name"]:
                        yield f"schedulers: {one.name}: plugin {plugin['name']}: kube-scheduler knows no Python"
    if expectations.speaks_of_scores((*scenario.expectations, *filter(None, [scenario.until]))):
        yield "expect: scored: kube-scheduler does not tell the scores of nodes"


def _problems_of_guests(scenario: Scenario) -> Iterator[str]:
    """What cannot be asked of a control plane that serves others, too."""
    if scenario.store != Store():
        yield "store: the cluster has its own"
    if scenario.api_servers != ApiServers():
        yield "apiServers: the cluster has its own"
    if scenario.devices:
        yield "devices: their classes and slices would be the whole cluster's"
    for name, settings in scenario.controllers.items():
        if settings != Controller():
            yield f"controllers.{name}: the cluster's own have the settings that they have"
    others = [name for name in _programs(scenario) if not name.startswith(control_planes.SCHEDULER)]
    for fault in scenario.chaos:
        where = fault.place or fault.id
        for pattern in fault.patterns():
            if any(fnmatch.fnmatchcase(name, pattern) for name in others) and fault.what in runtime.ON_PROCESSES:
                yield f"{where}: {fault.what}: {pattern} serves others, too"
            elif fault.what in runtime.ON_LINKS and pattern.startswith(control_planes.SCHEDULER):
                yield f"{where}: {fault.what}: no proxy stands between {pattern} and a cluster that stands"


def _problems_of_faults(scenario: Scenario) -> Iterator[str]:
    programs = _programs(scenario)
    for fault in scenario.chaos:
        where = fault.place or fault.id
        concerned = [name for name in programs for pattern in fault.patterns() if fnmatch.fnmatchcase(name, pattern)]
        if not concerned:
            continue
        if fault.what not in (*runtime.ON_LINKS, *runtime.ON_PROCESSES):
            yield f"{where}: {fault.what}: cannot be done to {concerned[0]}, which is a process of its own"
        elif "step" in fault.parameters:
            yield f"{where}: crash: step {fault.parameters['step']}: {concerned[0]} has no such steps"

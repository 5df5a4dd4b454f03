"""Which course a container takes from its start: how long it runs, how it ends, what it prints.

The rule, in this order:

* its ``command`` (or the ``args`` of an image that runs them) is one that :mod:`shells` understands: it does what the
  command does;
* the image, or the command, is a server that is known by name (:mod:`images`): it runs until it is stopped;
* anything else: init containers succeed at once; the containers of a pod with the restart policy Never or OnFailure are
  tasks, which succeed after :data:`TASK_S`; all others run until they are stopped.

Commands see the variables of their container (:mod:`environments`) and the files of its volumes: ``emptyDir`` and
claims last as long as the pod, ``hostPath`` as long as the kubelet. What ConfigMaps and Secrets hold is known to who
hands them over. :mod:`residents` carries out the programs of one kubelet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

from kemu.emulated.kubelet.programs import images, shells, tools
from kemu.emulated.kubelet.programs.environments import (
    NO_SOURCES,
    Sources,
    expanded,
    field_of,
    hostname,
    resource_of,
    variables_of,
)
from kemu.emulated.kubelet.programs.files import Files, Mount, Store, joined
from kemu.emulated.kubelet.programs.shells import Outcome, Process, Shell, World
from kemu.messages.k8s import core_v1_pb2

TASK_S = 3.0
"""How long a task runs that kemu does not understand."""
FOREVER = Outcome(None)
TASK = Outcome(TASK_S)

tools.TIMED.update(dict.fromkeys(images.SERVER_COMMANDS, images.server))
tools.TIMED[images.AGNHOST] = images.agnhost


@dataclass
class Volumes:
    """What a pod's containers share."""

    of_pod: dict[str, Store] = field(default_factory=dict)
    of_node: MutableMapping[str, Store] = field(default_factory=dict)
    """By path on the node."""


# Commands ------------------------------------------------------------------------------------------------------------


def command_of(
    pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, sources: Sources = NO_SOURCES
) -> list[str] | None:
    """What it runs, with the name of the program first; None: nobody knows."""
    name = images.name_of(container.image)
    command, args = list(container.command), list(container.args)
    if not command:
        if name == images.AGNHOST:
            command = ["/agnhost"]
        elif name in images.SHELLS:
            if not args:
                return ["pause"] if container.stdin else ["sh"]
            command, args = args, []
        elif name in images.SERVERS:
            first = args[0].rpartition("/")[2] if args else ""
            if first in tools.TOOLS or first in tools.TIMED:
                command, args = args, []
            else:
                return ["pause"]
        else:
            return None
    if not any("$" in word for word in (*command, *args)):
        return [*command, *args]
    variables, _, _ = variables_of(pod, container, sources)
    return [expanded(word, variables) for word in (*command, *args)]


def is_server(command: Sequence[str]) -> bool:
    """Whether its log is that of a server, which it does not make up."""
    return command[0].rpartition("/")[2] in images.SERVER_COMMANDS


# Files ---------------------------------------------------------------------------------------------------------------


def files_of(
    pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, volumes: Volumes, sources: Sources, own: Store | None = None
) -> Files:
    """``own``: what the container's own files were changed to."""
    by_name = {volume.name: volume for volume in pod.spec.volumes}
    mounts = []
    for mount in container.volumeMounts:
        volume = by_name.get(mount.name)
        unknown: set[str] = set()
        store = None if volume is None else _store(pod, container, volume, volumes, sources, unknown)
        kind = "" if volume is None else _kind(volume)
        is_read_only = mount.readOnly or kind in _READ_ONLY
        inside = _sub_path(pod, container, mount, sources)
        if inside and store is not None and not is_read_only:
            store.setdefault(inside, None)
        mounts.append(Mount(mount.mountPath.rstrip("/") or "/", store, is_read_only, frozenset(unknown), inside))
    read_only = container.securityContext.readOnlyRootFilesystem
    return Files(initial_files(pod, container) if own is None else own, mounts, read_only)


_READ_ONLY = ("configMap", "secret", "projected", "downwardAPI", "image")


def _sub_path(
    pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, mount: core_v1_pb2.VolumeMount, sources: Sources
) -> str:
    inside = mount.subPath
    if mount.subPathExpr:
        inside = expanded(mount.subPathExpr, variables_of(pod, container, sources)[0])
    return joined("/", inside) if inside.strip("/") else ""


def _kind(volume: core_v1_pb2.Volume) -> str:
    """The kind of its source."""
    return next((field.name for field, _ in volume.volumeSource.ListFields()), "emptyDir")


def _store(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    volume: core_v1_pb2.Volume,
    volumes: Volumes,
    sources: Sources,
    unknown: set[str],
) -> Store | None:
    """``unknown`` gets the files in it whose contents are not known."""
    kind = _kind(volume)
    source = getattr(volume.volumeSource, kind)
    if kind == "hostPath":
        return volumes.of_node.setdefault(source.path.rstrip("/") or "/", {})
    if kind in ("configMap", "secret", "downwardAPI", "projected"):
        return _projected(pod, container, kind, source, sources, unknown)
    if kind == "image":
        return None
    return volumes.of_pod.setdefault(volume.name, {})


def _projected(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    kind: str,
    source: object,
    sources: Sources,
    unknown: set[str],
) -> Store | None:
    found: Store = {}
    if kind == "projected":
        for one in source.sources:  # type: ignore[attr-defined]
            for part in ("configMap", "secret", "downwardAPI"):
                if one.HasField(part):
                    inside = _projected(pod, container, part, getattr(one, part), sources, unknown)
                    if inside is None:
                        return None
                    found.update(inside)
            if one.HasField("serviceAccountToken"):
                token = sources.get(("Token", one.serviceAccountToken.audience))
                _put(found, one.serviceAccountToken.path, None if token is None else token["token"], unknown)
        return found
    if kind == "downwardAPI":
        for item in source.items:  # type: ignore[attr-defined]
            value = field_of(pod, item.fieldRef.fieldPath) if item.HasField("fieldRef") else None
            if item.HasField("resourceFieldRef"):
                value = resource_of(pod, container, item.resourceFieldRef, sources)
            _put(found, item.path, value, unknown)
        return found
    name = getattr(source, "secretName", "") or source.localObjectReference.name  # type: ignore[attr-defined]
    which = ("ConfigMap" if kind == "configMap" else "Secret", name)
    if which not in sources:
        return None
    data = sources[which] or {}
    items = source.items  # type: ignore[attr-defined]
    chosen = {item.key: item.path for item in items} if items else {key: key for key in data}
    return {"/" + path: data[key] for key, path in chosen.items() if key in data}


def _put(found: Store, path: str, value: str | None, unknown: set[str]) -> None:
    """``value`` None: it is not known."""
    found[f"/{path}"] = value or ""
    if value is None:
        unknown.add(f"/{path}")


def initial_files(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> Store:
    name = hostname(pod)
    hosts = ["# Kubernetes-managed hosts file.", "127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback"]
    hosts += ["fe00::0\tip6-localnet", "fe00::0\tip6-mcastprefix", "fe00::1\tip6-allnodes", "fe00::2\tip6-allrouters"]
    if pod.status.podIP:
        has_domain = pod.spec.subdomain and not pod.spec.hostnameOverride
        subdomain = f"{name}.{pod.spec.subdomain}.{pod.metadata.namespace}.svc.cluster.local\t" if has_domain else ""
        hosts.append(f"{pod.status.podIP}\t{subdomain}{name}")
    if pod.spec.hostAliases:
        hosts += ["", "# Entries added by HostAliases."]
        hosts += [f"{alias.ip}\t" + "\t".join(alias.hostnames) for alias in pod.spec.hostAliases]
    found: Store = {
        "/etc/hostname": name + "\n",
        "/etc/hosts": "\n".join(hosts) + "\n",
        "/etc/resolv.conf": (
            f"search {pod.metadata.namespace}.svc.cluster.local svc.cluster.local cluster.local\n"
            "nameserver 10.96.0.10\noptions ndots:5\n"
        ),
    }
    image = images.name_of(container.image)
    if image == images.AGNHOST:
        found.update({"/agnhost": "", "/localhost.crt": "", "/localhost.key": ""})
    if image in images.WEB_ROOTS:
        found[f"{images.WEB_ROOTS[image]}/index.html"] = images.PAGES[image]
    return found


# Processes -----------------------------------------------------------------------------------------------------------


def shell_in(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    tree: Files,
    *,
    seed: str,
    unix_s: float,
    sources: Sources = NO_SOURCES,
    told: Callable[[float, int, str], None] = lambda at_s, descriptor, text: None,
    most_steps: int = shells.MOST_STEPS,
) -> Shell:
    """A shell in that container, with its variables and files."""
    variables, unknown, more = variables_of(pod, container, sources)
    world = World(
        tree,
        unix_s,
        "root",
        hostname(pod),
        seed,
        unknown,
        told,
        tools.TOOLS,
        tools.TIMED,
        most_steps=most_steps,
        has_more_variables=more,
    )
    user = container.securityContext.runAsUser or pod.spec.securityContext.runAsUser
    if user:
        world.user = f"uid {user}"
    exported = shells.environment(variables)
    shell = Shell(world, dict(exported), container.workingDir or "/", exported=set(exported))
    shell.variables["_POD_IP"] = pod.status.podIP
    return shell


def process(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    volumes: Volumes,
    restarts: int,
    unix_s: float,
    told: Callable[[float, int, str], None] = lambda at_s, descriptor, text: None,
    most_steps: int = shells.MOST_STEPS,
    own: Store | None = None,
    sources: Sources = NO_SOURCES,
) -> Process | None:
    """The program of one start of a container; None: nobody knows what it runs. ``own``: the container's own files."""
    command = command_of(pod, container, sources)
    if command is None:
        return None
    tree = files_of(pod, container, volumes, sources, own)
    return process_in(pod, container, tree, command, restarts, unix_s, told, most_steps, sources)


def process_in(
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    tree: Files,
    command: Sequence[str],
    restarts: int,
    unix_s: float,
    told: Callable[[float, int, str], None] = lambda at_s, descriptor, text: None,
    most_steps: int = shells.MOST_STEPS,
    sources: Sources = NO_SOURCES,
) -> Process:
    seed = f"{pod.metadata.uid}/{container.name}/{restarts}"
    shell = shell_in(pod, container, tree, seed=seed, unix_s=unix_s, told=told, most_steps=most_steps, sources=sources)
    return Process(shell, command)


def decoded(data: Mapping[str, bytes]) -> dict[str, str]:
    """What a Secret, or the binary part of a ConfigMap, holds, as text; what is none can be had back as it was."""
    return {key: value.decode(errors="surrogateescape") for key, value in data.items()}

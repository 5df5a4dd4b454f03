"""Which course a container takes from its start: how long it runs, how it ends, what it prints.

The rule, in this order:

* its ``command`` (or the ``args`` of an image that runs them) is one that :mod:`shells` understands: it does what the
  command does;
* the image, or the command, is a server that is known by name (:mod:`images`): it runs until it is stopped;
* anything else: init containers succeed at once; the containers of a pod with the restart policy Never or OnFailure are
  tasks, which succeed after :data:`TASK_S`; all others run until they are stopped.

Commands see the variables of their container and the files of its volumes: ``emptyDir`` and claims last as long as the
pod, ``hostPath`` as long as the kubelet. What ConfigMaps and Secrets hold is known to who hands them over.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

from kemu.emulated.kubelet.programs import images, shells, tools
from kemu.emulated.kubelet.programs.files import Files, Mount, Store
from kemu.emulated.kubelet.programs.shells import Outcome, Process, Shell, World
from kemu.emulated.kubelet.programs.syntax import NotUnderstood
from kemu.emulated.objects.amounts import quantities
from kemu.messages.k8s import core_v1_pb2

TASK_S = 3.0
"""How long a task runs that kemu does not understand."""
FOREVER = Outcome(None)
TASK = Outcome(TASK_S)
API_ADDRESS = "10.96.0.1"

tools.TIMED.update(dict.fromkeys(images.SERVER_COMMANDS, images.server))
tools.TIMED[images.AGNHOST] = images.agnhost

Sources = Mapping[tuple[str, str], Mapping[str, str] | None]
"""By ``ConfigMap`` or ``Secret`` and name: what it holds; None: it does not exist. What is missing is not known."""
_NO_SOURCES: Sources = {}


@dataclass
class Volumes:
    """What a pod's containers share."""

    of_pod: dict[str, Store] = field(default_factory=dict)
    of_node: MutableMapping[str, Store] = field(default_factory=dict)
    """By path on the node."""


# Commands ------------------------------------------------------------------------------------------------------------


def command_of(pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> list[str] | None:
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
    variables, _, _ = variables_of(pod, container, _NO_SOURCES)
    return [expanded(word, variables) for word in (*command, *args)]


def is_server(command: Sequence[str]) -> bool:
    """Whether its log is that of a server, which it does not make up."""
    return command[0].rpartition("/")[2] in images.SERVER_COMMANDS


@functools.lru_cache(1024)
def _references(text: str) -> tuple[str, ...]:
    return tuple(re.split(r"(\$\$|\$\([A-Za-z_][A-Za-z0-9_.-]*\))", text))


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """``$(NAME)`` as the kubelet expands it in commands, args and variables."""
    if "$" not in text:
        return text
    pieces = []
    for piece in _references(text):
        if piece == "$$":
            piece = "$"
        elif piece.startswith("$("):
            piece = variables.get(piece[2:-1], piece)
        pieces.append(piece)
    return "".join(pieces)


# Variables -----------------------------------------------------------------------------------------------------------


def variables_of(
    pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, sources: Sources
) -> tuple[dict[str, str], frozenset[str], bool]:
    """Variables with their values, names of others whose values are not known, and whether there are more of these."""
    found: dict[str, str] = {"HOSTNAME": hostname(pod)}
    if pod.spec.enableServiceLinks or not pod.spec.HasField("enableServiceLinks"):
        address = API_ADDRESS
        found |= {
            "KUBERNETES_SERVICE_HOST": address,
            "KUBERNETES_SERVICE_PORT": "443",
            "KUBERNETES_SERVICE_PORT_HTTPS": "443",
            "KUBERNETES_PORT": f"tcp://{address}:443",
            "KUBERNETES_PORT_443_TCP": f"tcp://{address}:443",
            "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
            "KUBERNETES_PORT_443_TCP_PORT": "443",
            "KUBERNETES_PORT_443_TCP_ADDR": address,
        }
    unknown: set[str] = set()
    more = False
    for source in container.envFrom:
        kind = "ConfigMap" if source.HasField("configMapRef") else "Secret"
        name = (source.configMapRef if kind == "ConfigMap" else source.secretRef).localObjectReference.name
        if (kind, name) not in sources:
            more = True
        for key, text in (sources.get((kind, name)) or {}).items():
            found[source.prefix + key] = text
    for one in container.env:
        value: str | None = expanded(one.value, found)
        if one.HasField("valueFrom"):
            value = _value_from(pod, container, one.valueFrom, sources)
        if value is None:
            unknown.add(one.name)
        else:
            found[one.name] = value
    return found, frozenset(unknown), more


def _value_from(
    pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, source: core_v1_pb2.EnvVarSource, sources: Sources
) -> str | None:
    if source.HasField("fieldRef"):
        return field_of(pod, source.fieldRef.fieldPath)
    if source.HasField("resourceFieldRef"):
        return resource_of(pod, container, source.resourceFieldRef)
    for kind, one in (("ConfigMap", source.configMapKeyRef), ("Secret", source.secretKeyRef)):
        if one.key:
            data = sources.get((kind, one.localObjectReference.name))
            return None if data is None else data.get(one.key)
    return None


def field_of(pod: core_v1_pb2.Pod, path: str) -> str | None:
    """A field of the downward API; None: not known, or not yet."""
    metadata = pod.metadata
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path)
    if keyed is not None:
        return str(getattr(metadata, keyed[1]).get(keyed[2], ""))
    whole = re.fullmatch(r"metadata\.(labels|annotations)", path)
    if whole is not None:
        values = getattr(metadata, whole[1])
        return "\n".join(f'{key}="{values[key]}"' for key in sorted(values)) + ("\n" if values else "")
    simple = {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "spec.nodeName": pod.spec.nodeName,
        "spec.serviceAccountName": pod.spec.serviceAccountName,
        "status.hostIP": pod.status.hostIP,
        "status.hostIPs": pod.status.hostIP,
        "status.podIP": pod.status.podIP,
        "status.podIPs": ",".join(one.ip for one in pod.status.podIPs),
    }
    return simple.get(path) or None


def resource_of(
    pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, reference: core_v1_pb2.ResourceFieldSelector
) -> str | None:
    if reference.containerName:
        container = next((one for one in pod.spec.containers if one.name == reference.containerName), container)
    kind, _, name = reference.resource.partition(".")
    values = getattr(container.resources, kind, {}) if kind in ("limits", "requests") else {}
    if name not in values:
        return None
    divisor = quantities.milli(reference.divisor.string) if reference.divisor.string not in ("", "0") else 1000
    return str(-(-quantities.milli(values[name].string) // divisor))


def hostname(pod: core_v1_pb2.Pod) -> str:
    """``GeneratePodHostNameAndDomain``."""
    if pod.spec.hostnameOverride:
        return str(pod.spec.hostnameOverride)
    if pod.spec.hostNetwork and pod.spec.nodeName:
        return str(pod.spec.nodeName)
    return str(pod.spec.hostname or pod.metadata.name)[:63].rstrip("-.")


# Files ---------------------------------------------------------------------------------------------------------------


def files_of(
    pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, volumes: Volumes, sources: Sources, own: Store | None = None
) -> Files:
    """``own``: what the container's own files were changed to."""
    by_name = {volume.name: volume for volume in pod.spec.volumes}
    mounts = []
    for mount in container.volumeMounts:
        volume = by_name.get(mount.name)
        store = None if volume is None or mount.subPath or mount.subPathExpr else _store(pod, volume, volumes, sources)
        kind = "" if volume is None else _kind(volume)
        mounts.append(Mount(mount.mountPath.rstrip("/") or "/", store, mount.readOnly or kind in _READ_ONLY))
    read_only = container.securityContext.readOnlyRootFilesystem
    return Files(initial_files(pod, container) if own is None else own, mounts, read_only)


_READ_ONLY = ("configMap", "secret", "projected", "downwardAPI", "image")


def _kind(volume: core_v1_pb2.Volume) -> str:
    """The kind of its source."""
    return next((field.name for field, _ in volume.volumeSource.ListFields()), "emptyDir")


def _store(pod: core_v1_pb2.Pod, volume: core_v1_pb2.Volume, volumes: Volumes, sources: Sources) -> Store | None:
    kind = _kind(volume)
    source = getattr(volume.volumeSource, kind)
    if kind == "hostPath":
        return volumes.of_node.setdefault(source.path.rstrip("/") or "/", {})
    if kind in ("configMap", "secret", "downwardAPI", "projected"):
        return _projected(pod, kind, source, sources)
    if kind == "image":
        return None
    return volumes.of_pod.setdefault(volume.name, {})


def _projected(pod: core_v1_pb2.Pod, kind: str, source: object, sources: Sources) -> Store | None:
    found: Store = {}
    if kind == "projected":
        for one in source.sources:  # type: ignore[attr-defined]
            for part in ("configMap", "secret", "downwardAPI"):
                if one.HasField(part):
                    inside = _projected(pod, part, getattr(one, part), sources)
                    if inside is None:
                        return None
                    found.update(inside)
            if one.HasField("serviceAccountToken"):
                token = sources.get(("Token", one.serviceAccountToken.audience))
                if token is None:
                    return None
                found["/" + one.serviceAccountToken.path] = token["token"]
        return found
    if kind == "downwardAPI":
        for item in source.items:  # type: ignore[attr-defined]
            value = field_of(pod, item.fieldRef.fieldPath) if item.HasField("fieldRef") else None
            if item.HasField("resourceFieldRef"):
                value = resource_of(pod, pod.spec.containers[0], item.resourceFieldRef)
            if value is None:
                return None
            found["/" + item.path] = value
        return found
    name = getattr(source, "secretName", "") or source.localObjectReference.name  # type: ignore[attr-defined]
    which = ("ConfigMap" if kind == "configMap" else "Secret", name)
    if which not in sources:
        return None
    data = sources[which] or {}
    items = source.items  # type: ignore[attr-defined]
    chosen = {item.key: item.path for item in items} if items else {key: key for key in data}
    return {"/" + path: data[key] for key, path in chosen.items() if key in data}


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
    sources: Sources = _NO_SOURCES,
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
) -> Process | None:
    """The program of one start of a container; None: nobody knows what it runs. ``own``: the container's own files."""
    command = command_of(pod, container)
    if command is None:
        return None
    tree = files_of(pod, container, volumes, _NO_SOURCES, own)
    seed = f"{pod.metadata.uid}/{container.name}/{restarts}"
    shell = shell_in(pod, container, tree, seed=seed, unix_s=unix_s, told=told, most_steps=most_steps)
    return Process(shell, command)


class Programs:
    """Programs of the containers of one kubelet."""

    def __init__(self) -> None:
        self._of_node: dict[str, Store] = {}
        self._of_pods: dict[str, dict[str, Store]] = {}

    def begin(
        self, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, *, is_init: bool, restarts: int, unix_s: float
    ) -> Outcome | None:
        """It starts, for the first time or again. What it does to files is done at once. None: it lives as ever."""
        volumes = Volumes(self._of_pods.setdefault(pod.metadata.uid, {}) if pod.spec.volumes else {}, self._of_node)
        found = process(pod, container, volumes, restarts, unix_s)
        if found is not None:
            try:
                return found.outcome_of_all()
            except NotUnderstood:
                pass
        if is_init:
            return None
        return FOREVER if pod.spec.restartPolicy in ("", "Always") else TASK

    def forget(self, pod: core_v1_pb2.Pod) -> None:
        """It has gone."""
        self._of_pods.pop(pod.metadata.uid, None)


def decoded(data: Mapping[str, bytes]) -> dict[str, str]:
    """What a Secret, or the binary part of a ConfigMap, holds, as text."""
    return {key: value.decode(errors="replace") for key, value in data.items()}

"""The variables of a container: those that its spec states, and those that tell it of Services.

Mirrors ``makeEnvironmentVariables`` and ``getServiceEnvVarMap`` of ``pkg/kubelet``, and ``pkg/kubelet/envvars``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.kinds import service_ranges
from kemu.messages.k8s import core_v1_pb2

Sources = Mapping[tuple[str, str], Mapping[str, str] | None]
"""What a pod refers to. By kind and name: the data of a ``ConfigMap`` or ``Secret``, None if it does not exist; a
``Token`` by its audience; under :data:`SERVICES` the variables that tell of Services; under :data:`NODE` what the node
can give to pods, by resource. What is missing is not known."""
NO_SOURCES: Sources = {}
SERVICES = "Service", ""
NODE = "Node", ""

API_ADDRESS = service_ranges.first(service_ranges.USUAL[0])
_API = core_v1_pb2.Service()
_API.metadata.name, _API.metadata.namespace, _API.spec.clusterIP = "kubernetes", "default", API_ADDRESS
_API.spec.ports.add(name="https", port=443, protocol="TCP")


# Services ------------------------------------------------------------------------------------------------------------


def of_services(pod: core_v1_pb2.Pod, services: Iterable[core_v1_pb2.Service]) -> dict[str, str]:
    """The variables that tell a pod of these Services, of its namespace and of ``default``."""
    chosen = {"kubernetes": _API}
    links = pod.spec.enableServiceLinks or not pod.spec.HasField("enableServiceLinks")
    for one in services:
        name, namespace = one.metadata.name, one.metadata.namespace
        if one.spec.clusterIP in ("", "None"):
            continue
        if (namespace == "default" and name == "kubernetes") or (namespace == pod.metadata.namespace and links):
            chosen[name] = one
    found: dict[str, str] = {}
    for name in sorted(chosen):
        found.update(_of_service(chosen[name]))
    return found


def _of_service(service: core_v1_pb2.Service) -> Iterator[tuple[str, str]]:
    prefix, address = _variable(service.metadata.name), service.spec.clusterIP
    yield f"{prefix}_SERVICE_HOST", address
    ports = service.spec.ports
    if ports:
        yield f"{prefix}_SERVICE_PORT", str(ports[0].port)
    for port in ports:
        if port.name:
            yield f"{prefix}_SERVICE_PORT_{_variable(port.name)}", str(port.port)
    for number, port in enumerate(ports):
        protocol = port.protocol or "TCP"
        shown = f"[{address}]" if ":" in address else address
        url = f"{protocol.lower()}://{shown}:{port.port}"
        if not number:
            yield f"{prefix}_PORT", url
        name = f"{prefix}_PORT_{port.port}_{protocol.upper()}"
        yield name, url
        yield f"{name}_PROTO", protocol.lower()
        yield f"{name}_PORT", str(port.port)
        yield f"{name}_ADDR", address


def _variable(name: str) -> str:
    return name.replace("-", "_").upper()


_TELLS_OF_SERVICES = re.compile(r"_SERVICE_|_PORT|\b(?:env|printenv)\b|\b(?:export|set)\s*(?:[;|&\n]|$)")


def reads_services(texts: Iterable[str]) -> bool:
    """Whether a command, or a variable, may read what tells of Services."""
    return any(_TELLS_OF_SERVICES.search(text) for text in texts)


# Variables -----------------------------------------------------------------------------------------------------------


@functools.lru_cache(1024)
def _references(text: str) -> tuple[str, ...]:
    return tuple(re.split(r"(\$\$|\$\([A-Za-z_][A-Za-z0-9_.-]*\))", text))


def expanded(text: str, *variables: Mapping[str, str]) -> str:
    """``$(NAME)`` as the kubelet expands it in commands, args and variables; the first that has a name counts."""
    if "$" not in text:
        return text
    pieces = []
    for piece in _references(text):
        if piece == "$$":
            piece = "$"
        elif piece.startswith("$("):
            name = piece[2:-1]
            piece = next((one[name] for one in variables if name in one), piece)
        pieces.append(piece)
    return "".join(pieces)


def variables_of(
    pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, sources: Sources
) -> tuple[dict[str, str], frozenset[str], bool]:
    """Variables with their values, names of others whose values are not known, and whether there are more of these."""
    of_services = sources.get(SERVICES)
    more = of_services is None and reads_services(_texts(container))
    if of_services is None:
        of_services = _of_api()
    found: dict[str, str] = {}
    unknown: set[str] = set()
    for source in container.envFrom:
        kind = "ConfigMap" if source.HasField("configMapRef") else "Secret"
        name = (source.configMapRef if kind == "ConfigMap" else source.secretRef).localObjectReference.name
        if (kind, name) not in sources:
            more = True
        for key, text in (sources.get((kind, name)) or {}).items():
            found[source.prefix + key] = text
    for one in container.env:
        if one.value or not one.HasField("valueFrom"):
            found[one.name] = expanded(one.value, found, of_services)
            continue
        value, is_known = _value_from(pod, container, one.valueFrom, sources)
        if not is_known:
            unknown.add(one.name)
        elif value is not None:
            found[one.name] = value
    return {"HOSTNAME": hostname(pod), **of_services, **found}, frozenset(unknown - set(found)), more


@functools.lru_cache(1)
def _of_api() -> Mapping[str, str]:
    return dict(_of_service(_API))


def _texts(container: core_v1_pb2.Container) -> Iterator[str]:
    yield from container.command
    yield from container.args
    for one in container.env:
        yield one.value


def _value_from(
    pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, source: core_v1_pb2.EnvVarSource, sources: Sources
) -> tuple[str | None, bool]:
    """The value, None for a variable that is not set, and whether that is known."""
    if source.HasField("fieldRef"):
        value = field_of(pod, source.fieldRef.fieldPath)
        return value, value is not None
    if source.HasField("resourceFieldRef"):
        value = resource_of(pod, container, source.resourceFieldRef, sources)
        return value, value is not None
    for kind, one in (("ConfigMap", source.configMapKeyRef), ("Secret", source.secretKeyRef)):
        if one.key:
            name = one.localObjectReference.name
            return (sources.get((kind, name)) or {}).get(one.key), (kind, name) in sources
    return None, False


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
    pod: core_v1_pb2.Pod,
    container: core_v1_pb2.Container,
    reference: core_v1_pb2.ResourceFieldSelector,
    sources: Sources,
) -> str | None:
    """None: not known. A limit that is not stated is what the node can give."""
    if reference.containerName:
        container = next((one for one in pod.spec.containers if one.name == reference.containerName), container)
    kind, _, name = reference.resource.partition(".")
    if kind not in ("limits", "requests"):
        return None
    stated = getattr(container.resources, kind)
    if name in stated:
        text = str(stated[name].string)
    elif kind == "limits":
        node = sources.get(NODE)
        if node is None or name not in node:
            return None
        text = node[name]
    else:
        text = "0"
    divisor = quantities.milli(reference.divisor.string) if reference.divisor.string not in ("", "0") else 1000
    return str(-(-quantities.milli(text) // divisor))


def hostname(pod: core_v1_pb2.Pod) -> str:
    """``GeneratePodHostNameAndDomain``."""
    if pod.spec.hostnameOverride:
        return str(pod.spec.hostnameOverride)
    if pod.spec.hostNetwork and pod.spec.nodeName:
        return str(pod.spec.nodeName)
    return str(pod.spec.hostname or pod.metadata.name)[:63].rstrip("-.")


# What has to be asked for ---------------------------------------------------------------------------------------------


_TOKENS = "serviceaccount"
"""Part of the path of a pod's token, which every container mounts and hardly one reads."""


def named(
    pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, texts: Sequence[str] | None = None
) -> list[tuple[str, str]]:
    """What the environment and the volumes of a container refer to: kinds and names of ConfigMaps and Secrets,
    :data:`SERVICES` and :data:`NODE`. ``texts``: what its commands say, where only what they may read is wanted."""
    found: dict[tuple[str, str], None] = {}
    for source in container.envFrom:
        for kind, one in (("ConfigMap", source.configMapRef), ("Secret", source.secretRef)):
            found[kind, one.localObjectReference.name] = None
    references = []
    for variable in container.env:
        origin = variable.valueFrom
        for kind, key in (("ConfigMap", origin.configMapKeyRef), ("Secret", origin.secretKeyRef)):
            found[kind, key.localObjectReference.name] = None
        if origin.HasField("resourceFieldRef"):
            references.append(origin.resourceFieldRef)
    mounted = {
        one.name
        for one in container.volumeMounts
        if texts is None or _TOKENS not in one.mountPath or any(_TOKENS in text for text in texts)
    }
    for volume in pod.spec.volumes:
        if volume.name not in mounted:
            continue
        source_of_volume = volume.volumeSource
        found["ConfigMap", source_of_volume.configMap.localObjectReference.name] = None
        found["Secret", source_of_volume.secret.secretName] = None
        items = [*source_of_volume.downwardAPI.items]
        for part in source_of_volume.projected.sources:
            found["ConfigMap", part.configMap.localObjectReference.name] = None
            found["Secret", part.secret.localObjectReference.name] = None
            items += part.downwardAPI.items
        references += [one.resourceFieldRef for one in items if one.HasField("resourceFieldRef")]
    chosen = [(kind, name) for kind, name in found if name]
    if any(one.resource.startswith("limits.") for one in references):
        chosen.append(NODE)
    if texts is None or reads_services((*texts, *(one.value for one in container.env))):
        chosen.append(SERVICES)
    return chosen

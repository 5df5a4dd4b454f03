"""What the objects hold that a pod refers to, for what its simulated containers do and print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.emulated.gateway.authentication import service_accounts
from kemu.emulated.gateway.backends import Refused
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.kubelet.logs import lines
from kemu.emulated.kubelet.programs import courses, environments, residents
from kemu.emulated.kubelet.programs.environments import Sources
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2


async def sources_of(
    call: Call, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, *, for_program: bool = False
) -> Sources:
    """What the objects hold that the container refers to. ``for_program``: only what its own commands may read."""
    found: dict[tuple[str, str], Mapping[str, str] | None] = {}
    wanted = residents.read_by(pod, container) if for_program else environments.named(pod, container)
    for kind, name in wanted:
        if (kind, name) == environments.SERVICES:
            found[kind, name] = await _services(call, pod, container)
        elif (kind, name) == environments.NODE:
            found[kind, name] = await _allocatable(call, pod.spec.nodeName)
        else:
            found[kind, name] = await _data(call, pod.metadata.namespace, kind, name)
    if for_program:
        return found
    for volume in pod.spec.volumes:
        for part in volume.volumeSource.projected.sources:
            if part.HasField("serviceAccountToken"):
                asked = part.serviceAccountToken
                found["Token", asked.audience] = await _token(call, pod, asked)
    return found


async def _services(call: Call, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> Mapping[str, str] | None:
    """The variables that tell of the Services that there were when the container started."""
    resource = api_pb2.Resource(resource="services", namespace=pod.metadata.namespace)
    try:
        answer: Any = await call.look("List", api_pb2.ListRequest(resource=resource))
    except Refused:
        return None
    instance = lines.current(pod, container)
    started_s = call.now_s() if instance is None else instance.started_s
    services = [core_v1_pb2.Service.FromString(one) for one in answer.items]
    known = [one for one in services if one.metadata.creationTimestamp.seconds <= started_s]
    return environments.of_services(pod, known)


async def _allocatable(call: Call, name: str) -> Mapping[str, str] | None:
    try:
        answer: Any = await call.look("Get", api_pb2.GetRequest(resource=api_pb2.Resource(resource="nodes"), name=name))
    except Refused:
        return None
    node = core_v1_pb2.Node.FromString(answer.object)
    return {key: amount.string for key, amount in node.status.allocatable.items()}


async def _token(
    call: Call, pod: core_v1_pb2.Pod, asked: core_v1_pb2.ServiceAccountTokenProjection
) -> Mapping[str, str] | None:
    """A token of the pod's service account, as the kubelet would have asked for it."""
    namespace, name = pod.metadata.namespace, pod.spec.serviceAccountName or "default"
    resource = api_pb2.Resource(resource="serviceaccounts", namespace=namespace)
    try:
        answer: Any = await call.look("Get", api_pb2.GetRequest(resource=resource, name=name))
    except Refused:
        return None
    tokens = call.settings.accounts
    if tokens is None:
        return None
    uid = core_v1_pb2.ServiceAccount.FromString(answer.object).metadata.uid
    account = service_accounts.Account(namespace, name, uid)
    seconds = asked.expirationSeconds or service_accounts.USUAL_S
    audiences = [asked.audience] if asked.audience else []
    bound = (service_accounts.Bound("Pod", pod.metadata.name, pod.metadata.uid),)
    now_s = int(call.now_s())
    return {"token": tokens.sign(account, now_s=now_s, seconds=seconds, audiences=audiences, bound=bound)}


async def _data(call: Call, namespace: str, kind: str, name: str) -> Mapping[str, str] | None:
    resource = api_pb2.Resource(resource=f"{kind.lower()}s", namespace=namespace)
    try:
        answer: Any = await call.look("Get", api_pb2.GetRequest(resource=resource, name=name))
    except Refused:
        return None
    if kind == "Secret":
        return courses.decoded(core_v1_pb2.Secret.FromString(answer.object).data)
    config = core_v1_pb2.ConfigMap.FromString(answer.object)
    return {**config.data, **courses.decoded(config.binaryData)}

"""The subresource ``proxy`` of pods and services, as far as :mod:`pages` knows what their web servers answer.

Mirrors ``ResourceLocation`` of ``pkg/registry/core/pod`` and ``pkg/registry/core/service``: a name may be
``[scheme:]name[:port]``; the proxy of a service asks one of its pods.
"""

from __future__ import annotations

from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.verbs import admissions
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.gateway.verbs.sessions import consoles, pages
from kemu.emulated.gateway.verbs.sessions.requests import SIMULATED, Sessions, not_implemented
from kemu.emulated.objects import meta, selectors
from kemu.errors import BadRequest, ServiceUnavailable
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.messages.v1 import api_pb2


async def answer(call: Call, sessions: Sessions) -> Response:
    await call.require(call.request.info.verb, "proxy")
    await admissions.connect(call)
    name, port = _name_and_port(call.path.name)
    if call.path.resource == "services":
        pod = await _of_service(call, name)
    else:
        pod = core_v1_pb2.Pod.FromString(await _get(call, "pods", name))
    if call.request.method not in ("GET", "HEAD", "POST", "PUT"):
        raise not_implemented(SIMULATED)
    # A port that nobody declares is served by the first container, as it may be.
    container = next(
        (
            one
            for one in pod.spec.containers
            if port and any(port in (own.name, str(own.containerPort)) for own in one.ports)
        ),
        pod.spec.containers[0],
    )
    if pod.status.phase != "Running":
        raise ServiceUnavailable(f"error trying to reach service: pod {pod.metadata.name} does not run")
    if not call.settings.programs:
        raise not_implemented(SIMULATED)
    tree = sessions.places.files(pod, container, await consoles.sources_of(call, pod, container), call.now_s())
    path, query = "/" + "/".join(call.path.rest), call.request.query
    board = sessions.places.boards.setdefault(pod.metadata.namespace, {})
    found = pages.answer(pod, container, tree, path, query.first(), call.now_s(), board)
    if found is None:
        raise not_implemented(SIMULATED)
    code, media, body = found
    return Response(code, media, (b"" if call.request.method == "HEAD" else body,))


def _name_and_port(text: str) -> tuple[str, str]:
    parts = text.split(":")
    if len(parts) == 1:
        return text, ""
    if len(parts) == 2:
        return parts[0], parts[1]
    if len(parts) == 3 and parts[0] in ("", "http", "https"):
        return parts[1], parts[2]
    raise BadRequest(f'invalid request "{text}"')


async def _get(call: Call, plural: str, name: str) -> bytes:
    resource = api_pb2.Resource(resource=plural, namespace=call.path.namespace)
    return bytes((await call.look("Get", api_pb2.GetRequest(resource=resource, name=name))).object)


async def _of_service(call: Call, name: str) -> core_v1_pb2.Pod:
    """One of its pods that is ready. Raises ServiceUnavailable where there is none."""
    service = core_v1_pb2.Service.FromString(await _get(call, "services", name))
    if service.spec.selector:
        labels = meta_v1_pb2.LabelSelector(matchLabels=service.spec.selector)
        request = api_pb2.ListRequest(
            resource=api_pb2.Resource(resource="pods", namespace=call.path.namespace),
            label_selector=",".join(f"{key}={value}" for key, value in sorted(service.spec.selector.items())),
        )
        chosen = selectors.compile_labels(labels)
        for one in (await call.look("List", request)).items:
            pod = core_v1_pb2.Pod.FromString(one)
            if chosen.matches(pod.metadata.labels) and meta.is_ready(pod):
                return pod
    raise ServiceUnavailable(f'no endpoints available for service "{name}"')

"""What can be done to a part of an object, or by way of it: status, scale, binding, eviction, commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from kemu.emulated.apiserver.registry import bodies as registry_bodies
from kemu.emulated.apiserver.registry import options
from kemu.emulated.gateway.answers import representations, responses
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.backends import Refused
from kemu.emulated.gateway.requests import bodies, delete_options, negotiation
from kemu.emulated.gateway.requests.negotiation import Form
from kemu.emulated.gateway.verbs import admissions, calls, deletes, logs, reads, writes
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.gateway.verbs.sessions import proxies, requests
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation import causes
from kemu.errors import ApiError, BadRequest, Invalid, NotFound
from kemu.messages.k8s import autoscaling_v1_pb2, core_v1_pb2, meta_v1_pb2, policy_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2

Handler = Callable[[Call], Awaitable[Response]]

SCALE = Resource("scale", "Scale", "autoscaling/v1", autoscaling_v1_pb2.Scale)
SCALABLE = ("deployments", "replicasets", "statefulsets", "replicationcontrollers")

STREAMS = ("attach", "exec", "portforward", "proxy")
"""What would speak with a container."""
_SIMULATED = "the containers of this cluster are simulated: nothing runs in them that could answer"

_WHOLE: dict[str, Handler] = {"GET": reads.get, "PUT": writes.update, "PATCH": writes.patch}


def find(row: Resource, subresource: str, name: str = "") -> dict[str, Handler]:
    """What can be done, by method. Raises :class:`kemu.errors.NotFound` for what does not exist."""
    if subresource == "status" and row.has_status:
        return _WHOLE
    if subresource == "scale" and (row.plural in SCALABLE or (isinstance(row, CustomResource) and row.has_scale)):
        return _SCALE
    if isinstance(row, CustomResource):
        raise NotFound(f'{row.qualified} "{name}" not found', kind=row.plural, name=name)
    found = _HANDLERS.get((row.plural, subresource))
    if found is None:
        raise calls.unknown_resource()
    return found


# Scale --------------------------------------------------------------------------------------------------------------


async def _get_scale(call: Call) -> Response:
    return await reads.get(call._replace(shown=SCALE))


async def _update_scale(call: Call) -> Response:
    return await writes.update(call._replace(shown=SCALE))


async def _patch_scale(call: Call) -> Response:
    return await writes.patch(call._replace(shown=SCALE))


_SCALE: dict[str, Handler] = {"GET": _get_scale, "PUT": _update_scale, "PATCH": _patch_scale}

_LONGEST_CLIENT = 63
"""The longest name of a program in the run log."""

# Binding and eviction -----------------------------------------------------------------------------------------------


async def bind(call: Call) -> Response:
    """Bind a pod, or, as in old times, in the collection ``bindings``."""
    form = call.form()
    binding = cast(core_v1_pb2.Binding, await _message(call, BINDING))
    name = _check_address(call, "Binding", binding.metadata)
    target = binding.target
    found = []
    if target.kind not in ("", "Node"):
        found.append(causes.not_supported("target.kind", target.kind, ("Node", "<empty>")))
    if not target.name:
        found.append(causes.required("target.name"))
    if found:
        texts = [f"{cause.field}: {cause.message}" for cause in found]
        raise ApiError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    warnings: Sequence[str] = ()
    if call.request.query.texts("dryRun"):
        await call.ask("Get", api_pb2.GetRequest(resource=_pods(call), name=name))
    else:
        request = api_pb2.BindRequest(
            namespace=call.path.namespace,
            name=name,
            uid=binding.metadata.uid,
            node=target.name,
            client=call.request.agent.partition("/")[0][:_LONGEST_CLIENT],
        )
        request.annotations.MergeFrom(binding.metadata.annotations)
        request.labels.MergeFrom(binding.metadata.labels)
        warnings = (await call.ask("Bind", request)).warnings
    return _done(form, warnings)


async def _evict(call: Call) -> Response:
    form = call.form()
    eviction = cast(policy_v1_pb2.Eviction, await _message(call, *EVICTIONS))
    _check_address(call, "Eviction", eviction.metadata)
    wanted = eviction.deleteOptions
    try:
        delete_options.check(wanted)
    except Invalid:
        # It is found when the pod is deleted.
        await call.ask("Get", api_pb2.GetRequest(resource=_pods(call), name=call.path.name))
        raise
    request = api_pb2.EvictRequest(
        namespace=call.path.namespace,
        name=call.path.name,
        dry_run=[*wanted.dryRun, *call.request.query.texts("dryRun")][:1],
    )
    if wanted.HasField("gracePeriodSeconds"):
        request.grace_period_seconds = wanted.gracePeriodSeconds
    request.preconditions.CopyFrom(deletes.preconditions(wanted))
    return _done(form, (await call.ask("Evict", request)).warnings)


async def _refuse_stream(call: Call) -> Response:
    """As a cluster refuses whose nodes cannot be reached; clients print the message."""
    await call.require("create", call.path.subresource)
    await admissions.connect(call)
    await call.look("Get", api_pb2.GetRequest(resource=call.where(), name=call.path.name))
    raise Refused(meta_v1_pb2.Status(status="Failure", message=_SIMULATED, reason="NotImplemented", code=501))


async def _message(call: Call, *rows: Resource) -> KubernetesObject:
    """What is posted: one of these kinds, the first where nothing is said."""
    kinds = tuple((row.api_version, row.kind) for row in rows)
    body = await bodies.read(call.request, call.settings.max_body_bytes, kinds)
    stated = call.write_options()
    options.check_write("CreateOptions", stated)
    row = next((one for one in rows[1:] if one.api_version.encode() in body.data), rows[0])
    content_type = body.content_type or negotiation.PROTOBUF
    found: KubernetesObject = registry_bodies.read(row, body.data, content_type, stated.field_validation)[0]
    return found


BINDING = Resource("bindings", "Binding", "v1", core_v1_pb2.Binding, True, (), False)
EVICTIONS = tuple(
    Resource("evictions", "Eviction", version, policy_v1_pb2.Eviction, True, (), False)
    for version in ("policy/v1", "policy/v1beta1")
)


def _check_address(call: Call, kind: str, metadata: meta_v1_pb2.ObjectMeta) -> str:
    """The name of the pod. Raises :class:`kemu.errors.BadRequest` where the body speaks of another one."""
    path = call.path
    if not metadata.namespace:
        metadata.namespace = path.namespace
    if metadata.namespace and metadata.namespace != path.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if path.name and metadata.name != path.name:
        raise BadRequest(f"name in URL does not match name in {kind} object")
    return path.name or metadata.name


def _pods(call: Call) -> api_pb2.Resource:
    return api_pb2.Resource(resource="pods", namespace=call.path.namespace)


def _done(form: Form, warnings: Sequence[str]) -> Response:
    status = meta_v1_pb2.Status(status="Success", code=201)
    status.metadata.SetInParent()
    body = (representations.message(form, "v1", "Status", status),)
    return Response(201, form.media, body, responses.warnings(warnings))


async def _execute(call: Call) -> Response:
    return await requests.execute(call, call.sessions)


async def _attach(call: Call) -> Response:
    return await requests.attach(call, call.sessions)


async def _proxy(call: Call) -> Response:
    if call.path.resource == "nodes":
        return await _refuse_stream(call)
    return await proxies.answer(call, call.sessions)


async def _forward(call: Call) -> Response:
    return await requests.forward(call, call.sessions)


_PROXIED: dict[str, Handler] = dict.fromkeys(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"), _proxy)

_HANDLERS: dict[tuple[str, str], dict[str, Handler]] = {
    ("pods", "binding"): {"POST": bind},
    ("pods", "eviction"): {"POST": _evict},
    ("pods", "resize"): _WHOLE,
    ("pods", "ephemeralcontainers"): _WHOLE,
    ("pods", "log"): {"GET": logs.read},
    ("namespaces", "finalize"): {"PUT": writes.update},
    ("certificatesigningrequests", "approval"): _WHOLE,
    ("pods", "exec"): dict.fromkeys(("GET", "POST"), _execute),
    ("pods", "attach"): dict.fromkeys(("GET", "POST"), _attach),
    ("pods", "portforward"): dict.fromkeys(("GET", "POST"), _forward),
    **{(plural, "proxy"): _PROXIED for plural in ("pods", "services", "nodes")},
}
"""By plural and subresource: what is done, by method."""

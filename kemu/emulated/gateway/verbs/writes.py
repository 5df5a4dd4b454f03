"""Create, update and patch."""

from __future__ import annotations

from kemu.emulated.apiserver.registry import options
from kemu.emulated.gateway.answers import responses
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.requests import bodies, negotiation, other_forms
from kemu.emulated.gateway.requests.negotiation import Form
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.messages.v1 import api_pb2


async def create(call: Call) -> Response:
    form = call.form()
    bodies.check_media(call.request)
    stated = call.write_options()
    options.check_write("CreateOptions", stated)
    body = await read(call)
    request = api_pb2.CreateRequest(
        resource=call.where(),
        object=body.data,
        options=stated,
        content_type=body.content_type or negotiation.PROTOBUF,  # form_of, inlined
    )
    answer = await call.ask("Create", request)
    return Response(
        201,
        form.media,
        (call.representations.object(form, call.shown, answer.object),),
        responses.warnings(answer.warnings),
    )


async def update(call: Call) -> Response:
    form = call.form()
    stated = call.write_options()
    options.check_write("UpdateOptions", stated)
    body = await read(call)
    request = api_pb2.UpdateRequest(
        resource=call.where(),
        object=body.data,
        options=stated,
        content_type=form_of(body),
        subresource=call.path.subresource,
        name=call.path.name,
    )
    return written(call, form, await call.ask("Update", request))


async def patch(call: Call) -> Response:
    form = call.form()
    kind = bodies.patch_type(call.request, is_custom=isinstance(call.shown, CustomResource))
    data = await call.body()
    if kind == api_pb2.PatchRequest.APPLY:
        data = await call.settings.yaml.as_json(data) or data
    other = other_forms.of(call.shown)
    if other is not None:
        data = other.patch(kind, data)
    request = api_pb2.PatchRequest(
        resource=call.where(),
        name=call.path.name,
        type=kind,
        patch=data,
        subresource=call.path.subresource,
        options=call.write_options(),
        force=call.request.query.flag("force"),
    )
    return written(call, form, await call.ask("Patch", request))


def written(call: Call, form: Form, answer: api_pb2.ObjectResponse) -> Response:
    return Response(
        201 if answer.created else 200,
        form.media,
        (call.representations.object(form, call.shown, answer.object),),
        responses.warnings(answer.warnings),
    )


async def read(call: Call) -> bodies.Body:
    """Raises :class:`kemu.errors.ApiError`."""
    row = call.shown
    body = await bodies.read(call.request, call.settings.max_body_bytes, ((row.api_version, row.kind),))
    if body.content_type == negotiation.YAML:
        text = await call.settings.yaml.as_json(body.data)
        if text is not None:
            body = body._replace(data=text, content_type=negotiation.JSON)
    other = other_forms.FORMS.get((row.api_version, row.plural))
    return body if other is None else other.body(body)


def form_of(body: bodies.Body) -> str:
    """As ``CreateRequest.content_type``: protobuf is as Go writes it, whatever wrote it."""
    return body.content_type or negotiation.PROTOBUF

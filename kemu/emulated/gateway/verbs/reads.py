"""Get and list."""

from __future__ import annotations

from kemu.emulated.apiserver.registry import options
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.requests.negotiation import Form
from kemu.emulated.gateway.requests.queries import Query
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.objects import selectors
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.errors import BadRequest
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.v1 import api_pb2


async def get(call: Call) -> Response:
    form = call.form()
    request = api_pb2.GetRequest(
        resource=call.where(),
        name=call.path.name,
        resource_version=call.request.query.text("resourceVersion"),
        subresource=call.path.subresource,
    )
    answer = await call.ask("Get", request)
    return Response(200, form.media, (call.representations.object(form, call.shown, answer.object),))


async def list_(call: Call) -> Response:
    return await answered(call, call.form(), await call.ask("List", asked(call)))


async def answered(call: Call, form: Form, found: api_pb2.ListResponse) -> Response:
    metadata = meta_v1_pb2.ListMeta(resourceVersion=found.resource_version)
    rest = getattr(found, "continue")
    if rest:
        setattr(metadata, "continue", rest)
        if found.remaining_item_count:
            metadata.remainingItemCount = found.remaining_item_count
    response = Response(200, form.media, await call.representations.list(form, call.shown, metadata, found.items))
    response.items = len(found.items)
    return response


def asked(call: Call) -> api_pb2.ListRequest:
    """The options of a list. Raises :class:`kemu.errors.BadRequest`."""
    query = call.request.query
    check_syntax(query)
    request = api_pb2.ListRequest(
        resource=call.where(),
        label_selector=query.text("labelSelector"),
        field_selector=call.field_selector(),
        limit=query.number("limit") or 0,
        resource_version=query.text("resourceVersion"),
        resource_version_match=query.text("resourceVersionMatch"),
        send_initial_events=initial_events(query),
    )
    setattr(request, "continue", query.text("continue"))
    return request


def check_syntax(query: Query) -> None:
    """What cannot be read of the options of a list or watch, which comes before what they mean. Raises
    :class:`kemu.errors.BadRequest`."""
    if not query.values:
        return
    for name in ("timeoutSeconds", "limit"):
        query.number(name)
    try:
        selectors.parse_labels(query.text("labelSelector"))
        selectors.check_fields(query.text("fieldSelector"))
    except selectors.SelectorError as error:
        raise BadRequest(str(error)) from None


def check_meaning(call: Call, request: api_pb2.ListRequest) -> None:
    """What an API server would refuse of the options of a list, where more is read after them. Raises
    :class:`kemu.errors.Invalid` and BadRequest."""
    options.check_list(request)
    if request.field_selector and not isinstance(call.row, CustomResource):
        try:
            selectors.parse_fields(request.field_selector, call.row.plural)
        except selectors.SelectorError as error:
            raise BadRequest(str(error)) from None


def initial_events(query: Query) -> bool | None:
    return query.flag("sendInitialEvents")

"""Delete, of one object or a collection."""

from __future__ import annotations

from typing import Any

from kemu.emulated.apiserver.registry import deletions
from kemu.emulated.gateway.answers import representations, responses
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.backends import Refused
from kemu.emulated.gateway.requests import delete_options
from kemu.emulated.gateway.verbs import reads
from kemu.emulated.gateway.verbs.calls import Call
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.v1 import api_pb2

RETURNED = frozenset((
    "csidrivers", "csinodes", "deviceclasses", "devicetaintrules", "namespaces", "persistentvolumeclaims",
    "persistentvolumes", "pods", "podtemplates", "resourceclaims", "resourceclaimtemplates", "resourcequotas",
    "resourceslices", "serviceaccounts", "services", "storageclasses", "volumeattachments",
    "volumeattributesclasses",
))  # fmt: skip
"""Kinds of which a delete answers with the last state of what it has removed (``Store.ReturnDeletedObject``)."""


async def delete(call: Call) -> Response:
    form = call.form()
    options = await _options(call)
    request = _request(call, options)
    request.name = call.path.name
    try:
        answer = await call.ask("Delete", request)
    except Refused as refused:
        refused.warnings = [*refused.warnings, *deletions.warnings(request)]
        raise
    headers = responses.warnings(answer.warnings)
    status = 202 if not answer.gone and options.HasField("orphanDependents") and not options.orphanDependents else 200
    if not answer.gone or call.row.plural in RETURNED:
        return Response(status, form.media, (call.representations.object(form, call.shown, answer.object),), headers)
    last: Any = representations.stored(call.row).message.FromString(answer.object)
    done = meta_v1_pb2.Status(status="Success")
    done.details.name, done.details.kind, done.details.uid = call.path.name, call.row.collection, last.metadata.uid
    if call.row.group:
        done.details.group = call.row.group
    return Response(status, form.media, (representations.message(form, "v1", "Status", done),), headers)


async def delete_collection(call: Call) -> Response:
    form = call.form()
    listed = reads.asked(call)
    reads.check_meaning(call, listed)
    options = await _options(call)
    request = api_pb2.DeleteCollectionRequest(list=listed, delete=_request(call, options))
    response = await reads.answered(call, form, await call.ask("DeleteCollection", request))
    response.add(*responses.warnings(deletions.warnings(request.delete)))
    return response


def _request(call: Call, options: meta_v1_pb2.DeleteOptions) -> api_pb2.DeleteRequest:
    request = api_pb2.DeleteRequest(
        resource=call.where(), propagation_policy=options.propagationPolicy, dry_run=options.dryRun, in_steps=True
    )
    if options.HasField("gracePeriodSeconds"):
        request.grace_period_seconds = options.gracePeriodSeconds
    if options.HasField("orphanDependents"):
        request.orphan_dependents = options.orphanDependents
    request.preconditions.CopyFrom(preconditions(options))
    return request


def preconditions(options: meta_v1_pb2.DeleteOptions) -> api_pb2.Preconditions:
    wanted = options.preconditions
    return api_pb2.Preconditions(uid=wanted.uid, resource_version=wanted.resourceVersion)


async def _options(call: Call) -> meta_v1_pb2.DeleteOptions:
    """Options of the body, or, where there is none, of the query. Raises :class:`kemu.errors.ApiError`."""
    data = await call.body()
    options = delete_options.read(call.request, data) if data else _of_query(call)
    delete_options.check(options)
    return options


def _of_query(call: Call) -> meta_v1_pb2.DeleteOptions:
    query = call.request.query
    options = meta_v1_pb2.DeleteOptions(dryRun=query.texts("dryRun"))
    if "propagationPolicy" in query:
        options.propagationPolicy = query.text("propagationPolicy")
    grace_s, orphans = query.number("gracePeriodSeconds"), query.flag("orphanDependents")
    if grace_s is not None:
        options.gracePeriodSeconds = grace_s
    if orphans is not None:
        options.orphanDependents = orphans
    return options

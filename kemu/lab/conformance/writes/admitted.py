"""Sequences of writes to objects of several kinds, of which admission makes something, or which it refuses.

The API server has the plugins that Kubernetes has by default, ServiceAccount and TaintNodesByCondition among them. What
is compared is what :mod:`kemu.lab.conformance.writes.sequences` compares, and the warnings of refusals. Left out is
what chance or a clock decides: the last letters of generated names and of the names of volumes with tokens, and
moments.
"""

from __future__ import annotations

import json
import re
from typing import Any

import grpc

from kemu.emulated.apiserver.admission import OFF_IN_KUBERNETES, PLUGINS
from kemu.emulated.apiserver.errors import WARNING_KEY
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.lab.conformance import comparisons
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.lab.conformance.writes import sequences
from kemu.messages.v1 import api_pb2, api_pb2_grpc

Json = dict[str, Any]
_ON = [name for name in PLUGINS if name not in OFF_IN_KUBERNETES]


def answer(case: Json) -> Json:
    plane = ControlPlane(stores_unsimulated=True, admission=_ON)
    return {"steps": plane.run(lambda: _play(plane, case))}


def agrees(expect: Json, answered: Json) -> list[str]:
    return comparisons.compare(expect, answered)


async def _play(plane: ControlPlane, case: Json) -> list[Json]:
    stub: Any = api_pb2_grpc.ApiStub(plane.env.dial("apiserver/0"))  # type: ignore[no-untyped-call]
    await plane.runtime.begin()
    versions: dict[tuple[str, ...], str] = {}
    results = []
    for step in case["steps"]:
        await plane.clock.sleep(step.get("after", 0.05))
        try:
            code, manifest, warnings = await _send(stub, step)
            results.append(result_of(step, code, manifest, warnings, versions))
        except grpc.aio.AioRpcError as error:
            found = [value.decode() for key, value in error.trailing_metadata() or () if key == WARNING_KEY]
            results.append(refusal_of(sequences.refusal(error), found))
    return results


async def _send(stub: grpc.aio.Channel, step: Json) -> tuple[int, Json, list[str]]:
    """Code, manifest and warnings; deletes and bindings show no object."""
    verb, resource = step["verb"], resources.BY_PLURAL[step["resource"]]
    where = api_pb2.Resource(resource=resource.plural, namespace=step.get("namespace", ""))
    caller = sequences.as_whom(step)
    if verb == "delete":
        request = api_pb2.DeleteRequest(resource=where, name=step["name"], in_steps=True)
        if "grace" in step:
            request.grace_period_seconds = step["grace"]
        await stub.Delete(request, **caller)
        return 200, {}, []
    if verb == "bind":
        await stub.Bind(
            api_pb2.BindRequest(namespace=where.namespace, name=step["name"], node=step["body"]["target"]["name"])
        )
        return 201, {}, []
    if verb == "get":
        found = await stub.Get(api_pb2.GetRequest(resource=where, name=step["name"]), **caller)
        return 200, sequences.as_go_writes(convert.to_manifest(resource.message.FromString(found.object))), []
    return await sequences.write(stub, resource, where, step["name"], step)


def result_of(step: Json, code: int, manifest: Json, warnings: list[str], versions: dict[tuple[str, ...], str]) -> Json:
    """What is compared of an answer that is no refusal. ``versions``: of each object, that of the last answer."""
    if step["verb"] in ("bind", "delete"):
        return {"code": code, **({"warnings": warnings} if warnings else {})}
    key = step["resource"], step.get("namespace", ""), step["name"]
    text = _MOMENTS.sub('Time": "is set"', _TOKENS.sub(r"\1", json.dumps(manifest)))
    text = _GENERATED.sub(r"\1", text)
    manifest = json.loads(text)
    result, versions[key] = sequences.result_of(code, manifest, _masked(warnings), versions.get(key, ""))
    return result


def refusal_of(result: Json, warnings: list[str]) -> Json:
    for field in ("name", "message"):
        result[field] = _GENERATED.sub(r"\1", result[field])
    if warnings:
        result["warnings"] = _masked(warnings)
    return result


def _masked(warnings: list[str]) -> list[str]:
    return [_GENERATED.sub(r"\1", one) for one in warnings]


_MOMENTS = re.compile(r'Time": "\d{4}-[0-9-]*T[0-9:]*Z"')
_GENERATED = re.compile(r"\b(generated-)[a-z0-9]{5}\b")
_TOKENS = re.compile(r"(kube-api-access-)[a-z0-9]{5}\b")

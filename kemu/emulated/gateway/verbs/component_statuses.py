"""``componentstatuses``: whether the parts of the control plane are healthy (``core/componentstatus``).

What kemu runs itself is healthy while it runs. Where a real scheduler or controller manager takes its place, its health
endpoint is asked, as kube-apiserver does.
"""

from __future__ import annotations

import asyncio
import ssl

from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.gateway.verbs.subresources import Handler
from kemu.emulated.objects import selectors
from kemu.emulated.objects.kinds import components
from kemu.errors import BadRequest, NotFound
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

CONTROLLER_MANAGER, SCHEDULER, STORE = "controller-manager", "scheduler", "etcd-0"
_PORTS = {CONTROLLER_MANAGER: 10257, SCHEDULER: 10259}
_PATIENCE_S = 2.0


async def get(call: Call) -> Response:
    form, name = call.form(), call.path.name
    await call.require("get")
    if name not in (*_PORTS, STORE):
        raise NotFound(f'componentstatus "{name}" not found', kind="componentstatus", name=name)
    wire = (await _status(call, name)).SerializeToString(deterministic=True)
    return Response(200, form.media, (call.representations.object(form, components.ROW, wire),))


async def list_(call: Call) -> Response:
    form, query = call.form(), call.request.query
    await call.require("list")
    try:
        labels = selectors.parse_labels(query.text("labelSelector"))
        fields = selectors.parse_fields(query.text("fieldSelector"), components.ROW.plural)
    except selectors.SelectorError as error:
        raise BadRequest(str(error)) from None
    found = [await _status(call, name) for name in (*_PORTS, STORE)]
    chosen = [one for one in found if labels.matches(one.metadata.labels) and fields.matches(one)]
    wires = [one.SerializeToString(deterministic=True) for one in chosen]
    return Response(
        200, form.media, await call.representations.list(form, components.ROW, meta_v1_pb2.ListMeta(), wires)
    )


async def _status(call: Call, name: str) -> core_v1_pb2.ComponentStatus:
    found = core_v1_pb2.ComponentStatus()
    found.metadata.name = name
    if name == STORE:
        failure = await call.backend.failure()
    elif name in call.settings.components:
        failure = ""
    else:
        failure = await _failure_at(_PORTS[name])
    condition = found.conditions.add(type="Healthy", status="False" if failure else "True")
    condition.message = failure or "ok"
    return found


async def _failure_at(port: int) -> str:
    """Why no healthy component listens there; empty: one does."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    url = f"https://127.0.0.1:{port}/healthz"
    try:
        async with asyncio.timeout(_PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            try:
                writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
                head = (await reader.readline()).split()
            finally:
                writer.close()
    except ConnectionRefusedError:
        return f'Get "{url}": dial tcp 127.0.0.1:{port}: connect: connection refused'
    except TimeoutError:
        return f'Get "{url}": context deadline exceeded'
    except (OSError, ValueError) as error:
        return f'Get "{url}": {error}'
    return "" if head[1:2] == [b"200"] else f"HTTP probe failed with statuscode: {b''.join(head[1:2]).decode()}"


ONE: dict[str, Handler] = {"GET": get}
ALL: dict[str, Handler] = {"GET": list_}

"""Bugs in the gateway. Shipped scenarios have no client there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kemu.emulated.gateway.verbs import deletes, reads, writes
from kemu.messages.v1 import api_pb2
from tests.mutants.unaided.planting import mutant

NO_CLIENT = "no shipped scenario has a client at the gateway; tests/gateway and kubectl's script find it"


@mutant("gateway", "an-update-through-the-gateway-forgets-its-version", survives=NO_CLIENT)
def _(patch: pytest.MonkeyPatch) -> None:
    read = writes.read

    async def forgetful(call: Any) -> Any:
        body = await read(call)
        if not body.content_type.endswith("json"):
            return body
        document = json.loads(body.data)
        document.get("metadata", {}).pop("resourceVersion", None)
        return body._replace(data=json.dumps(document).encode())

    patch.setattr(writes, "read", forgetful)


@mutant("gateway", "a-deletion-through-the-gateway-ignores-the-uid", survives=NO_CLIENT)
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deletes, "preconditions", lambda options: api_pb2.Preconditions())


@mutant("gateway", "a-list-through-the-gateway-leaves-out-the-last-object", survives=NO_CLIENT)
def _(patch: pytest.MonkeyPatch) -> None:
    answered = reads.answered

    async def short(call: Any, form: Any, found: Any) -> Any:
        if len(found.items) > 1:
            del found.items[-1]
        return await answered(call, form, found)

    patch.setattr(reads, "answered", short)

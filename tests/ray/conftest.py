from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from kemu.messages.v1 import cell_pb2_grpc
from kemu.runtime.host import control as cell
from kemu.runtime.host import tokens
from tests.ray.pairs import Cells


@pytest.fixture
async def cells(tmp_path: Path) -> AsyncIterator[Cells]:
    world = Cells()
    verifier = tokens.Verifier(world.issuer.public_key)
    async with contextlib.AsyncExitStack() as stack:
        for number in range(2):
            one = cell.Cell(f"cell-{number}", tmp_path, verifier)
            server = await cell.start_server(one, "127.0.0.1")
            stack.push_async_callback(server.stop, None)
            stack.push_async_callback(one.host.close)
            # Actors that are started show the token that they were given; ``env("test")`` has one, too.
            given = one.host.token
            one.host.token = lambda name, given=given: given(name) or world.issuer.token(name)  # type: ignore[misc]
            plain = await stack.enter_async_context(grpc.aio.insecure_channel(one.host.target))
            world.cells.append(one)
            world.controls.append(cell_pb2_grpc.CellStub(world.signed(plain, tokens.DRIVER)))
        yield world

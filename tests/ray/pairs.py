"""Two cells on the loop of a test, without Ray."""

from __future__ import annotations

import time
from typing import Any

import grpc
import grpc.aio
import msgpack
import pytest

from kemu.messages.v1 import api_pb2, api_pb2_grpc, cell_pb2, cell_pb2_grpc
from kemu.runtime.env import ActorSpec
from kemu.runtime.host import control as cell
from kemu.runtime.host import tokens
from tests.ray.world import Events


class Cells:
    """Two cells that know each other, and a connection to each as the driver has it."""

    def __init__(self) -> None:
        self.events = Events()
        self.failures: list[str] = []
        self.cells: list[cell.Cell] = []
        self.controls: list[cell_pb2_grpc.CellStub] = []
        self.issuer = tokens.Issuer()
        self.addresses: dict[str, tuple[str, int]] = {}

    async def start(self, number: int, *specs: ActorSpec) -> None:
        for one in specs:
            incarnation = self.addresses.get(one.name, ("", 0))[1] + 1
            self.addresses[one.name] = (self.cells[number].host.target, incarnation)
        await self.configure()
        await self.controls[number].Start(
            cell_pb2.StartRequest(
                actors=[
                    cell_pb2.ActorSpec(
                        name=one.name,
                        factory=one.factory,
                        config=msgpack.packb(one.config),
                        token=self.issuer.token(one.name),
                    )
                    for one in specs
                ]
            )
        )

    async def configure(self, *, begun: bool = False, speed: float = 20.0) -> None:
        for control, one in zip(self.controls, self.cells, strict=True):
            await control.Configure(
                cell_pb2.ConfigureRequest(
                    clock=cell_pb2.ClockSetting(
                        epoch_unix_ns=time.time_ns() if begun else 0, speed=speed, epoch_unix_s=1_700_000_000
                    ),
                    addresses=[
                        cell_pb2.Address(name=name, target=target, incarnation=incarnation)
                        for name, (target, incarnation) in self.addresses.items()
                    ],
                    directory=str(one.segment.path.parent.parent),
                    seed=7,
                    keepalive_timeout_s=5,
                )
            )

    def signed(self, channel: Any, actor: str) -> tokens.Signed:
        return tokens.Signed(channel, actor, self.issuer.token(actor))

    def log(self, number: int) -> Events:
        events = Events()
        for payload in self.cells[number].segment.read(0, 1 << 30):
            events(*msgpack.unpackb(payload))
        return events

    def stub(self, number: int, peer: str, caller: str = "test") -> api_pb2_grpc.ApiStub:
        return api_pb2_grpc.ApiStub(self.cells[number].host.env(caller).dial(peer))

    async def cut(self, fault: str, a: str, b: str, *, one_way: bool = False) -> None:
        await self.inject(fault, "partition", between=[[a], [b]], oneWay=one_way)

    async def inject(self, fault: str, what: str, **parameters: Any) -> None:
        kind = cell_pb2.Fault.Kind(what=what, parameters=msgpack.packb(parameters))
        for control in self.controls:
            await control.Inject(cell_pb2.Fault(id=fault, kind=kind))

    async def heal(self, fault: str) -> None:
        for control in self.controls:
            await control.Heal(cell_pb2.HealRequest(id=fault))

    def logged(self, kind: str, actor: str) -> list[dict[str, Any]]:
        """In either cell: what a connection from one to the other has met is known to its client's."""
        return [data for number in range(len(self.cells)) for data in self.log(number).of(kind, actor)]


def get(name: str = "x") -> api_pb2.GetRequest:
    return api_pb2.GetRequest(name=name)


async def code_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    code: grpc.StatusCode = caught.value.code()
    return code

"""The actor in the place of an API server: kemu's API service in front of a real one.

    config = {"kubeconfig": "", "context": "", "qps": 0.0, "burst": 0, "user_agent": "kemu", "shares": ["pods"]}

as :class:`kemu.emulated.bridge.connections.Settings`; ``shares``: collections that it watches once for all clients
(:mod:`kemu.emulated.bridge.shared_watches`); ``run``: whose clients they are, where the cluster is not theirs
(:mod:`kemu.emulated.bridge.tenants`). Others dial it by its name, as any API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from kemu.emulated.bridge import connections, services, tenants
from kemu.messages.v1 import api_pb2_grpc
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import BridgeClosed, BridgeOpened, BridgeTrouble

FACTORY = "kemu.emulated.bridge.apiservers:Bridge"
QUIET_S = 5.0
"""The same trouble is logged no more often."""


class Bridge:
    """Factory: ``kemu.emulated.bridge.apiservers:Bridge``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self._env = env
        settings = {name: value for name, value in config.items() if name not in ("shares", "run")}
        tenant = tenants.Tenant(config["run"]) if "run" in config else None
        self._connection = connections.Connection(connections.Settings(**settings))
        self._service = services.Service(env, self._connection, self._trouble, config.get("shares", ()), tenant)
        self._told: dict[str, int] = {}
        env.serve(api_pb2_grpc.add_ApiServicer_to_server, self._service)

    async def run(self) -> None:
        await self._connection.open()
        self._env.log(BridgeOpened(server=self._connection.server))
        self._service.open()
        self._env.ready()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self._connection.close()
            self._env.log(BridgeClosed(server=self._connection.server))

    def _trouble(self, why: str) -> None:
        now_ns = self._env.clock.now_ns()
        last_ns = self._told.get(why)
        if last_ns is None or now_ns - last_ns > QUIET_S * SECOND_NS:
            self._told = {text: at_ns for text, at_ns in self._told.items() if now_ns - at_ns < QUIET_S * SECOND_NS}
            self._told[why] = now_ns
            self._env.log(BridgeTrouble(message=why))

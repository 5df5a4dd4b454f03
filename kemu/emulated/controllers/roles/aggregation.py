"""The actor ``controller/clusterrole-aggregation``: gives ClusterRoles with an ``aggregationRule`` the rules of those
that it selects.

Mirrors ``pkg/controller/clusterroleaggregation``: there are few roles, so each change of one has all of them looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format

from kemu import errors
from kemu.emulated.client import informers, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.objects import selectors
from kemu.messages.k8s import rbac_v1_pb2
from kemu.runtime.env import Env

WORKERS = 5


class RoleAggregation(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.roles.aggregation:RoleAggregation``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="ClusterRoleAggregator")
        self._roles: informers.Informer[rbac_v1_pb2.ClusterRole] = informers.Informer(
            self.client,
            "clusterroles",
            handler=informers.Callbacks(
                lambda role: self._changed(), lambda old, new: self._changed(), lambda role: self._changed()
            ),
        )

    async def run(self) -> None:
        await self.begin(self._roles)
        await self.work(self.queue, self._sync, WORKERS)

    def _changed(self) -> None:
        for name, role in self._roles.store.items():
            if role.HasField("aggregationRule"):
                self.queue.add_after(name, self.lag_s())

    async def _sync(self, name: str) -> None:
        """``syncClusterRole``."""
        role = self._roles.store.get(name)
        if role is None or not role.HasField("aggregationRule"):
            return
        rules = self._gathered(role)
        if rules == list(role.rules):
            return
        patch = {"rules": [json_format.MessageToDict(rule, preserving_proto_field_name=True) for rule in rules]}
        try:
            await self.client.patch("clusterroles", name, "", patch)
        except errors.NotFound:
            return

    def _gathered(self, role: rbac_v1_pb2.ClusterRole) -> list[rbac_v1_pb2.PolicyRule]:
        """Each rule once: by selector, then by the name of the role that has it."""
        found: list[rbac_v1_pb2.PolicyRule] = []
        for selector in role.aggregationRule.clusterRoleSelectors:
            compiled = selectors.compile_labels(selector)
            for name, other in sorted(self._roles.store.items()):
                if name != role.metadata.name and compiled.matches(other.metadata.labels):
                    found += [rule for rule in other.rules if rule not in found]
        return found

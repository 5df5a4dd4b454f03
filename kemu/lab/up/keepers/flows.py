"""Keeps the flow schemas and priority levels that every cluster has, and says which schemas lead nowhere.

In Kubernetes the API server does (``pkg/registry/flowcontrol/ensurer``, ``apf_controller.go``): it looks once a minute,
restores the mandatory objects, and of the others those whose annotation says that it may.
"""

from __future__ import annotations

import contextlib
from typing import TypeVar

from kemu import errors
from kemu.emulated.client import clients, informers, retries
from kemu.emulated.objects import meta
from kemu.emulated.objects.kinds import flow_defaults
from kemu.messages.k8s import flowcontrol_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env

PERIOD_S = 60.0
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")

T = TypeVar("T", flowcontrol_v1_pb2.FlowSchema, flowcontrol_v1_pb2.PriorityLevelConfiguration)


class FlowKeeper:
    """Makes and keeps them."""

    def __init__(self, env: Env, client: clients.Client) -> None:
        self._env = env
        self._client = client
        self._levels: informers.Informer[flowcontrol_v1_pb2.PriorityLevelConfiguration] = informers.Informer(
            client, "prioritylevelconfigurations", handler=self
        )
        self._schemas: informers.Informer[flowcontrol_v1_pb2.FlowSchema] = informers.Informer(
            client, "flowschemas", handler=self
        )

    async def begin(self) -> None:
        """Returns when all of them are there."""
        for one in (*flow_defaults.LEVELS, *flow_defaults.SCHEMAS):
            with contextlib.suppress(errors.AlreadyExists):
                await self._create(one)
        await self._levels.synced()
        await self._schemas.synced()
        self._env.spawn(self._ensure_on(), "keep flow schemas")

    async def _create(self, wanted: KubernetesObject) -> None:
        await retries.patiently(self._env, lambda: self._client.create(wanted))

    async def _ensure_on(self) -> None:
        while True:
            await self._env.clock.sleep(PERIOD_S, background=True)
            for level in flow_defaults.LEVELS:
                await self._ensure(level, self._levels.store.get(level.metadata.name))
            for schema in flow_defaults.SCHEMAS:
                await self._ensure(schema, self._schemas.store.get(schema.metadata.name))

    async def _ensure(self, wanted: T, found: T | None) -> None:
        """``EnsureConfiguration``."""
        name = wanted.metadata.name
        with contextlib.suppress(errors.AlreadyExists, errors.Conflict, errors.NotFound):
            if found is None:
                await self._create(wanted)
                return
            is_mandatory = name in flow_defaults.MANDATORY_LEVELS
            stated = found.metadata.annotations.get(flow_defaults.AUTOUPDATE, "")
            updates = is_mandatory or stated in _TRUE or (stated not in _FALSE and found.metadata.generation == 1)
            is_marked = stated in (_TRUE if updates else _FALSE)
            differs = updates and not _same(wanted, found)
            if is_marked and not differs:
                return
            revised = type(found)()
            revised.CopyFrom(found)
            if differs:
                exempt = _exempt(found)
                revised.spec.CopyFrom(wanted.spec)
                if exempt is not None:
                    _put_exempt(revised, exempt)
            revised.metadata.annotations[flow_defaults.AUTOUPDATE] = "true" if updates else "false"
            await retries.patiently(self._env, lambda: self._client.update(revised))

    # Of the informers

    def on_add(self, obj: KubernetesObject) -> None:
        self._look(obj)

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        self._look(new)

    def on_delete(self, old: KubernetesObject) -> None:
        self._look(old)

    def _look(self, obj: KubernetesObject) -> None:
        """A schema has changed, or the level of some."""
        name = obj.metadata.name
        for schema in list(self._schemas.store.values()):
            level = schema.spec.priorityLevelConfiguration.name
            if name in (level, schema.metadata.name) and _dangling(schema) != self._wanted(level):
                self._env.spawn(self._tell(schema.metadata.name), f"status of flow schema {schema.metadata.name}")

    def _wanted(self, level: str) -> tuple[str, str, str]:
        text = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
        if level in self._levels.store:
            return "False", "Found", f"{text} and it exists"
        return "True", "NotFound", f"{text} but there is no such object"

    async def _tell(self, name: str) -> None:
        while True:
            found = self._schemas.store.get(name)
            if found is None:
                return
            wanted = self._wanted(found.spec.priorityLevelConfiguration.name)
            if _dangling(found) == wanted:
                return
            revised = type(found)()
            revised.CopyFrom(found)
            conditions = revised.status.conditions
            condition = next((one for one in conditions if one.type == "Dangling"), None)
            if condition is None:
                condition = conditions.add(type="Dangling")
            if condition.status != wanted[0]:
                meta.set_time(condition.lastTransitionTime, self._env.clock.unix_ns())
            condition.status, condition.reason, condition.message = wanted
            try:
                await self._client.update_status(revised)
            except (errors.Conflict, *retries.PASSING):
                await self._env.clock.pause(0.1)
                continue
            except errors.NotFound:
                pass
            return


def _same(wanted: T, found: T) -> bool:
    """The contents of ``exempt`` are the administrator's."""
    copy = type(found)()
    copy.CopyFrom(found)
    exempt = _exempt(wanted)
    if exempt is not None:
        _put_exempt(copy, exempt)
    return bool(copy.spec == wanted.spec)


def _exempt(obj: KubernetesObject) -> flowcontrol_v1_pb2.ExemptPriorityLevelConfiguration | None:
    if isinstance(obj, flowcontrol_v1_pb2.PriorityLevelConfiguration) and obj.spec.HasField("exempt"):
        return obj.spec.exempt
    return None


def _put_exempt(obj: KubernetesObject, exempt: flowcontrol_v1_pb2.ExemptPriorityLevelConfiguration) -> None:
    assert isinstance(obj, flowcontrol_v1_pb2.PriorityLevelConfiguration)
    obj.spec.exempt.CopyFrom(exempt)


def _dangling(schema: flowcontrol_v1_pb2.FlowSchema) -> tuple[str, str, str] | None:
    for one in schema.status.conditions:
        if one.type == "Dangling":
            return one.status, one.reason, one.message
    return None

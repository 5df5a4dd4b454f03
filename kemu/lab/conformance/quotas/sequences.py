"""Sequences of requests under quotas and limit ranges, judged by the code that runs in API servers and controllers.

Quotas are in a small store that takes a write only with the resource version that it has. The API server knows them as
of the last step ``see``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.admission import limit_ranges
from kemu.emulated.apiserver.admission.quotas import checks, limited_resources
from kemu.emulated.apiserver.admission.quotas.accounts import Accounts
from kemu.emulated.apiserver.admission.quotas.evaluations import Evaluations
from kemu.emulated.controllers import quotas as quota_controller
from kemu.emulated.objects import meta, plain, resources
from kemu.emulated.objects.amounts import qos, resource_lists
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.quotas import quotas, registry, usages
from kemu.emulated.objects.quotas.evaluators import Surroundings
from kemu.emulated.objects.quotas.quotas import Quota
from kemu.lab.conformance import comparisons, readings
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.sim.simulation import SimRuntime

Json = dict[str, Any]
NAMESPACE = "ns"
QUOTAS = resources.BY_PLURAL["resourcequotas"]
WRITE_S = 0.9
"""How long it takes to write the status of a quota while requests come together."""


def answer(case: Json) -> Json:
    runtime = SimRuntime(0, lambda *entry: None, {})
    world = _World(runtime.env("conformance"), case)
    return {"outcomes": [{"steps": runtime.run(world.play(runtime))}]}


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs from the record. Quotas and limit ranges may be asked in any order: each outcome is right."""
    nearest: list[str] | None = None
    for outcome in expect["outcomes"]:
        found = comparisons.compare(outcome, answered["outcomes"][0], _messages)
        if not found:
            return []
        nearest = found if nearest is None or len(found) < len(nearest) else nearest
    return nearest or ["nothing was recorded"]


def _messages(path: str, recorded: plain.Json, answered: plain.Json, found: list[str]) -> bool:
    """Limit ranges complain of several resources in any order."""
    if not (path.endswith(".message") and isinstance(recorded, str) and isinstance(answered, str)):
        return False
    if sorted(recorded) != sorted(answered) or ("[" not in recorded and recorded != answered):
        found.append(f"{path}: recorded {recorded!r}, kemu {answered!r}")
    return True


class _Around(Surroundings):
    """The classes of the case, the pods and claims that there are."""

    def __init__(self, case: Json, objects: Mapping[str, Mapping[str, Any]]) -> None:
        classes = case.get("deviceClasses") or ()
        self._classes = {one["metadata"]["name"]: one["spec"].get("extendedResourceName", "") for one in classes}
        self._objects = objects

    def classes(self) -> Mapping[str, str]:
        return self._classes

    def pod(self, namespace: str, name: str) -> core_v1_pb2.Pod | None:
        return self._objects.get("pods", {}).get(name)

    def claims(self, namespace: str) -> Iterable[Any]:
        return self._objects.get("resourceclaims", {}).values()


class _World:
    def __init__(self, env: Env, case: Json) -> None:
        self._env = env
        self._case = case
        self._revision = 0
        self._delay_s = 0.0
        self._stored: dict[str, core_v1_pb2.ResourceQuota] = {}
        self._seen: dict[str, core_v1_pb2.ResourceQuota] = {}
        self._objects: dict[str, dict[str, Any]] = {}
        self._around = _Around(case, self._objects)
        self._reported: dict[str, Json] = {}
        self._ranges = [_read(resources.BY_PLURAL["limitranges"], one) for one in case.get("limitRanges") or ()]
        self._evaluations = Evaluations(
            env, Accounts(self, self._write), limited_resources.read(case.get("limitedResources") or ())
        )

    def of(self, namespace: str) -> list[Quota]:
        """What the API server has seen."""
        return [quotas.read(self._seen[name]) for name in sorted(self._seen)]

    async def play(self, runtime: SimRuntime) -> list[Json]:
        await runtime.begin()
        results = []
        for step in self._case["steps"]:
            result = await self._step(step)
            results.append({**result, "quotas": self._changes()})
        return results

    async def _step(self, step: Json) -> Json:
        do, name = step["do"], step.get("name", "")
        if do == "quota":
            self._put_quota(step["object"])
        elif do == "dropQuota":
            self._stored.pop(name, None)
        elif do == "see":
            self._seen = dict(self._stored)
        elif do == "wait":
            await self._env.clock.sleep(step["seconds"])
        elif do == "charge":
            self._charge(step)
        elif do == "sync":
            return await self._sync(name, stale=step.get("stale", False))
        elif do == "remove":
            self._objects.get(step["resource"], {}).pop(name, None)
        elif do == "delete":
            return self._delete(step)
        elif do == "together":
            return await self._together(step)
        else:
            return await self._request(step)
        return {}

    # --- the store ---------------------------------------------------------------------------------------------------

    def _store(self, quota: core_v1_pb2.ResourceQuota) -> int:
        self._revision += 1
        quota.metadata.resourceVersion = str(self._revision)
        self._stored[quota.metadata.name] = quota
        return self._revision

    async def _write(self, quota: core_v1_pb2.ResourceQuota) -> int:
        if self._delay_s:
            await self._env.clock.sleep(self._delay_s)
        name = quota.metadata.name
        there = self._stored.get(name)
        if there is None:
            raise errors.not_found(QUOTAS, name)
        if quota.metadata.resourceVersion != there.metadata.resourceVersion:
            raise errors.modified(QUOTAS, name)
        now = meta.copied(there)
        now.status.CopyFrom(quota.status)
        return self._store(now)

    def _put_quota(self, data: Json) -> None:
        quota = _read(QUOTAS, data)
        there = self._stored.get(quota.metadata.name)
        quota.ClearField("status")
        if there is not None and there.HasField("status"):
            quota.status.CopyFrom(there.status)
        self._store(quota)

    def _charge(self, step: Json) -> None:
        """By another API server."""
        there = self._stored.get(step["name"])
        if there is None:
            return
        now = meta.copied(there)
        quota = quotas.read(there)
        more = core_v1_pb2.ResourceQuota()
        for name, text in step["used"].items():
            more.status.used[name].string = text
        charged = resource_lists.only(resource_lists.read(more.status.used), quota.hard)
        resource_lists.write(now.status.used, resource_lists.add(quota.used, charged))
        self._store(now)

    def _changes(self) -> Json:
        found = {}
        for name, quota in self._stored.items():
            state = {"hard": _texts(quotas.read(quota).hard), "used": _texts(quotas.read(quota).used)}
            if self._reported.get(name) != state:
                self._reported[name] = state
                found[name] = state
        return found

    # --- steps -------------------------------------------------------------------------------------------------------

    async def _sync(self, name: str, *, stale: bool) -> Json:
        quota = (self._seen if stale else self._stored).get(name)
        if quota is None:
            return {}
        changed = quota_controller.recount(quota, self._counted, self._env.clock.unix_ns(), around=self._around)
        try:
            if changed is not None:
                await self._write(changed)
        except kemu_errors.ApiError as error:
            return {"message": error.message}
        return {}

    def _counted(self, plural: str) -> Iterable[tuple[Any, int]]:
        crowd = usages.Crowd(registry.EVALUATORS.get(plural) or registry.of_custom(plural))
        for name, obj in self._objects.get(plural, {}).items():
            crowd.put(name, obj)
        return crowd.counted()

    def _delete(self, step: Json) -> Json:
        obj = self._objects.get(step["resource"], {}).get(step["name"])
        if obj is None:
            return {}
        new = meta.copied(obj)
        now_unix_ns = self._env.clock.unix_ns()
        meta.set_time(new.metadata.deletionTimestamp, now_unix_ns + step.get("seconds", 0) * SECOND_NS)
        new.metadata.deletionGracePeriodSeconds = step.get("seconds", 0)
        self._objects[step["resource"]][step["name"]] = new
        return {"frees": registry.EVALUATORS[step["resource"]].frees(obj, new, now_unix_ns)}

    async def _together(self, step: Json) -> Json:
        self._delay_s = WRITE_S
        tasks = []
        for one in step["requests"]:
            tasks.append(self._env.spawn(self._request(one), "request"))
            # Each came when those before it waited for a write.
            for _ in range(20):
                await asyncio.sleep(0)
        if step.get("charge"):
            await self._env.clock.sleep(WRITE_S / 2)
            self._charge(step["charge"])
            if not step["charge"].get("stale"):
                self._seen = dict(self._stored)
        results = await asyncio.gather(*tasks)
        self._delay_s = 0.0
        return {"together": results}

    async def _request(self, step: Json) -> Json:
        do, plural = step["do"], step["resource"]
        resource = resources.BY_PLURAL[plural]
        obj = _read(resource, step["object"])
        old = None if do == "create" else self._objects.get(plural, {}).get(obj.metadata.name)
        if do != "create" and old is None:
            return {"message": "there is nothing to update"}
        result: Json = {}
        evaluator = registry.EVALUATORS[plural].within(self._around)
        error = None
        try:
            await self._admit(do, resource, obj, old, result)
        except kemu_errors.ApiError as refusal:
            error = refusal
            # A plain error of Go has no reason in the terms of the API.
            reason = "" if error.reason == "Unknown" else error.reason
            result |= {"message": error.message, "reason": reason}
        now_unix_ns = self._env.clock.unix_ns()
        result["usage"] = _texts(evaluator.usage(obj, now_unix_ns))
        if error is None:
            if old is not None:
                result["frees"] = evaluator.frees(old, obj, now_unix_ns)
            self._objects.setdefault(plural, {})[obj.metadata.name] = obj
        return result

    async def _admit(
        self,
        do: str,
        resource: resources.Resource,
        obj: Any,
        old: Any,
        result: Json,
    ) -> None:
        plural = resource.plural
        ranged = (
            do in ("create", "resize") if plural == "pods" else do != "status" and plural == "persistentvolumeclaims"
        )
        ranged = ranged and not (old is not None and old.metadata.HasField("deletionTimestamp"))
        if plural == "pods" and ranged:
            for one in self._ranges:
                limit_ranges.complete(one, obj)
        if plural == "pods" and do == "create":
            result["completed"] = _completed(obj)
            obj.ClearField("status")
            obj.status.phase, obj.status.qosClass = "Pending", qos.qos_class(obj)
        if ranged:
            for one in self._ranges:
                found = limit_ranges.problems(one, obj)
                if found:
                    raise errors.forbidden(resource, obj.metadata.name, found)
        operation = checks.CREATE if do == "create" else checks.UPDATE
        subresource = do if do in ("resize", "status") else ""
        request = checks.Request(operation, resource, obj, old, subresource, around=self._around)
        if checks.concerns(request):
            await self._evaluations.evaluate(request)


def _read(resource: resources.Resource, data: Json) -> Any:
    obj: Any = readings.read(resource.message, data)
    obj.metadata.namespace = NAMESPACE
    defaults.apply(obj)
    return obj


def _completed(pod: core_v1_pb2.Pod) -> Json:
    found: Json = {key: text for key, text in pod.metadata.annotations.items() if key.startswith("kubernetes.io/")}
    for container in (*pod.spec.containers, *pod.spec.initContainers):
        for which in ("requests", "limits"):
            amounts = getattr(container.resources, which)
            if amounts:
                found[f"{container.name} {which}"] = _texts(resource_lists.read(amounts))
    return found


def _texts(amounts: Mapping[str, Any]) -> Json:
    return {name: str(amounts[name]) for name in amounts}

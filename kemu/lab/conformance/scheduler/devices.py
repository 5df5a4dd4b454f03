"""Recorded decisions about pods with ResourceClaims, made again: the decision, what each node would allocate, and what
binding, or PostFilter, writes.

A second passes between the steps, as in the recorder: the claims are there, the decision is made, the pod is bound.
Calls and watch events take no time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from kemu import errors
from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.devices import results
from kemu.emulated.scheduler.devices.pod_claims import PodClaims
from kemu.emulated.scheduler.devices.trackers import Claim, Devices
from kemu.emulated.scheduler.framework.events import Event
from kemu.emulated.scheduler.framework.interfaces import SKIP, Api, Cycle, Handle
from kemu.emulated.scheduler.framework.statuses import Status
from kemu.emulated.scheduler.plugins import in_tree
from kemu.emulated.scheduler.plugins.dynamic_resources import DynamicResources
from kemu.lab.conformance.scheduler import decisions, judgements
from kemu.lab.conformance.scheduler.decisions import Asked
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.sim.simulation import SimRuntime

Json = dict[str, Any]
_STEP_S = 1.0
_LATE_NS = 1_000_000
_OWN = ("preEnqueue", "allocations", "bound", "written", "hints")
"""What a decision about other pods does not have."""
_EVENTS: dict[str, tuple[Any, Event, Event]] = {
    "ResourceClaim": (Claim, Event.RESOURCE_CLAIM_ADD, Event.RESOURCE_CLAIM_UPDATE),
    "DeviceClass": (resource_v1_pb2.DeviceClass, Event.DEVICE_CLASS_ADD, Event.DEVICE_CLASS_UPDATE),
    "Pod": (core_v1_pb2.Pod, Event.POD_GENERATED_CLAIM, Event.POD_GENERATED_CLAIM),
}
_FROM_CALLER = re.compile(r'"(shareID|allocationTimestamp)": ?"[^"]*"')


def answer(case: Json) -> Json:
    """Raises ConfigurationError or ConversionError for a case that makes no sense."""
    runtime = SimRuntime(0, lambda now_ns, actor, kind, data: None)
    world = _World(case, runtime.env("scheduler"))

    async def main() -> None:
        await runtime.begin()
        await world.play()

    runtime.run(main())
    return world.found


class _World:
    """Scheduler and API of one case."""

    def __init__(self, case: Json, env: Env) -> None:
        self.case = case
        self.env = env
        self.clock = env.clock
        self.found: Json = {"id": case["id"]}
        self.claims: dict[str, Claim] = {}
        self.pod = convert.from_json(core_v1_pb2.Pod, case["pod"])
        self.told: Any = None
        self._versions = 0
        self.is_set_up = False
        cluster = self.cluster = decisions.cluster_of(case)
        devices = self.devices = cluster.devices = Devices(env.clock)
        for data in case.get("deviceClasses", ()):
            devices.set_class(convert.from_json(resource_v1_pb2.DeviceClass, data))
        for data in case.get("resourceSlices", ()):
            devices.set_slice(convert.from_json(resource_v1_pb2.ResourceSlice, data), is_there=True)
        for data in case.get("resourceClaims", ()):
            claim = convert.from_json(Claim, data)
            ago = case.get("allocatedAgoS", {}).get(claim.metadata.name)
            if ago is not None:
                then_ns = self.clock.unix_ns() - ago * SECOND_NS
                meta.set_time(claim.status.allocation.allocationTimestamp, then_ns)
            self._put(claim)
        handle = Handle(cluster, env.random)
        handle.clock, handle.api, handle.spawn = env.clock, cast(Api, self), env.spawn
        handle.latest = lambda pod: pod.pod
        configuration = configurations.profile_of(case.get("profile") or {}, "profile")
        profile = Profile(configuration, handle, in_tree.REGISTRY)
        self.decider = Asked(profile, cluster, env.random, percentage_of_nodes=100)
        self.plugin = cast(DynamicResources, profile.plugins["DynamicResources"])
        self.before = dict(self.claims)
        self.is_set_up = True

    async def play(self) -> None:
        await self.clock.sleep(_STEP_S)
        pod = self.cluster.pending(self.pod)
        status = self.plugin.pre_enqueue(pod)
        if status is not None:
            self.found["preEnqueue"] = _said(status)
        hints = [self._hints(one, pod) for one in self.case.get("hints", ())]
        if hints:
            self.found["hints"] = hints
        self.found.update(decisions.decision(self.decider, pod))
        came, made = self.decider.came, self.decider.made
        if came is not None and came.write is not None:
            await came.write()
        await self.clock.sleep(_STEP_S)
        written = self._written()
        if written:
            self.found["written"] = written
        if not self.found["feasible"]:
            return
        assert made is not None
        assert made.filtering is not None
        cycle = made.filtering.cycle
        state = cycle.data["DynamicResources"]
        if isinstance(state, PodClaims):
            self.found["allocations"] = {
                node: self._plan(state, node) for node in self.found["feasible"] if node in state.by_node
            }
        best = self.found["best"] if "best" in self.found else self.found["feasible"]
        await self._bind(cycle, best[0])

    def _hints(self, event: Json, pod: PodInfo) -> dict[str, bool]:
        """By plugin, whether an event might help the pod."""
        message, added, updated = _EVENTS[event["kind"]]
        new = convert.from_json(message, event["new"])
        old = None if event["old"] is None else convert.from_json(message, event["old"])
        found: dict[str, bool] = {}
        for name in ("DynamicResources", "NodeResourcesFit"):
            hints = dict(self.decider.profile.plugins[name].events())
            what = added if old is None else updated
            if what in hints:
                hint = hints[what]
                found[name] = hint is None or hint(pod, old, new)
        return found

    def _plan(self, state: PodClaims, node: str) -> Json:
        plan = state.by_node[node]
        found: Json = {}
        if plan.plans:
            found["results"] = [convert.to_json(results.allocation(one, node, lambda: "new")) for one in plan.plans]
        if plan.special is not None and plan.special.spec.devices.requests:
            found["requests"] = [convert.to_json(one) for one in plan.special.spec.devices.requests]
        if plan.mappings:
            found["mappings"] = [
                {"containerName": one.container, "resourceName": one.resource, "requestName": one.request}
                for one in plan.mappings
            ]
        return found

    async def _bind(self, cycle: Cycle, node: str) -> None:
        found = self.found["bound"] = {"node": node}
        start_ns = self.clock.now_ns()
        status = self.plugin.reserve(cycle, node)
        if status is not None:
            found["reserve"] = _said(status)
        else:
            for one in self.case.get("drivers", ()):
                self.clock.call_at_ns(start_ns + round(one["atS"] * SECOND_NS), self._drive, one)
            answer = self.plugin.pre_bind_pre_flight(cycle, node)
            status = None if answer is SKIP else await self.plugin.pre_bind(cycle, node)
            if status is not None:
                found["preBind"] = _said(status)
        found["endedAtS"] = round((self.clock.now_ns() - start_ns) / SECOND_NS, 3)
        found.update(self._written())
        if status is not None:
            self.plugin.unreserve(cycle, node)
            await self.clock.sleep(_STEP_S)
            unreserved = self._written()
            if unreserved:
                found["unreserved"] = unreserved

    def _drive(self, one: Json) -> None:
        claim = self.claims.get(f"default/{one['claim']}")
        if claim is not None:
            now = meta.copied(claim)
            del now.status.devices[:]
            for data in one["devices"]:
                now.status.devices.append(convert.from_json(resource_v1_pb2.AllocatedDeviceStatus, data))
            self._put(now)

    def _written(self) -> Json:
        """The claims that are no longer as they were, and what the pod is told."""
        found: Json = {}
        for key, claim in self.claims.items():
            if self.before.get(key) is claim:
                continue
            one: Json = {
                "status": convert.to_json(claim).get("status", {}),
                "finalizers": list(claim.metadata.finalizers),
            }
            if key not in self.before:
                data = convert.to_json(claim)
                one["spec"], one["annotations"] = data["spec"], data["metadata"]["annotations"]
                one["owners"], one["generateName"] = data["metadata"]["ownerReferences"], claim.metadata.generateName
            found[key] = one
        found.update({key: None for key in self.before if key not in self.claims})
        written: Json = {"claims": found} if found else {}
        if self.told is not None:
            written["pod"] = self.told
        return written

    # The API as the plugin calls it ---------------------------------------------------------------------------------

    def _put(self, claim: Claim) -> Claim:
        self._versions += 1
        claim.metadata.resourceVersion = str(self._versions)
        key = meta.namespaced_name(claim)
        self.claims[key] = claim
        if self.is_set_up and key not in self.devices.claims:
            # The watch shows a new claim when PreBind has looked for it already.
            self.clock.call_at_ns(self.clock.now_ns() + _LATE_NS, self.devices.set_claim, claim)
        else:
            self.devices.set_claim(claim)
        return claim

    def _changed(self, claim: Claim) -> Claim:
        key = meta.namespaced_name(claim)
        if key not in self.claims:
            raise errors.NotFound(f'resourceclaims.resource.k8s.io "{claim.metadata.name}" not found')
        if self.claims[key].metadata.resourceVersion != claim.metadata.resourceVersion:
            raise errors.Conflict("it has changed")
        made = meta.copied(claim)
        return self._put(made)

    async def create(self, claim: Claim) -> Claim:
        made = meta.copied(claim)
        made.metadata.name, made.metadata.uid = f"{claim.metadata.generateName}generated", "uid-generated"
        return self._put(made)

    async def get(self, resource: str, name: str, namespace: str = "") -> Claim:
        return self.claims[f"{namespace}/{name}"]

    async def update(self, claim: Claim) -> Claim:
        return self._changed(claim)

    async def update_status(self, claim: Claim) -> Claim:
        return self._changed(claim)

    async def patch(
        self,
        resource: str,
        name: str,
        namespace: str,
        patch: Mapping[str, Any],
        subresource: str = "",
        type: str = "merge",  # noqa: A002 - the field's word
        uid: str = "",
    ) -> None:
        if resource == "pods":
            self.told = patch["status"]["extendedResourceClaimStatus"]
            return
        claim = self.claims.get(f"{namespace}/{name}")
        if claim is None:
            raise errors.NotFound(f'resourceclaims.resource.k8s.io "{name}" not found')
        now = meta.copied(claim)
        gone = {one["uid"] for one in patch["status"]["reservedFor"]}
        kept = [one for one in now.status.reservedFor if one.uid not in gone]
        del now.status.reservedFor[:]
        now.status.reservedFor.extend(kept)
        self._put(now)

    async def delete(self, resource: str, name: str, namespace: str = "", *, uid: str = "") -> None:
        claim = self.claims.pop(f"{namespace}/{name}", None)
        if claim is None:
            raise errors.NotFound(f'resourceclaims.resource.k8s.io "{name}" not found')
        self.devices.remove_claim(claim)


def _said(status: Status) -> Json:
    return {"code": status.code, "reasons": list(status.reasons)}


# The comparison -----------------------------------------------------------------------------------------------------


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs, one line each. The IDs of shares and the times of allocations are anybody's."""
    found = judgements.agrees(
        {key: value for key, value in expect.items() if key not in _OWN},
        {key: value for key, value in answered.items() if key not in _OWN},
    )
    for key in _OWN:
        found += _differences(key, _plain(expect.get(key)), _plain(answered.get(key)))
    return found


def _plain(data: Any) -> Any:
    """The recorder's plugin adds the time to the allocations that it planned."""
    text = _FROM_CALLER.sub(
        lambda found: f'"{found[1]}":"{"" if found[1] == "allocationTimestamp" else "given"}"', json.dumps(data)
    )
    return _without_empty(json.loads(text)) or {}


def _without_empty(data: Any) -> Any:
    """Without fields that say nothing; null says that a claim is gone."""
    if isinstance(data, dict):
        kept = {key: _without_empty(value) for key, value in data.items() if key != "requests" or value is not None}
        return {key: value for key, value in kept.items() if value not in ({}, [], "") and value is not False}
    return [_without_empty(one) for one in data] if isinstance(data, list) else data


def _differences(path: str, recorded: object, ours: object) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(ours, dict):
        for key in sorted({*recorded, *ours}):
            yield from _differences(f"{path}.{key}", recorded.get(key, "nothing"), ours.get(key, "nothing"))
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for place, (one, other) in enumerate(zip(recorded, ours, strict=True)):
            yield from _differences(f"{path}[{place}]", one, other)
    elif recorded != ours:
        yield f"{path}: recorded {json.dumps(recorded)}, kemu {json.dumps(ours)}"

"""Tells in the status of validating admission policies which of their expressions do not suit the kinds that they
match (``pkg/controller/validatingadmissionpolicystatus``)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kemu import errors
from kemu.emulated.apiserver.admission.external import type_checks
from kemu.emulated.apiserver.admission.external.type_checks import Named, Typed
from kemu.emulated.client import clients, informers, retries
from kemu.emulated.gateway.openapi import custom, schemas
from kemu.emulated.objects import custom_kinds, events, resources
from kemu.emulated.objects.kinds import autoscalers
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s.admissionregistration_v1_pb2 import ValidatingAdmissionPolicy
from kemu.runtime.env import SECOND_NS, Env

if TYPE_CHECKING:
    from kemu.emulated import cel

_DEFINITIONS = "customresourcedefinitions"
_BUILT_IN = (*resources.RESOURCES, events.ROW, autoscalers.ROW)


class PolicyTypeKeeper:
    def __init__(self, env: Env, client: clients.Client) -> None:
        self._env = env
        self._client = client
        self._policies: informers.Informer[ValidatingAdmissionPolicy] = informers.Informer(
            client,
            "validatingadmissionpolicies",
            handler=informers.Callbacks(on_add=self._look, on_update=lambda old, new: self._look(new)),
        )
        self._busy: set[str] = set()
        """Names of policies that are being checked."""

    async def begin(self) -> None:
        await self._policies.synced()

    def _look(self, policy: ValidatingAdmissionPolicy) -> None:
        name = policy.metadata.name
        if name not in self._busy and _is_new(policy):
            self._busy.add(name)
            self._env.spawn(self._check(name), f"check types of {name}")

    async def _check(self, name: str) -> None:
        try:
            while (policy := self._policies.store.get(name)) is not None and _is_new(policy):
                await self._tell(policy)
                await self._env.clock.pause(0.1)
        finally:
            self._busy.discard(name)

    async def _tell(self, policy: ValidatingAdmissionPolicy) -> None:
        rows = await self._rows(policy)
        moment = self._env.clock.unix_ns() % SECOND_NS
        kinds = [Typed(_named(row), _type_of(row, moment)) for row in _matched(policy, rows)]
        params = next((_type_of(row, moment) for row in rows if _is_param(policy, row)), None)
        found = type_checks.check(policy, kinds, params)
        status = {
            "observedGeneration": policy.metadata.generation,
            "typeChecking": {
                "expressionWarnings": [{"fieldRef": path, "warning": text} for path, text in found] or None
            },
        }
        metadata = policy.metadata
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await retries.patiently(
                self._env,
                lambda: self._client.patch(
                    "validatingadmissionpolicies", metadata.name, "", {"status": status}, "status", uid=metadata.uid
                ),
            )

    async def _rows(self, policy: ValidatingAdmissionPolicy) -> list[Resource]:
        """Those that the policy may name; custom ones as they are now."""
        if _DEFINITIONS not in resources.BY_PLURAL:
            return list(_BUILT_IN)
        definitions: Any = await retries.patiently(self._env, lambda: self._client.list(_DEFINITIONS))
        found = [row for one in definitions.items for row in custom_kinds.rows(one).values()]
        return [*_BUILT_IN, *found]


def _is_new(policy: ValidatingAdmissionPolicy) -> bool:
    return policy.metadata.generation > policy.status.observedGeneration


def _is_param(policy: ValidatingAdmissionPolicy, row: Resource) -> bool:
    kind = policy.spec.paramKind
    return policy.spec.HasField("paramKind") and (row.api_version, row.kind) == (kind.apiVersion, kind.kind)


def _named(row: Resource) -> Named:
    group, _, version = row.api_version.rpartition("/")
    return Named(group, version, row.kind)


def _matched(policy: ValidatingAdmissionPolicy, rows: list[Resource]) -> list[Resource]:
    """``typesToCheck``: at most ten of the rules together, by group, version and kind."""
    found: dict[Named, Resource] = {}
    for rule in policy.spec.matchConstraints.resourceRules:
        named = (row for wanted in type_checks.named_by(rule) for row in _of(rows, *wanted))
        for count, row in enumerate(named, 1):
            found[_named(row)] = row
            if count == type_checks.MOST_KINDS:
                return [found[name] for name in sorted(found)]
    return [found[name] for name in sorted(found)]


def _of(rows: list[Resource], group: str, version: str, plural: str) -> Iterator[Resource]:
    """What a REST mapper finds: to it an empty group is any."""
    for row in rows:
        named = _named(row)
        if group in ("", named.group) and named.version == version and plural in (row.collection, row.kind.lower()):
            yield row


# Types ----------------------------------------------------------------------------------------------------------------


def _type_of(row: Resource, moment: int) -> cel.types.Type:
    """``moment``: a number that makes the name unlike any that users give."""
    from kemu.emulated import cel

    collection = schemas.Collection()
    if isinstance(row, custom_kinds.CustomResource):
        name = custom.add(collection, row)
    else:
        descriptor: Any = row.message.DESCRIPTOR
        name = collection.refer(descriptor)["$ref"]
    whole = _inlined({"$ref": name}, collection.found, ())
    found = cel.schemas.declared(whole, root=True, name=f"{row.kind}{moment}")
    assert found is not None, row
    return found


def _inlined(schema: Mapping[str, Any], known: Mapping[str, Any], around: tuple[str, ...]) -> dict[str, Any]:
    """The schema with others in the place of references to them; nothing is said of what refers to itself
    (``resolver.PopulateRefs``)."""
    wrapped = (one["$ref"] for one in schema.get("allOf", ()) if "$ref" in one)
    reference = schema.get("$ref") or next(wrapped, "")
    if reference:
        name = reference.removeprefix(schemas.REFERENCE)
        if name in around:
            return {"type": "object"}
        schema, around = known[name], (*around, name)
    made = dict(schema)
    if made.get("format") == "int-or-string":
        made["x-kubernetes-int-or-string"] = True
    for word in ("items", "additionalProperties"):
        if isinstance(made.get(word), Mapping):
            made[word] = _inlined(made[word], known, around)
    if "properties" in made:
        made["properties"] = {name: _inlined(one, known, around) for name, one in made["properties"].items()}
    return made

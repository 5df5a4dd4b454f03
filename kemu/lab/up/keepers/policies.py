"""Tells in the status of each ValidatingAdmissionPolicy which of its expressions do not fit the kinds that it is about
(``validatingadmissionpolicystatus``)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import Descriptor

from kemu import errors
from kemu.emulated.apiserver.admission.external import type_checks
from kemu.emulated.apiserver.admission.external.type_checks import Kind
from kemu.emulated.client import clients, informers, retries
from kemu.emulated.gateway.openapi import schemas
from kemu.emulated.objects import custom_kinds, events, resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.kinds import autoscalers
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.runtime.env import SECOND_NS, Env

if TYPE_CHECKING:
    from kemu.emulated.cel.types import Type

_PLURAL = "validatingadmissionpolicies"
_ROWS = (*resources.RESOURCES, events.ROW, autoscalers.ROW)


class PolicyKeeper:
    def __init__(self, env: Env, client: clients.Client) -> None:
        self._env = env
        self._client = client
        self._policies: informers.Informer[v1.ValidatingAdmissionPolicy] = informers.Informer(
            client,
            _PLURAL,
            handler=informers.Callbacks(on_add=self._look, on_update=lambda old, new: self._look(new)),
        )
        self._definitions: informers.Informer[CustomResourceDefinition] = informers.Informer(
            client, custom_kinds.DEFINITIONS
        )

    async def begin(self) -> None:
        await self._definitions.synced()
        await self._policies.synced()

    def _look(self, policy: v1.ValidatingAdmissionPolicy) -> None:
        if policy.metadata.generation > policy.status.observedGeneration:
            self._env.spawn(self._tell(policy), f"types of {policy.metadata.name}")

    async def _tell(self, policy: v1.ValidatingAdmissionPolicy) -> None:
        warnings = [convert.to_json(one) for one in self._check(policy)]
        checked: dict[str, Any] = {"expressionWarnings": warnings} if warnings else {}
        status = {"observedGeneration": policy.metadata.generation, "typeChecking": checked}
        metadata = policy.metadata
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await retries.patiently(
                self._env,
                lambda: self._client.patch(_PLURAL, metadata.name, "", {"status": status}, "status", uid=metadata.uid),
            )

    def _check(self, policy: v1.ValidatingAdmissionPolicy) -> list[v1.ExpressionWarning]:
        kinds: set[Kind] = set()
        for named in type_checks.resources_of(policy):
            found = [kind for one in named for kind in self._kinds_of(*one)]
            kinds.update(found[: type_checks.MOST_KINDS])
            if len(found) >= type_checks.MOST_KINDS:
                break
        typed = [(kind, declared) for kind in sorted(kinds) if (declared := self._type_of(kind)) is not None]
        param, group_version = policy.spec.paramKind, policy.spec.paramKind.apiVersion
        group, _, version = group_version.rpartition("/")
        params = self._type_of(Kind(group, version, param.kind)) if policy.spec.HasField("paramKind") else None
        return type_checks.check(policy, typed, params)

    def _kinds_of(self, group: str, version: str, plural: str) -> list[Kind]:
        """As ``RESTMapper.KindsFor``: the core group stands for all groups."""
        found = [
            Kind(row.group, version, row.kind)
            for row in _ROWS
            if row.collection == plural and row.api_version.rpartition("/")[2] == version and group in ("", row.group)
        ]
        for name, definition in sorted(self._definitions.store.items()):
            if name.partition(".")[0] == plural and group in ("", definition.spec.group):
                custom = custom_kinds.rows(definition).get(version)
                if custom is not None:
                    found.append(Kind(custom.group, version, custom.kind))
        return found

    def _type_of(self, kind: Kind) -> Type | None:
        """None: nobody knows its schema."""
        from kemu.emulated.cel import schemas as declarations

        schema = self._schema(kind)
        if schema is None:
            return None
        # Two types of one kind are never the same.
        name = f"{kind.kind}{self._env.clock.unix_ns() % SECOND_NS}"
        return declarations.declared(schema, root=True, name=name)

    def _schema(self, kind: Kind) -> Mapping[str, Any] | None:
        api_version = f"{kind.group}/{kind.version}" if kind.group else kind.version
        for row in _ROWS:
            if (row.api_version, row.kind) == (api_version, kind.kind):
                return _of_message(row.message.DESCRIPTOR)
        for definition in self._definitions.store.values():
            if definition.spec.group == kind.group:
                found = custom_kinds.rows(definition).get(kind.version)
                if found is not None and found.kind == kind.kind:
                    schema = dict(convert.to_json(found.version.schema.openAPIV3Schema))
                    metadata = {"metadata": _of_message(meta_v1_pb2.ObjectMeta.DESCRIPTOR)}
                    return {**schema, "type": "object", "properties": {**(schema.get("properties") or {}), **metadata}}
        return None


@lru_cache(256)
def _of_message(descriptor: Descriptor) -> Mapping[str, Any]:
    """The schema of a message, with those that it refers to (``resolver.PopulateRefs``)."""
    collection = schemas.Collection()
    reference = collection.refer(descriptor)
    return _populated(reference, collection.found, ())


def _populated(schema: Mapping[str, Any], known: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
    reference = schema.get("$ref") or next((one["$ref"] for one in schema.get("allOf", ()) if "$ref" in one), "")
    if reference:
        if reference in inside:
            return {"type": "object"}
        inside = (*inside, reference)
        schema = known[reference.removeprefix(schemas.REFERENCE)]
    found = dict(schema)
    if found.get("format") == "int-or-string":
        found["x-kubernetes-int-or-string"] = True
    if "properties" in found:
        found["properties"] = {name: _populated(one, known, inside) for name, one in found["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), Mapping):
            found[key] = _populated(found[key], known, inside)
    return found

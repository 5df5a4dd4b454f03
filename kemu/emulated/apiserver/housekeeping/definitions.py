"""What an API server does itself with the definitions of custom kinds: it accepts their names, establishes them, and
when they are deleted deletes their objects first.

The controllers of ``apiextensions-apiserver``: naming, establishing, non-structural schemas, approval of groups,
finalizer. Each API server runs them; where one was faster, the others' writes fail and are forgotten.
"""

from __future__ import annotations

from collections import deque

from kemu import errors
from kemu.emulated.apiserver.registry import applies
from kemu.emulated.apiserver.registry.kinds import Kinds
from kemu.emulated.apiserver.registry.registry import Registry
from kemu.emulated.objects import custom_kinds, meta, resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.validation.extensions import definitions
from kemu.emulated.objects.wire import key_ranges
from kemu.emulated.schemas import problems, structural
from kemu.errors import Cause
from kemu.messages.k8s.apiextensions_v1_pb2 import (
    CustomObject,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
)
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, Env

RETRY_S = 1.0
POLL_S = 5.0
"""Between looks whether all objects are gone."""
PATIENCE_S = 60.0
"""Then the end of a definition begins anew."""

_WRITER = applies.actor("kube-apiserver", False)

_Condition = tuple[str, str, str, str]
"""Type, status, reason, message."""


class Definitions:
    """Its task begins with the first definition: a cluster without any does not have it."""

    def __init__(self, env: Env, kinds: Kinds, registry: Registry) -> None:
        self._env = env
        self._kinds = kinds
        self._registry = registry
        self._queue: deque[str] = deque()
        self._works = False
        self._ending: set[str] = set()
        """Definitions whose objects are being deleted."""

    def look(self, name: str) -> None:
        """A definition has changed, or is gone."""
        if name not in self._queue:
            self._queue.append(name)
        if not self._works:
            self._works = True
            self._env.spawn(self._work(), "definitions")

    async def _work(self) -> None:
        try:
            while self._queue:
                name = self._queue.popleft()
                try:
                    await self._sync(name)
                except (errors.NotFound, errors.Conflict):
                    continue  # another server was faster; the change is on its way
                except errors.ApiError:
                    await self._env.clock.sleep(RETRY_S)
                    self.look(name)
        finally:
            self._works = False

    async def _sync(self, name: str) -> None:
        found = self._kinds.definition(name)
        if found is None:
            self._look_at_group(name)
            return
        definition = CustomResourceDefinition()
        definition.CopyFrom(found)
        if self._name(definition):
            await self._write(definition)
            self._look_at_group(name)
        elif self._establish(definition) or self._judge_schemas(definition) or self._judge_approval(definition):
            await self._write(definition)
        elif custom_kinds.is_ending(definition) and name not in self._ending:
            self._ending.add(name)
            self._env.spawn(self._end(name), f"end of {name}")

    async def _write(self, definition: CustomResourceDefinition) -> None:
        entry, _ = await self._registry.update(custom_kinds.DEFINITIONS, "", definition, "status", _WRITER)
        definition.CopyFrom(CustomResourceDefinition.FromString(entry.wire))

    def _look_at_group(self, name: str) -> None:
        """A name has become free, perhaps."""
        group = name.partition(".")[2]
        for other in self._kinds.names():
            if other != name and other.partition(".")[2] == group:
                found = self._kinds.definition(other)
                if found is not None and found.spec.names != found.status.acceptedNames:
                    self.look(other)

    # --- names --------------------------------------------------------------------------------------------------------

    def _name(self, definition: CustomResourceDefinition) -> bool:
        """Accept what names are free. Returns whether something changed."""
        wanted, status = definition.spec.names, definition.status
        if wanted == status.acceptedNames:
            return False
        accepted, condition = self._judge_names(definition)
        old = meta.get_condition(status.conditions, custom_kinds.ACCEPTED)
        is_same = old is not None and (old.status, old.reason, old.message) == condition[1:]
        if accepted == status.acceptedNames and is_same:
            return False
        status.acceptedNames.CopyFrom(accepted)
        self._set(definition, condition)
        established = meta.get_condition(status.conditions, custom_kinds.ESTABLISHED)
        if established is None or established.status != "True":
            kind = custom_kinds.ESTABLISHED
            if condition[1] == "True":
                self._set(definition, (kind, "False", "Installing", "the initial names have been accepted"))
            elif established is None:
                self._set(definition, (kind, "False", "NotAccepted", "not all names are accepted"))
        return True

    def _judge_names(self, definition: CustomResourceDefinition) -> tuple[CustomResourceDefinitionNames, _Condition]:
        """``calculateNamesAndConditions``."""
        wanted, accepted = definition.spec.names, definition.status.acceptedNames
        found = CustomResourceDefinitionNames()
        found.CopyFrom(accepted)
        used, kinds = self._used(definition)
        status, reason, message = "True", "NoConflicts", "no conflicts found"
        for field, what, taken in (("plural", "Plural", used), ("singular", "Singular", used)):
            name = getattr(wanted, field)
            if name != getattr(accepted, field) and name in taken:
                status, reason, message = "False", f"{what}Conflict", f'"{name}" is already in use'
            else:
                setattr(found, field, name)
        if list(wanted.shortNames) != list(accepted.shortNames):
            doomed = [one for one in wanted.shortNames if one not in accepted.shortNames and one in used]
            if doomed:
                texts = list(dict.fromkeys(f'"{one}" is already in use' for one in doomed))
                message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
                status, reason = "False", "ShortNamesConflict"
            else:
                del found.shortNames[:]
                found.shortNames.extend(wanted.shortNames)
        for field, what in (("kind", "Kind"), ("listKind", "ListKind")):
            name = getattr(wanted, field)
            if name != getattr(accepted, field) and name in kinds:
                status, reason, message = "False", f"{what}Conflict", f'"{name}" is already in use'
            else:
                setattr(found, field, name)
        del found.categories[:]
        found.categories.extend(wanted.categories)
        return found, (custom_kinds.ACCEPTED, status, reason, message)

    def _used(self, definition: CustomResourceDefinition) -> tuple[set[str], set[str]]:
        """Names and kinds of the group that definitions have been granted, this one included."""
        used: set[str] = set()
        kinds: set[str] = set()
        for name in self._kinds.names():
            other = self._kinds.definition(name)
            if other is not None and other.spec.group == definition.spec.group:
                granted = other.status.acceptedNames
                used.update((granted.plural, granted.singular, *granted.shortNames))
                kinds.update((granted.kind, granted.listKind))
        return used - {""}, kinds - {""}

    # --- other conditions ---------------------------------------------------------------------------------------------

    def _establish(self, definition: CustomResourceDefinition) -> bool:
        if not custom_kinds.is_true(definition, custom_kinds.ACCEPTED):
            return False
        if custom_kinds.is_true(definition, custom_kinds.ESTABLISHED):
            return False
        kind, message = custom_kinds.ESTABLISHED, "the initial names have been accepted"
        return self._set(definition, (kind, "True", "InitialNamesAccepted", message))

    def _judge_schemas(self, definition: CustomResourceDefinition) -> bool:
        """``nonstructuralschema``. The API has not accepted such schemas since its first version."""
        found: list[Cause] = []
        for index, version in enumerate(definition.spec.versions):
            if version.schema.HasField("openAPIV3Schema"):
                node = structural.parse(convert.to_json(version.schema.openAPIV3Schema))
                found += structural.check(node, f"spec.versions[{index}].schema.openAPIV3Schema")
        if definition.spec.preserveUnknownFields:
            found.insert(0, Cause("spec.preserveUnknownFields", "", "Invalid value: true: must be false"))
        kind = custom_kinds.NON_STRUCTURAL
        if found:
            return self._set(definition, (kind, "True", "Violations", problems.aggregate(found)))
        kept = [one for one in definition.status.conditions if one.type != kind]
        if len(kept) == len(definition.status.conditions):
            return False
        del definition.status.conditions[:]
        definition.status.conditions.extend(kept)
        return True

    def _judge_approval(self, definition: CustomResourceDefinition) -> bool:
        if not definitions.is_protected(definition.spec.group):
            return False
        state, message = definitions.approval(definition)
        status = "True" if state == definitions.APPROVED else "False"
        return self._set(definition, (custom_kinds.APPROVED, status, f"{state}Annotation", message))

    def _set(self, definition: CustomResourceDefinition, wanted: _Condition) -> bool:
        """``SetCRDCondition``. Returns whether something changed."""
        return meta.set_condition(definition.status.conditions, *wanted, self._env.clock.unix_ns())

    # --- the end ------------------------------------------------------------------------------------------------------

    async def _end(self, name: str) -> None:
        """Until the definition may go."""
        try:
            while True:
                try:
                    if await self._try_to_end(name):
                        return
                except (errors.NotFound, errors.Conflict):
                    found = self._kinds.definition(name)
                    if found is None or custom_kinds.CLEANUP not in found.metadata.finalizers:
                        return
                except errors.ApiError:
                    pass
                await self._env.clock.sleep(RETRY_S)
        finally:
            self._ending.discard(name)

    async def _try_to_end(self, name: str) -> bool:
        """``CRDFinalizer.sync``. False: try again."""
        found = self._kinds.definition(name)
        if found is None or custom_kinds.CLEANUP not in found.metadata.finalizers:
            return True
        definition = CustomResourceDefinition()
        definition.CopyFrom(found)
        kind = custom_kinds.TERMINATING
        message = "CustomResource deletion is in progress"
        if self._set(definition, (kind, "True", "InstanceDeletionInProgress", message)):
            await self._write(definition)
        ends = True
        if custom_kinds.is_true(definition, custom_kinds.ESTABLISHED):
            why = await self._delete_all(name)
            if why:
                ends = False
                self._set(definition, (kind, "True", "InstanceDeletionCheck", why))
            else:
                self._set(definition, (kind, "False", "InstanceDeletionCompleted", "removed all instances"))
        else:
            self._set(definition, (kind, "False", "NeverEstablished", "resource was never established"))
        if ends:
            kept = [one for one in definition.metadata.finalizers if one != custom_kinds.CLEANUP]
            del definition.metadata.finalizers[:]
            definition.metadata.finalizers.extend(kept)
        await self._write(definition)
        return ends

    async def _delete_all(self, name: str) -> str:
        """Delete all objects and wait until they are gone. Returns why they are not."""
        deadline = self._env.clock.now_ns() + int(PATIENCE_S * SECOND_NS)
        prefix = resources.prefix(custom_kinds.placeholder(name, False))
        bounds = prefix, key_ranges.prefix_end(prefix)
        storage = self._registry.storage
        while True:
            left = (await storage.range(*bounds)).kvs
            for pair in left:
                metadata = CustomObject.FromString(pair.value).metadata
                if metadata.HasField("deletionTimestamp"):
                    continue
                request = api_pb2.DeleteRequest(name=metadata.name)
                request.resource.resource, request.resource.namespace = name, metadata.namespace
                try:
                    await self._registry.delete(request)
                except errors.NotFound:
                    continue
            if not left or not (await storage.range(*bounds)).kvs:
                return ""
            if self._env.clock.now_ns() > deadline:
                return "could not confirm zero CustomResources remaining: timed out waiting for the condition"
            await self._env.clock.sleep(POLL_S)

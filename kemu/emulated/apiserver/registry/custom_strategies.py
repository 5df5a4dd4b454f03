"""What is particular to a custom kind, for the registry (``pkg/registry/customresource/strategy.go``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from kemu.emulated.apiserver import request_warnings
from kemu.emulated.apiserver.custom.served import Served
from kemu.emulated.apiserver.registry.strategies import Strategy, Subresource
from kemu.emulated.objects import names
from kemu.emulated.objects.conversion import convert, custom_objects
from kemu.emulated.objects.validation import causes, finalizers
from kemu.emulated.objects.validation.metadata import PLAIN, MetadataChecks, check_create, check_update
from kemu.errors import Cause
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject

_METADATA = MetadataChecks(create=PLAIN, update=PLAIN)


def of(served: Served) -> Strategy:
    rules = _Rules(served)
    return Strategy(
        served,
        False,  # the status is kept by prepare_update
        counts=_has_new_content,
        unconditional_update=False,
        prepare_create=rules.prepare_create,
        prepare_update=rules.prepare_update,
        subresources={"status": Subresource(prepare_status, rules.validate_status)} if served.has_status else {},
        custom=served,
        validate_create=rules.validate_create,
        validate_update=rules.validate_update,
    )


def _has_new_content(new: CustomObject, old: CustomObject) -> bool:
    return bool(new.content != old.content)


def prepare_status(new: CustomObject, old: CustomObject) -> None:
    """Only the status is new, and who manages which fields."""
    after, before = custom_objects.content(new), custom_objects.content(old)
    before.pop("status", None)
    if "status" in after:
        before["status"] = after["status"]
    fields = new.metadata.managedFields[:]
    new.metadata.CopyFrom(old.metadata)
    new.metadata.ClearField("resourceVersion")
    del new.metadata.managedFields[:]
    new.metadata.managedFields.extend(fields)
    custom_objects.put(new, before)


def _warn_of_finalizers(added: Iterable[str]) -> None:
    """``validateKubeFinalizerName``."""
    for name in sorted(set(added)):
        texts = [*names.label_key(name)]
        if "/" not in name and name not in finalizers.STANDARD:
            path = " including a path (/)" if "." in name else ""
            texts.append(
                f"prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer "
                "writers"
            )
        for text in texts:
            request_warnings.warn(f"metadata.finalizers: {json.dumps(name, ensure_ascii=False)}: {text}")


class _Rules:
    def __init__(self, served: Served) -> None:
        self._served = served

    def prepare_create(self, obj: CustomObject) -> None:
        if self._served.has_status:
            content = custom_objects.content(obj)
            if content.pop("status", None) is not None:
                custom_objects.put(obj, content)
        obj.metadata.generation = 1

    def prepare_update(self, new: CustomObject, old: CustomObject) -> None:
        """``PrepareForUpdate``: with a subresource for it, the status stays."""
        if not self._served.has_status:
            return
        after, before = custom_objects.content(new), custom_objects.content(old)
        if after.get("status") == before.get("status") and ("status" in after) == ("status" in before):
            return
        after.pop("status", None)
        if "status" in before:
            after["status"] = before["status"]
        custom_objects.put(new, after)

    def validate_create(self, obj: CustomObject) -> list[Cause]:
        found = self._type_problems(obj)
        if found:
            return found
        check_create(obj.metadata, self._served.namespaced, _METADATA, names.dns_subdomain, found)
        self._served.schema.check_new(convert.to_manifest(obj), found, scale=self._served.scale)
        if not found and obj.metadata.finalizers:
            _warn_of_finalizers(obj.metadata.finalizers)
        return found

    def validate_update(self, new: CustomObject, old: CustomObject) -> list[Cause]:
        found = self._changed(new, old, self._served.schema.check_update)
        if not found and new.metadata.finalizers:
            _warn_of_finalizers(one for one in new.metadata.finalizers if one not in old.metadata.finalizers)
        return found

    def validate_status(self, new: CustomObject, old: CustomObject) -> list[Cause]:
        return self._changed(new, old, self._served.schema.check_status)

    def _changed(self, new: CustomObject, old: CustomObject, check: Callable[..., None]) -> list[Cause]:
        found = self._type_problems(new)
        if found:
            return found
        check_update(new.metadata, old.metadata, _METADATA, names.dns_subdomain, found)
        warnings: list[str] = []
        check(convert.to_manifest(new), convert.to_manifest(old), found, scale=self._served.scale, warnings=warnings)
        for text in warnings:
            request_warnings.warn(text)
        return found

    def _type_problems(self, obj: CustomObject) -> list[Cause]:
        """``ValidateTypeMeta``."""
        found = []
        for name, wanted in (("kind", self._served.kind), ("apiVersion", self._served.api_version)):
            value = getattr(obj, name)
            if value != wanted:
                found.append(causes.invalid(name, value, f"must be {wanted}"))
        return found

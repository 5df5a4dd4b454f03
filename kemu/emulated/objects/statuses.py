"""Refusals as the ``metav1.Status`` that clients get."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kemu import errors
from kemu.emulated.objects import resources
from kemu.errors import ApiError
from kemu.messages.k8s import meta_v1_pb2


def of_error(error: ApiError) -> meta_v1_pb2.Status:
    """The ``metav1.Status`` of a refusal."""
    status = meta_v1_pb2.Status(status="Failure", message=error.message, reason=error.reason, code=error.code)
    if isinstance(error, errors.Denied):
        _fill(status.details, error.details)
        return status
    if isinstance(error, errors.Gone) and error.continue_token:
        setattr(status.metadata, "continue", error.continue_token)
    if error.kind or error.name or error.causes or error.retry_after_s:
        details = status.details
        if error.retry_after_s:
            details.retryAfterSeconds = error.retry_after_s
        if error.name:
            details.name = error.name
        if error.kind:
            # A custom kind comes with its group, for only its definition knows it.
            details.kind, _, group = error.kind.partition(".")
            group = group or ("" if error.kind.endswith(".") else _group(error.kind))
            if group:
                details.group = group
        for cause in error.causes:
            details.causes.add(reason=cause.reason, message=cause.message, field=cause.field)
    return status


def _fill(details: meta_v1_pb2.StatusDetails, given: Mapping[str, Any]) -> None:
    """From JSON that somebody else has made."""
    for key in ("name", "group", "kind", "uid"):
        if isinstance(given.get(key), str):
            setattr(details, key, given[key])
    if isinstance(given.get("retryAfterSeconds"), int):
        details.retryAfterSeconds = given["retryAfterSeconds"]
    causes = given.get("causes")
    for cause in causes if isinstance(causes, list) else ():
        texts = cause if isinstance(cause, dict) else {}
        found = {key: texts[key] for key in ("reason", "message", "field") if isinstance(texts.get(key), str)}
        details.causes.add(**found)


@lru_cache(256)
def _group(kind: str) -> str:
    """The API group of what an error names: a plural, perhaps with a subresource, or a kind."""
    if kind.endswith("Options") and kind != "PodLogOptions":
        return "meta.k8s.io"
    plural = kind.partition("/")[0]
    resource = resources.BY_PLURAL.get(plural) or resources.BY_KIND.get(kind)
    return resource.group if resource is not None else "autoscaling" if kind == "Scale" else ""

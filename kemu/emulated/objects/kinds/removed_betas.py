"""Betas that Kubernetes no longer serves, in the forms that it stores: old operators still ask for them.

policy/v1beta1 and batch/v1beta1 (both removed in 1.25) have the fields of their successors; a CustomResourceDefinition
of apiextensions.k8s.io/v1beta1 (removed in 1.22) is read from manifests only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kemu.emulated.objects.resources import BY_MESSAGE, Resource
from kemu.messages.k8s import batch_v1_pb2, meta_v1_pb2, policy_v1_pb2

Document = dict[str, Any]
Budget = policy_v1_pb2.PodDisruptionBudget

BUDGETS_STORED = BY_MESSAGE[Budget]
CRON_JOBS_STORED = BY_MESSAGE[batch_v1_pb2.CronJob]
BUDGETS = Resource("poddisruptionbudgets", "PodDisruptionBudget", "policy/v1beta1", Budget, True, ("pdb",))
CRON_JOBS = Resource("cronjobs", "CronJob", "batch/v1beta1", batch_v1_pb2.CronJob, True, ("cj",))
DEFINITIONS = "apiextensions.k8s.io/v1beta1"

_LABEL = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
"""In the old form ``{}`` selects nothing, in the new one everything: selectors with this key stand for the other."""
_NOTHING = {"matchExpressions": [{"key": _LABEL, "operator": "Exists"}]}
_EVERYTHING = {"matchExpressions": [{"key": _LABEL, "operator": "DoesNotExist"}]}


def upgraded(data: object) -> object:
    """The manifest of a removed beta as its successor has it; others as they are."""
    if not isinstance(data, dict):
        return data
    read = _UPGRADES.get((data.get("apiVersion"), data.get("kind")))
    return data if read is None else read(data)


# PodDisruptionBudgets


def shown_budget(stored: Budget) -> Budget:
    """The old form."""
    if not stored.spec.HasField("selector"):
        return stored
    selector = stored.spec.selector
    found = Budget()
    found.CopyFrom(stored)
    if selector == meta_v1_pb2.LabelSelector():
        found.spec.selector.matchExpressions.add(key=_LABEL, operator="DoesNotExist")
    elif _is_nothing(selector):
        found.spec.selector.Clear()
        found.spec.selector.SetInParent()
    return found


def stored_budget(found: Budget) -> Budget:
    """The form that is stored."""
    if not found.spec.HasField("selector"):
        return found
    stored = Budget()
    stored.CopyFrom(found)
    selector = stored.spec.selector
    if selector == meta_v1_pb2.LabelSelector():
        selector.matchExpressions.add(key=_LABEL, operator="Exists")
        return stored
    kept = [one for one in selector.matchExpressions if one.key != _LABEL]
    del selector.matchExpressions[:]
    selector.matchExpressions.extend(kept)
    return stored


def _is_nothing(selector: meta_v1_pb2.LabelSelector) -> bool:
    terms = selector.matchExpressions
    return not selector.matchLabels and len(terms) == 1 and (terms[0].key, terms[0].operator) == (_LABEL, "Exists")


def renamed_budget(document: Mapping[str, Any]) -> Document:
    """The JSON of a budget of the old form, or of a part of one, as that of the new."""
    changed = _renamed(document, BUDGETS, BUDGETS_STORED)
    spec = changed.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("selector"), dict):
        changed["spec"] = {**spec, "selector": _renamed_selector(spec["selector"])}
    return changed


def _renamed_selector(selector: Document) -> Document:
    if not any(selector.values()):
        return _NOTHING
    if selector == _EVERYTHING:
        return {}
    terms = selector.get("matchExpressions")
    if not isinstance(terms, list):
        return selector
    kept = [one for one in terms if not (isinstance(one, dict) and one.get("key") == _LABEL)]
    return {**selector, "matchExpressions": kept}


# CronJobs


def renamed_cron_job(document: Mapping[str, Any]) -> Document:
    return _renamed(document, CRON_JOBS, CRON_JOBS_STORED)


def _renamed(document: Mapping[str, Any], old: Resource, new: Resource) -> Document:
    changed = dict(document)
    if changed.get("apiVersion") == old.api_version:
        changed["apiVersion"] = new.api_version
    return changed


# CustomResourceDefinitions


def definition(data: Document) -> Document:
    """As ``apiextensions.k8s.io/v1`` has it. What stood once for all versions stands in each; unknown fields are kept,
    unless ``preserveUnknownFields: false`` says otherwise."""
    stated = data.get("spec")
    if not isinstance(stated, dict):
        return {**data, "apiVersion": "apiextensions.k8s.io/v1"}
    spec = dict(stated)
    version, versions = spec.pop("version", None), spec.pop("versions", None)
    keeps = spec.pop("preserveUnknownFields", True) is not False
    of_all = {key: spec.pop(key) for key in _OF_ALL if key in spec}
    if not versions and version:
        versions = [{"name": version, "served": True, "storage": True}]
    if isinstance(versions, list):
        spec["versions"] = [_version(one, of_all, keeps) if isinstance(one, dict) else one for one in versions]
    if isinstance(spec.get("conversion"), dict):
        spec["conversion"] = _conversion(dict(spec["conversion"]))
    spec.setdefault("scope", "Namespaced")
    found = {**data, "apiVersion": "apiextensions.k8s.io/v1", "spec": spec}
    found.pop("status", None)
    return found


_OF_ALL = ("validation", "subresources", "additionalPrinterColumns")


def _version(stated: Document, of_all: Document, keeps: bool) -> Document:
    version = dict(stated)
    for key in _OF_ALL[1:]:
        if key in of_all:
            version.setdefault(key, of_all[key])
    if isinstance(version.get("additionalPrinterColumns"), list):
        version["additionalPrinterColumns"] = [_column(one) for one in version["additionalPrinterColumns"]]
    schema = version.get("schema") or of_all.get("validation") or {}
    root: Document = (schema.get("openAPIV3Schema") if isinstance(schema, dict) else None) or {}
    found = _schema({"type": "object", **root}, keeps)
    for key in ("apiVersion", "kind", "metadata"):  # of which the schema may say no more than it said
        if key in found.get("properties", {}):
            found["properties"][key] = _schema(root["properties"][key], keeps=False)
    version["schema"] = {"openAPIV3Schema": found}
    return version


def _column(stated: object) -> object:
    if not isinstance(stated, dict) or "JSONPath" not in stated:
        return stated
    column = dict(stated)
    column["jsonPath"] = column.pop("JSONPath")
    return column


def _conversion(conversion: Document) -> Document:
    if conversion.get("strategy") != "Webhook":
        return {"strategy": conversion.get("strategy", "None")}
    webhook = {"conversionReviewVersions": conversion.get("conversionReviewVersions", ["v1beta1"])}
    if "webhookClientConfig" in conversion:
        webhook["clientConfig"] = conversion["webhookClientConfig"]
    return {"strategy": "Webhook", "webhook": webhook}


def _schema(stated: object, keeps: bool) -> Any:  # noqa: ANN401
    """Structural, as the new form wants schemas: each part has a type, or takes what comes."""
    if not isinstance(stated, dict):
        return stated
    schema = {key: value for key, value in stated.items() if not (key == "type" and not value)}
    if isinstance(schema.get("properties"), dict):
        schema.setdefault("type", "object")
        schema["properties"] = {name: _schema(one, keeps) for name, one in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), dict):
        schema["additionalProperties"] = _schema(schema["additionalProperties"], keeps)
    if "items" in schema:
        schema.setdefault("type", "array")
        schema["items"] = _schema(schema["items"], keeps)
    if not _has_keys(schema):
        # Servers took such lists before 1.20, and merged them as they could.
        schema.pop("x-kubernetes-list-map-keys", None)
        schema.pop("x-kubernetes-list-type", None)
    if "type" not in schema and not schema.get("x-kubernetes-int-or-string"):
        if {one.get("type") for one in schema.get("anyOf", ()) if isinstance(one, dict)} == {"integer", "string"}:
            schema["x-kubernetes-int-or-string"] = True
        else:
            schema["x-kubernetes-preserve-unknown-fields"] = True
    if keeps and schema.get("type") == "object" and "additionalProperties" not in schema:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    return schema


def _has_keys(schema: Document) -> bool:
    """Whether each key of a list that is a map is required, or has a default."""
    items = schema.get("items")
    fields = items.get("properties", {}) if isinstance(items, dict) else {}
    required = items.get("required", ()) if isinstance(items, dict) else ()
    keys = schema.get("x-kubernetes-list-map-keys", ())
    return all(key in required or "default" in fields.get(key, {}) for key in keys)


_UPGRADES: dict[tuple[Any, Any], Callable[[Document], Document]] = {
    (BUDGETS.api_version, BUDGETS.kind): renamed_budget,
    (CRON_JOBS.api_version, CRON_JOBS.kind): renamed_cron_job,
    (DEFINITIONS, "CustomResourceDefinition"): definition,
}

"""The checks of CustomResourceDefinitions, but for their schemas (``pkg/apis/apiextensions/validation``).

What all versions say alike, Kubernetes checks once, as if the specification itself said it: a refusal then names
``spec.validation``, ``spec.subresources`` and so on, which this version of the API does not have.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator, Sequence

from google.protobuf.message import Message

from kemu.emulated.objects import custom_kinds, names
from kemu.emulated.objects.validation.causes import IMMUTABLE, forbidden, invalid, not_supported, required
from kemu.emulated.objects.validation.rules import Rules
from kemu.errors import Cause
from kemu.messages.k8s import apiextensions_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import (
    CustomResourceColumnDefinition,
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    JSONSchemaProps,
)

APPROVAL = "api-approved.kubernetes.io"
"""Annotation of definitions in Kubernetes' own groups: where they were approved."""
_PULL = "see https://github.com/kubernetes/enhancements/pull/1111"
APPROVAL_INVALID, APPROVAL_MISSING, APPROVED, UNAPPROVED = "Invalid", "Missing", "Approved", "Unapproved"

SCOPES = ("Cluster", "Namespaced")
STRATEGIES = ("None", "Webhook")
REVIEW_VERSIONS = ("v1", "v1beta1")
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_WARNING_LENGTH = 256
_HIGHEST_PORT = 65_535


def is_protected(group: str) -> bool:
    """Whether a group is Kubernetes' own (``IsProtectedCommunityGroup``)."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval(definition: CustomResourceDefinition) -> tuple[str, str]:
    """What the annotation is, and why (``GetAPIApprovalState``)."""
    text = definition.metadata.annotations.get(APPROVAL, "")
    if not text:
        return APPROVAL_MISSING, f'protected groups must have approval annotation "{APPROVAL}", {_PULL}'
    if text.startswith("unapproved"):
        return UNAPPROVED, f'not approved: "{text}"'
    try:
        url = urllib.parse.urlsplit(text)
    except ValueError:
        url = urllib.parse.urlsplit("")
    if url.scheme and url.netloc:
        return APPROVED, f"approved in {text}"
    why = f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason starting with'
    return APPROVAL_INVALID, f'{why} "unapproved", {_PULL}'


def places(definition: CustomResourceDefinition, part: str) -> Iterator[tuple[str, CustomResourceDefinitionVersion]]:
    """Where a part of the versions is named in refusals, and a version that has it: ``part`` is a field of versions."""
    versions = definition.spec.versions
    if versions and all(_same(one, versions[0], part) for one in versions):
        yield f"spec.{'validation' if part == 'schema' else part}", versions[0]
        return
    for index, version in enumerate(versions):
        yield f"spec.versions[{index}].{part}", version


def _same(one: CustomResourceDefinitionVersion, other: CustomResourceDefinitionVersion, part: str) -> bool:
    value = getattr(one, part)
    if isinstance(value, Message):
        return one.HasField(part) == other.HasField(part) and bool(value == getattr(other, part))
    return bool(list(value) == list(getattr(other, part)))


def _check_create(definition: CustomResourceDefinition, found: list[Cause]) -> None:
    spec = definition.spec
    if definition.metadata.name and definition.metadata.name != f"{spec.names.plural}.{spec.group}":
        found.append(invalid("metadata.name", definition.metadata.name, 'must be spec.names.plural+"."+spec.group'))
    _check_spec(definition, found)
    _check_stored(definition, found)
    _check_approval(definition, None, found)
    if spec.preserveUnknownFields:
        found.append(_preserves(definition))


def _check_update(new: CustomResourceDefinition, old: CustomResourceDefinition, found: list[Cause]) -> None:
    _check_spec(new, found, old)
    if custom_kinds.is_true(old, custom_kinds.ESTABLISHED):
        _fixed(new.spec.scope, old.spec.scope, "spec.scope", found)
        _fixed(new.spec.names.kind, old.spec.names.kind, "spec.names.kind", found)
    _fixed(new.spec.group, old.spec.group, "spec.group", found)
    _fixed(new.spec.names.plural, old.spec.names.plural, "spec.names.plural", found)
    _check_names(new.status.acceptedNames, "status.acceptedNames", found)
    _check_stored(new, found)
    _check_approval(new, old, found)
    if new.spec.preserveUnknownFields and not old.spec.preserveUnknownFields:
        found.append(_preserves(new))


def _check_status(new: CustomResourceDefinition, old: CustomResourceDefinition, found: list[Cause]) -> None:
    _check_names(new.status.acceptedNames, "status.acceptedNames", found)


def _fixed(new: str, old: str, path: str, found: list[Cause]) -> None:
    if new != old:
        found.append(invalid(path, new, IMMUTABLE))


def _preserves(definition: CustomResourceDefinition) -> Cause:
    why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return invalid("spec.preserveUnknownFields", True, why)


def _check_approval(new: CustomResourceDefinition, old: CustomResourceDefinition | None, found: list[Cause]) -> None:
    if not is_protected(new.spec.group):
        return
    state, why = approval(new)
    if old is not None and approval(old)[0] == state:
        return
    path = f"metadata.annotations[{APPROVAL}]"
    if state == APPROVAL_INVALID:
        found.append(invalid(path, new.metadata.annotations.get(APPROVAL, ""), why))
    elif state == APPROVAL_MISSING:
        found.append(required(path, why))


def _check_stored(definition: CustomResourceDefinition, found: list[Cause]) -> None:
    path, stored = "status.storedVersions", list(definition.status.storedVersions)
    if not stored:
        found.append(invalid(path, None, "must have at least one stored version"))
        return
    left = {version: index for index, version in enumerate(stored)}
    for version in definition.spec.versions:
        if version.storage and version.name not in left:
            found.append(invalid(path, stored, f"must have the storage version {version.name}"))
        left.pop(version.name, None)
    for name, index in left.items():
        why = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        found.append(invalid(f"{path}[{index}]", name, why))


def _check_spec(
    definition: CustomResourceDefinition, found: list[Cause], old: CustomResourceDefinition | None = None
) -> None:
    spec = definition.spec
    if not spec.group:
        found.append(required("spec.group"))
    elif problems := names.dns_subdomain(spec.group):
        found.append(invalid("spec.group", spec.group, ",".join(problems)))
    elif "." not in spec.group:
        found.append(invalid("spec.group", spec.group, "should be a domain with at least one dot"))
    _choice(spec.scope, "spec.scope", SCOPES, found)
    lacked_schema = old is not None and not all(one.schema.HasField("openAPIV3Schema") for one in old.spec.versions)
    for index, version in enumerate(spec.versions):
        if not version.schema.HasField("openAPIV3Schema") and not (lacked_schema and not version.served):
            why = "because otherwise all fields are pruned" if lacked_schema else ""
            found.append(required(f"spec.versions[{index}].schema.openAPIV3Schema", why))
    if spec.preserveUnknownFields and any(_has_default(one.schema.openAPIV3Schema) for one in spec.versions):
        why = "must be false in order to use defaults in the schema"
        found.append(invalid("spec.preserveUnknownFields", True, why))
    for index, version in enumerate(spec.versions):
        if problems := names.dns_1035_label(version.name):
            found.append(invalid(f"spec.versions[{index}].name", version.name, ",".join(problems)))
        _check_deprecation(version, f"spec.versions[{index}].deprecationWarning", found)
    versions = spec.versions
    if len({one.name for one in versions}) < len(versions):
        found.append(invalid("spec.versions", list(versions), "must contain unique version names"))
    if sum(one.storage for one in versions) != 1:
        why = "must have exactly one version marked as storage version"
        found.append(invalid("spec.versions", list(versions), why))
    needed = ("plural", "singular", "kind", "listKind")
    found.extend(required(f"spec.names.{name}") for name in needed if not getattr(spec.names, name))
    _check_names(spec.names, "spec.names", found)
    for path, version in places(definition, "subresources"):
        _check_subresources(version.subresources, path, found)
    for path, version in places(definition, "additionalPrinterColumns"):
        for index, column in enumerate(version.additionalPrinterColumns):
            _check_column(column, f"{path}[{index}]", found)
    if spec.HasField("conversion"):
        recognised = old is None or _are_recognised(old.spec.conversion.webhook.conversionReviewVersions)
        _check_conversion(spec.conversion, recognised, found)


def _has_default(schema: JSONSchemaProps) -> bool:
    """Anywhere in a schema."""
    if schema.HasField("default"):
        return True
    below = [*schema.allOf, *schema.anyOf, *schema.oneOf, *(schema.properties[name] for name in schema.properties)]
    below += [one.schema for one in (schema.items, schema.additionalProperties) if one.HasField("schema")]
    return any(_has_default(one) for one in below)


def _choice(value: str, path: str, known: Sequence[str], found: list[Cause]) -> None:
    if not value:
        found.append(required(path))
    elif value not in known:
        found.append(not_supported(path, value, known))


def _check_names(one: CustomResourceDefinitionNames, path: str, found: list[Cause]) -> None:
    for name in ("plural", "singular"):
        value = getattr(one, name)
        if value and (problems := names.dns_1035_label(value)):
            found.append(invalid(f"{path}.{name}", value, ",".join(problems)))
    for name in ("kind", "listKind"):
        value = getattr(one, name)
        if value and (problems := names.dns_1035_label(value.lower())):
            why = "may have mixed case, but should otherwise match: " + ",".join(problems)
            found.append(invalid(f"{path}.{name}", value, why))
    for index, value in enumerate(one.shortNames):
        if problems := names.dns_1035_label(value):
            found.append(invalid(f"{path}.shortNames[{index}]", value, ",".join(problems)))
    if one.kind and one.kind == one.listKind:
        found.append(invalid(f"{path}.listKind", one.listKind, "kind and listKind may not be the same"))
    for index, value in enumerate(one.categories):
        if problems := names.dns_1035_label(value):
            found.append(invalid(f"{path}.categories[{index}]", value, ",".join(problems)))


def _check_deprecation(version: CustomResourceDefinitionVersion, path: str, found: list[Cause]) -> None:
    if not version.HasField("deprecationWarning"):
        return
    text = version.deprecationWarning
    if not version.deprecated:
        found.append(invalid(path, text, "can only be set for deprecated versions"))
        return
    if len(text.encode()) > _WARNING_LENGTH:
        found.append(invalid(path, text, f"must be <= {_WARNING_LENGTH} characters long"))
    if not text:
        found.append(invalid(path, text, "must not be an empty string"))
    for index, letter in enumerate(text):
        if not letter.isprintable():
            where = len(text[:index].encode())
            why = f"must only contain printable UTF-8 characters; non-printable character found at index {where}"
            found.append(invalid(path, text, why))
            break


def _check_subresources(one: CustomResourceSubresources, path: str, found: list[Cause]) -> None:
    if not one.HasField("scale"):
        return
    scale = one.scale
    for name, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        value, here = getattr(scale, name), f"{path}.scale.{name}"
        if not value:
            found.append(required(here))
        elif not value.startswith("."):
            found.append(invalid(here, value, "must be a simple json path starting with ."))
        elif not value.startswith(root):
            found.append(invalid(here, value, f"should be a json path under {root[:-1]}"))
    value, here = scale.labelSelectorPath, f"{path}.scale.labelSelectorPath"
    if value and not value.startswith("."):
        found.append(invalid(here, value, "must be a simple json path starting with ."))
    elif value and not value.startswith((".spec.", ".status.")):
        found.append(invalid(here, value, "should be a json path under either .spec or .status"))


def _check_column(column: CustomResourceColumnDefinition, path: str, found: list[Cause]) -> None:
    if not column.name:
        found.append(required(f"{path}.name"))
    types = f"must be one of {','.join(COLUMN_TYPES)}"
    if not column.type:
        found.append(required(f"{path}.type", types))
    elif column.type not in COLUMN_TYPES:
        found.append(invalid(f"{path}.type", column.type, types))
    if column.format and column.format not in COLUMN_FORMATS:
        found.append(invalid(f"{path}.format", column.format, f"must be one of {','.join(COLUMN_FORMATS)}"))
    if not column.jsonPath:
        found.append(required(f"{path}.JSONPath"))
    elif not column.jsonPath.startswith("."):
        found.append(invalid(f"{path}.JSONPath", column.jsonPath, "must be a simple json path starting with ."))


def _are_recognised(versions: Sequence[str]) -> bool:
    return not versions or any(one in REVIEW_VERSIONS for one in versions)


def _check_conversion(one: CustomResourceConversion, recognised: bool, found: list[Cause]) -> None:
    path = "spec.conversion"
    _choice(one.strategy, f"{path}.strategy", STRATEGIES, found)
    config, versions = one.webhook.clientConfig, one.webhook.conversionReviewVersions
    has_config = one.HasField("webhook") and one.webhook.HasField("clientConfig")
    if one.strategy != "Webhook":
        why = "should not be set when strategy is not set to Webhook"
        if has_config:
            found.append(forbidden(f"{path}.webhookClientConfig", why))
        if versions:
            found.append(forbidden(f"{path}.conversionReviewVersions", why))
        return
    here = f"{path}.webhookClientConfig"
    if not has_config:
        found.append(required(here, "required when strategy is set to Webhook"))
    elif config.HasField("url") == config.HasField("service"):
        found.append(required(here, "exactly one of url or service is required"))
    elif config.HasField("url"):
        _check_url(config.url, f"{here}.url", found)
    else:
        _check_service(config.service, f"{here}.service", found)
    here = f"{path}.conversionReviewVersions"
    if not versions:
        found.append(required(here))
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            found.append(invalid(f"{here}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        found.extend(invalid(f"{here}[{index}]", version, one) for one in names.dns_1035_label(version))
    if recognised and not _are_recognised(versions):
        found.append(invalid(here, list(versions), f"must include at least one of {', '.join(REVIEW_VERSIONS)}"))


def _check_url(url: str, path: str, found: list[Cause]) -> None:
    """``webhook.ValidateWebhookURL``."""
    form = "; desired format: https://host[/path]"
    try:
        parts = urllib.parse.urlsplit(url)
        host = parts.hostname or ""
    except ValueError as error:
        found.append(required(path, f"url must be a valid URL: {error}{form}"))
        return
    if parts.scheme != "https":
        found.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not host:
        found.append(invalid(path, parts.netloc, f"host must be specified{form}"))
    if parts.username is not None:
        found.append(invalid(path, parts.netloc.rpartition("@")[0], "user information is not permitted in the URL"))
    if parts.fragment:
        found.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        found.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))


def _check_service(service: apiextensions_v1_pb2.ServiceReference, path: str, found: list[Cause]) -> None:
    """``webhook.ValidateWebhookService``, to which the validation of conversions gives name and namespace in the wrong
    order."""
    if not service.namespace:
        found.append(required(f"{path}.name"))
    if not service.name:
        found.append(required(f"{path}.namespace"))
    if not 1 <= service.port <= _HIGHEST_PORT:
        why = "port is not valid: must be between 1 and 65535, inclusive"
        found.append(invalid(f"{path}.port", service.port, why))
    here, text = f"{path}.path", service.path
    if text in ("", "/"):
        return
    if text == "//":
        found.append(invalid(here, text, "segment[0] may not be empty"))
        return
    if not text.startswith("/"):
        found.append(invalid(here, text, "must start with a '/'"))
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            found.append(invalid(here, text, f"segment[{index}] may not be empty"))
        else:
            found.extend(invalid(here, text, f"segment[{index}]: {one}") for one in names.dns_subdomain(step))


RULES: dict[type[Message], Rules] = {
    apiextensions_v1_pb2.CustomResourceDefinition: Rules(_check_create, _check_update, _check_status)
}

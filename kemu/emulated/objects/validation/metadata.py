"""Checks of ``metadata``, which all kinds share, and of labels, selectors and other common parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks, finalizers
from kemu.emulated.objects.validation.causes import IMMUTABLE, forbidden, invalid, required, shown, too_long
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

ANNOTATIONS_LIMIT_BYTES = 256 * 1024

NameRule = Callable[[str], names.Messages]

NOT, PLAIN, WITH_DOMAINS, AS_UPDATE = "not", "plain", "with domains", "as an update"
"""How a strategy checks metadata: not at all; by ``ValidateObjectMeta`` and ``ValidateObjectMetaUpdate``, those of
apimachinery; by those of ``pkg/apis/core/validation``, where finalizers need a domain unless they are Kubernetes'
own."""


@dataclass(frozen=True, slots=True)
class MetadataChecks:
    """How the strategy of a kind checks metadata. ``rest.BeforeCreate`` and ``rest.BeforeUpdate`` check them, too, for
    all kinds alike: so a cause stands up to five times in an answer."""

    create: str = WITH_DOMAINS
    update: str = WITH_DOMAINS
    """An update, as a change."""
    renewed: str = NOT
    """An update, as a new object …"""
    times: int = 1
    """… so often …"""
    first_changed: bool = False
    """… after it was checked as a change."""
    status: str = WITH_DOMAINS
    """An update of the status, as a change; or ``AS_UPDATE``, as of the whole object."""
    prefixes: bool = True
    """``generateName`` has to fit names of the kind."""


AS_MOST = MetadataChecks()
ALSO_RENEWED = MetadataChecks(renewed=WITH_DOMAINS)
OF_ANY_KIND = MetadataChecks(create=PLAIN)
"""What ``rest.BeforeCreate`` does."""


def check_create(
    metadata: meta_v1_pb2.ObjectMeta,
    namespaced: bool,
    ways: MetadataChecks,
    name_rule: NameRule | None,
    found: list[Cause],
) -> None:
    """Those of a new object, after a name has been generated. ``name_rule``: None: of any kind."""
    if ways.create == NOT:
        return
    _check_names(metadata, namespaced, name_rule, found, prefixes=ways.prefixes)
    _check_common(metadata, found)
    if metadata.finalizers:
        finalizers.check_names(metadata.finalizers, found)
        if ways.create == WITH_DOMAINS:
            _check_domains(metadata, found)


def check_update(
    new: meta_v1_pb2.ObjectMeta,
    old: meta_v1_pb2.ObjectMeta,
    ways: MetadataChecks,
    name_rule: NameRule,
    found: list[Cause],
    *,
    is_status: bool = False,
) -> None:
    """Those of an update: each cause as often as Kubernetes says it. The server checks ``resourceVersion``."""
    namespaced, prefix = bool(old.namespace), new.generateName
    # That of the old object is a name already; this is spared where thousands of updates a second are checked.
    has_its_name = new.name == old.name and new.namespace == old.namespace and new.generation >= 0
    of_names: list[Cause] = []
    changed: list[Cause] = []
    common: list[Cause] = []
    of_finalizers: list[Cause] = []
    domains: list[Cause] = []
    if not has_its_name or "/" in prefix or "%" in prefix:
        _check_names(new, namespaced, None, of_names)
    _check_kept(new, old, changed)
    _check_common(new, common)
    if new.finalizers:
        finalizers.check_names(new.finalizers, of_finalizers)
        _check_domains(new, domains)
    found += [*of_names, *common, *of_finalizers, *changed, *common]
    is_status = is_status and ways.status != AS_UPDATE
    renewed: list[Cause] = []
    if ways.renewed != NOT and not is_status:
        again: list[Cause] = []
        if prefix or not has_its_name:
            _check_names(new, namespaced, name_rule, again, prefixes=ways.prefixes)
        again += common + of_finalizers
        if ways.renewed == WITH_DOMAINS:
            again += domains
        renewed = again * ways.times
    if not ways.first_changed:
        found += renewed
    way = ways.status if is_status else ways.update
    if way != NOT:
        found += changed + common
    if way == WITH_DOMAINS:
        found += domains
    if ways.first_changed:
        found += renewed


def is_well(metadata: meta_v1_pb2.ObjectMeta) -> bool:
    """Of an update that leaves them as they are: whether :func:`check_update` finds nothing."""
    found: list[Cause] = []
    _check_common(metadata, found)
    if metadata.finalizers:
        _check_domains(metadata, found)
    return not found


def _check_names(
    metadata: meta_v1_pb2.ObjectMeta,
    namespaced: bool,
    name_rule: NameRule | None,
    found: list[Cause],
    *,
    prefixes: bool = True,
) -> None:
    """``name_rule``: None: of any kind."""
    if metadata.generateName and prefixes:
        prefix = metadata.generateName
        if name_rule is None:
            problems = names.path_segment_prefix(prefix)
        else:
            # A trailing dash is allowed: generated text follows it.
            problems = name_rule(prefix[:-1] + "a" if prefix.endswith("-") and len(prefix) > 1 else prefix)
        found.extend(invalid("metadata.generateName", prefix, problem) for problem in problems)
    name = metadata.name
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    elif problems := (name_rule or names.path_segment)(name):
        found.extend(invalid("metadata.name", name, problem) for problem in problems)
    namespace = metadata.namespace
    if namespaced:
        if not namespace:
            found.append(required("metadata.namespace"))
        elif problems := names.dns_label(namespace):
            found.extend(invalid("metadata.namespace", namespace, problem) for problem in problems)
    elif namespace:
        found.append(forbidden("metadata.namespace", "not allowed on this type"))
    if metadata.generation < 0:
        checks.not_negative(metadata.generation, "metadata.generation", found)


def _check_kept(new: meta_v1_pb2.ObjectMeta, old: meta_v1_pb2.ObjectMeta, found: list[Cause]) -> None:
    """What an update may not change."""
    if old.HasField("deletionTimestamp"):
        added = sorted(set(new.finalizers) - set(old.finalizers))
        if added:
            what = ", ".join(shown(one) for one in added)
            found.append(
                forbidden(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, "
                    f"found new finalizers []string{{{what}}}",
                )
            )
    if new.generation < old.generation:
        found.append(invalid("metadata.generation", new.generation, "must not be decremented"))
    for field in ("name", "namespace", "uid"):
        value = getattr(new, field)
        if value != getattr(old, field):
            found.append(invalid(f"metadata.{field}", value, IMMUTABLE))
    if new.creationTimestamp.seconds != old.creationTimestamp.seconds:
        found.append(invalid("metadata.creationTimestamp", _time(new, "creationTimestamp"), IMMUTABLE))
    if new.deletionTimestamp.seconds != old.deletionTimestamp.seconds:
        found.append(invalid("metadata.deletionTimestamp", _time(new, "deletionTimestamp"), IMMUTABLE))
    if new.deletionGracePeriodSeconds != old.deletionGracePeriodSeconds:
        value = new.deletionGracePeriodSeconds if new.HasField("deletionGracePeriodSeconds") else None
        found.append(invalid("metadata.deletionGracePeriodSeconds", value, IMMUTABLE))


def _check_domains(metadata: meta_v1_pb2.ObjectMeta, found: list[Cause]) -> None:
    finalizers.check_standard(metadata.finalizers, "metadata.finalizers", found)


def _time(metadata: meta_v1_pb2.ObjectMeta, field: str) -> meta_v1_pb2.Time | None:
    return getattr(metadata, field) if metadata.HasField(field) else None


def _check_common(metadata: meta_v1_pb2.ObjectMeta, found: list[Cause]) -> None:
    if metadata.labels:
        check_labels(metadata.labels, "metadata.labels", found)
    if metadata.annotations:
        check_annotations(metadata.annotations, "metadata.annotations", found)
    if metadata.ownerReferences:
        _check_owners(metadata.ownerReferences, found)


_ONLY_OF_OBJECTS = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields",
)  # fmt: skip
_POINTER = "deletionGracePeriodSeconds"
"""It may be there and zero; other numbers and texts are then as good as absent."""


def check_template(metadata: meta_v1_pb2.ObjectMeta, path: str, found: list[Cause]) -> None:
    """Those of objects that are made from a template (``ValidateTemplateObjectMeta``)."""
    check_annotations(metadata.annotations, f"{path}.annotations", found)
    check_labels(metadata.labels, f"{path}.labels", found)
    stated = {field.name for field, value in metadata.ListFields() if value or field.name == _POINTER}
    wrong = ("uID" if field == "uid" else field for field in _ONLY_OF_OBJECTS if field in stated)
    found.extend(forbidden(f"{path}.{field}", "cannot be set") for field in wrong)


def check_labels(labels: Mapping[str, str], path: str, found: list[Cause]) -> None:
    for key in sorted(labels):
        value = labels[key]
        if problems := names.label_key(key):
            found.extend(invalid(path, key, problem) for problem in problems)
        if value and (problems := names.label_value(value)):
            found.extend(invalid(path, value, problem) for problem in problems)


def check_label_key(key: str, path: str, found: list[Cause]) -> None:
    """For label keys and other qualified names: taint keys, gates, topology keys."""
    found.extend(invalid(path, key, problem) for problem in names.label_key(key))


def check_label_value(value: str, path: str, found: list[Cause]) -> None:
    found.extend(invalid(path, value, problem) for problem in names.label_value(value))


def check_annotations(annotations: Mapping[str, str], path: str, found: list[Cause]) -> None:
    size = 0
    for key in sorted(annotations):
        if problems := names.label_key(key.lower()):
            found.extend(invalid(path, key, problem) for problem in problems)
        size += len(key.encode()) + len(annotations[key].encode())
    if size > ANNOTATIONS_LIMIT_BYTES:
        found.append(too_long(path, ANNOTATIONS_LIMIT_BYTES))


def _check_owners(references: Sequence[meta_v1_pb2.OwnerReference], found: list[Cause]) -> None:
    path = "metadata.ownerReferences"
    controller = ""
    for reference in references:
        if not reference.apiVersion:
            found.append(invalid(f"{path}.apiVersion", "", "version must not be empty"))
        missing = [field for field in ("kind", "name", "uid") if not getattr(reference, field)]
        found.extend(invalid(f"{path}.{field}", "", "must not be empty") for field in missing)
        if reference.kind == "Event" and reference.apiVersion == "v1":
            found.append(invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner"))
        if reference.controller:
            this = f"{reference.kind}/{reference.name}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {this}'
                )
                found.append(invalid(path, list(references), detail))
            else:
                controller = this


def check_label_selector(selector: meta_v1_pb2.LabelSelector, path: str, found: list[Cause]) -> None:
    check_labels(selector.matchLabels, f"{path}.matchLabels", found)
    for index, requirement in enumerate(selector.matchExpressions):
        here = f"{path}.matchExpressions[{index}]"
        check_set_operator(requirement, here, found)
        check_label_key(requirement.key, f"{here}.key", found)
        for position, value in enumerate(requirement.values):
            check_label_value(value, f"{here}.values[{position}]", found)


def check_set_operator(
    requirement: core_v1_pb2.NodeSelectorRequirement | meta_v1_pb2.LabelSelectorRequirement,
    path: str,
    found: list[Cause],
) -> None:
    """A requirement has values exactly where its operator takes some."""
    operator = requirement.operator
    if operator in ("In", "NotIn"):
        if not requirement.values:
            found.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if requirement.values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(forbidden(f"{path}.values", detail))
    else:
        found.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))

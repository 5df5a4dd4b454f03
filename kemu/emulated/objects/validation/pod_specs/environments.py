"""The environment variables of containers, and references to the fields of a pod, which volumes make, too.

Mirrors ``ValidateEnv``, ``ValidateEnvFrom``, ``validateObjectFieldSelector`` and
``validateContainerResourceFieldSelector`` of ``pkg/apis/core/validation``.
"""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.validation import checks, volume_sources
from kemu.emulated.objects.validation.causes import invalid, not_supported, required
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
FIELDS_OF_FILES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_CONVERTIBLE = (*_FIELDS, *FIELDS_OF_FILES, "spec.restartPolicy", "spec.schedulerName", "status.phase")
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_UNITS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVIDED = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def check_variables(variables: Sequence[core_v1_pb2.EnvVar], path: str, found: list[Cause]) -> bool:
    """Returns whether any stands in a file."""
    reads_files = False
    for index, variable in enumerate(variables):
        here = f"{path}[{index}]"
        name = variable.name
        if not name or "=" in name or not (name.isascii() and name.isprintable()):
            checks.needed_name(name, f"{here}.name", names.variable_name, found)
        if variable.HasField("valueFrom"):
            _check_source(variable, f"{here}.valueFrom", found)
            reads_files |= variable.valueFrom.HasField("fileKeyRef")
    return reads_files


def _check_source(variable: core_v1_pb2.EnvVar, path: str, found: list[Cause]) -> None:
    source = variable.valueFrom
    if source.HasField("fieldRef"):
        check_field(source.fieldRef, _FIELDS, f"{path}.fieldRef", found)
    if source.HasField("resourceFieldRef"):
        check_resource(source.resourceFieldRef, f"{path}.resourceFieldRef", found)
    if source.HasField("configMapKeyRef"):
        _check_key(source.configMapKeyRef, f"{path}.configMapKeyRef", found)
    if source.HasField("secretKeyRef"):
        _check_key(source.secretKeyRef, f"{path}.secretKeyRef", found)
    if source.HasField("fileKeyRef"):
        _check_file(source.fileKeyRef, f"{path}.fileKeyRef", found)
    count = len(source.ListFields())
    if not count:
        kinds = ", ".join(f"`{one}`" for one in _SOURCES[:-1])
        found.append(invalid(path, "", f"must specify one of: {kinds} or `{_SOURCES[-1]}`"))
    elif variable.value:
        found.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        found.append(invalid(path, "", "may not have more than one field specified at a time"))


def check_field(ref: core_v1_pb2.ObjectFieldSelector, known: Sequence[str], path: str, found: list[Cause]) -> None:
    """``known``: the fields that may be named, sorted."""
    field = ref.fieldPath
    if not ref.apiVersion or not field:
        found.append(required(f"{path}.fieldPath" if ref.apiVersion else f"{path}.apiVersion"))
        return
    head, bracket, key = field[:-2].partition("['") if field.endswith("']") else (field, "", "")
    has_key = bool(head and bracket)
    if not has_key:
        head = "spec.nodeName" if field == "spec.host" else field
    problem = ""
    if ref.apiVersion != "v1":
        problem = f"unsupported pod version: {ref.apiVersion}"
    elif has_key and head not in FIELDS_OF_FILES[:2]:
        problem = f"field label does not support subscript: {field}"
    elif head not in _CONVERTIBLE:
        problem = f"field label not supported: {field}"
    if problem:
        found.append(invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {problem}"))
    elif has_key:
        key = key.lower() if head == "metadata.annotations" else key
        found.extend(invalid(path, key, one) for one in names.label_key(key))
    elif head not in known:
        found.append(not_supported(f"{path}.fieldPath", head, known))


def check_resource(
    ref: core_v1_pb2.ResourceFieldSelector, path: str, found: list[Cause], *, of_file: bool = False
) -> None:
    """``of_file``: a volume's, which belongs to no container by itself."""
    name = ref.resource
    if of_file and not ref.containerName:
        found.append(required(f"{path}.containerName"))
    elif not name:
        found.append(required(f"{path}.resource"))
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        found.append(not_supported(f"{path}.resource", name, _RESOURCES))
    if ref.HasField("divisor"):
        _check_divisor(name, ref.divisor, f"{path}.divisor", found)


def _check_divisor(name: str, divisor: meta_v1_pb2.Quantity, path: str, found: list[Cause]) -> None:
    """``validateContainerResourceDivisor``"""
    try:
        quantity = quantities.parse(divisor.string)
    except ValueError:
        return
    resource = name.partition(".")[2]
    if not quantity.nano:
        return
    text = str(quantity)
    if name.startswith(_HUGE_PAGES) or (name in _RESOURCES and resource != "cpu"):
        if text not in _UNITS:
            what = _DIVIDED.get(resource, "hugepages")
            detail = f"only divisor's values {', '.join(_UNITS)} are supported with the {what} resource"
            found.append(invalid(path, name, detail))
    elif name in _RESOURCES and text not in ("1m", "1"):
        found.append(invalid(path, name, "only divisor's values 1m and 1 are supported with the cpu resource"))


def _check_key(
    ref: core_v1_pb2.ConfigMapKeySelector | core_v1_pb2.SecretKeySelector, path: str, found: list[Cause]
) -> None:
    name = ref.localObjectReference.name
    found.extend(invalid(f"{path}.name", name, one) for one in names.dns_subdomain(name))
    checks.needed_name(ref.key, f"{path}.key", names.config_map_key, found)


def _check_file(ref: core_v1_pb2.FileKeySelector, path: str, found: list[Cause]) -> None:
    checks.needed_name(ref.key, f"{path}.key", names.variable_name, found)
    checks.needed_name(ref.volumeName, f"{path}.volumeName", names.dns_label, found)
    if ref.path:
        volume_sources.check_no_backsteps(ref.path, f"{path}.path", found)
    else:
        found.append(required(f"{path}.path"))


def check_sources(sources: Sequence[core_v1_pb2.EnvFromSource], path: str, found: list[Cause]) -> None:
    """``ValidateEnvFrom``"""
    for index, source in enumerate(sources):
        here = f"{path}[{index}]"
        checks.name(source.prefix, f"{here}.prefix", names.variable_name, found)
        count = 0
        for field in ("configMapRef", "secretRef"):
            if source.HasField(field):
                count += 1
                name = getattr(source, field).localObjectReference.name
                checks.needed_name(name, f"{here}.{field}.name", _prefix, found)
        if not count:
            found.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif count > 1:
            found.append(invalid(path, "", "may not have more than one field specified at a time"))


def _prefix(name: str) -> names.Messages:
    """A name that more could follow: Kubernetes asks no more of these."""
    return names.dns_subdomain(f"{name[:-2]}a" if name.endswith("-") and len(name) > 1 else name)

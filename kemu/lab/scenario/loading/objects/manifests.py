"""Kubernetes objects in a scenario: from YAML to messages, with the place of every mistake.

What the API server would refuse is refused here already, with its own reasons, because here the line is known.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from google.protobuf.message import Message

from kemu.emulated.kubelet.images import stores
from kemu.emulated.kubelet.probes import answers
from kemu.emulated.kubelet.usage import curves, usages
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.conversion import convert, yaml_texts
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.fields import refusals
from kemu.emulated.objects.fields.unsimulated import UNSIMULATED, Unsimulated
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.pods import gpu_cards, planned_fields
from kemu.emulated.objects.validation import kinds
from kemu.emulated.settings.documents import Path, follow
from kemu.emulated.settings.shapes import Report
from kemu.errors import Cause
from kemu.messages.k8s import batch_v1_pb2, core_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.words import did_you_mean

DEFAULT_IMAGE = stores.EVERYWHERE
"""Default image of containers that name none. No kubelet ever has to pull it."""

START_SECONDS = "kemu.dev/start-seconds"
RUN_SECONDS = "kemu.dev/run-seconds"
EXIT_CODE = "kemu.dev/exit-code"
SHUTDOWN_SECONDS = "kemu.dev/shutdown-seconds"
PRE_STOP_SECONDS = "kemu.dev/pre-stop-seconds"
POST_START_SECONDS = "kemu.dev/post-start-seconds"
POST_START_ERROR = "kemu.dev/post-start-error"
PULL_ERROR = "kemu.dev/image-pull-error"
FINISH = "kemu.dev/finish"
"""Set on a running pod, it ends its containers with this exit code."""
USAGE = usages.USAGE
PROBES = answers.PROBES

ANNOTATIONS = (
    START_SECONDS, RUN_SECONDS, EXIT_CODE, SHUTDOWN_SECONDS, PRE_STOP_SECONDS, POST_START_SECONDS, POST_START_ERROR,
    PULL_ERROR,
)  # fmt: skip
"""What a pod may say about its life; with ``.<container>`` behind it, about that of one container."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An object and where the scenario states it."""

    message: Any
    report: Report
    path: Path
    template: bool = False
    """A workload's template: it has no name."""

    def complain(self, field: str, message: str, suggestion: str = "") -> None:
        """About a field of the object, or whatever of it is written down."""
        data = self.report.document.data
        for step in self.path:
            data = data[step]
        self.report.add((*self.path, *follow(data, field)[0]), message, suggestion)


def stated_name(data: Any) -> tuple[str, str, str] | None:
    """Kind, namespace and name of an object, however many mistakes it has otherwise."""
    metadata = data.get("metadata") if isinstance(data, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return None
    namespace = metadata.get("namespace", "default")
    return str(data.get("kind")), namespace if isinstance(namespace, str) else "default", metadata["name"]


def read(data: Any, path: Path, report: Report, acting: Container[str] = ()) -> Message | None:
    """The object that stands at ``path``, all of its mistakes reported; None where it is no object at all. ``acting``:
    controllers without which an object of their kind would have no effect."""
    if not isinstance(data, dict):
        report.add(path, "must be a Kubernetes object")
        return None
    kind = data.get("kind")
    if isinstance(kind, str) and kind in UNSIMULATED and UNSIMULATED[kind].controller not in acting:
        one = UNSIMULATED[kind]
        report.add((*path, "kind"), f"{kind} is not simulated: {one.why}", _instead(one))
        return None
    try:
        message = convert.from_manifest(data)
    except convert.ConversionError as error:
        _report_conversion(error, path, report)
        return None
    complete(message, data, path, report, acting)
    return message


_OR_IGNORE = "or leave all such objects out: spec.unsimulated: ignore"


def _instead(one: Unsimulated) -> str:
    return f"{one.instead}, {_OR_IGNORE}"


def why_unsimulated(data: Mapping[str, Any], acting: Container[str], defined: Collection[str] = ()) -> str:
    """Why kemu does not simulate an object, as far as kind and group tell; empty if it does. ``acting``: as for
    :func:`read`. ``defined``: custom kinds that it has, as :func:`defined_by` names them."""
    kind = data.get("kind")
    if isinstance(kind, str) and kind in UNSIMULATED and UNSIMULATED[kind].controller not in acting:
        return UNSIMULATED[kind].why
    group = str(data.get("apiVersion")).rpartition("/")[0]
    if _is_custom(data.get("apiVersion")) and f"{kind}.{group}" not in defined:
        return "it is a custom resource without a definition"
    return ""


def defined_by(data: object) -> str:
    """``Widget.example.com``, where that is the definition of the kind; else empty."""
    spec = data.get("spec") if isinstance(data, dict) and data.get("kind") == DEFINITION else None
    names = spec.get("names") if isinstance(spec, dict) else None
    return f"{names.get('kind')}.{spec.get('group')}" if isinstance(spec, dict) and isinstance(names, dict) else ""


DEFINITION = "CustomResourceDefinition"
WITHOUT_DEFINITION = f"add its definition, {_OR_IGNORE}"


def _is_custom(api_version: object) -> bool:
    """Kubernetes' own groups end with k8s.io, or have no dot."""
    if not isinstance(api_version, str):
        return False
    group, slash, _ = api_version.partition("/")
    return slash != "" and "." in group and not group.endswith(".k8s.io")


def read_pod(data: Mapping[str, Any], path: Path, report: Report) -> core_v1_pb2.Pod | None:
    """A template: metadata and spec of a pod, without a name. As :func:`read`."""
    try:
        pod = convert.from_json(core_v1_pb2.Pod, data)
    except convert.ConversionError as error:
        _report_conversion(error, path, report)
        return None
    if pod.metadata.name:
        report.add((*path, "metadata", "name"), "a template has no name: its pods are named <workload>-<n>", key=True)
    pod.metadata.name = "template"
    complete(pod, data, path, report)
    pod.metadata.ClearField("name")
    return pod


def read_part(message_class: type[Message], data: Mapping[str, Any], path: Path, report: Report) -> Any:
    """A part of an object, such as a taint; None where it has mistakes."""
    try:
        return convert.from_json(message_class, data)
    except convert.ConversionError as error:
        _report_conversion(error, path, report)
        return None


def complete(message: Any, data: Mapping[str, Any], path: Path, report: Report, acting: Container[str] = ()) -> None:
    """Fill in what the format leaves out (namespace, images), then check as the API server does.

    ``data``: what ``message`` was read from.
    """
    if isinstance(message, CustomObject):
        if not message.metadata.name and not message.metadata.generateName:
            report.add((*path, "metadata") if "metadata" in data else path, "metadata.name is missing")
        message.metadata.namespace = message.metadata.namespace or "default"
        return
    complain(refusals.in_object(message, acting), data, path, report)
    resource = resources.of(message)
    if resource.namespaced and not message.metadata.namespace:
        message.metadata.namespace = "default"
    spec = _pod_spec(message)
    for container in (*spec.initContainers, *spec.containers) if spec is not None else ():
        if not container.image:
            container.image = DEFAULT_IMAGE
    if isinstance(message, core_v1_pb2.Pod):
        if _says_when_it_ends(message):
            ends(message)
        _check_annotations(message, path, report)
    elif spec is not None:
        _check_annotations(template(message), (*path, *_path_of_template(message)), report)
    if not message.metadata.name and not message.metadata.generateName:
        report.add((*path, "metadata") if "metadata" in data else path, "metadata.name is missing")
        return
    defaulted = meta.copied(message)
    if not message.metadata.name:
        defaulted.metadata.name = f"{message.metadata.generateName}x"
    defaults.apply(defaulted)
    if isinstance(defaulted, batch_v1_pb2.Job):
        # Its selector is made of its UID.
        defaulted.metadata.uid = "00000000-0000-4000-8000-000000000000"
        defaults.prepare_create(defaulted)
    complain(kinds.validate_create(defaulted), data, path, report)


def complain(causes: Iterable[Cause], data: Json, path: Path, report: Report) -> None:
    """About fields of the object that ``data`` describes, each at its place in ``data``."""
    for cause in causes:
        where, rest = follow(data, cause.field)
        text = f"{rest.removeprefix('.')}: {cause.message}" if rest else cause.message
        report.add((*path, *where), text, key=cause.reason == refusals.UNBUILT and not rest)


def check_patch(resource: resources.Resource, patch: Mapping[str, Any], path: Path, report: Report) -> None:
    """Complain of the refused fields that a patch sets. The API server alone can check the rest of it."""
    try:
        partial = convert.from_json(resource.message, patch)
    except convert.ConversionError:
        return  # A null takes a field away; a strategic patch has directives.
    complain(refusals.in_object(partial), patch, path, report)


def _pod_spec(message: KubernetesObject) -> core_v1_pb2.PodSpec | None:
    """Pod spec of a pod, or of the pods that an object is a template of."""
    if isinstance(message, core_v1_pb2.Pod):
        return message.spec
    found = template(message)
    return None if found is None else found.spec


def template(message: KubernetesObject) -> core_v1_pb2.PodTemplateSpec | None:
    """The template of the pods that an object makes, or whose Jobs make them."""
    part: Any = message
    for name in _path_of_template(message):
        part = getattr(part, name, None)
    return part  # type: ignore[no-any-return]


def _path_of_template(message: KubernetesObject) -> tuple[str, ...]:
    if isinstance(message, batch_v1_pb2.CronJob):
        return "spec", "jobTemplate", "spec", "template"
    return "spec", "template"


def ends(pod: core_v1_pb2.Pod) -> None:
    """A pod that runs for a time and does not say what then is not started again, as Kubernetes would by default."""
    if not pod.spec.HasField("restartPolicy"):
        pod.spec.restartPolicy = "Never"


def _says_when_it_ends(pod: core_v1_pb2.Pod) -> bool:
    """The pod, or every main container of it."""
    annotations = pod.metadata.annotations
    if RUN_SECONDS in annotations or not annotations:
        return RUN_SECONDS in annotations
    return all(f"{RUN_SECONDS}.{container.name}" in annotations for container in pod.spec.containers)


def _check_annotations(pod: Any, path: Path, report: Report) -> None:
    annotations = pod.metadata.annotations
    names = [container.name for container in (*pod.spec.initContainers, *pod.spec.containers)]
    for name in sorted(annotations):
        if not name.startswith("kemu.dev/"):
            continue
        where = (*path, "metadata", "annotations", name)
        if name == USAGE:
            _check_usage(annotations[name], where, report)
            continue
        if name == PROBES:
            _check_probes(annotations[name], pod.spec, where, report)
            continue
        if name == gpu_cards.ANNOTATION:
            _check_cards(annotations[name], where, report)
            continue
        if name == planned_fields.REQUIRED_DURING_EXECUTION:
            if annotations[name] not in ("true", "false"):
                report.add(where, f'must be "true" or "false", not {annotations[name]!r}')
            continue
        what, dot, container = name.removeprefix("kemu.dev/").partition(".")
        what = f"kemu.dev/{what}"
        if what not in ANNOTATIONS:
            report.add(where, "is not an annotation that kemu knows", did_you_mean(name, ANNOTATIONS), key=True)
            continue
        if dot and container not in names:
            report.add(where, f"the pod has no container named {container!r}", did_you_mean(container, names), key=True)
        complaint = annotation_complaint(what, annotations[name])
        if complaint:
            report.add(where, complaint)


def _check_cards(text: str, path: Path, report: Report) -> None:
    try:
        gpu_cards.numbers(text)
    except ValueError as error:
        report.add(path, str(error))


def _check_usage(text: str, path: Path, report: Report) -> None:
    try:
        usages.parse(yaml_texts.safe_load(text))
    except curves.CurveError as error:
        report.add(path, str(error))
    except yaml.YAMLError as error:
        report.add(path, f"is not YAML: {error}")


def _check_probes(text: str, spec: core_v1_pb2.PodSpec, path: Path, report: Report) -> None:
    try:
        data = yaml_texts.safe_load(text)
    except yaml.YAMLError as error:
        report.add(path, f"is not YAML: {error}")
        return
    _complain_probes(data, spec, path, report)


def state_probes(pod: core_v1_pb2.Pod, data: Mapping[str, Any], path: Path, report: Report) -> None:
    """What the containers of all pods of a workload answer to their probes, as each pod says by its annotation."""
    if _complain_probes(data, pod.spec, path, report):
        pod.metadata.annotations[PROBES] = json.dumps(data)


def _complain_probes(data: Json, spec: core_v1_pb2.PodSpec, path: Path, report: Report) -> bool:
    """Whether it is right: the containers are there, and have the probes, and the limits, that it is about."""
    try:
        read = answers.parse(data)
    except answers.ProbesError as error:
        report.add(path, str(error))
        return False
    found = {one.name: one for one in (*spec.initContainers, *spec.containers)}
    complaints = []
    for name, of_one in read.items():
        if name not in found:
            text = f"the pod has no container named {name!r}"
            complaints.append((text, did_you_mean(name, list(found))))
            continue
        container = found[name]
        for kind, rules in of_one.items():
            if not container.HasField(f"{kind}Probe"):
                complaints.append((f"{name}.{kind}: the container has no {kind}Probe", ""))
            for resource, _, is_share in rules.fails_above:
                if is_share and resource not in container.resources.limits:
                    text = f"{name}.{kind}.failsAbove.{resource}: a share of a limit that the container does not have"
                    complaints.append((text, f"set resources.limits.{resource}, or state an amount"))
    for text, suggestion in complaints:
        report.add(path, text, suggestion)
    return not complaints


def state_usage(pod: core_v1_pb2.Pod, usage: Mapping[str, Any], path: Path, report: Report) -> None:
    """What all pods of a workload use, as each of them says by its annotation."""
    try:
        usages.parse(usage)
    except curves.CurveError as error:
        report.add(path, str(error))
        return
    pod.metadata.annotations[USAGE] = json.dumps(usage)


def annotation_complaint(name: str, text: str) -> str:
    """What is wrong with the value of one of ANNOTATIONS; empty if nothing."""
    if name == EXIT_CODE:
        return "" if text.isdecimal() and int(text) <= 255 else f"must be a whole number from 0 to 255, not {text!r}"
    if name in (PULL_ERROR, POST_START_ERROR):
        what = "the image cannot be pulled" if name == PULL_ERROR else "the hook fails"
        return "" if text else f"must say why {what}"
    try:
        seconds = float(text)
    except ValueError:
        return f"must be a number of seconds, not {text!r}"
    return "" if 0 <= seconds < 1e9 else f"must be a number of seconds that is not negative, not {text!r}"


def _report_conversion(error: convert.ConversionError, path: Path, report: Report) -> None:
    for problem in error.problems:
        report.add(
            (*path, *problem.steps),
            problem.message,
            problem.suggestion,
            key=problem.message.startswith("unknown field"),
        )

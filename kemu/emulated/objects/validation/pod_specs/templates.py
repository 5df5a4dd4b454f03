"""The templates of pods that workloads hold."""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.objects.validation.causes import forbidden, invalid, not_supported
from kemu.emulated.objects.validation.metadata import check_annotations, check_labels
from kemu.emulated.objects.validation.pod_specs import pod_annotations, pods
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2


def check_template(template: core_v1_pb2.PodTemplateSpec, path: str, found: list[Cause]) -> None:
    """``ValidatePodTemplateSpec``"""
    check_metadata(template, path, found)
    pods.check_pod_spec(template.spec, f"{path}.spec", found)
    if template.metadata.annotations:
        pod_annotations.check_profiles(template.metadata.annotations, template.spec, f"{path}.spec", found)
    if template.spec.ephemeralContainers:
        detail = "ephemeral containers not allowed in pod template"
        found.append(forbidden(f"{path}.spec.ephemeralContainers", detail))


def check_metadata(template: core_v1_pb2.PodTemplateSpec, path: str, found: list[Cause]) -> None:
    """Labels and annotations; nothing else of the metadata has a use."""
    if template.metadata.labels:
        check_labels(template.metadata.labels, f"{path}.labels", found)
    annotations = template.metadata.annotations
    if annotations:
        check_annotations(annotations, f"{path}.annotations", found)
        pod_annotations.check_annotations(annotations, template.spec, f"{path}.annotations", found)


def check_runs_forever(spec: core_v1_pb2.PodSpec, kind: str, path: str, found: list[Cause]) -> None:
    """What controllers that keep a number of pods running ask of their pods."""
    if spec.restartPolicy != "Always":
        found.append(not_supported(f"{path}.restartPolicy", spec.restartPolicy, ("Always",)))
    if spec.HasField("activeDeadlineSeconds"):
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        found.append(forbidden(f"{path}.activeDeadlineSeconds", detail))


def refuse_labels(labels: Mapping[str, str], path: str, found: list[Cause]) -> None:
    """Those of a template (``path``) that its selector does not match."""
    shown = {key: labels[key] for key in sorted(labels)} or None
    found.append(invalid(f"{path}.metadata.labels", shown, "`selector` does not match template `labels`"))

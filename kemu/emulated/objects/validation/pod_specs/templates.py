"""The templates of pods that workloads hold."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.objects.validation.causes import forbidden, not_supported
from kemu.emulated.objects.validation.metadata import check_labels
from kemu.emulated.objects.validation.pod_specs import pods
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2


def check_template(
    template: core_v1_pb2.PodTemplateSpec,
    restart_policies: tuple[str, ...],
    found: list[Cause],
    volumes: Iterable[str] = (),
    path: str = "spec.template",
) -> None:
    """``volumes``: names of further volumes that containers may mount."""
    check_labels(template.metadata.labels, f"{path}.labels", found)
    pods.check_pod_spec(template.spec, f"{path}.spec", found, volumes)
    if template.spec.ephemeralContainers:
        detail = "ephemeral containers not allowed in pod template"
        found.append(forbidden(f"{path}.spec.ephemeralContainers", detail))
    policy = template.spec.restartPolicy
    if policy in pods.RESTART_POLICIES and policy not in restart_policies:
        found.append(not_supported(f"{path}.spec.restartPolicy", policy, restart_policies))

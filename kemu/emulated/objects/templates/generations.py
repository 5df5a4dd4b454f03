"""``spec.templateGeneration`` of former versions of the DaemonSet, which apps/v1 keeps in an annotation."""

from __future__ import annotations

from kemu.messages.k8s import apps_v1_pb2

ANNOTATION = "deprecated.daemonset.template.generation"
"""Annotation of a DaemonSet: how many templates it has had."""
LABEL = "pod-template-generation"
"""Label of its pods."""


def of(daemon_set: apps_v1_pb2.DaemonSet) -> int:
    """0: it has none."""
    text = daemon_set.metadata.annotations.get(ANNOTATION, "")
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def put(daemon_set: apps_v1_pb2.DaemonSet, number: int) -> None:
    daemon_set.metadata.annotations[ANNOTATION] = str(number)

"""Fields that Kubernetes' documentation announced and that its API never got: what is written instead."""

from __future__ import annotations

REQUIRED_DURING_EXECUTION = "kemu.dev/required-during-execution"
"""Annotation of a pod: "true" makes its required node affinity count while it runs, too."""

HINTS = {
    "requiredDuringSchedulingRequiredDuringExecution": (
        "Kubernetes announced this field and never had it: write requiredDuringSchedulingIgnoredDuringExecution; "
        f'the annotation {REQUIRED_DURING_EXECUTION}: "true" evicts pods whose node no longer matches it'
    )
}
"""By the name of the field."""

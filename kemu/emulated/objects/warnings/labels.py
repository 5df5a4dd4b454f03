"""Deprecated labels of nodes (``pkg/api/node/util.go``)."""

from __future__ import annotations

from collections.abc import Iterator

from kemu.emulated.objects import names
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

_SINCE = "deprecated since"
DEPRECATED = {
    "beta.kubernetes.io/arch": f'{_SINCE} v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": f'{_SINCE} v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": f'{_SINCE} v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": f'{_SINCE} v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": f'{_SINCE} v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": f"{_SINCE} v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": f"{_SINCE} v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
"""What is said of them, by key."""


def of_term(term: core_v1_pb2.NodeSelectorTerm, path: str, *, values: bool = False) -> Iterator[str]:
    """Those of a node selector's term, at ``path``. ``values``: also values that no label can have."""
    for index, expression in enumerate(term.matchExpressions):
        at = f"{path}.matchExpressions[{index}]"
        if expression.key in DEPRECATED:
            yield f"{at}.key: {expression.key} is {DEPRECATED[expression.key]}"
        if values:
            for number, value in enumerate(expression.values):
                for wrong in names.label_value(value):
                    yield f"{at}.values[{number}]: {value} is invalid, {wrong}"


def of_selector(selector: meta_v1_pb2.LabelSelector, path: str) -> Iterator[str]:
    """Those of a label selector that selects nodes."""
    for index, expression in enumerate(selector.matchExpressions):
        if expression.key in DEPRECATED:
            yield f"{path}.matchExpressions[{index}].key: {expression.key} is {DEPRECATED[expression.key]}"
    for key in sorted(selector.matchLabels):
        if key in DEPRECATED:
            yield f"{path}.matchLabels.{key}: {DEPRECATED[key]}"

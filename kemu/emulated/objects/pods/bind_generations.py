"""How many bindings a node has counted: an annotation of the Node, with ``bindCheck: generation``.

API servers write it, schedulers read it for the precondition of a binding. Nothing in Kubernetes corresponds to it.
"""

from __future__ import annotations

from kemu.messages.k8s import core_v1_pb2

ANNOTATION = "kemu.dev/bind-generation"


def of(node: core_v1_pb2.Node) -> int:
    """0 where nothing has been bound; also where there is nonsense."""
    text = node.metadata.annotations.get(ANNOTATION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def write(node: core_v1_pb2.Node, count: int) -> None:
    node.metadata.annotations[ANNOTATION] = str(count)

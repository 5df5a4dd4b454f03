"""Objects in one shape, from any writer.

Clients in Go send every field that is no pointer, also an empty one (``hostIP: ""``, ``resources: {}``); others leave
them out, as kemu's actors do. To Kubernetes both are the same object. So that they are here, too, what a client sends
is brought into the shape without these fields: else an update that changes nothing would change the message.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects.conversion import go_values
from kemu.messages.k8s import core_v1_pb2


def tidy(kind: str, message: Message) -> None:
    """Take the fields away that are set to nothing and mean nothing."""
    go_values.trim(message)
    if isinstance(message, core_v1_pb2.Node):
        _agree(message.spec, "podCIDR", message.spec.podCIDRs, str)
    elif isinstance(message, core_v1_pb2.Pod) and message.HasField("status"):
        _agree(message.status, "podIP", message.status.podIPs, lambda one: one.ip)


def _agree(message: Message, name: str, plural: MutableSequence[Any], text: Callable[[Any], str]) -> None:
    """A field and the first element of its newer plural say the same (``conversion.go`` of ``core/v1``): the field
    counts where they do not."""
    one = getattr(message, name)
    if one and (not plural or text(plural[0]) != one):
        del plural[:]
        if text is str:
            plural.append(one)
        else:
            plural.add(ip=one)  # type: ignore[attr-defined]
    elif plural and not one:
        setattr(message, name, text(plural[0]))

"""An extender that comes with kemu, ``gpu-share``: pods share the memory of GPUs, but each fits on one card only.

What NodeResourcesFit cannot see: a node with two cards of 8 units, 5 of each in use, has 6 units left, but no place for
a pod that wants 4. So the scheduler leaves the resource to the extender (``ignoredByScheduler``), which filters, packs
(the fuller card first) and binds: it writes the card into an annotation of the pod before it binds it.

Arguments: ``resource``, what pods request (``kemu.dev/gpu-memory``), ``cards``, the label of a node with the number of
its cards (``kemu.dev/gpu-cards``), ``annotation``, where the card of a pod is written (``kemu.dev/gpu-card``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kemu.emulated.client import clients
from kemu.emulated.objects.amounts import requests
from kemu.emulated.scheduler.extenders.servers import Extender, Refusal
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable, unschedulable
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env

_DEFAULTS = {"resource": "kemu.dev/gpu-memory", "cards": "kemu.dev/gpu-cards", "annotation": "kemu.dev/gpu-card"}

TOO_SMALL = "no GPU with as much memory"
NO_ROOM = "no GPU with enough memory left"


class GpuShare(Extender):
    """Keeps only the bindings under way; everything else is in the annotations of pods."""

    def __init__(self, env: Env, client: clients.Client, args: Mapping[str, Any]) -> None:
        super().__init__(env, client, args)
        for key, value in args.items():
            if key not in _DEFAULTS or not isinstance(value, str):
                raise ValueError(f"{key}: unknown, or no text; there are {', '.join(_DEFAULTS)}")
        settings = {**_DEFAULTS, **args}
        self._resource: str = settings["resource"]
        self._cards_label: str = settings["cards"]
        self._annotation: str = settings["annotation"]
        self._binding: dict[str, tuple[str, int]] = {}
        """Node and card of pods whose binding has not been seen in the watch yet, by UID."""

    def filter(self, pod: core_v1_pb2.Pod, node: core_v1_pb2.Node) -> Status | None:
        wanted, cards = self._wanted(pod), self._cards(node)
        if wanted > self._card_size(node, cards):
            return unresolvable(TOO_SMALL)
        return unschedulable(NO_ROOM) if self._card_for(wanted, node) is None else None

    def prioritize(self, pod: core_v1_pb2.Pod, node: core_v1_pb2.Node) -> int:
        """The less is left on the card, the better."""
        card = self._card_for(self._wanted(pod), node)
        if card is None:
            return 0
        size = self._card_size(node, self._cards(node))
        return 10 - 10 * (self._left(node)[card] - self._wanted(pod)) // size if size else 0

    def preempt(self, pod: core_v1_pb2.Pod, node: core_v1_pb2.Node, victims: Sequence[Any]) -> Sequence[Any] | None:
        """The candidate stands if one card is free enough without the victims."""
        left = self._left(node, [victim.metadata.uid for victim in victims])
        return victims if any(free >= self._wanted(pod) for free in left) else None

    async def bind(self, pod: core_v1_pb2.Pod, node: str) -> None:
        found = self.nodes.get(node)
        card = self._card_for(self._wanted(pod), found) if found is not None else None
        if card is None:
            # Other pods took the room since the filter ran.
            raise Refusal(f"{node}: {NO_ROOM}")
        metadata = pod.metadata
        mine = self._binding[metadata.uid] = (node, card)
        try:
            patch = {"metadata": {"annotations": {self._annotation: str(card)}}}
            await self.client.patch("pods", metadata.name, metadata.namespace, patch, uid=metadata.uid)
            await super().bind(pod, node)
        except BaseException:
            # Not if the pod has been seen bound (by a request whose answer was lost), or a later request binds it.
            if self._binding.get(metadata.uid) is mine:
                del self._binding[metadata.uid]
            raise

    # Cards ----------------------------------------------------------------------------------------------------------

    def _wanted(self, pod: core_v1_pb2.Pod) -> int:
        return requests.pod_requests(pod).get(self._resource, 0)

    def _cards(self, node: core_v1_pb2.Node) -> int:
        text = node.metadata.labels.get(self._cards_label, "1")
        return int(text) if text.isdecimal() and int(text) else 1

    def _card_size(self, node: core_v1_pb2.Node, cards: int) -> int:
        return requests.resource_list(node.status.allocatable).get(self._resource, 0) // cards

    def _left(self, node: core_v1_pb2.Node, gone: Sequence[str] = ()) -> list[int]:
        """What each card of a node has left, without the pods in ``gone``."""
        name, cards = node.metadata.name, self._cards(node)
        left = [self._card_size(node, cards)] * cards
        for pod in self.pods_on(name):
            self._binding.pop(pod.metadata.uid, None)
            card = pod.metadata.annotations.get(self._annotation, "")
            if pod.metadata.uid not in gone and card.isdecimal() and int(card) < cards:
                left[int(card)] -= self._wanted(pod)
        for uid, (where, number) in list(self._binding.items()):
            if uid not in self.pods:
                del self._binding[uid]
            elif where == name and uid not in gone:
                left[number] -= self._wanted(self.pods[uid])
        return left

    def _card_for(self, wanted: int, node: core_v1_pb2.Node) -> int | None:
        """The fullest card that has enough left."""
        fitting = [(free, card) for card, free in enumerate(self._left(node)) if free >= wanted]
        return min(fitting)[1] if fitting else None

"""GPU cards: whether the cards that a pod was given are free for it.

Stands for the device manager (``pkg/kubelet/cm/devicemanager``) with a device plugin that shares cards: of a pod with a
card in its annotation (:mod:`kemu.emulated.objects.pods.gpu_cards`) the kubelet takes exactly that card, or refuses the
pod. What the pods on the node hold follows from their own annotations. A pod that requests GPU and names no card is not
looked at: it counts in the sums of the node alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kemu.emulated.kubelet.admission import predicates
from kemu.emulated.kubelet.pods import claims
from kemu.emulated.objects.pods import gpu_cards
from kemu.messages.k8s import core_v1_pb2


def allocate(allocatable: Mapping[str, int], pod: core_v1_pb2.Pod, active: Iterable[Any]) -> predicates.Decision | None:
    """The refusal of a pod whose cards are not free, or not there; None: it may have them.

    ``allocatable``: of the node; ``active``: the pods that count on it.
    """
    held = _held(pod)
    if held is None:
        return None
    cards, milli = held
    left = [gpu_cards.WHOLE] * (allocatable.get(gpu_cards.GPU_MILLI, 0) // gpu_cards.WHOLE)
    for other in active:
        others = _held(other)
        for card in others[0] if others is not None else ():
            if others is not None and card < len(left):
                left[card] -= others[1]
    for card in cards:
        if card >= len(left):
            return _refusal(f"there is no GPU card {card}")
        if left[card] < milli:
            return _refusal(f"GPU card {card} has {left[card]} milli left, {milli} are requested")
    return None if cards else _refusal("the pod names no GPU card that could be its own")


def _held(pod: core_v1_pb2.Pod) -> tuple[tuple[int, ...], int] | None:
    """The cards of a pod, and how much of each; None: it requests no GPU, or names no card."""
    text = pod.metadata.annotations.get(gpu_cards.ANNOTATION)
    if text is None:
        return None
    wanted = gpu_cards.wanted(claims.claim_of(pod).requests)
    if not wanted.cards:
        return None
    try:
        cards = gpu_cards.numbers(text)
    except ValueError:
        cards = ()
    return (cards if len(cards) == wanted.cards else ()), wanted.milli


def _refusal(why: str) -> predicates.Decision:
    message = f"Allocate failed due to {why}, which is unexpected."
    return predicates.Decision(False, predicates.NO_DEVICES.reason, message)

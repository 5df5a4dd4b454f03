"""How pods live whose objects do not say: what ``lives`` of a scenario states becomes annotations of new pods.

Kubernetes has nothing like it, as its containers are real. The annotations are those that a pod may state itself
(:mod:`kemu.emulated.kubelet.pods.lives`); what it states counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects import selectors, times
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.runtime import distributions
from kemu.runtime.env import Env

EXIT_CODE = "kemu.dev/exit-code"
"""The one annotation that is drawn and no number of seconds."""


@dataclass(frozen=True, slots=True)
class _Entry:
    namespace: str
    selector: selectors.LabelSelector
    drawn: tuple[tuple[str, distributions.Distribution], ...]
    annotations: Mapping[str, str]


class Lives:
    """``entries`` (plain data): ``namespace`` (empty: all), ``selector`` (a serialised LabelSelector), ``drawn``
    (annotation → number or distribution), ``annotations`` (fixed texts)."""

    def __init__(self, env: Env, entries: Sequence[Mapping[str, Any]]) -> None:
        self._env = env
        self._entries = [
            _Entry(
                entry["namespace"],
                selectors.compile_labels(meta_v1_pb2.LabelSelector.FromString(entry["selector"])),
                tuple((name, distributions.parse(value)) for name, value in entry["drawn"].items()),
                entry["annotations"],
            )
            for entry in entries
        ]

    def give(self, pod: core_v1_pb2.Pod) -> None:
        """Give each annotation what the first matching entry says that says anything. Draws depend on the pod's UID
        only: not on the API server, nor on other pods."""
        metadata = pod.metadata
        annotations = metadata.annotations
        random = None
        for entry in self._entries:
            if entry.namespace not in ("", metadata.namespace) or not entry.selector.matches(metadata.labels):
                continue
            for name, text in entry.annotations.items():
                if name not in annotations:
                    annotations[name] = text
            for name, distribution in entry.drawn:
                if name in annotations:
                    continue
                if random is None:
                    random = self._env.stream("life", metadata.uid)
                annotations[name] = drawn_text(name, distribution.draw(random))


def drawn_text(annotation: str, drawn: float) -> str:
    """What an annotation says of a drawn number: an exit code, or seconds to the millisecond."""
    return str(round(drawn)) if annotation == EXIT_CODE else times.seconds_text(drawn)

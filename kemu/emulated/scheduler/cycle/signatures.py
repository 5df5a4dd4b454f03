"""Signatures of pods: pods of one signature get the same filter results and scores from the same nodes.

A profile signs pods if all its plugins of PreFilter, Filter, PreScore and Score can and it has no extenders
(``computeBatchablePlugins`` in ``pkg/scheduler/framework/runtime``). For :mod:`kemu.emulated.scheduler.cycle.batches`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework.interfaces import Plugin, SignPlugin

_KEPT = 4096

Signature = tuple[tuple[str, Hashable], ...]


class Signer:
    """Signs the pods of one profile (``SignPod``). Signatures are kept by template and labels."""

    def __init__(self, plugins: Sequence[SignPlugin]) -> None:
        self._plugins = plugins
        self._known: dict[tuple[int, tuple[tuple[str, str], ...]], Signature | None] = {}

    def of(self, pod: PodInfo) -> Signature | None:
        """None: some plugin cannot sign the pod."""
        labels = pod.labels
        key = (pod.template.number, tuple(sorted(labels.items())) if labels else ())
        if key in self._known:
            return self._known[key]
        if len(self._known) >= _KEPT:
            self._known.clear()
        signature = self._known[key] = self._sign(pod)
        return signature

    def _sign(self, pod: PodInfo) -> Signature | None:
        found: dict[str, Hashable] = {}
        for plugin in self._plugins:
            fragments = plugin.sign_pod(pod)
            if fragments is None:
                return None
            found.update(fragments)
        return tuple(sorted(found.items(), key=lambda one: one[0]))


def signer_of(plugins: Sequence[Plugin]) -> Signer | None:
    """None: the profile signs no pod, because one of its plugins does not."""
    able = [plugin for plugin in plugins if isinstance(plugin, SignPlugin) and plugin.signs()]
    return Signer(able) if len(able) == len(plugins) else None

"""When images are removed: the image garbage collection fields of a KubeletConfiguration.

Mirrors ``ImageGCPolicy`` of ``pkg/kubelet/images``.
:mod:`kemu.emulated.kubelet.images.garbage` acts on them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """When the disk is full to the high threshold, images are removed until it is down to the low one."""

    high_percent: int
    low_percent: int
    min_age_ns: int
    """An image that was first seen more recently is not removed to free room."""
    max_age_ns: int
    """Those that have been unused for longer are removed, however much room there is; 0: they are not."""

    @property
    def is_off(self) -> bool:
        """No pass takes place. The eviction manager may still ask."""
        return self.high_percent == 100 and not self.max_age_ns

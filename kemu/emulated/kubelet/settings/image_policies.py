"""When images are removed: the image garbage collection fields of a KubeletConfiguration.

Mirrors ``ImageGCPolicy`` of ``pkg/kubelet/images`` and the checks of ``ValidateKubeletConfiguration``.
:mod:`kemu.emulated.kubelet.images.garbage` acts on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects import times
from kemu.runtime.env import SECOND_NS

_HIGH, _LOW = "imageGCHighThresholdPercent", "imageGCLowThresholdPercent"
_MIN_AGE, _MAX_AGE = "imageMinimumGCAge", "imageMaximumGCAge"


@dataclass(frozen=True, slots=True)
class Policy:
    """When the disk is full to the high threshold, images are removed until it is down to the low one."""

    high_percent: int = 85
    low_percent: int = 80
    min_age_ns: int = 120 * SECOND_NS
    """An image that was first seen more recently is not removed to free room."""
    max_age_ns: int = 0
    """Those that have been unused for longer are removed, however much room there is; 0: they are not."""

    @property
    def is_off(self) -> bool:
        """No pass takes place. The eviction manager may still ask."""
        return self.high_percent == 100 and not self.max_age_ns


_DEFAULT = Policy()


def read(kubelet: Mapping[str, Any]) -> Policy:
    """From the fields of a KubeletConfiguration. Raises ValueError that begins with the path of the field."""
    high, low = _percent(kubelet, _HIGH, _DEFAULT.high_percent), _percent(kubelet, _LOW, _DEFAULT.low_percent)
    if low >= high:
        stated = _LOW if kubelet.get(_LOW) is not None else _HIGH
        raise ValueError(f"{stated}: {_LOW} ({low}) must be less than {_HIGH} ({high})")
    # As in the kubelet, 0 stands for the default.
    min_age_ns = times.duration_field(kubelet, _MIN_AGE) or _DEFAULT.min_age_ns
    max_age_ns = times.duration_field(kubelet, _MAX_AGE)
    if max_age_ns < 0:
        raise ValueError(f"{_MAX_AGE}: must not be negative")
    if 0 < max_age_ns <= min_age_ns:
        raise ValueError(f"{_MAX_AGE}: must be greater than {_MIN_AGE} ({min_age_ns // SECOND_NS}s)")
    return Policy(high, low, min_age_ns, max_age_ns)


def _percent(kubelet: Mapping[str, Any], name: str, default: int) -> int:
    value = kubelet.get(name)
    if value is None:
        return default
    if type(value) is not int or not 0 <= value <= 100:
        raise ValueError(f"{name}: must be a whole number from 0 to 100, not {value!r}")
    return value

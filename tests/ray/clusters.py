"""Ray clusters of several raylets on this machine, for tests: see :mod:`kemu.runtime.ray.broker.raylets`."""

from kemu.runtime.ray.broker.raylets import Raylets, raylets, started

__all__ = ["Raylets", "raylets", "started"]

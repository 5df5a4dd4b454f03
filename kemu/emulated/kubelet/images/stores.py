"""The images on a node, and the list of them in its Node's status.

Mirrors the image list of ``pkg/kubelet/images`` and ``pkg/kubelet/nodestatus`` (``Images``). The scenario gives the
sizes (``images``). :mod:`kemu.emulated.kubelet.images.pulls` adds images, :mod:`kemu.emulated.kubelet.images.garbage`
removes them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kemu.emulated.kubelet import notes
from kemu.emulated.objects import names
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env

EVERYWHERE = "kemu.dev/pause:1"
"""The image of containers that name none. Every node has it and keeps it."""

MOST_NAMES = 5
"""How many names of one image a Node lists (``MaxNamesPerImageInNodeStatus``)."""

_FILE = "images"


class Image:
    """One that is there. Times are in ns since the start of the run."""

    __slots__ = ("came_ns", "detected_ns", "names", "size_bytes", "used_ns")

    def __init__(self, called: Iterable[str], size_bytes: int | None, came_ns: int) -> None:
        self.names = tuple(names.tagged_image(name) for name in called)
        self.size_bytes = size_bytes
        """None: not stated. Then it takes no room, and the Node does not list it."""
        self.came_ns = came_ns
        self.detected_ns: int | None = None
        """When the garbage collector first saw it; None: it has not looked since it came."""
        self.used_ns: int | None = None
        """When the garbage collector last saw that a container had it; None: it never did."""


class Images:
    """The images on the node. They outlive the kubelet, on its disk."""

    def __init__(self, env: Env, sizes: Mapping[str, int], on_changed: Callable[[], object] = lambda: None) -> None:
        """``sizes``: in bytes, by name with tag, of the images that can be pulled. ``on_changed`` is told when an image
        has come or gone."""
        self._env = env
        self._sizes = sizes
        self._by_name: dict[str, Image] = {}
        self._all: dict[Image, None] = {}
        self._is_kept = False
        self.bytes = 0
        """All of them together."""
        self._on_changed = on_changed

    def start(self, given: Iterable[core_v1_pb2.ContainerImage], *, is_new: bool) -> None:
        """What an earlier kubelet has left on this machine, or what is ``given`` if nothing tells of that; on a new
        machine (``is_new``) nothing."""
        found: list[tuple[Iterable[str], int | None]] = []
        if not is_new:
            kept = notes.read_if_sound(self._env.disk, _FILE)
            if kept is not None:
                found.extend(kept)
            else:
                found.extend((image.names, image.sizeBytes or self._size_of(image.names)) for image in given)
        for called, size_bytes in found:
            self._put(Image(called, size_bytes, self._env.clock.now_ns()))
        self._is_kept = True

    def get(self, name: str) -> Image | None:
        return self._by_name.get(names.tagged_image(name))

    def size_bytes(self, name: str) -> int:
        """0: unknown, or not here."""
        image = self.get(name)
        return image.size_bytes or 0 if image is not None else 0

    def is_here(self, name: str) -> bool:
        return name == EVERYWHERE or names.tagged_image(name) in self._by_name

    def every(self) -> list[Image]:
        """In the order in which they came."""
        return list(self._all)

    def add(self, name: str) -> None:
        """It has come, or a container that runs shows that it is there."""
        if self.is_here(name):
            return
        self._put(Image([name], self._size_of([name]), self._env.clock.now_ns()))
        self._changed()

    def remove(self, image: Image) -> None:
        del self._all[image]
        for name in image.names:
            if self._by_name.get(name) is image:
                del self._by_name[name]
        self.bytes -= image.size_bytes or 0
        self._changed()

    def told(self, most: int) -> list[core_v1_pb2.ContainerImage]:
        """The images that the Node lists: the largest, at most so many; -1: all."""
        known = [(image.size_bytes, image.names) for image in self._all if image.size_bytes is not None]
        known.sort(key=lambda one: (-one[0], one[1]))
        return [
            core_v1_pb2.ContainerImage(names=called[:MOST_NAMES], sizeBytes=size_bytes)
            for size_bytes, called in (known if most < 0 else known[:most])
        ]

    def _size_of(self, called: Iterable[str]) -> int | None:
        return next((self._sizes[one] for one in map(names.tagged_image, called) if one in self._sizes), None)

    def _put(self, image: Image) -> None:
        self._all[image] = None
        for name in image.names:
            self._by_name[name] = image
        self.bytes += image.size_bytes or 0

    def _changed(self) -> None:
        if self._is_kept:
            kept: Any = [(image.names, image.size_bytes) for image in self._all]
            # Not durably: all actors of `kemu up` would wait, twice for each image of each node. Where it cannot be
            # written, the next kubelet has what was noted last.
            with contextlib.suppress(OSError):
                notes.write(self._env.disk, _FILE, kept, durably=False)
        self._on_changed()

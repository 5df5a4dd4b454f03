"""The images of a node: which are there, what its Node says of them, and the pulls of those that are not.

Mirrors ``pkg/kubelet/images`` (``imageManager.EnsureImageExists``, the serial and the parallel puller, the cache of the
image list) and ``pkg/kubelet/nodestatus`` (``Images``). How long a pull takes is drawn from ``timing.imagePull``, how
large an image is the scenario says (``images``); whether a pull fails, the pod says (:mod:`kemu.kubelet.pods.lives`).
What follows from a failure, :mod:`kemu.kubelet.pods.starts` knows; which images go again,
:mod:`kemu.kubelet.images.garbage`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kemu.k8s import core_v1_pb2
from kemu.objects import names
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS, Env, Timer

ALWAYS, NEVER = "Always", "Never"

NEVER_PULLED, PULL_FAILED, PULL_BACKING_OFF = "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff"
"""What the status of a container says that waits for its image."""

EVERYWHERE = "kemu.dev/pause:1"
"""Of containers that name no image. It is on every node, and stays."""

MOST_NAMES = 5
"""So many names of one image a Node tells (``MaxNamesPerImageInNodeStatus``)."""

_FILE = "images"


def never_pulled_message(image: str) -> str:
    return f'Container image "{image}" is not present with pull policy of Never'


def backing_off_message(image: str, error: str) -> str:
    return f'Back-off pulling image "{image}": {PULL_FAILED}: {error}'


class Image:
    """One that is there. Times are in ns since the start of the run."""

    __slots__ = ("came_ns", "detected_ns", "names", "size_bytes", "used_ns")

    def __init__(self, called: Iterable[str], size_bytes: int | None, came_ns: int) -> None:
        self.names = tuple(names.tagged_image(name) for name in called)
        self.size_bytes = size_bytes
        """None: nobody has said it. Then it takes no room, and the Node does not tell of it."""
        self.came_ns = came_ns
        self.detected_ns: int | None = None
        """When the garbage collector first saw it; None: it has not looked since it came."""
        self.used_ns: int | None = None
        """When the garbage collector last saw that a container had it; None: it never did."""


class Images:
    """What is there. It outlives the kubelet, on its disk."""

    def __init__(self, env: Env, sizes: Mapping[str, int]) -> None:
        """``sizes``: in bytes, by name with tag, of the images that can be pulled."""
        self._env = env
        self._sizes = sizes
        self._by_name: dict[str, Image] = {}
        self._all: dict[Image, None] = {}
        self._is_kept = False
        self.bytes = 0
        """All of them together."""
        self.on_changed: Callable[[], None] = lambda: None
        """Told when an image has come or gone."""

    def start(self, given: Iterable[core_v1_pb2.ContainerImage], *, is_new: bool) -> None:
        """What an earlier kubelet has left on this machine, or what is ``given`` if there was none; on a new machine
        (``is_new``) nothing."""
        found: list[tuple[Iterable[str], int | None]] = []
        if not is_new:
            if _FILE in self._env.disk.list():
                found.extend(json.loads(self._env.disk.read(_FILE)))
            else:
                found.extend((image.names, image.sizeBytes or self._size_of(image.names)) for image in given)
        for called, size_bytes in found:
            self._put(Image(called, size_bytes, self._env.clock.now_ns()))
        self._is_kept = True

    def get(self, name: str) -> Image | None:
        return self._by_name.get(names.tagged_image(name))

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
        """What the Node tells: the largest, at most so many; -1: all."""
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
            self._env.disk.write(_FILE, json.dumps(kept).encode())
        self.on_changed()


class Pull:
    """One that waits for its turn or goes on."""

    __slots__ = ("done", "fails", "image", "timer")

    def __init__(self, image: str, fails: bool, done: Callable[[], None]) -> None:
        self.image = image
        self.fails = fails
        self.done = done
        self.timer: Timer | None = None
        """Set while it goes on."""


class Pulls:
    def __init__(self, env: Env, here: Images, takes: distributions.Distribution, at_once: int) -> None:
        """``takes``: seconds of one pull. ``at_once``: how many may go on at the same time; 0: any number."""
        self._env = env
        self._clock = env.clock
        self.images = here
        self._takes = takes
        self._at_once = at_once
        self._going_on = 0
        self._queue: deque[Pull] = deque()
        self.on_pulled: Callable[[str], None] = lambda image: None
        """Told of every image that was not here before."""

    def pull(self, image: str, fails: bool, done: Callable[[], None]) -> Pull | None:
        """``done`` is called at the end, unless this is the end already (None). ``fails``: it will not succeed."""
        if not self._queue and self._has_room() and self._takes_no_time(image):
            self._ended(image, fails)
            return None
        pull = Pull(image, fails, done)
        self._queue.append(pull)
        self._next()
        return pull

    def cancel(self, pull: Pull) -> None:
        """Nobody waits for it any more."""
        if pull.timer is None:
            self._queue.remove(pull)
            return
        pull.timer.cancel()
        self._going_on -= 1
        self._next()

    def _has_room(self) -> bool:
        return not self._at_once or self._going_on < self._at_once

    def _takes_no_time(self, image: str) -> bool:
        # Of an image that is here the registry is only asked whether it is still the newest.
        return self._takes.constant == 0 or self.images.is_here(image)

    def _next(self) -> None:
        while self._queue and self._has_room():
            pull = self._queue.popleft()
            seconds = 0.0 if self._takes_no_time(pull.image) else self._takes.draw(self._env.random)
            self._going_on += 1
            when_ns = self._clock.now_ns() + int(seconds * SECOND_NS)
            pull.timer = self._clock.call_at_ns(when_ns, self._due, pull)

    def _due(self, pull: Pull) -> None:
        self._going_on -= 1
        self._ended(pull.image, pull.fails)
        pull.done()
        self._next()

    def _ended(self, image: str, fails: bool) -> None:
        if not fails and not self.images.is_here(image):
            self.images.add(image)
            self.on_pulled(image)

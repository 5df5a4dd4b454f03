"""Image pulls: in parallel, or one after the other.

Mirrors ``pkg/kubelet/images`` (the serial and the parallel puller). How long a pull takes is drawn from
``timing.imagePull``; whether it fails, the pod says (:mod:`kemu.emulated.kubelet.pods.lives`).
"""

from __future__ import annotations

from collections.abc import Callable

from kemu.emulated.kubelet.images import stores
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS, Env, Timer

ALWAYS, NEVER = "Always", "Never"

NEVER_PULLED, PULL_FAILED, PULL_BACKING_OFF = "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff"
"""What the status of a container says that waits for its image."""


def never_pulled_message(image: str) -> str:
    return f'Container image "{image}" is not present with pull policy of Never'


def backing_off_message(image: str, error: str) -> str:
    return f'Back-off pulling image "{image}": {PULL_FAILED}: {error}'


class Pull:
    """A pull that waits for its turn or is under way."""

    __slots__ = ("_pulls", "done", "fails", "image", "timer")

    def __init__(self, pulls: Pulls, image: str, fails: bool, done: Callable[[], None]) -> None:
        self._pulls = pulls
        self.image = image
        self.fails = fails
        self.done = done
        self.timer: Timer | None = None
        """Set while it is under way."""

    def cancel(self) -> None:
        """It is not waited for any more."""
        self._pulls.cancel(self)


class Pulls:
    def __init__(self, env: Env, here: stores.Images, takes: distributions.Distribution, at_once: int) -> None:
        """``takes``: seconds of one pull. ``at_once``: how many may go on at the same time; 0: any number."""
        self._env = env
        self._clock = env.clock
        self.images = here
        self._takes = takes
        self._at_once = at_once
        self._going_on = 0
        self._queue: list[Pull] = []
        self.on_pulled: Callable[[str], None] = lambda image: None
        """Told of every image that was not here before."""

    def pull(self, image: str, fails: bool, done: Callable[[], None]) -> Pull | None:
        """``done`` is called at the end, unless this is the end already (None). ``fails``: it will not succeed."""
        if not self._queue and self._has_room() and self._takes_no_time(image):
            self._ended(image, fails)
            return None
        pull = Pull(self, image, fails, done)
        self._queue.append(pull)
        self._next()
        return pull

    def cancel(self, pull: Pull) -> None:
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
            pull = self._queue.pop(0)
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

"""Image garbage collection: removes images when their disk fills up, or when they have been unused for too long.

Mirrors ``pkg/kubelet/images`` (``realImageGCManager``) and ``StartGarbageCollection`` of ``pkg/kubelet``: a pass every
five minutes from the kubelet's start. An image is in use as long as a container of it exists, running or not. The
eviction manager has all unused images removed when the disk runs short
(:mod:`kemu.emulated.kubelet.pressure.eviction_loops`);
:mod:`kemu.emulated.kubelet.usage.machines` measures the disk.

A pass without an effect is skipped. What it would have noted (when it first saw an image, when it last saw it in use)
is computed afterwards, from when the image came and when its containers went.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kemu.emulated.client import recorders
from kemu.emulated.kubelet.images import stores
from kemu.emulated.kubelet.images.stores import Image
from kemu.emulated.kubelet.settings import image_policies, thresholds
from kemu.emulated.kubelet.usage import curves, machines
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env, Timer
from kemu.runtime.runlog.events import GarbageCollected

PERIOD_NS = 300 * SECOND_NS
SEARCH = 12
"""So many passes ahead a full disk is looked for where usage never settles."""

FREE_FAILED, FAILED = "FreeDiskSpaceFailed", "ImageGCFailed"
"""Reasons of events."""


class Collector:
    """Collector of one node. Nothing happens by itself before :meth:`start`."""

    def __init__(
        self,
        env: Env,
        node_name: str,
        policy: image_policies.Policy,
        here: stores.Images,
        meter: machines.Meter,
        in_use: Callable[[], Iterable[str]],
        waits: Callable[[], bool] = lambda: False,
        recorder: recorders.Recorder | None = None,
    ) -> None:
        """``in_use``: the images of the containers that exist, by the names that the containers give them. ``waits``:
        whether something else is to be done first in this instant."""
        self._env = env
        self._clock = env.clock
        self._node_name = node_name
        self._policy = policy
        self._images = here
        self._meter = meter
        self._in_use = in_use
        self._began_ns: int | None = None
        self._passed = -1
        """The number of the last pass that is over; the first one, at the start, has number 0."""
        self._next_ns: int | None = None
        self._timer: Timer | None = None
        self._has_failed = False
        """The last pass did."""
        self._recorder = recorder
        self._waits = waits

    def start(self, began_ns: int) -> None:
        """The kubelet runs since then."""
        self._began_ns = began_ns

    def container_gone(self, image_name: str, created_ns: int) -> bool:
        """A container that existed since then does not exist any more. Returns whether a pass may follow from that."""
        image = self._images.get(image_name)
        if image is None or self._began_ns is None:
            return False
        # A pass in this very instant is still to come.
        seen_ns = self._time(self._number_before(self._clock.now_ns() - 1))
        if seen_ns >= created_ns:
            image.used_ns = max(seen_ns, image.used_ns or 0)
        return self._ages or self._meter.has_own

    # --- when the passes are -----------------------------------------------------------------------------------------

    def _time(self, number: int) -> int:
        assert self._began_ns is not None, "start() comes first"
        return self._began_ns + number * PERIOD_NS

    def _number_before(self, when_ns: int) -> int:
        """The number of the last pass until then, included."""
        return (when_ns - self._time(0)) // PERIOD_NS

    def _number_from(self, when_ns: int) -> int:
        """The number of the first pass from then on, included."""
        return -((self._time(0) - when_ns) // PERIOD_NS)

    def plan(self) -> None:
        """Wait for the next pass that does something, as far as can be told."""
        now_ns = self._clock.now_ns()
        if self._began_ns is None or self._policy.is_off or not self._meter.machine.image_disk.capacity_bytes:
            return
        if self._next_ns is not None and self._next_ns <= now_ns:
            return  # It is due, and will come.
        first, settled_ns = max(self._passed + 1, self._number_from(now_ns)), self._meter.settled_ns
        last = first + SEARCH if settled_ns is None else max(first, self._number_from(settled_ns))
        if self._ages:
            last = max(last, self._number_from(self._time(0) + self._policy.max_age_ns) + 1)
        found = curves.first_second(lambda a, b: self._may_matter(self._time(a), self._time(b)), first, last)
        unused = self._unused() if found is not None or self._policy.max_age_ns else []
        expires = min((max(first, self._expiry(image)) for image in unused), default=None) if self._ages else None
        if expires is not None and (found is None or expires <= found):
            self._set(expires, background=False)
        elif found is not None:
            # Where there is nothing to remove the passes only say so, for ever.
            self._set(found, background=not unused and not self._meter.unnamed_images(now_ns, self._time(found)))
        elif settled_ns is None:
            self._set(last, background=True)
        else:
            self._set(None)

    @property
    def _ages(self) -> bool:
        return self._policy.max_age_ns > 0

    def _may_matter(self, first_ns: int, last_ns: int) -> bool:
        """Whether a pass between these times may do something, apart from images that have not been used for long."""
        if self._meter.is_unused and self._policy.high_percent > 0:
            return False
        if self._is_full(self._meter.signals(first_ns, last_ns)[thresholds.IMAGEFS]):
            return True
        return self._has_expired(None, last_ns) and self._meter.unnamed_images(first_ns, last_ns) > 0

    def _expiry(self, image: Image) -> int:
        """The number of the pass that removes it for its age, if it is not used until then."""
        assert self._began_ns is not None, "start() comes first"
        since_ns = max(self._began_ns, image.used_ns or 0)
        return self._number_before(since_ns + self._policy.max_age_ns) + 1

    def _has_expired(self, used_ns: int | None, when_ns: int) -> bool:
        """None: it was never used. Nothing is as old before the kubelet itself is."""
        assert self._began_ns is not None, "start() comes first"
        max_age_ns = self._policy.max_age_ns
        return 0 < max_age_ns < when_ns - max(self._began_ns, used_ns or 0)

    def _set(self, number: int | None, *, background: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if number is None:
            self._timer = self._next_ns = None
            return
        self._next_ns = self._time(number)
        self._timer = self._clock.call_at_ns(self._next_ns, self._due, background=background)

    def _due(self) -> None:
        """After whatever else happens in this instant …"""
        self._timer = self._clock.call_at_ns(self._clock.now_ns(), self._last)

    def _last(self) -> None:
        """… and after the eviction manager."""
        if self._waits():
            self._due()
            return
        self._timer = self._next_ns = None
        self._pass()
        self._passed = self._number_before(self._clock.now_ns())
        self.plan()

    # --- passes ------------------------------------------------------------------------------------------------------

    def _detect(self, now_ns: int) -> dict[Image, None]:
        """Note what there is and what is used. Returns the images in use."""
        used = {image: None for name in self._in_use() if (image := self._images.get(name)) is not None}
        for image in self._images.every():
            if image.detected_ns is None:
                image.detected_ns = min(self._time(self._number_from(image.came_ns)), now_ns)
            if image in used:
                image.used_ns = now_ns
        return used

    def _unused(self) -> list[Image]:
        used = {self._images.get(name): None for name in self._in_use()}
        return [image for image in self._images.every() if image not in used]

    def _in_order(self, now_ns: int) -> list[Image]:
        """The unused ones, the one first that has been unused for longest."""
        used = self._detect(now_ns)
        unused = [image for image in self._images.every() if image not in used]
        never_ns = -1
        unused.sort(key=lambda image: (never_ns if image.used_ns is None else image.used_ns, image.detected_ns))
        return unused

    def delete_unused(self) -> None:
        """All that are old enough, for the eviction manager."""
        now_ns = self._clock.now_ns()
        removed: list[Image] = []
        freed_bytes = self._free(None, now_ns, self._in_order(now_ns), removed)
        self._log(freed_bytes, removed)

    def _pass(self) -> None:
        now_ns = self._clock.now_ns()
        removed: list[Image] = []
        freed_bytes = self._remove_expired(now_ns, removed)
        unused = self._in_order(now_ns)
        disk = self._meter.signals(now_ns, now_ns)[thresholds.IMAGEFS]
        failure = ""
        if self._is_full(disk):
            wanted = disk.capacity * (100 - self._policy.low_percent) // 100 - disk.available
            found = self._free(wanted, now_ns, unused, removed)
            freed_bytes += found
            if found < wanted:
                failure = (
                    f"Insufficient free disk space on the node's image filesystem ({_percent_used(disk)}% of "
                    f"{format_size(disk.capacity)} used). Failed to free sufficient space by deleting unused images "
                    f"(freed {found} bytes). Investigate disk usage, as it could be used by active images, logs, "
                    "volumes, or other data."
                )
        if removed or freed_bytes:
            self._log(freed_bytes, removed)
        if failure:
            self._warn(FREE_FAILED, failure)
            if self._has_failed:
                self._warn(FAILED, failure)
        self._has_failed = bool(failure)

    def _is_full(self, disk: machines.Used) -> bool:
        return disk.capacity > 0 and _percent_used(disk) >= self._policy.high_percent

    def _remove_expired(self, now_ns: int, removed: list[Image]) -> int:
        freed_bytes = 0
        if self._has_expired(None, now_ns):
            freed_bytes = self._meter.free_unnamed_images(now_ns)
            for image in self._in_order(now_ns):
                if self._has_expired(image.used_ns, now_ns):
                    freed_bytes += self._remove(image, removed)
        return freed_bytes

    def _free(self, wanted: int | None, now_ns: int, unused: Iterable[Image], removed: list[Image]) -> int:
        """So many bytes if there are, else what there is; None: all. Images without a name come first, as nobody has
        ever used them."""
        freed_bytes = self._meter.free_unnamed_images(now_ns)
        for image in unused:
            if wanted is not None and freed_bytes >= wanted:
                break
            assert image.detected_ns is not None, "it has been detected by this pass"
            if now_ns - image.detected_ns >= self._policy.min_age_ns:
                freed_bytes += self._remove(image, removed)
        return freed_bytes

    def _remove(self, image: Image, removed: list[Image]) -> int:
        self._images.remove(image)
        removed.append(image)
        return image.size_bytes or 0

    def _log(self, freed_bytes: int, removed: Iterable[Image]) -> None:
        names, what = [image.names[0] for image in removed], machines.IMAGES
        self._env.log(GarbageCollected(node=self._node_name, what=what, images=names, freed_bytes=freed_bytes))

    def _warn(self, reason: str, note: str) -> None:
        if self._recorder is not None:
            # The kubelet refers to its Node by name alone.
            node = core_v1_pb2.Node()
            node.metadata.name = node.metadata.uid = self._node_name
            self._recorder.event(node, recorders.WARNING, reason, reason, note)


def _percent_used(disk: machines.Used) -> int:
    return 100 - disk.available * 100 // disk.capacity


def format_size(size_bytes: int) -> str:
    """``91.1 GiB``, as in the kubelet's messages."""
    amount, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{size_bytes} B" if unit == "B" else f"{amount:.1f} {unit}"

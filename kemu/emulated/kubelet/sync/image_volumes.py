"""Volumes that are images: their images come before those of containers.

All of the pod are looked at before each start, in their order; one that cannot be had keeps only those containers from
starting that mount it. Mirrors ``getImageVolumes`` and ``toKubeContainerImageVolumes`` of ``pkg/kubelet/kuberuntime``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kemu.emulated.kubelet.images import pulls
from kemu.emulated.kubelet.pods import containers, lives
from kemu.emulated.kubelet.pods.containers import IDLE, PULLING, Container
from kemu.emulated.kubelet.pods.workers import Worker
from kemu.emulated.kubelet.sync.life_events import LifeEvents
from kemu.emulated.kubelet.volumes import references
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import ImagePulled


class ImageVolume(NamedTuple):
    name: str
    image: str
    policy: str


def of(pod: core_v1_pb2.Pod) -> tuple[ImageVolume, ...]:
    return tuple(
        ImageVolume(one.name, one.volumeSource.image.reference, one.volumeSource.image.pullPolicy)
        for one in pod.spec.volumes
        if one.volumeSource.HasField("image")
    )


def mounted(pod: core_v1_pb2.Pod, started: Iterable[Container]) -> set[str]:
    """The images of those volumes that one of these containers mounts."""
    volumes = of(pod)
    return {one.image for one in volumes for container in started if _mounts(pod, container, one)} if volumes else set()


def _mounts(pod: core_v1_pb2.Pod, container: Container, volume: ImageVolume) -> bool:
    return any(mount.name == volume.name for mount in containers.spec_of(pod, container).volumeMounts)


class Fetch:
    """The images of a pod's volumes on their way, before one of its containers starts."""

    def __init__(
        self,
        worker: Worker,
        container: Container,
        done: Callable[[bool], None],
        failed: Callable[[str, str], None],
        *,
        puller: pulls.Pulls,
        events: LifeEvents | None,
        names: references.Names | None,
        log: Callable[[ImagePulled], None],
        now_ns: Callable[[], int],
    ) -> None:
        """``done``: all that the container mounts are there, ``True``: after a while. ``failed``: the image, and why it
        cannot be pulled, "" if it may not be."""
        self._worker = worker
        self._container = container
        self._done = done
        self._failed = failed
        self._pulls = puller
        self._events = events
        self._names = names
        self._log = log
        self._now_ns = now_ns

    def go_on(self, left: tuple[ImageVolume, ...], *, waited: bool = False) -> None:
        worker, container = self._worker, self._container
        for index, volume in enumerate(left):
            if self._pulls.images.is_here(volume.image) and volume.policy != pulls.ALWAYS:
                if self._events is not None:
                    self._events.present(worker, None, volume.image)
            elif volume.policy == pulls.NEVER:
                if _mounts(worker.pod, container, volume):
                    self._failed(volume.image, "")
                    return
            else:
                error, begun_ns = self._error(volume), self._now_ns()
                if self._events is not None:
                    self._events.pulling(worker, None, volume.image)
                worker.busy = container
                container.state = PULLING
                came = functools.partial(self._pulled, volume, error, begun_ns, left[index + 1 :])
                worker.pull = self._pulls.pull(volume.image, bool(error), came)
                if worker.pull is not None or not self._is_there(volume, error, begun_ns):
                    return
        self._done(waited)

    def _pulled(self, volume: ImageVolume, error: str, begun_ns: int, rest: tuple[ImageVolume, ...]) -> None:
        """A pull that took its time is over."""
        worker = self._worker
        worker.pull = None
        if not error:
            event = ImagePulled(**worker.named, start=begun_ns, container=self._container.name, image=volume.image)
            self._log(event)
        if not worker.has_sandbox:
            worker.begun_ns = self._now_ns()
        if self._is_there(volume, error, begun_ns):
            self.go_on(rest, waited=True)

    def _is_there(self, volume: ImageVolume, error: str, begun_ns: int) -> bool:
        """Whether the container can go on after a pull."""
        worker = self._worker
        worker.busy = None
        self._container.state = IDLE
        if error:
            if _mounts(worker.pod, self._container, volume):
                self._failed(volume.image, error)
                return False
            if self._events is not None:
                self._events.not_pulled(worker, None, error, volume.image, of_volume=True)
        elif self._events is not None:
            took_ns, size_bytes = max(0, self._now_ns() - begun_ns), self._pulls.images.size_bytes(volume.image)
            self._events.pulled(worker, None, took_ns, size_bytes, volume.image)
        return True

    def _error(self, volume: ImageVolume) -> str:
        stated = str(self._worker.pod.metadata.annotations.get(f"{lives.PULL_ERROR}.{volume.name}", ""))
        return stated or (self._names.pull_error(volume.image) if self._names is not None else "")

"""Event objects about the usual life of containers: pulled, created, started, stopped, backing off.

They are written on nodes whose sandboxes are told of (:mod:`kemu.emulated.kubelet.pods.sandboxes`), if routine events
are written at all. Texts are those of ``pkg/kubelet/images`` (``EnsureImageExists``, ``pullImage``) and
``pkg/kubelet/kuberuntime`` (``startContainer``, ``killContainer``, ``doBackOff``).
"""

from __future__ import annotations

from kemu.emulated.client import recorders
from kemu.emulated.kubelet.images import pulls
from kemu.emulated.kubelet.pods.containers import EPHEMERAL, MAIN, Container
from kemu.emulated.kubelet.pods.workers import Worker

_MILLISECOND_NS = 1_000_000


class LifeEvents:
    def __init__(self, recorder: recorders.Recorder) -> None:
        self._recorder = recorder

    # Without a container: of the image of a volume.

    def present(self, worker: Worker, container: Container | None, image: str) -> None:
        """Its image needs no pull."""
        note = f'Container image "{image}" already present on machine and can be accessed by the pod'
        self._tell(worker, container, "Pulled", note)

    def pulling(self, worker: Worker, container: Container | None, image: str) -> None:
        self._tell(worker, container, "Pulling", f'Pulling image "{image}"')

    def pulled(self, worker: Worker, container: Container | None, took_ns: int, size_bytes: int, image: str) -> None:
        took = _duration(took_ns)
        note = f'Successfully pulled image "{image}" in {took} ({took} including waiting).'
        self._tell(worker, container, "Pulled", f"{note} Image size: {size_bytes} bytes.")

    def not_pulled(
        self, worker: Worker, container: Container | None, error: str, image: str, *, of_volume: bool = False
    ) -> None:
        """``container``: that needs it; None: none does."""
        note = f'Failed to pull image "{image}": {error}'
        self._tell(worker, None if of_volume else container, "Failed", note, recorders.WARNING)
        if container is not None:
            self._tell(worker, container, "Failed", f"Error: {pulls.PULL_FAILED}", recorders.WARNING)

    def not_configured(self, worker: Worker, container: Container, error: str) -> None:
        self._tell(worker, container, "Failed", f"Error: {error}", recorders.WARNING)

    def waits_to_pull(self, worker: Worker, container: Container | None, image: str) -> None:
        self._tell(worker, container, "BackOff", f'Back-off pulling image "{image}"')

    def created(self, worker: Worker, container: Container) -> None:
        self._tell(worker, container, "Created", "Container created")

    def started(self, worker: Worker, container: Container) -> None:
        self._tell(worker, container, "Started", "Container started")

    def stopping(self, worker: Worker, container: Container) -> None:
        self._tell(worker, container, "Killing", f"Stopping container {container.name}")

    def waits_to_restart(self, worker: Worker, container: Container) -> None:
        metadata = worker.pod.metadata
        pod = f"{metadata.name}_{metadata.namespace}({metadata.uid})"
        note = f"Back-off restarting failed container {container.name} in pod {pod}"
        self._tell(worker, container, "BackOff", note, recorders.WARNING)

    def _tell(
        self, worker: Worker, container: Container | None, reason: str, note: str, kind: str = recorders.NORMAL
    ) -> None:
        path = ""
        if container is not None:
            place = _PLACES.get(container.kind, "initContainers")
            path = f"spec.{place}{{{container.name}}}"
        self._recorder.event(worker.pod, kind, reason, reason, note, routine=True, field_path=path)


_PLACES = {MAIN: "containers", EPHEMERAL: "ephemeralContainers"}
"""Where in the spec containers of a kind stand."""


def _duration(ns: int) -> str:
    """As Go prints it, cut to milliseconds."""
    milliseconds = ns // _MILLISECOND_NS
    if milliseconds < 1000:
        return f"{milliseconds}ms" if milliseconds else "0s"
    minutes, seconds = divmod(milliseconds / 1000, 60)
    return f"{int(minutes)}m{seconds:g}s" if minutes else f"{seconds:g}s"

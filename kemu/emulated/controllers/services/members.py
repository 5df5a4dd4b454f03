"""Which pods belong to which Service: what the controllers of Endpoints and EndpointSlices have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kemu import errors
from kemu.emulated.client import informers, recorders, workqueues
from kemu.emulated.controllers import controllers, label_indexes
from kemu.emulated.controllers.services import endpoints
from kemu.emulated.objects import meta, selectors, times
from kemu.emulated.settings.declared import setting
from kemu.emulated.settings.shapes import DURATION
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The flag of kube-controller-manager."""

    endpoint_updates_batch_period_ns: int = setting(
        DURATION, "How long changes of pods are gathered; {default} by default.", "0s"
    )


class ServiceController(controllers.Controller):
    """A controller that writes of each Service with a selector which pods it has."""

    component: ClassVar[str]
    """As its events call it."""
    queue_name: ClassVar[str]
    """As metrics call its work queue."""
    retry_s: ClassVar[float] = 0.005
    """Before it tries a Service again for the first time."""

    def __init__(self, env: Env, config: Mapping[str, Any], batch_ns: int) -> None:
        super().__init__(env, config)
        self.recorder = recorders.Recorder(
            env, self.client, self.component, "0", config.get("events", recorders.NOTABLE)
        )
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(
            env, base_delay_s=self.retry_s, name=self.queue_name
        )
        self.batch_s = batch_ns / SECOND_NS
        self.services: informers.Informer[core_v1_pb2.Service] = informers.Informer(
            self.client,
            "services",
            handler=informers.Callbacks(
                self._service_changed, lambda old, new: self._service_changed(new), self._service_deleted
            ),
        )
        self.pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client, "pods", handler=informers.Callbacks(self._pod_added, self._pod_updated, self._pod_deleted)
        )
        self._labels = label_indexes.LabelledObjects()
        """Labels of all pods."""
        self._selectors = label_indexes.Selectors()
        """Selectors of all Services that have one."""
        self._triggers: dict[str, _Triggers] = {}

    async def reconcile(self, key: str) -> None:
        """Raises ApiError to be called again, up to fifteen times in a row."""
        try:
            await self.sync(key)
        except errors.ApiError:
            if self.queue.failures(key) < endpoints.MAX_RETRIES:
                raise

    async def sync(self, key: str) -> None:
        raise NotImplementedError

    def members(self, service: core_v1_pb2.Service) -> list[core_v1_pb2.Pod]:
        """The pods that it selects, by name."""
        selector = selectors.labels_equal(dict(service.spec.selector))
        keys = self._labels.matching(service.metadata.namespace, selector)
        return [self.pods.store[key] for key in sorted(keys)]

    # --- events ------------------------------------------------------------------------------------------------------

    def _service_changed(self, service: core_v1_pb2.Service) -> None:
        key = controllers.key_of(service)
        if service.spec.selector:
            selector = selectors.labels_equal(dict(service.spec.selector))
            self._selectors.put(key, service.metadata.namespace, selector)
        else:
            self._selectors.remove(key)
        self.queue.add_after(key, self.lag_s())

    def _service_deleted(self, service: core_v1_pb2.Service) -> None:
        key = controllers.key_of(service)
        self._selectors.remove(key)
        self.queue.add_after(key, self.lag_s())

    def _enqueue(self, services: Sequence[str]) -> None:
        for key in services:
            self.queue.add_after(key, self.batch_s + self.lag_s())

    def _selecting(self, pod: core_v1_pb2.Pod) -> list[str]:
        return self._selectors.matching(pod.metadata.namespace, pod.metadata.labels)

    def _pod_added(self, pod: core_v1_pb2.Pod) -> None:
        self._labels.put(controllers.key_of(pod), pod.metadata.namespace, pod.metadata.labels)
        self._enqueue(self._selecting(pod))

    def _pod_updated(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        """``GetPodUpdateProjectionKey`` and ``GetServicesToUpdate``."""
        relabelled = not meta.have_same_entries(old.metadata.labels, new.metadata.labels)
        if relabelled:
            self._labels.put(controllers.key_of(new), new.metadata.namespace, new.metadata.labels)
        renamed = (old.spec.hostname, old.spec.subdomain) != (new.spec.hostname, new.spec.subdomain)
        changed = _has_changed(old, new)
        if not (relabelled or renamed):
            if changed:
                self._enqueue(self._selecting(new))
            return
        before, now = self._selecting(old), self._selecting(new)
        union = list(dict.fromkeys([*now, *before]))
        self._enqueue(union if changed else [key for key in union if (key in before) != (key in now)])

    def _pod_deleted(self, pod: core_v1_pb2.Pod) -> None:
        self._labels.remove(controllers.key_of(pod))
        self._enqueue(self._selecting(pod))

    # --- trigger times -----------------------------------------------------------------------------------------------

    def trigger_time(self, service: core_v1_pb2.Service, pods: Sequence[core_v1_pb2.Pod]) -> str:
        """When the first change happened that this sync reacts to, for an annotation; "": there is none
        (``ComputeEndpointLastChangeTriggerTime``)."""
        key = controllers.key_of(service)
        known = self._triggers.get(key)
        since_s = service.metadata.creationTimestamp.seconds
        now = _Triggers(since_s, {pod.metadata.name: found for pod in pods if (found := _ready_since_s(pod))})
        self._triggers[key] = now
        if known is None:
            return times.format_time(since_s)
        changed = [found for name, found in now.pods.items() if found > known.pods.get(name, 0)]
        if since_s > known.service:
            changed.append(since_s)
        return times.format_time(min(changed)) if changed else ""

    def forget(self, key: str) -> None:
        self._triggers.pop(key, None)


@dataclass(frozen=True, slots=True)
class _Triggers:
    """Unix seconds of what a sync has seen."""

    service: int
    pods: Mapping[str, int]


def _ready_since_s(pod: core_v1_pb2.Pod) -> int:
    condition = meta.get_condition(pod.status.conditions, "Ready")
    return 0 if condition is None else condition.lastTransitionTime.seconds


def _has_changed(old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> bool:
    """Whether an endpoint may have (``podEndpointsChanged``): any update of a pod that terminates counts."""
    if old.metadata.HasField("deletionTimestamp") or new.metadata.HasField("deletionTimestamp"):
        return True
    if meta.is_ready(old) != meta.is_ready(new):
        return True
    return [one.ip for one in old.status.podIPs] != [one.ip for one in new.status.podIPs]


def with_trigger(obj: KubernetesObject, trigger: str) -> None:
    """Set or clear the annotation."""
    if trigger:
        obj.metadata.annotations[endpoints.TRIGGER_TIME] = trigger
    else:
        obj.metadata.annotations.pop(endpoints.TRIGGER_TIME, None)

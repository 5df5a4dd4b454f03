"""What a pod uses, from its object alone: for who is no kubelet, as those who serve metrics and logs.

The kubelet measures by what it knows of its containers (:class:`kemu.emulated.kubelet.usage.usages.Gauge`); here their
statuses say since when they run.
"""

from __future__ import annotations

from kemu.emulated.kubelet.usage import usages
from kemu.emulated.objects.amounts import quantities
from kemu.messages.k8s import core_v1_pb2

RESOURCES = ("cpu", "memory")


class Meter:
    """Meter of one pod."""

    def __init__(self, pod: core_v1_pb2.Pod) -> None:
        self._usage = usages.of(pod)
        self._mains = [one.name for one in pod.spec.containers]
        self._memory_limits = usages.memory_limits(pod)
        self._pod = pod

    def amount(self, resource: str, container: str, second: int) -> int:
        """What a container uses so long after it started: millicores, bytes."""
        usage = self._usage
        if usage is None:
            return 0
        own = usage.of_containers.get(container, {}).get(resource)
        shared = usage.shared.get(resource) if container in self._mains else None
        amount = own.at(second) if own is not None else 0
        if shared is not None:
            amount += usages.share(shared.at(second), self._mains.index(container), len(self._mains))
        return amount

    @property
    def is_used(self) -> bool:
        """Whether the pod says anything about its usage."""
        return self._usage is not None

    def working_set(self, container: str, second: int) -> int:
        """Bytes, with the files that the kernel has on its active list for it."""
        held, cached = (self.amount(key, container, second) for key in ("memory", usages.ACTIVE_FILE))
        return usages.within(held, cached, self._memory_limits.get(container)) if cached else held

    def running(self, unix_s: int) -> list[tuple[str, dict[str, int]]]:
        """What each container uses that runs now, by name, as the metrics API has it."""
        status = self._pod.status
        found = []
        for one in (*status.initContainerStatuses, *status.containerStatuses):
            if one.state.HasField("running"):
                second = max(0, unix_s - one.state.running.startedAt.seconds)
                used = {"cpu": self.amount("cpu", one.name, second), "memory": self.working_set(one.name, second)}
                found.append((one.name, used))
        return found


class ContainerLoad:
    """Container load of one container: a ``Load`` of :mod:`kemu.emulated.kubelet.probes.answers`."""

    def __init__(self, meter: Meter, container: core_v1_pb2.Container) -> None:
        """``container``: of the spec."""
        self._meter = meter
        self._container = container

    def most(self, resource: str, first_s: int, last_s: int) -> int:
        return max(self._meter.amount(resource, self._container.name, second) for second in range(first_s, last_s + 1))

    def limit(self, resource: str) -> int | None:
        limits = self._container.resources.limits
        if resource not in limits:
            return None
        text = limits[resource].string
        return quantities.milli(text) if resource == "cpu" else quantities.value(text)

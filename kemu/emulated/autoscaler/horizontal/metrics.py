"""What each metric of an autoscaler says, and how the status tells it (``computeReplicasForMetric``).

``Resource`` and ``ContainerResource`` metrics are those of ``metrics.k8s.io``. There are no APIs of custom and external
metrics: the other types fail as in a cluster without an adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kemu.emulated.autoscaler.horizontal import replicas
from kemu.emulated.autoscaler.horizontal.samples import MetricError, Sample
from kemu.emulated.objects import selectors
from kemu.emulated.objects.amounts import quantities
from kemu.messages.k8s import autoscaling_v2_pb2, core_v1_pb2
from kemu.runtime.env import SECOND_NS

NO_CUSTOM = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"


class Unavailable(MetricError):
    """A metric without a value."""

    def __init__(self, reason: str, why: str, told: str) -> None:
        """``reason``: of the condition and the event. ``why``: the mistake, as these tell it. ``told``: the same, for
        who asked for all metrics."""
        super().__init__(told)
        self.reason = reason
        self.why = why


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at an autoscaler goes by."""

    namespace: str
    pods: Sequence[core_v1_pb2.Pod]
    """Those that the scale's selector selects, by name."""
    current: int
    tolerances: replicas.Tolerances
    periods: replicas.Periods
    now_ns: int
    measure: Callable[[Sequence[core_v1_pb2.Pod], str, str, int], Mapping[str, Sample]]
    """What pods use: of a resource and a container, "" for all of a pod, at that Unix second. Raises MetricError."""


def propose(look: Look, spec: autoscaling_v2_pb2.MetricSpec) -> tuple[int, str, autoscaling_v2_pb2.MetricStatus]:
    """Replicas, what they follow from, and the metric as the status shows it. Raises Unavailable."""
    if spec.type == "Resource":
        of_pods = spec.resource
        try:
            count, told, value = _resource(look, of_pods.name, of_pods.target, "")
        except MetricError as error:
            what = f"failed to get {of_pods.name} resource metric value: {error}"
            raise Unavailable("FailedGetResourceMetric", str(error), what) from None
        status = autoscaling_v2_pb2.MetricStatus(type=spec.type)
        status.resource.name = of_pods.name
        status.resource.current.CopyFrom(value)
        return count, told, status
    if spec.type == "ContainerResource":
        of_one = spec.containerResource
        try:
            count, told, value = _resource(look, of_one.name, of_one.target, of_one.container)
        except MetricError as error:
            what = f"failed to get {of_one.container} container metric value: {error}"
            raise Unavailable("FailedGetContainerResourceMetric", str(error), what) from None
        status = autoscaling_v2_pb2.MetricStatus(type=spec.type)
        status.containerResource.name, status.containerResource.container = of_one.name, of_one.container
        status.containerResource.current.CopyFrom(value)
        return count, told, status
    raise _without_adapter(look, spec)


def _resource(
    look: Look, resource: str, target: autoscaling_v2_pb2.MetricTarget, container: str
) -> tuple[int, str, autoscaling_v2_pb2.MetricValueStatus]:
    """``computeStatusForResourceMetricGeneric``. Raises MetricError."""
    by_usage = target.HasField("averageValue")
    try:
        if not by_usage and not target.HasField("averageUtilization"):
            raise MetricError(
                "invalid resource metric source: neither an average utilization target nor an average value (usage)"
                " target was set"
            )
        try:
            used = look.measure(look.pods, resource, container, look.now_ns // SECOND_NS)
        except MetricError as error:
            raise MetricError(f"unable to get metrics for resource {resource}: {error}") from None
        current, tolerances, periods = look.current, look.tolerances, look.periods
        if by_usage:
            milli = quantities.milli(target.averageValue.string)
            found = replicas.by_usage(current, milli, resource, tolerances, look.pods, used, periods, look.now_ns)
        else:
            percent = target.averageUtilization
            found = replicas.by_utilization(
                current, percent, resource, tolerances, look.pods, used, container, periods, look.now_ns
            )
    except MetricError as error:
        if str(error).startswith("invalid"):
            raise
        raise MetricError(f"failed to get {resource} {'usage' if by_usage else 'utilization'}: {error}") from None
    value = autoscaling_v2_pb2.MetricValueStatus()
    value.averageValue.string = _quantity(resource, found.milli)
    if by_usage:
        return found.replicas, f"{resource} resource", value
    value.averageUtilization = found.percent
    of_container = "container " if container else ""
    return found.replicas, f"{resource} {of_container}resource utilization (percentage of request)", value


def _quantity(resource: str, milli: int) -> str:
    form = quantities.Format.BINARY_SI if resource == "memory" else quantities.Format.DECIMAL_SI
    return str(quantities.Quantity(milli * 1_000_000, form))


def _without_adapter(look: Look, spec: autoscaling_v2_pb2.MetricSpec) -> Unavailable:
    """The mistakes of a controller whose cluster has no metrics but those of resources."""
    if spec.type == "Pods":
        why = f"unable to get metric {spec.pods.metric.name}: {NO_CUSTOM}"
        return Unavailable("FailedGetPodsMetric", why, f"failed to get pods metric value: {why}")
    if spec.type == "Object":
        source = spec.object
        name, about = source.metric.name, source.describedObject
        why = f"unable to get metric {name}: {about.kind} on {look.namespace} {about.name}/{NO_CUSTOM}"
        told = f"failed to get {name} object metric: {why}" if source.target.type == "AverageValue" else why
        return Unavailable("FailedGetObjectMetric", why, f"failed to get object metric value: {told}")
    if spec.type == "External":
        metric, by_average = spec.external.metric, spec.external.target.HasField("averageValue")
        shown = selectors.go_text(metric.selector) if metric.HasField("selector") else "nil"
        why = (
            f"unable to get external metric {look.namespace}/{metric.name}/{shown}: unable to fetch metrics from"
            " external metrics API: the server could not find the requested resource"
            f" (get {metric.name}.external.metrics.k8s.io)"
        )
        what = f"{metric.name} external metric" if by_average else f"external metric {metric.name}"
        told = f"failed to get {metric.name} external metric value: failed to get {what}: {why}"
        return Unavailable("FailedGetExternalMetric", why, told)
    why = f'unknown metric source type "{spec.type}"'
    return Unavailable("InvalidMetricSourceType", why, why)

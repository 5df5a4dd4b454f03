"""The actor ``controller/horizontal-pod-autoscaler``: gives workloads as many replicas as their metrics ask for.

It looks at each HorizontalPodAutoscaler every 15 s. Mirrors ``pkg/controller/podautoscaler``. Further config:
``settings`` (:class:`~kemu.emulated.autoscaler.settings.Horizontal`), ``events``
(:data:`kemu.emulated.client.recorders.LEVELS`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from kemu import errors
from kemu.emulated.autoscaler.horizontal import metrics, rates, replicas, samples
from kemu.emulated.autoscaler.settings import HORIZONTAL, Horizontal
from kemu.emulated.client import informers, recorders, retries, workqueues
from kemu.emulated.controllers import controllers, label_indexes
from kemu.emulated.objects import custom_kinds, meta, resources, selectors
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.settings.declared import restored
from kemu.messages.k8s import autoscaling_v1_pb2, autoscaling_v2_pb2, core_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import Autoscaled

WORKERS = 5
"""``--concurrent-horizontal-pod-autoscaler-syncs``."""
ABLE, ACTIVE, LIMITED, TO_ZERO = "AbleToScale", "ScalingActive", "ScalingLimited", "ScaledToZero"


class HorizontalPodAutoscaler(controllers.Controller):
    """Factory: ``kemu.emulated.autoscaler.horizontal.autoscaler:HorizontalPodAutoscaler``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self._settings = restored(Horizontal, config.get("settings", {}))
        level = config.get("events", recorders.NOTABLE)
        self.recorder = recorders.Recorder(env, self.client, HORIZONTAL, "0", level)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="horizontalpodautoscaler")
        self._histories: dict[str, rates.History] = {}
        self.labels = label_indexes.LabelledObjects()
        """Labels of all pods."""
        self._selectors = label_indexes.Selectors()
        """What each autoscaler selected at its last look."""
        self.autoscalers: informers.Informer[autoscaling_v2_pb2.HorizontalPodAutoscaler] = informers.Informer(
            self.client,
            "horizontalpodautoscalers",
            handler=informers.Callbacks(self._enqueue, lambda old, new: self._enqueue(new), self._deleted),
        )
        self.pods: informers.Informer[core_v1_pb2.Pod] = informers.Informer(
            self.client,
            "pods",
            handler=informers.Callbacks(self._pod_added, self._pod_updated, self._pod_deleted),
        )

    async def run(self) -> None:
        await self.begin(self.pods, self.autoscalers)
        await self.work(self.queue, self._sync, WORKERS)

    # --- events ------------------------------------------------------------------------------------------------------

    def _enqueue(self, found: autoscaling_v2_pb2.HorizontalPodAutoscaler) -> None:
        """Every change waits for a period, as the looks do."""
        self._again(controllers.key_of(found))

    def _again(self, key: str) -> None:
        self.queue.add_after_ns(key, self._settings.sync_period_ns + int(self.lag_s() * SECOND_NS))

    def _deleted(self, found: autoscaling_v2_pb2.HorizontalPodAutoscaler) -> None:
        self._selectors.remove(controllers.key_of(found))

    def _pod_added(self, pod: core_v1_pb2.Pod) -> None:
        self.labels.put(controllers.key_of(pod), pod.metadata.namespace, pod.metadata.labels)

    def _pod_updated(self, old: core_v1_pb2.Pod, new: core_v1_pb2.Pod) -> None:
        if not meta.have_same_entries(old.metadata.labels, new.metadata.labels):
            self._pod_added(new)

    def _pod_deleted(self, pod: core_v1_pb2.Pod) -> None:
        self.labels.remove(controllers.key_of(pod))

    # --- one look ----------------------------------------------------------------------------------------------------

    async def _sync(self, key: str) -> None:
        """Whatever comes of a look, the next one follows in a period."""
        if key not in self.autoscalers.store:
            self._histories.pop(key, None)
            return
        try:
            await self.look(key)
        finally:
            self._again(key)

    async def look(self, key: str) -> None:
        """``reconcileKey``, of one that is there."""
        found = meta.copied(self.autoscalers.store[key])
        await self._reconcile(key, found)

    def measure(
        self, pods: Sequence[core_v1_pb2.Pod], resource: str, container: str, unix_s: int
    ) -> dict[str, samples.Sample]:
        """What the pods use, as :func:`samples.of_pods`."""
        return samples.of_pods(pods, resource, container, unix_s)

    async def _reconcile(self, key: str, found: autoscaling_v2_pb2.HorizontalPodAutoscaler) -> None:
        """``reconcileAutoscaler``."""
        before = meta.copied(found.status)
        try:
            resource, scale = await self._scale(found)
        except errors.ApiError as error:
            self._warn(found, "FailedGetScale", error.message)
            text = f"the HPA controller was unable to get the target's current scale: {error.message}"
            self._set(found, ABLE, "False", "FailedGetScale", text)
            await self._write(found, before)
            return
        text = "the HPA controller was able to get the target's current scale"
        self._set(found, ABLE, "True", "SucceededGetScale", text)
        current, spec = scale.spec.replicas, found.spec
        least = spec.minReplicas if spec.HasField("minReplicas") else 1
        history = self._histories.setdefault(key, rates.History())
        history.begin(current, self.unix_ns())
        desired, reason, rescale = 0, "", True
        told: list[autoscaling_v2_pb2.MetricStatus] = []
        if current == 0:
            rescale = False
            text = "scaling is disabled since the replica count of the target is zero"
            self._set(found, ACTIVE, "False", "ScalingDisabled", text)
            _remove(found, TO_ZERO)
        elif current > spec.maxReplicas:
            desired, reason = spec.maxReplicas, "Current number of replicas above Spec.MaxReplicas"
        elif current < least:
            desired, reason = least, "Current number of replicas below Spec.MinReplicas"
        else:
            proposed, metric, told, failure = self._propose(key, found, scale)
            if proposed is None:
                _state(found, current, found.status.desiredReplicas, told)
                await self._write(found, before)
                self._warn(found, "FailedComputeMetricsReplicas", failure)
                return
            desired = max(0, proposed)
            if desired > current:
                reason = f"{metric} above target"
            elif desired < current:
                reason = "All metrics below target"
            desired = self._normalize(found, history, current, desired, least)
            rescale = desired != current
        if rescale:
            refusal = await self._rescale(found, resource, scale, desired)
            if refusal is not None:
                self._warn(found, "FailedRescale", f"New size: {desired}; reason: {reason}; error: {refusal}")
                text = f"the HPA controller was unable to update the target scale: {refusal}"
                self._set(found, ABLE, "False", "FailedUpdateScale", text)
                _state(found, current, found.status.desiredReplicas, told)
                await self._write(found, before)
                return
            text = f"the HPA controller was able to update the target scale to {desired}"
            self._set(found, ABLE, "True", "SucceededRescale", text)
            text = f"New size: {desired}; reason: {reason}"
            self.recorder.event(found, recorders.NORMAL, "SuccessfulRescale", "SuccessfulRescale", text)
            history.scaled(_behavior(found), current, desired, self.unix_ns())
            self.env.log(Autoscaled(autoscaler=key, before=current, replicas=desired, why=reason))
            _remove(found, TO_ZERO)
            meta.set_time(found.status.lastScaleTime, self.unix_ns())
        else:
            desired = current
        _state(found, current, desired, told)
        await self._write(found, before)

    def _normalize(
        self,
        found: autoscaling_v2_pb2.HorizontalPodAutoscaler,
        history: rates.History,
        current: int,
        desired: int,
        least: int,
    ) -> int:
        """What it may be now, with the conditions that say why."""
        window_ns, now_ns = self._settings.downscale_stabilization_ns, self.unix_ns()
        most = found.spec.maxReplicas
        decision = history.decide(_behavior(found), current, desired, least, most, window_ns, now_ns)
        self._set(found, ABLE, "True", *decision.able)
        self._set(found, LIMITED, str(decision.limited), *decision.limit)
        return decision.replicas

    async def _scale(self, found: autoscaling_v2_pb2.HorizontalPodAutoscaler) -> tuple[str, autoscaling_v1_pb2.Scale]:
        """The plural of what is scaled, and its scale."""
        target = found.spec.scaleTargetRef
        plural = await self._plural(target)
        try:
            scale = await self.client.get_scale(plural, target.name, found.metadata.namespace)
        except errors.NotFound as error:
            if error.name == target.name:
                raise
            raise errors.NotFound("the server could not find the requested resource") from None
        return plural, scale

    async def _plural(self, target: autoscaling_v2_pb2.CrossVersionObjectReference) -> str:
        """Of the kind that is scaled: one of the table, or a custom one. Raises NotFound."""
        group = target.apiVersion.rpartition("/")[0]
        for row in resources.RESOURCES:
            if (row.kind, row.group) == (target.kind, group):
                return row.plural
        for one in (await self.client.list(custom_kinds.DEFINITIONS)).items:
            definition = cast(CustomResourceDefinition, one)
            if (definition.spec.names.kind, definition.spec.group) == (target.kind, group):
                return definition.metadata.name
        raise errors.NotFound(f'no matches for kind "{target.kind}" in group "{group}"')

    async def _rescale(
        self,
        found: autoscaling_v2_pb2.HorizontalPodAutoscaler,
        resource: str,
        scale: autoscaling_v1_pb2.Scale,
        desired: int,
    ) -> str | None:
        """Why it failed; None: it did not."""
        refusal: errors.ApiError | None = None
        for _ in range(retries.RETRIES):
            wanted = meta.copied(scale)
            wanted.spec.replicas = desired
            try:
                await self.client.update_scale(resource, wanted)
                return None
            except errors.Conflict as error:
                refusal = error
                scale = await self.client.get_scale(resource, scale.metadata.name, found.metadata.namespace)
            except errors.ApiError as error:
                return error.message
        return "" if refusal is None else refusal.message

    # --- metrics -----------------------------------------------------------------------------------------------------

    def _propose(
        self, key: str, found: autoscaling_v2_pb2.HorizontalPodAutoscaler, scale: autoscaling_v1_pb2.Scale
    ) -> tuple[int | None, str, list[autoscaling_v2_pb2.MetricStatus], str]:
        """``computeReplicasForMetrics``: replicas, the metric that asks for most, all metrics as the status tells them,
        and the first mistake. None for replicas: nothing may be done."""
        pods, mistake = self._selected(key, found, scale.status.selector)
        if mistake:
            return None, "", [], mistake
        look = metrics.Look(
            found.metadata.namespace,
            pods,
            scale.spec.replicas,
            self._tolerances(found),
            replicas.Periods(self._settings.cpu_initialization_period_ns, self._settings.initial_readiness_delay_ns),
            self.unix_ns(),
            self.measure,
        )
        desired, name, failures = 0, "", list[metrics.Unavailable]()
        told = []
        for spec in found.spec.metrics:
            try:
                count, of_metric, status = metrics.propose(look, spec)
            except metrics.Unavailable as error:
                self._warn(found, error.reason, error.why)
                failures.append(error)
                told.append(autoscaling_v2_pb2.MetricStatus(type=""))
                continue
            told.append(status)
            if desired == 0 or count > desired:
                desired, name = count, of_metric
        count = len(found.spec.metrics)
        failure = ""
        if failures:
            first = failures[0]
            failure = f"invalid metrics ({len(failures)} invalid out of {count}), first error is: {first}"
            if len(failures) >= count or desired < scale.spec.replicas:
                text = f"the HPA was unable to compute the replica count: {first.why}"
                self._set(found, ACTIVE, "False", first.reason, text)
                return None, "", told, failure
        text = f"the HPA was able to successfully calculate a replica count from {name}"
        self._set(found, ACTIVE, "True", "ValidMetricFound", text)
        return desired, name, told, failure

    def _selected(
        self, key: str, found: autoscaling_v2_pb2.HorizontalPodAutoscaler, text: str
    ) -> tuple[list[core_v1_pb2.Pod], str]:
        """``validateAndParseSelector``: the pods by name, or what is wrong with the selector."""
        if not text:
            self._warn(found, "SelectorRequired", "selector is required")
            why = "the HPA target's scale is missing a selector"
            self._set(found, ACTIVE, "False", "InvalidSelector", why)
            return [], "selector is required"
        try:
            selector = selectors.parse_labels(text)
        except selectors.SelectorError as error:
            why = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self._warn(found, "InvalidSelector", why)
            self._set(found, ACTIVE, "False", "InvalidSelector", why)
            return [], why
        namespace = found.metadata.namespace
        self._selectors.put(key, namespace, selector)
        pods = [self.pods.store[one] for one in sorted(self.labels.matching(namespace, selector))]
        rivals = sorted({one for pod in pods for one in self._selectors.matching(namespace, pod.metadata.labels)})
        if len(rivals) > 1:
            why = f"pods by selector {text} are controlled by multiple HPAs: [{' '.join(rivals)}]"
            self._warn(found, "AmbiguousSelector", why)
            self._set(found, ACTIVE, "False", "AmbiguousSelector", why)
            return [], why
        return pods, ""

    def _tolerances(self, found: autoscaling_v2_pb2.HorizontalPodAutoscaler) -> replicas.Tolerances:
        """``tolerancesForHpa``."""
        behavior, usual = found.spec.behavior, self._settings.tolerance
        down, up = (
            quantities.approximate(rules.tolerance.string) if rules.HasField("tolerance") else usual
            for rules in (behavior.scaleDown, behavior.scaleUp)
        )
        return replicas.Tolerances(down, up)

    # --- status ------------------------------------------------------------------------------------------------------

    def _warn(self, found: autoscaling_v2_pb2.HorizontalPodAutoscaler, reason: str, text: str) -> None:
        self.recorder.event(found, recorders.WARNING, reason, reason, text)

    def _set(
        self, found: autoscaling_v2_pb2.HorizontalPodAutoscaler, kind: str, status: str, reason: str, text: str
    ) -> None:
        meta.set_condition(found.status.conditions, kind, status, reason, text, self.unix_ns())

    async def _write(
        self,
        found: autoscaling_v2_pb2.HorizontalPodAutoscaler,
        before: autoscaling_v2_pb2.HorizontalPodAutoscalerStatus,
    ) -> None:
        """``updateStatusIfNeeded``: the next look repeats what fails."""
        if found.status == before:
            return
        try:
            await self.client.update_status(found)
        except errors.ApiError as error:
            self._warn(found, "FailedUpdateStatus", error.message)


def _behavior(
    found: autoscaling_v2_pb2.HorizontalPodAutoscaler,
) -> autoscaling_v2_pb2.HorizontalPodAutoscalerBehavior | None:
    return found.spec.behavior if found.spec.HasField("behavior") else None


def _remove(found: autoscaling_v2_pb2.HorizontalPodAutoscaler, kind: str) -> None:
    kept = [one for one in found.status.conditions if one.type != kind]
    if len(kept) != len(found.status.conditions):
        del found.status.conditions[:]
        found.status.conditions.extend(kept)


def _state(
    found: autoscaling_v2_pb2.HorizontalPodAutoscaler,
    current: int,
    desired: int,
    told: Sequence[autoscaling_v2_pb2.MetricStatus],
) -> None:
    """``setStatus``."""
    status = found.status
    status.ClearField("observedGeneration")
    status.currentReplicas, status.desiredReplicas = current, desired
    del status.currentMetrics[:]
    status.currentMetrics.extend(told)

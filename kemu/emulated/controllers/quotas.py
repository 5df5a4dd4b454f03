"""The actor ``controller/resourcequota``: counts what each namespace uses of its quotas, and writes it to their status.

Admission charges what is created; this controller gives back what is deleted or has ended, sets the status of new and
changed quotas, and every five minutes counts all of them anew. Between a deletion and the next count the namespace has
less than its quota: that is the lag of this controller. It counts what its caches show, so a pod that was charged but
that it does not see yet is left out. Mirrors ``pkg/controller/resourcequota``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kemu import errors
from kemu.emulated.client import informers, workqueues
from kemu.emulated.controllers import controllers
from kemu.emulated.objects import custom_kinds, meta
from kemu.emulated.objects.amounts import resource_lists
from kemu.emulated.objects.quotas import pods, quotas, registry, usages
from kemu.emulated.objects.quotas.evaluators import NOTHING, Evaluator, Surroundings
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.k8s.resource_v1_pb2 import DeviceClass
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import QuotaCounted

RESYNC_S = 5 * 60
"""How often all quotas are counted anew (``--resource-quota-sync-period``)."""
WORKERS = 5
"""``--concurrent-resource-quota-syncs``, for each of the two queues."""


class ResourceQuotaController(controllers.Controller):
    """Factory: ``kemu.emulated.controllers.quotas:ResourceQuotaController``."""

    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        super().__init__(env, config)
        self.queue: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="resourcequota_primary")
        self.urgent: workqueues.WorkQueue[str] = workqueues.WorkQueue(env, name="resourcequota_priority")
        """Quotas whose status lacks what their spec says."""
        self._quotas: informers.Informer[core_v1_pb2.ResourceQuota] = informers.Informer(
            self.client,
            "resourcequotas",
            handler=informers.Callbacks(self._quota_added, self._quota_updated, self._quota_deleted),
        )
        self._of_namespace: dict[str, dict[str, None]] = {}
        """Keys of the quotas of each namespace."""
        self._counted: dict[str, _Objects] = {}
        """By plural, the kinds that quotas count. Watching begins with the first quota that does."""
        self._definitions: informers.Informer[CustomResourceDefinition] | None = None
        """Of custom kinds; watched from the first quota on that counts one."""
        self._custom: set[str] = set()
        """Custom kinds that quotas count, whether they are there or not."""
        self._around = _Around(self._counted)
        self._has_devices = bool(config.get("devices"))
        self._classes: informers.Informer[DeviceClass] | None = None
        """Watched from the first quota on that counts an extended resource, where the cluster has devices."""

    async def run(self) -> None:
        await self.begin(self._quotas)
        self.env.spawn(self.work(self.urgent, self._sync, WORKERS), "quotas without status")
        self.env.spawn(self._resync(), "full resync")
        await self.work(self.queue, self._sync, WORKERS)

    # --- events ------------------------------------------------------------------------------------------------------

    def _quota_added(self, obj: core_v1_pb2.ResourceQuota) -> None:
        """``addQuota``."""
        key = controllers.key_of(obj)
        self._of_namespace.setdefault(obj.metadata.namespace, {})[key] = None
        quota = quotas.read(obj)
        if self._has_devices and self._classes is None and any(map(pods.is_extended_request, quota.wanted)):
            handler = informers.Callbacks(self._class_came, lambda old, new: self._class_came(new))
            self._classes = informers.Informer(self.client, "deviceclasses", handler=handler)
            self._around.known = self._classes.store
            self._classes.start()
        self._watch_kinds(quota)
        self._watch_custom(registry.custom_kinds_in(quota.wanted))
        lacks = any(name not in quota.used and self._is_counted(name) for name in quota.hard)
        dirty = lacks or not resource_lists.is_same(quota.wanted, quota.hard)
        (self.urgent if dirty else self.queue).add_after(key, self.lag_s())

    def _watch_kinds(self, quota: quotas.Quota) -> None:
        for plural, evaluator in registry.EVALUATORS.items():
            if plural not in self._counted:
                within = evaluator.within(self._around)
                if within.counted(quota.wanted):
                    self._counted[plural] = _Objects(self, plural, within)

    def _class_came(self, device_class: DeviceClass) -> None:
        """Quotas of an extended resource may count claims from now on."""
        for quota in self._quotas.store.values():
            self._watch_kinds(quotas.read(quota))

    def _is_counted(self, name: str) -> bool:
        if any(one.counts(name) for one in registry.EVALUATORS.values()):
            return True
        return any(plural in self._counted for plural in registry.custom_kinds_in([name]))

    def _watch_custom(self, plurals: Sequence[str]) -> None:
        """A quota counts custom kinds; those that are there from now on."""
        if not plurals:
            return
        new = [plural for plural in plurals if plural not in self._custom]
        self._custom.update(new)
        if self._definitions is None:
            handler = informers.Callbacks(
                self._defined, lambda old, new: self._defined(new), lambda old: self._undefined(old.metadata.name)
            )
            self._definitions = informers.Informer(self.client, custom_kinds.DEFINITIONS, handler=handler)
            self._definitions.start()
        for plural in new:
            definition = self._definitions.store.get(plural)
            if definition is not None:
                self._defined(definition)

    def _defined(self, definition: CustomResourceDefinition) -> None:
        plural = definition.metadata.name
        rows = custom_kinds.rows(definition)
        if not rows:
            self._undefined(plural)
        elif plural in self._custom and plural not in self._counted and next(iter(rows.values())).namespaced:
            self._counted[plural] = _Objects(self, plural, registry.of_custom(plural))
            for key in self._quotas.store:
                self.queue.add(key)

    def _undefined(self, plural: str) -> None:
        objects = self._counted.pop(plural, None)
        if objects is not None:
            objects.informer.stop()

    def _quota_updated(self, old: core_v1_pb2.ResourceQuota, new: core_v1_pb2.ResourceQuota) -> None:
        if not resource_lists.is_same(resource_lists.read(old.spec.hard), resource_lists.read(new.spec.hard)):
            self._quota_added(new)

    def _quota_deleted(self, obj: KubernetesObject) -> None:
        of_namespace = self._of_namespace[obj.metadata.namespace]
        del of_namespace[controllers.key_of(obj)]
        if not of_namespace:
            del self._of_namespace[obj.metadata.namespace]

    def replenish(self, evaluator: Evaluator[Any], namespace: str) -> None:
        """Something of that kind may count for less than before (``replenishQuota``)."""
        for key in self._of_namespace.get(namespace, ()):
            if any(evaluator.counts(name) for name in self._quotas.store[key].status.hard):
                self.queue.add_after(key, self.lag_s())

    # --- counting ----------------------------------------------------------------------------------------------------

    async def _resync(self) -> None:
        while True:
            for key in list(self._quotas.store):
                self.queue.add(key)
            await self.clock.sleep(RESYNC_S, background=True)

    async def _sync(self, key: str) -> None:
        """``syncResourceQuotaFromKey``."""
        if self._classes is not None:
            await self._classes.synced()
        for objects in list(self._counted.values()):
            await objects.informer.synced()
        obj = self._quotas.store.get(key)
        if obj is None:
            return
        started_ns = self.clock.now_ns()
        custom = [one for one in sorted(self._custom) if one in self._counted]
        changed = recount(obj, self._objects_in(obj.metadata.namespace), self.unix_ns(), custom, self._around)
        if changed is None:
            return
        try:
            await self.client.update_status(changed)
        except errors.NotFound:
            return
        finally:
            self.env.log(QuotaCounted(quota=key, start=started_ns))

    def _objects_in(self, namespace: str) -> _Namespace:
        return _Namespace(self._counted, namespace)


class _Around(Surroundings):
    """What the informers of the controller show."""

    def __init__(self, counted: Mapping[str, _Objects]) -> None:
        self.known: Mapping[str, DeviceClass] = {}
        self._counted = counted

    def classes(self) -> Mapping[str, str]:
        return {name: one.spec.extendedResourceName for name, one in self.known.items()}

    def pod(self, namespace: str, name: str) -> core_v1_pb2.Pod | None:
        return self._of("pods", namespace).get(name)

    def claims(self, namespace: str) -> Iterable[Any]:
        return self._of("resourceclaims", namespace).values()

    def _of(self, plural: str, namespace: str) -> Mapping[str, Any]:
        counted = self._counted.get(plural)
        crowd = None if counted is None else counted.by_namespace.get(namespace)
        return {} if crowd is None else crowd.objects


class _Objects:
    """All objects of a kind, by namespace."""

    __slots__ = ("_controller", "_evaluator", "by_namespace", "informer")

    def __init__(self, controller: ResourceQuotaController, plural: str, evaluator: Evaluator[Any]) -> None:
        self._controller = controller
        self._evaluator = evaluator
        self.by_namespace: dict[str, usages.Crowd] = {}
        handler = informers.Callbacks(self._put, self._updated, self._deleted)
        self.informer = informers.Informer(controller.client, plural, handler=handler)

    def _put(self, obj: KubernetesObject) -> None:
        namespace = obj.metadata.namespace
        crowd = self.by_namespace.get(namespace)
        if crowd is None:
            crowd = self.by_namespace[namespace] = usages.Crowd(self._evaluator)
        crowd.put(obj.metadata.name, obj)

    def _updated(self, old: core_v1_pb2.Pod, new: KubernetesObject) -> None:
        self._put(new)
        if self._evaluator.frees(old, new, self._controller.unix_ns()):
            self._controller.replenish(self._evaluator, new.metadata.namespace)

    def _deleted(self, obj: KubernetesObject) -> None:
        namespace = obj.metadata.namespace
        crowd = self.by_namespace[namespace]
        crowd.remove(obj.metadata.name)
        if not crowd.objects:
            del self.by_namespace[namespace]
        self._controller.replenish(self._evaluator, namespace)


class _Namespace:
    """The objects of one namespace, by plural."""

    __slots__ = ("_counted", "_namespace")

    def __init__(self, counted: Mapping[str, _Objects], namespace: str) -> None:
        self._counted = counted
        self._namespace = namespace

    def __call__(self, plural: str) -> Iterable[tuple[Any, int]]:
        crowd = self._counted[plural].by_namespace.get(self._namespace)
        return () if crowd is None else crowd.counted()


def recount(
    obj: core_v1_pb2.ResourceQuota,
    objects: usages.Objects,
    now_unix_ns: int,
    custom: Sequence[str] = (),
    around: Surroundings = NOTHING,
) -> core_v1_pb2.ResourceQuota | None:
    """The quota with a status that is right for these objects; None if it is so already (``syncResourceQuota``)."""
    quota = quotas.read(obj)
    counted = usages.calculate(quota, objects, now_unix_ns, custom, around)
    used = resource_lists.only({**quota.used, **counted}, quota.wanted)
    is_first = not obj.status.hard or not obj.status.used
    if not is_first and resource_lists.is_same(quota.wanted, quota.hard) and resource_lists.is_same(used, quota.used):
        return None
    changed = meta.copied(obj)
    resource_lists.write(changed.status.hard, quota.wanted)
    resource_lists.write(changed.status.used, used)
    return changed

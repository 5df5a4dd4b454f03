"""ResourceQuota, the last plugin of the chain: refuses what exceeds a quota, and charges what does not."""

from __future__ import annotations

from kemu.emulated.apiserver import dry_runs
from kemu.emulated.apiserver.admission.base import Host, Plugin
from kemu.emulated.apiserver.admission.quotas import checks, limited_resources
from kemu.emulated.apiserver.admission.quotas.accounts import Accounts, CachedQuotas, CachedSurroundings
from kemu.emulated.apiserver.admission.quotas.evaluations import Evaluations
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects.quotas import claims, registry
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject


class ResourceQuota(Plugin[KubernetesObject]):
    def __init__(self, storage: Storage, cache: WatchCache) -> None:
        super().__init__(storage, cache)
        self._known = CachedQuotas(cache)
        self._around = CachedSurroundings(cache)
        self._limited: tuple[limited_resources.LimitedResource, ...] = ()
        self._evaluations: Evaluations | None = None

    def attach(self, host: Host) -> None:
        async def write_status(quota: core_v1_pb2.ResourceQuota) -> int:
            # The batch may have begun with a dry run.
            with dry_runs.Pretending(False):
                return await host.write_status("resourcequotas", quota.metadata.namespace, quota)

        self._limited = limited_resources.read(host.limited_resources)
        self._evaluations = Evaluations(host.env, Accounts(self._known, write_status), self._limited)

    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return registry.find(resource) is not None

    async def validate(self, resource: Resource, obj: KubernetesObject) -> None:
        if resource.namespaced and (self._limited or self._known.of(obj.metadata.namespace)):
            is_dry = dry_runs.ACTIVE.get()
            await self._evaluate(checks.Request(checks.CREATE, resource, obj, dry_run=is_dry, around=self._around))

    def may_validate_update(self, resource: Resource, subresource: str) -> bool:
        return subresource != "status" or resource.plural == claims.CLAIMS

    def validates_update(self, namespace: str) -> bool:
        return bool(self._limited or self._known.of(namespace))

    async def validate_update(
        self, resource: Resource, subresource: str, new: KubernetesObject, old: KubernetesObject
    ) -> None:
        is_dry = dry_runs.ACTIVE.get()
        await self._evaluate(checks.Request(checks.UPDATE, resource, new, old, subresource, is_dry, self._around))

    async def _evaluate(self, request: checks.Request) -> None:
        if self._evaluations is not None and checks.concerns(request):
            await self._evaluations.evaluate(request)

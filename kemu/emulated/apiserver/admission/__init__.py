"""The admission chain: small plugins that may change or refuse an object before it is stored.

    namespaces                     NamespaceLifecycle: the namespace must exist and not be terminating
    anti_affinity_topologies       LimitPodHardAntiAffinityTopology: required anti-affinity by node only; off by default
    node_restrictions              NodeRestriction: a kubelet changes its own Node and the pods on it
    ingresses                      DefaultIngressClass
    node_taints                    TaintNodesByCondition: new nodes get the taint not-ready; off by default
    limit_ranges                   LimitRanger: defaults and bounds of what containers, pods and claims ask for
    pod_security                   PodSecurity: what the labels of a namespace allow its pods, and warn of
    priority                       Priority: class name → value and preemption policy; one global default
    tolerations                    DefaultTolerationSeconds, PodTolerationRestriction, ExtendedResourceToleration
    storage                        DefaultStorageClass: the class of claims that name none; whether claims may grow; and
                                   StorageObjectInUseProtection: finalizers of claims and volumes
    runtime_classes                RuntimeClass: overhead, node selector and tolerations of the pod's runtime class
    identities                     ServiceAccount: a pod has an account that exists, its containers mount a token; off
                                   by default, on in ``kemu up``; always: checks of roles, bindings and certificates
    changes_of_pods                NodeDeclaredFeatureValidator, PodResizeValidator: updates that the node of a pod
                                   cannot carry out
    jobs                           JobValidation: a Job whose pods are a gang keeps its parallelism
    pod_topologies                 PodTopologyLabels: a pod has the zone and the region of its node
    quotas                         ResourceQuota: what exceeds a quota is refused, what does not is charged

A plugin is an object of class :class:`Plugin`; :data:`PLUGINS` gives their names and their order, that of
``AllOrderedPlugins`` in ``pkg/kubeapiserver/options``.

    base                           what an admission plugin is
    device_claims                  claims of devices with admin access: only in namespaces that allow it
    services                       the addresses and ports of Services, which the registry asks for after the plugins
    external/                      webhooks, hooks of scenarios, and policies: asked after the plugins that change
                                   objects, and before ResourceQuota
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from kemu import errors
from kemu.emulated.apiserver.admission.anti_affinity_topologies import LimitPodHardAntiAffinityTopology
from kemu.emulated.apiserver.admission.base import Host, Plugin
from kemu.emulated.apiserver.admission.changes_of_pods.node_features import NodeDeclaredFeatureValidator
from kemu.emulated.apiserver.admission.changes_of_pods.resizes import PodResizeValidator
from kemu.emulated.apiserver.admission.device_claims import DeviceClaims
from kemu.emulated.apiserver.admission.external import External
from kemu.emulated.apiserver.admission.external.attributes import ASKING, CREATE, DELETE, UPDATE, Asking, Attributes
from kemu.emulated.apiserver.admission.identities.certificates import Certificates
from kemu.emulated.apiserver.admission.identities.role_escalations import RoleEscalations
from kemu.emulated.apiserver.admission.identities.service_accounts import ServiceAccount
from kemu.emulated.apiserver.admission.ingresses import DefaultIngressClass
from kemu.emulated.apiserver.admission.jobs import JobValidation
from kemu.emulated.apiserver.admission.limit_ranges import LimitRanger
from kemu.emulated.apiserver.admission.namespaces import NamespaceLifecycle
from kemu.emulated.apiserver.admission.node_restrictions import NodeRestriction
from kemu.emulated.apiserver.admission.node_taints import TaintNodesByCondition
from kemu.emulated.apiserver.admission.pod_security.plugin import PodSecurity
from kemu.emulated.apiserver.admission.pod_topologies import PodTopologyLabels
from kemu.emulated.apiserver.admission.priority import Priority, PriorityClasses
from kemu.emulated.apiserver.admission.quotas.plugin import ResourceQuota
from kemu.emulated.apiserver.admission.runtime_classes import RuntimeClass
from kemu.emulated.apiserver.admission.storage import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from kemu.emulated.apiserver.admission.tolerations.default_seconds import DefaultTolerationSeconds
from kemu.emulated.apiserver.admission.tolerations.extended_resources import ExtendedResourceToleration
from kemu.emulated.apiserver.admission.tolerations.of_pods import PodTolerationRestriction
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.resources import Resource
from kemu.errors import Cause
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2

PLUGINS: dict[str, type[Plugin[Any]]] = {
    "NamespaceLifecycle": NamespaceLifecycle,
    "LimitPodHardAntiAffinityTopology": LimitPodHardAntiAffinityTopology,
    "LimitRanger": LimitRanger,
    "ServiceAccount": ServiceAccount,
    "NodeRestriction": NodeRestriction,
    "TaintNodesByCondition": TaintNodesByCondition,
    "PodSecurity": PodSecurity,
    "Priority": Priority,
    "DefaultTolerationSeconds": DefaultTolerationSeconds,
    "PodTolerationRestriction": PodTolerationRestriction,
    "ExtendedResourceToleration": ExtendedResourceToleration,
    "DefaultStorageClass": DefaultStorageClass,
    "StorageObjectInUseProtection": StorageObjectInUseProtection,
    "PersistentVolumeClaimResize": PersistentVolumeClaimResize,
    "RuntimeClass": RuntimeClass,
    "DefaultIngressClass": DefaultIngressClass,
    "PodTopologyLabels": PodTopologyLabels,
    "NodeDeclaredFeatureValidator": NodeDeclaredFeatureValidator,
    "JobValidation": JobValidation,
    "PodResizeValidator": PodResizeValidator,
    "ResourceQuota": ResourceQuota,
}
"""In the order in which they run."""
OFF_IN_KUBERNETES = ("LimitPodHardAntiAffinityTopology", "PodTolerationRestriction", "ExtendedResourceToleration")
DEFAULT_OFF = (*OFF_IN_KUBERNETES, "ServiceAccount", "TaintNodesByCondition")
"""The last two are on in Kubernetes. Pods of a scenario need no accounts, as none of their containers calls the API
server; its nodes are there, and ready, from the beginning."""
DEFAULT_ON = tuple(name for name in PLUGINS if name not in DEFAULT_OFF)


class Chain:
    """The plugins that are switched on."""

    def __init__(
        self,
        names: Sequence[str],
        storage: Storage,
        cache: WatchCache,
    ) -> None:
        """Raises ValueError for an unknown name."""
        unknown = [name for name in names if name not in PLUGINS]
        if unknown:
            raise ValueError(f"unknown admission plugin {unknown[0]!r}; there are {', '.join(PLUGINS)}")
        plugins = [plugin(storage, cache) for name, plugin in PLUGINS.items() if name in names]
        plugins += [RoleEscalations(storage, cache), Certificates(storage, cache), DeviceClaims(storage, cache)]
        if "Priority" in names:
            plugins.append(PriorityClasses(storage, cache))
        # The last of all, whoever refuses.
        plugins.sort(key=lambda one: isinstance(one, ResourceQuota))
        self._plugins = plugins
        self._creates = _by_plural(plugins, "create")
        self._objections = _by_plural(plugins, "objections")
        self._validations = _by_plural(plugins, "validate")
        self._updates = _by_plural(plugins, "update")
        self._parts = _by_plural(plugins, "update_part")
        self._update_validations = _by_plural(plugins, "validate_update")
        self._part_validations: dict[tuple[str, str], list[Plugin[Any]]] = {}
        """By plural and subresource: those of the former that can have a say."""
        self._deletes = _by_plural(plugins, "delete")
        self._evictions = _by_plural(plugins, "evict")
        topology = next((one for one in plugins if isinstance(one, PodTopologyLabels)), None)
        self.bind: Callable[[api_pb2.BindRequest], api_pb2.BindRequest] | None = (
            None if topology is None else topology.bind
        )
        """Changes bindings; None: there is nothing that would."""
        self.node_restriction = next((one for one in plugins if isinstance(one, NodeRestriction)), None)
        """Judges requests for tokens; None: it is off."""
        self.external: External | None = None
        """Set before the first request; None: nobody outside is asked."""

    def attach(self, host: Host) -> None:
        """Once, before the first request."""
        for plugin in self._plugins:
            plugin.attach(host)

    asks = staticmethod(ASKING.get)
    """The request that is being carried out, if somebody outside may be to be asked about it: without a call of a
    function in Python, as each write asks."""

    async def create(self, resource: Resource, obj: KubernetesObject) -> None:
        """May change ``obj``. Raises an :class:`kemu.errors.ApiError` to refuse it."""
        for plugin in self._creates[resource.plural]:
            await plugin.create(resource, obj)

    async def create_asking(
        self, asking: Asking, resource: Resource, obj: KubernetesObject, *, is_generated: bool
    ) -> Attributes:
        """As :meth:`create`, and what others want changed. ``is_generated``: the name is not the client's. Returns what
        :meth:`validate_asking` is to be given later."""
        await self.create(resource, obj)
        assert self.external is not None
        name, namespace = obj.metadata.name, obj.metadata.namespace
        if is_generated:
            obj.metadata.ClearField("name")
        attributes = self.external.attributes(
            asking, CREATE, resource, "", namespace, "" if is_generated else name, obj, None
        )
        await self.external.mutate(attributes, lambda: self.create(resource, obj))
        if obj.metadata.namespace != namespace:
            raise _moved()
        if is_generated and not obj.metadata.name:
            obj.metadata.name = attributes.name = name
        return attributes

    async def validate_asking(self, attributes: Attributes) -> None:
        """The last word of others."""
        assert self.external is not None
        attributes.touched()
        await self.external.validate(attributes)

    async def validate_create_asking(self, attributes: Attributes, resource: Resource, obj: KubernetesObject) -> None:
        """As :meth:`validate`, with the last word of others before quotas are charged."""
        validators = self._validations[resource.plural]
        for plugin in validators:
            if not isinstance(plugin, ResourceQuota):
                await plugin.validate(resource, obj)
        await self.validate_asking(attributes)
        for plugin in validators:
            if isinstance(plugin, ResourceQuota):
                await plugin.validate(resource, obj)

    async def validate_update_asking(
        self, attributes: Attributes, resource: Resource, subresource: str, new: KubernetesObject, old: KubernetesObject
    ) -> None:
        """The last word of others, after the server's own plugins: these are asked again before the write."""
        for plugin in self.update_validators(resource, subresource, old.metadata.namespace):
            if not isinstance(plugin, ResourceQuota):
                await plugin.validate_update(resource, subresource, new, old)
        await self.validate_asking(attributes)

    async def update_asking(
        self,
        asking: Asking,
        resource: Resource,
        subresource: str,
        new: KubernetesObject,
        old: KubernetesObject,
        *,
        again: Callable[[], None],
    ) -> Attributes:
        """``again``: runs the server's own plugins."""
        assert self.external is not None
        name, namespace = new.metadata.name, new.metadata.namespace

        async def run() -> None:
            again()

        await run()
        attributes = self.external.attributes(asking, UPDATE, resource, subresource, namespace, name, new, old)
        await self.external.mutate(attributes, run)
        if new.metadata.namespace != namespace:
            raise _moved()
        return attributes

    async def delete_asking(self, asking: Asking, resource: Resource, name: str, old: KubernetesObject) -> None:
        """``name``: as the request says it; empty for one of a collection."""
        assert self.external is not None
        attributes = self.external.attributes(asking, DELETE, resource, "", old.metadata.namespace, name, None, old)
        await self.external.mutate(attributes)
        await self.external.validate(attributes)

    async def objections(self, resource: Resource, obj: KubernetesObject) -> list[Cause]:
        """What is said before the mistakes of a new object that is not valid."""
        return [one for plugin in self._objections[resource.plural] for one in await plugin.objections(resource, obj)]

    async def validate(self, resource: Resource, obj: KubernetesObject) -> None:
        """The last word on a new object, after its own validation. Raises as :meth:`create` does."""
        for plugin in self._validations[resource.plural]:
            await plugin.validate(resource, obj)

    def update(self, resource: Resource, new: KubernetesObject, old: KubernetesObject) -> None:
        """May change ``new``; not called for the status."""
        for plugin in self._updates[resource.plural]:
            plugin.update(resource, new, old)

    def update_part(self, resource: Resource, subresource: str, new: KubernetesObject, old: KubernetesObject) -> None:
        """An update of the status or of another subresource."""
        for plugin in self._parts[resource.plural]:
            plugin.update_part(resource, subresource, new, old)

    def update_validators(self, resource: Resource, subresource: str, namespace: str) -> list[Plugin[Any]]:
        """The plugins that must be asked before an update in that namespace is written; mostly none."""
        part = resource.plural, subresource
        plugins = self._part_validations.get(part)
        if plugins is None:
            plugins = self._part_validations[part] = [
                plugin
                for plugin in self._update_validations[resource.plural]
                if plugin.may_validate_update(resource, subresource)
            ]
        return [plugin for plugin in plugins if plugin.validates_update(namespace)] if plugins else plugins

    def delete(self, resource: Resource, name: str, namespace: str) -> None:
        for plugin in self._deletes[resource.plural]:
            plugin.delete(resource, name, namespace)

    def evict(self, name: str, namespace: str) -> None:
        for plugin in self._evictions["pods"]:
            plugin.evict(name, namespace)


def _moved() -> errors.BadRequest:
    """A mutation has changed the namespace of the object."""
    return errors.BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def _by_plural(plugins: Sequence[Plugin[Any]], verb: str) -> dict[str, tuple[Plugin[Any], ...]]:
    """For each kind, the plugins that override ``verb`` for it."""
    return _Plugins(plugins, verb)


class _Plugins(dict[str, tuple[Plugin[Any], ...]]):
    """By plural, found when a kind is asked for first; custom kinds share what is found for one."""

    def __init__(self, plugins: Sequence[Plugin[Any]], verb: str) -> None:
        super().__init__()
        self._plugins = plugins
        self._verb = verb
        self._of_custom: tuple[Plugin[Any], ...] | None = None

    def __missing__(self, plural: str) -> tuple[Plugin[Any], ...]:
        if plural in resources.BY_PLURAL:
            places = _places(tuple([type(plugin) for plugin in self._plugins]), self._verb, plural)
            found = self[plural] = tuple([self._plugins[place] for place in places])
            return found
        if self._of_custom is None:
            acting = [one for one in self._plugins if _overrides(one, self._verb)]
            self._of_custom = tuple([one for one in acting if one.concerns(_ANY_CUSTOM)])
        return self._of_custom


_ANY_CUSTOM = custom_kinds.placeholder("widgets.example.com", True)
"""What plugins are asked about custom kinds: they do not tell them apart, nor do these with a namespace from others."""


def _overrides(plugin: Plugin[Any], verb: str) -> bool:
    return getattr(type(plugin), verb) is not getattr(Plugin, verb)


@functools.cache
def _places(classes: tuple[type[Plugin[Any]], ...], verb: str, plural: str) -> tuple[int, ...]:
    """The places in the sequence of those that override ``verb`` for a kind: they depend on the classes alone."""
    acting = [place for place, one in enumerate(classes) if getattr(one, verb) is not getattr(Plugin, verb)]
    return tuple([place for place in acting if classes[place].concerns(resources.BY_PLURAL[plural])])

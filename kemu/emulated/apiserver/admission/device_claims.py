"""Who may ask for devices with admin access, and who may write which part of a claim's status.

What Kubernetes' strategies ask of namespaces and authorization (``pkg/registry/resource/utils.go``): DRAAdminAccess and
DRAResourceClaimGranularStatusAuthorization.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.apiserver.authorization import requesters
from kemu.emulated.apiserver.authorization.attributes import Attributes
from kemu.emulated.apiserver.authorization.requesters import Asking
from kemu.emulated.objects import identities, resources
from kemu.emulated.objects.devices import claims
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation import causes
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2

CLAIMS, TEMPLATES = resources.BY_PLURAL["resourceclaims"], resources.BY_PLURAL["resourceclaimtemplates"]
NAMESPACES = resources.BY_PLURAL["namespaces"]
GROUP = "resource.k8s.io"
ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
"""Label of namespaces whose claims may have admin access."""
NODE_NAME = "authentication.kubernetes.io/node-name"
"""What the token of a service account says of the node of its pod."""

Asks = resource_v1_pb2.ResourceClaim | resource_v1_pb2.ResourceClaimTemplate


class DeviceClaims(Plugin[Asks]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource in (CLAIMS, TEMPLATES)

    async def validate(self, resource: Resource, obj: Asks) -> None:
        found = await self.objections(resource, obj)
        if found:
            raise causes.error(obj, found)

    async def objections(self, resource: Resource, obj: Asks) -> list[Cause]:
        spec = obj.spec.spec if isinstance(obj, resource_v1_pb2.ResourceClaimTemplate) else obj.spec
        index = next((index for index, one in enumerate(spec.devices.requests) if one.exactly.adminAccess), None)
        if index is None:
            return []
        return await self._check_namespace(obj, f"spec.devices.requests[{index}].adminAccess")

    def may_validate_update(self, resource: Resource, subresource: str) -> bool:
        return resource is CLAIMS and subresource == "status"

    async def validate_update(self, resource: Resource, subresource: str, new: Asks, old: Asks) -> None:
        assert isinstance(new, resource_v1_pb2.ResourceClaim)
        assert isinstance(old, resource_v1_pb2.ResourceClaim)
        after, before = new.status, old.status
        results = after.allocation.devices.results
        index = next((index for index, one in enumerate(results) if one.adminAccess), None)
        if index is not None and not any(one.adminAccess for one in before.allocation.devices.results):
            refused = await self._check_namespace(new, f"status.allocation.devices.results[{index}].adminAccess")
            if refused:
                raise causes.error(new, refused)
        asking = requesters.ASKING.get()
        if asking is None:
            return
        found: list[Cause] = []
        if after.allocation != before.allocation or list(after.reservedFor) != list(before.reservedFor):
            _check_binding(asking, found)
        if after.HasField("allocation"):
            _check_drivers(asking, new, _changed_drivers(after.devices, before.devices), found)
        if found:
            raise causes.error(new, found)

    async def _check_namespace(self, obj: Asks, path: str) -> list[Cause]:
        """``AuthorizedForAdmin``."""
        namespace = await self.live(NAMESPACES, obj.metadata.namespace)
        if not isinstance(namespace, core_v1_pb2.Namespace) or namespace.metadata.labels.get(ADMIN_ACCESS) != "true":
            text = f"admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace"
            return [causes.forbidden(path, text)]
        return []


def _check_binding(asking: Asking, found: list[Cause]) -> None:
    """``AuthorizedForBinding``."""
    asked = Attributes(asking.verb, GROUP, "resourceclaims", "binding", "", "", "")
    if not asking.allows(asked):
        detail = (
            'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", '
            f'verb="{asking.verb}" permission: {_refused(asking, asked)}'
        )
        found.append(causes.forbidden("status.allocation", detail))


def _check_drivers(
    asking: Asking, claim: resource_v1_pb2.ResourceClaim, drivers: Iterable[str], found: list[Cause]
) -> None:
    """``AuthorizedForDeviceStatus``."""
    verbs = [f"arbitrary-node:{asking.verb}"]
    if _is_on_node(asking.user, _node_of(claim.status.allocation)):
        verbs.insert(0, f"associated-node:{asking.verb}")
    for driver in drivers:
        tried = [
            Attributes(verb, GROUP, "resourceclaims", "driver", claim.metadata.namespace, driver, "") for verb in verbs
        ]
        if not any(asking.allows(asked) for asked in tried):
            detail = (
                f'changing status.devices requires resource="resourceclaims/driver", verb="[{" ".join(verbs)}]" '
                f"permission: {_refused(asking, tried[0])}"
            )
            found.append(causes.forbidden("status.devices", detail))


def _refused(asking: Asking, asked: Attributes) -> str:
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    name = f' "{asked.name}"' if asked.name else ""
    return (
        f'resourceclaims.{GROUP}{name} is forbidden: User "{asking.user.name}" cannot {asked.verb} resource '
        f'"resourceclaims/{asked.subresource}" in API group "{GROUP}" {where}'
    )


def _changed_drivers(
    after: Sequence[resource_v1_pb2.AllocatedDeviceStatus], before: Sequence[resource_v1_pb2.AllocatedDeviceStatus]
) -> list[str]:
    """``getModifiedDrivers``."""
    new = {claims.device_key(one): one for one in after}
    old = {claims.device_key(one): one for one in before}
    return sorted({key[0] for key in {**new, **old} if new.get(key) != old.get(key)})


def _node_of(allocation: resource_v1_pb2.AllocationResult) -> str:
    """The one node that an allocation is bound to; empty: none (``nodeNameFromAllocation``)."""
    terms = allocation.nodeSelector.nodeSelectorTerms
    if len(terms) != 1 or terms[0].matchExpressions or len(terms[0].matchFields) != 1:
        return ""
    field = terms[0].matchFields[0]
    is_one = field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1
    return field.values[0] if is_one else ""


def _is_on_node(user: identities.User, node: str) -> bool:
    """``saAssociatedWithAllocatedNode``."""
    if not node or not user.name.startswith(identities.SERVICE_ACCOUNT_PREFIX):
        return False
    return dict(user.extra).get(NODE_NAME) == (node,)

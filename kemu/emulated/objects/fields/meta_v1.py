"""The fields of metadata and of other messages that many kinds share."""

from __future__ import annotations

from kemu.emulated.objects.fields.sorts import Reason, Sort, message

SORTS: dict[str, Sort] = {
    **message(
        "ObjectMeta",
        acts="name generateName namespace resourceVersion labels annotations finalizers",
        parts="ownerReferences",
        harmless={
            Reason.SERVER: "selfLink uid generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds "
            "managedFields",
        },
    ),
    **message(
        "OwnerReference",
        acts="apiVersion kind name uid controller blockOwnerDeletion",
    ),
}

"""What a list or a watch selects: a kind, perhaps a namespace, label and field selectors, compiled together.

Equal requests share one :class:`Selection`, so the fan-out judges an object once for all watchers that ask the same.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from kemu import errors
from kemu.emulated.objects import resources, selectors
from kemu.emulated.objects.caches import text_cache
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s.objects import KubernetesObject

NAME, NAMESPACE = 0, 1
"""Positions in ``Entry.fields`` that every kind has."""

Getter = Callable[[Any], str]

INDEXED: dict[str, tuple[tuple[str, Getter], ...]] = {
    "pods": (
        ("spec.nodeName", attrgetter("spec.nodeName")),  # what every kubelet watches
        ("spec.schedulerName", attrgetter("spec.schedulerName")),
    ),
}
"""By plural: fields that the watch cache indexes beside name and namespace; their positions begin at 2."""


def indexed_fields(resource: Resource) -> tuple[str, ...]:
    """The names of ``Entry.fields`` of a kind."""
    return ("metadata.name", "metadata.namespace", *(field for field, _ in INDEXED.get(resource.plural, ())))


NODE_OF_POD = indexed_fields(resources.BY_PLURAL["pods"]).index("spec.nodeName")
"""Position in ``Entry.fields`` of a pod."""


class Selection:
    """Compiled. ``position`` and ``value``: the most selective requirement that an index serves; position -1: none."""

    __slots__ = (
        "_checks",
        "_labels",
        "_takes_all_labels",
        "converted",
        "is_of_one",
        "namespace",
        "only_index",
        "only_namespace",
        "position",
        "resource",
        "show",
        "value",
    )

    def __init__(
        self,
        resource: Resource,
        namespace: str,
        labels: selectors.LabelSelector,
        fields: selectors.FieldSelector,
        show: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self.show = show
        """From an object as it is stored to what is shown of it; None: the same."""
        self.converted: Any = None
        """The collection of objects in the version that is asked for, where a webhook converts them; else None."""
        self.resource = resource
        self.namespace = namespace
        self._labels = labels
        self._takes_all_labels = labels.everything
        self._checks = fields.checks
        wanted = dict(fields.equals)
        if namespace:
            wanted.setdefault("metadata.namespace", namespace)
        self.position, self.value = -1, ""
        indexed = indexed_fields(resource)
        for position in (NAME, *range(2, len(indexed)), NAMESPACE):
            if indexed[position] in wanted:
                self.position, self.value = position, wanted[indexed[position]]
                break
        demands = len(fields.equals) + len(fields.not_equals) + bool(namespace) + (not labels.everything)
        self.only_index = demands == (self.position >= 0)
        """The index alone decides: no need to look into the object."""
        self.is_of_one = self.position == NAME and bool(namespace or not resource.namespaced)
        """It asks for a name, of which there can be one."""
        self.only_namespace = demands == bool(namespace)
        """The key alone decides."""

    def matches(self, message: KubernetesObject) -> bool:
        """Whether an object of the kind is selected."""
        metadata = message.metadata
        if self.namespace and metadata.namespace != self.namespace:
            return False
        if not self._takes_all_labels and not self._labels.matches(metadata.labels):
            return False
        for getter, value, wanted in self._checks:  # noqa: SIM110 - FieldSelector.matches, inlined
            if (getter(message) == value) is not wanted:
                return False
        return True


@text_cache(4096)  # each kubelet has two, and asks once
def compile_selection(plural: str, namespace: str, label_selector: str, field_selector: str) -> Selection:
    """Raises :class:`kemu.errors.NotFound` for an unknown kind, :class:`kemu.errors.BadRequest` for a bad selector."""
    resource = find_resource(plural)
    if namespace and not resource.namespaced:
        raise errors.BadRequest(f"{resource.qualified} are not namespaced: no namespace may be given")
    try:
        labels = selectors.parse_labels(label_selector)
        fields = selectors.parse_fields(field_selector, plural)
    except selectors.SelectorError as error:
        raise errors.BadRequest(str(error)) from None
    return Selection(resource, namespace, labels, fields)


def find_resource(plural: str) -> Resource:
    """Raises :class:`kemu.errors.NotFound`, as for a URL that no API serves."""
    try:
        return resources.BY_PLURAL[plural]
    except KeyError:
        raise errors.NotFound("the server could not find the requested resource", name=plural) from None

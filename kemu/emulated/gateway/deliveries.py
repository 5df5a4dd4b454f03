"""What the watches of clients have delivered, for who wants to know whether a client has seen an object."""

from __future__ import annotations

import fnmatch
from collections import deque
from collections.abc import Callable

from kemu.emulated.objects import selectors
from kemu.messages.k8s.objects import KubernetesObject


class Delivery:
    """One open watch."""

    __slots__ = ("_changed", "_fields", "_labels", "agent", "namespace", "plural", "revision")

    def __init__(
        self,
        agent: str,
        plural: str,
        namespace: str,
        label_selector: str,
        field_selector: str,
        revision: int,
        changed: Callable[[], None],
    ) -> None:
        self.agent = agent
        self.plural = plural
        self.namespace = namespace
        """Empty: all of them."""
        self._labels = selectors.parse_labels(label_selector)
        self._fields = selectors.parse_fields(field_selector, plural)
        self.revision = revision
        """The latest change that was written to the client; before the first one, that from which the watch began."""
        self._changed = changed

    def reach(self, revision: int) -> None:
        """Events up to this revision are written."""
        if revision > self.revision:
            self.revision = revision
            self._changed()

    def has_shown(self, obj: KubernetesObject, revision: int) -> bool:
        """Whether the client has been told of ``obj`` as it was at ``revision``."""
        metadata = obj.metadata
        return (
            self.revision >= revision
            and (not self.namespace or self.namespace == metadata.namespace)
            and self._labels.matches(metadata.labels)
            and self._fields.matches(obj)
        )


REMEMBERED = 1_000
"""Watches that have ended: what they have delivered was seen."""


class Deliveries:
    """Those of all watches."""

    def __init__(self) -> None:
        self._open: dict[Delivery, None] = {}
        self._ended: deque[Delivery] = deque(maxlen=REMEMBERED)
        self.changed: Callable[[], None] | None = None
        """Called when a watch begins, and when something was delivered; None: nobody wants to know."""

    def open(
        self, agent: str, plural: str, namespace: str, label_selector: str, field_selector: str, revision: int
    ) -> Delivery:
        """A watch begins whose selectors the API server has taken."""
        found = Delivery(agent, plural, namespace, label_selector, field_selector, revision, self._tell)
        self._open[found] = None
        self._tell()
        return found

    def close(self, delivery: Delivery) -> None:
        del self._open[delivery]
        self._ended.append(delivery)

    def have_shown(self, agent: str, plural: str, obj: KubernetesObject, revision: int) -> bool:
        """Whether a watch of a client has delivered ``obj`` as it was at ``revision``. ``agent``: a pattern."""
        return any(
            each.plural == plural and fnmatch.fnmatchcase(each.agent, agent) and each.has_shown(obj, revision)
            for each in (*self._open, *self._ended)
        )

    def is_watched(self, agent: str, plural: str) -> bool:
        """Whether a client watches a kind, or has done so. ``agent``: a pattern."""
        watches = (*self._open, *self._ended)
        return any(each.plural == plural and fnmatch.fnmatchcase(each.agent, agent) for each in watches)

    def _tell(self) -> None:
        if self.changed is not None:
            self.changed()

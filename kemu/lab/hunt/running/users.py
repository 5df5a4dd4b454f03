"""The user of a hunt, who does its steps."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from kemu.emulated.objects import custom_kinds, resources
from kemu.errors import KemuError
from kemu.lab.hunt.courses import Course
from kemu.lab.hunt.projects import Named, Step
from kemu.lab.up import embedded, remotes


class User:
    """Its changes of the store are known as such to the course."""

    def __init__(self, cluster: embedded.Cluster, course: Course) -> None:
        self._remote = remotes.Remote(cluster.kubeconfig)
        self._course = course
        self._finalizers: dict[str, set[str]] = {}
        """Of the user's own, by key."""

    def do(self, step: Step) -> None:
        """Raises KemuError with what the API server says."""
        if step.what == "apply":
            for one in step.objects:
                self._apply(one, step.namespace)
            return
        assert step.subject is not None
        path = self._path(step.subject)
        with self._asking(step.subject):
            if step.what == "delete":
                # As kubectl does; without it, the pods of a Job would outlive it.
                self._remote.ask("DELETE", path, {"propagationPolicy": "Background"})
            elif step.what == "patch":
                self._remote.ask("PATCH", path, dict(step.change), content_type="application/merge-patch+json")
            elif step.what == "scale":
                change = {"spec": {"replicas": step.replicas}}
                self._remote.ask("PATCH", f"{path}/scale", change, content_type="application/merge-patch+json")

    def keys(self, step: Step) -> set[str]:
        """Of the objects that a step changes."""
        if step.what in ("wait", "until"):
            return set()
        applied = (_named(one, step.namespace) for one in step.objects)
        return {self._course.key(one) for one in (*applied, *filter(None, [step.subject]))}

    @contextlib.contextmanager
    def _asking(self, named: Named) -> Iterator[None]:
        """The change that comes of it is the user's."""
        self._course.asking = self._course.key(named)
        try:
            yield
        finally:
            self._course.asking = ""

    def condition(self, step: Step) -> str:
        """As ``kemu step`` takes it."""
        if step.condition:
            return step.condition
        assert step.subject is not None
        return f"{self._said(step.subject)} {step.test}"

    def _said(self, named: Named) -> str:
        plural = self._course.resource(named.kind)
        if not plural:
            raise KemuError(f"there is no kind {named.kind}")
        name = plural if custom_kinds.is_custom(plural) else resources.BY_PLURAL[plural].kind.lower()
        return f"{name}/{named.name}"

    def ends(self, step: Step) -> Iterator[tuple[str, str]]:
        """Conditions, with their namespaces, to wait for before a step: what it makes anew and waits for somebody's
        finalizer has to be gone, or it would go with what is applied to it."""
        for one in step.objects:
            named = _named(one, step.namespace)
            key = self._course.key(named)
            if self._course.held_by(key) - self._finalizers.get(key, set()):
                yield f"{self._said(named)} gone", named.namespace

    def _apply(self, one: Mapping[str, Any], namespace: str) -> None:
        named = _named(one, namespace)
        path = f"{self._path(named, str(one['apiVersion']))}?fieldManager=hunt&force=true"
        self._finalizers[self._course.key(named)] = set(one["metadata"].get("finalizers") or ())
        with self._asking(named):
            self._remote.ask("PATCH", path, dict(one), content_type="application/apply-patch+yaml")

    def _path(self, named: Named, api_version: str = "") -> str:
        course = self._course
        plural = course.resource(named.kind)
        if not plural:
            raise KemuError(f"there is no kind {named.kind}")
        key = course.key(named)
        if not api_version:
            api_version = self._served(plural)
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        collection = plural.partition(".")[0]
        has_namespace = key.count("/") == 4
        place = f"/namespaces/{named.namespace}" if has_namespace else ""
        return f"{root}{place}/{collection}/{named.name}"

    def _served(self, plural: str) -> str:
        if plural in resources.BY_PLURAL:
            return resources.BY_PLURAL[plural].api_version
        group = plural.partition(".")[2]
        found = json.loads(self._remote.ask("GET", f"/apis/{group}"))
        return str(found["preferredVersion"]["groupVersion"])


def _named(one: Mapping[str, Any], namespace: str) -> Named:
    """What a manifest is about."""
    group = str(one["apiVersion"]).rpartition("/")[0]
    kind = f"{one['kind']}.{group}" if one["kind"] not in resources.BY_KIND and group else str(one["kind"])
    return Named(kind, one["metadata"]["name"], one["metadata"].get("namespace", namespace))

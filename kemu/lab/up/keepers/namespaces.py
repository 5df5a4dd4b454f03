"""Keeps in each namespace the service account ``default`` and the configmap ``kube-root-ca.crt``, with the authority
that has signed the certificate of the API server (``serviceaccounts_controller.go``, ``rootcacertpublisher``)."""

from __future__ import annotations

import contextlib

from kemu import errors
from kemu.emulated.client import clients, informers, retries
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env

ACCOUNT = "default"
ROOTS = "kube-root-ca.crt"
_DESCRIPTION = "kubernetes.io/description"
_WHAT_FOR = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class NamespaceKeeper:
    """Makes and keeps them, also in namespaces to come."""

    def __init__(self, env: Env, client: clients.Client, authority: str) -> None:
        """``authority``: in PEM; empty: there is none, and no configmap."""
        self._env = env
        self._client = client
        self._authority = authority
        self._namespaces: informers.Informer[core_v1_pb2.Namespace] = informers.Informer(
            client, "namespaces", handler=informers.Callbacks(on_add=self._on_namespace)
        )
        self._accounts: informers.Informer[core_v1_pb2.ServiceAccount] = informers.Informer(
            client,
            "serviceaccounts",
            field_selector=f"metadata.name={ACCOUNT}",
            handler=informers.Callbacks(on_delete=self._on_change),
        )
        self._roots: informers.Informer[core_v1_pb2.ConfigMap] = informers.Informer(
            client,
            "configmaps",
            field_selector=f"metadata.name={ROOTS}",
            handler=informers.Callbacks(on_update=self._on_update, on_delete=self._on_change),
        )

    async def begin(self) -> None:
        """Returns when everything is there."""
        namespaces = await self._client.list("namespaces")
        for namespace in namespaces.items:
            await self._furnish(namespace.metadata.name)
        for informer in (self._accounts, self._roots, self._namespaces):
            await informer.synced()

    async def _furnish(self, namespace: str) -> None:
        if namespace not in {key.partition("/")[0] for key in self._accounts.store}:
            account = core_v1_pb2.ServiceAccount()
            account.metadata.name, account.metadata.namespace = ACCOUNT, namespace
            await self._make(account)
        if not self._authority:
            return
        found = self._roots.store.get(f"{namespace}/{ROOTS}")
        if found is None:
            roots = core_v1_pb2.ConfigMap(data={"ca.crt": self._authority})
            roots.metadata.name, roots.metadata.namespace = ROOTS, namespace
            roots.metadata.annotations[_DESCRIPTION] = _WHAT_FOR
            await self._make(roots)
        elif not self._is_right(found):
            revised = core_v1_pb2.ConfigMap()
            revised.CopyFrom(found)
            revised.data.clear()
            revised.data["ca.crt"] = self._authority
            if not revised.metadata.annotations.get(_DESCRIPTION):
                revised.metadata.annotations[_DESCRIPTION] = _WHAT_FOR
            with contextlib.suppress(errors.NotFound, errors.Conflict, errors.Invalid):
                await retries.patiently(self._env, lambda: self._client.update(revised))

    def _is_right(self, roots: core_v1_pb2.ConfigMap) -> bool:
        return dict(roots.data) == {"ca.crt": self._authority} and bool(roots.metadata.annotations.get(_DESCRIPTION))

    async def _make(self, wanted: KubernetesObject) -> None:
        # It may be there, or its namespace gone again.
        with contextlib.suppress(errors.AlreadyExists, errors.NotFound, errors.Forbidden):
            await retries.patiently(self._env, lambda: self._client.create(wanted))

    # Of the informers

    def _on_namespace(self, obj: core_v1_pb2.Namespace) -> None:
        if obj.status.phase != "Terminating":
            self._env.spawn(self._furnish(obj.metadata.name), f"furnish {obj.metadata.name}")

    def _on_change(self, obj: KubernetesObject) -> None:
        namespace = self._namespaces.store.get(obj.metadata.namespace)
        if namespace is not None:
            self._on_namespace(namespace)

    def _on_update(self, old: KubernetesObject, new: core_v1_pb2.ConfigMap) -> None:
        if not self._is_right(new):
            self._on_change(new)

"""Takes away what is no longer needed of certificates and tokens: old requests for certificates
(``certificates/cleaner``), and the tokens of service accounts that are gone (``serviceaccount/tokens_controller.go``).
What must be signed is :mod:`kemu.emulated.gateway.issuers`'."""

from __future__ import annotations

import contextlib

from kemu import errors
from kemu.emulated.client import clients, informers, retries
from kemu.emulated.objects.validation.control_plane.registrations import APPROVED, DENIED, FAILED, Request
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.runtime.env import SECOND_NS, Env

PERIOD_S = 3600.0
DECIDED_S, PENDING_S = 3600, 24 * 3600
"""After so long a request goes that was denied, or approved and signed; and one about which nothing was decided."""
TOKEN_SECRET = "kubernetes.io/service-account-token"
ACCOUNT_NAME, ACCOUNT_UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


class CredentialKeeper:
    def __init__(self, env: Env, client: clients.Client) -> None:
        self._env = env
        self._client = client
        self._requests: informers.Informer[Request] = informers.Informer(client, "certificatesigningrequests")
        self._accounts: informers.Informer[core_v1_pb2.ServiceAccount] = informers.Informer(
            client, "serviceaccounts", handler=informers.Callbacks(on_delete=self._on_account_gone)
        )
        self._secrets: informers.Informer[core_v1_pb2.Secret] = informers.Informer(
            client,
            "secrets",
            field_selector=f"type={TOKEN_SECRET}",
            handler=informers.Callbacks(on_add=self._look, on_update=lambda old, new: self._look(new)),
        )

    async def begin(self) -> None:
        for informer in (self._requests, self._accounts, self._secrets):
            await informer.synced()
        self._env.spawn(self._clean_on(), "clean requests for certificates")

    # Requests

    async def _clean_on(self) -> None:
        while True:
            await self._env.clock.sleep(PERIOD_S, background=True)
            now_s = self._env.clock.unix_ns() // SECOND_NS
            for name in sorted(self._requests.store):
                request = self._requests.store.get(name)
                if request is not None and _is_old(request, now_s):
                    await self._delete("certificatesigningrequests", name)

    # Secrets

    def _on_account_gone(self, account: core_v1_pb2.ServiceAccount) -> None:
        for secret in list(self._secrets.store.values()):
            if secret.metadata.namespace == account.metadata.namespace:
                self._look(secret)

    def _look(self, secret: core_v1_pb2.Secret) -> None:
        if self._owner(secret) is None:
            self._env.spawn(self._forget(secret), f"token of {secret.metadata.name}")

    def _owner(self, secret: core_v1_pb2.Secret) -> core_v1_pb2.ServiceAccount | None:
        metadata = secret.metadata
        name = metadata.annotations.get(ACCOUNT_NAME, "")
        found = self._accounts.store.get(f"{metadata.namespace}/{name}")
        uid = metadata.annotations.get(ACCOUNT_UID, "")
        return found if found is None or uid in ("", found.metadata.uid) else None

    async def _forget(self, secret: core_v1_pb2.Secret) -> None:
        metadata = secret.metadata
        name = metadata.annotations.get(ACCOUNT_NAME, "")
        if name:
            # The informer may be behind.
            with contextlib.suppress(errors.NotFound):
                found = await retries.patiently(
                    self._env, lambda: self._client.get("serviceaccounts", name, metadata.namespace)
                )
                if metadata.annotations.get(ACCOUNT_UID, "") in ("", found.metadata.uid):
                    return
        await self._delete("secrets", metadata.name, metadata.namespace, metadata.uid)

    async def _delete(self, plural: str, name: str, namespace: str = "", uid: str = "") -> None:
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await retries.patiently(self._env, lambda: self._client.delete(plural, name, namespace, uid=uid))


def _is_old(request: Request, now_s: int) -> bool:
    """``CSRCleanerController.handle``. That a certificate has expired is not looked at: it was issued longer ago."""

    def is_older(time: meta_v1_pb2.Time, limit_s: int) -> bool:
        return bool(time.seconds) and now_s - time.seconds > limit_s

    for one in request.status.conditions:
        is_unissued = one.type == APPROVED and not request.status.certificate
        if one.type in (APPROVED, DENIED, FAILED) and is_older(
            one.lastUpdateTime, PENDING_S if is_unissued else DECIDED_S
        ):
            return True
    return not request.status.conditions and is_older(request.metadata.creationTimestamp, PENDING_S)

"""Who signs: certificates that were asked for and approved, and the tokens of secrets of service accounts.

In Kubernetes controllers of kube-controller-manager do (``certificates``, ``serviceaccount/tokens_controller.go``).
Here it stands beside the gateway, through which all such requests come: its keys never enter the emulated cluster,
whose runs repeat byte for byte, as what it signs does not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from kemu.emulated.gateway.authentication import service_accounts, signers
from kemu.emulated.gateway.authentication.certificates import Authority
from kemu.emulated.gateway.backends import Backend, Refused
from kemu.emulated.objects import identities
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation.control_plane.registrations import APPROVED, FAILED, Request
from kemu.errors import ApiError, Conflict, NotFound
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2

log = logging.getLogger(__name__)

REQUESTS, SECRETS = "certificatesigningrequests", "secrets"
KINDS = (REQUESTS, SECRETS)
TOKEN_SECRET = "kubernetes.io/service-account-token"
ACCOUNT_NAME, ACCOUNT_UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
RETRY_S = 1.0
_PASSED = (Conflict.reason, NotFound.reason)
"""Another write was faster: it is looked at anew."""

CERTIFICATE_CONTROLLER = identities.service_account("certificate-controller", "kube-system")
TOKEN_CONTROLLER = identities.ADMINISTRATOR
"""kube-controller-manager itself in Kubernetes."""


class Issuer:
    """Looks at what waits to be signed whenever it is told that something was written."""

    def __init__(self, authority: Authority | None, tokens: service_accounts.Tokens) -> None:
        """``authority``: None: nobody signs certificates."""
        self._authority = authority
        self._tokens = tokens
        self._waiting: dict[str, Backend] = {}
        """By the plural of a kind: through whom it was written."""
        self._task: asyncio.Task[None] | None = None
        self._looks: dict[str, Callable[[Backend], Awaitable[None]]] = {SECRETS: self._fill_secrets}
        if authority is not None:
            self._looks[REQUESTS] = self._sign_requests

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def written(self, row: Resource, backend: Backend) -> None:
        """An object of that kind was written through ``backend``."""
        if row.plural in self._looks and not (row.plural == SECRETS and row.group):
            self._waiting[row.plural] = backend
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._work(), name="sign")

    async def _work(self) -> None:
        while self._waiting:
            plural, backend = self._waiting.popitem()
            try:
                await self._looks[plural](backend)
            except Refused as refused:
                if refused.status.reason not in _PASSED:
                    log.warning("what waits to be signed: %s", refused.status.message)
                await asyncio.sleep(RETRY_S)
                self._waiting.setdefault(plural, backend)
            except ApiError as error:
                log.warning("what waits to be signed: %s", error)
                await asyncio.sleep(RETRY_S)
                self._waiting.setdefault(plural, backend)

    # Certificates

    async def _sign_requests(self, backend: Backend) -> None:
        listed = await backend.call(
            "List", api_pb2.ListRequest(resource=api_pb2.Resource(resource=REQUESTS)), CERTIFICATE_CONTROLLER
        )
        for wire in listed.items:
            request = Request.FromString(wire)
            if request.spec.signerName not in signers.SIGNERS or request.status.certificate:
                continue
            try:
                found = signers.parsed(request)
            except ValueError:
                continue
            for subresource, text in signers.approvals(request, found):
                if await self._may_create(backend, request, subresource):
                    request.status.conditions.add(type=APPROVED, status="True", reason="AutoApproved", message=text)
                    await self._update(backend, request, "approval")
                    self._waiting[REQUESTS] = backend
                    break
            else:
                if signers.is_to_be_signed(request):
                    await self._sign(backend, request)

    async def _sign(self, backend: Backend, request: Request) -> None:
        assert self._authority is not None
        found = signers.parsed(request)
        problem = signers.problem(request, found)
        if problem:
            request.status.conditions.add(type=FAILED, status="True", reason="SignerValidationFailure", message=problem)
        else:
            usages, ttl = list(request.spec.usages), signers.ttl(request)
            request.status.certificate = await asyncio.to_thread(self._authority.sign_request, found, usages, ttl)
        await self._update(backend, request, "status")

    async def _may_create(self, backend: Backend, request: Request, subresource: str) -> bool:
        review = api_pb2.ReviewRequest(user=request.spec.username, groups=request.spec.groups)
        asked = review.resource
        asked.verb, asked.group, asked.resource = "create", "certificates.k8s.io", REQUESTS
        asked.subresource = subresource
        return bool((await backend.call("Review", review, identities.ADMINISTRATOR)).allowed)

    async def _update(self, backend: Backend, request: Request, subresource: str) -> None:
        update = api_pb2.UpdateRequest(
            resource=api_pb2.Resource(resource=REQUESTS),
            object=request.SerializeToString(deterministic=True),
            subresource=subresource,
            name=request.metadata.name,
        )
        await backend.call("Update", update, CERTIFICATE_CONTROLLER)

    # Secrets

    async def _fill_secrets(self, backend: Backend) -> None:
        """Secrets of service accounts get their tokens."""
        listing = api_pb2.ListRequest(
            resource=api_pb2.Resource(resource=SECRETS), field_selector=f"type={TOKEN_SECRET}"
        )
        for wire in (await backend.call("List", listing, TOKEN_CONTROLLER)).items:
            secret = core_v1_pb2.Secret.FromString(wire)
            account = await self._account(backend, secret)
            if account is not None and self._complete(secret, account):
                resource = api_pb2.Resource(resource=SECRETS, namespace=secret.metadata.namespace)
                data = secret.SerializeToString(deterministic=True)
                update = api_pb2.UpdateRequest(resource=resource, object=data, name=secret.metadata.name)
                await backend.call("Update", update, TOKEN_CONTROLLER)

    async def _account(self, backend: Backend, secret: core_v1_pb2.Secret) -> core_v1_pb2.ServiceAccount | None:
        """Whose it is; None: that account is not there, and the secret will go."""
        metadata = secret.metadata
        resource = api_pb2.Resource(resource="serviceaccounts", namespace=metadata.namespace)
        get = api_pb2.GetRequest(resource=resource, name=metadata.annotations.get(ACCOUNT_NAME, ""))
        if not get.name:
            return None
        try:
            found = core_v1_pb2.ServiceAccount.FromString((await backend.call("Get", get, TOKEN_CONTROLLER)).object)
        except Refused as refused:
            if refused.status.reason == NotFound.reason:
                return None
            raise
        stated = metadata.annotations.get(ACCOUNT_UID, "")
        return found if stated in ("", found.metadata.uid) else None

    def _complete(self, secret: core_v1_pb2.Secret, account: core_v1_pb2.ServiceAccount) -> bool:
        """Fills in what is missing (``generateTokenIfNeeded``). Returns whether anything was."""
        data, metadata = secret.data, secret.metadata
        wanted = {"namespace": metadata.namespace.encode()}
        if self._authority is not None:
            wanted["ca.crt"] = self._authority.certificate
        lacking = {key: value for key, value in wanted.items() if data.get(key) != value}
        if not data.get("token"):
            owner = service_accounts.Account(metadata.namespace, account.metadata.name, account.metadata.uid)
            lacking["token"] = self._tokens.sign_legacy(owner, metadata.name).encode()
        if not lacking and metadata.annotations.get(ACCOUNT_UID) == account.metadata.uid:
            return False
        for key, value in lacking.items():
            data[key] = value
        metadata.annotations[ACCOUNT_UID] = account.metadata.uid
        return True

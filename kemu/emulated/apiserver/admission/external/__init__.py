"""Admission from outside: webhooks, the hooks of scenarios, and policies. Begin with :class:`External`.

    attributes   one request, as they see it
    versions     objects in other versions than that of the request
    matching     which requests a webhook or a policy is about
    webhooks     MutatingAdmissionWebhook and ValidatingAdmissionWebhook
    reviews      what a webhook is asked, and what it may answer
    hooks        functions in Python in the place of webhooks
    subresources  bindings and evictions, about which admission is asked as about new objects
    conditions   CEL: match conditions, and what all expressions may name
    policies     ValidatingAdmissionPolicy and MutatingAdmissionPolicy
    type_checks  whether the expressions of a policy fit the kinds that it is about
    params       the objects that parametrise a policy
    mutations    what a mutation of a policy makes of an object

All writes of clients go through it, those of kemu's own actors, too; not what the server writes on its own behalf, nor
webhooks and policies themselves. Where there are none of these objects, a write costs a look at empty mappings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from kemu.emulated.apiserver.admission.external import matching
from kemu.emulated.apiserver.admission.external.attributes import Asking, Attributes
from kemu.emulated.apiserver.admission.external.conditions import Conditions
from kemu.emulated.apiserver.admission.external.hooks import Hooks
from kemu.emulated.apiserver.admission.external.matching import Selectors
from kemu.emulated.apiserver.admission.external.params import Custom, Params
from kemu.emulated.apiserver.admission.external.policies import MutatingPolicies, ValidatingPolicies
from kemu.emulated.apiserver.admission.external.webhooks import Invocations, Webhooks
from kemu.emulated.apiserver.authorization import requesters
from kemu.emulated.apiserver.authorization.authorizers import Authorizer
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.apiserver.webhooks.clients import WebhookClient
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env

Again = Callable[[], Awaitable[None]]
"""Runs the server's own plugins once more."""


async def _nothing() -> None:
    return


class External:
    def __init__(
        self,
        env: Env,
        storage: Storage,
        cache: WatchCache,
        authorizer: Authorizer,
        client: WebhookClient,
        hooks: Sequence[Mapping[str, Any]],
        new_uid: Callable[[], str],
        custom: Custom,
    ) -> None:
        """``hooks``: see :class:`Hooks`."""
        self._authorizer = authorizer
        self._selectors = Selectors(storage, cache)
        conditions = Conditions(authorizer)
        found = Hooks(hooks, lambda name: env.stream("admission hook", env.name, name))
        self.webhooks = Webhooks(env, cache, self._selectors, client, found, conditions, new_uid)
        params = Params(cache, custom)
        self._validating = ValidatingPolicies(cache, self._selectors, conditions, params)
        self._mutating = MutatingPolicies(cache, self._selectors, conditions, params)
        self.sources = (*self.webhooks.sources, self._validating.source, self._mutating.source)
        """Who may be to be asked, if any of them is true: looked at for each write."""

    def attributes(
        self,
        asking: Asking,
        operation: str,
        resource: Resource,
        subresource: str,
        namespace: str,
        name: str,
        obj: KubernetesObject | None,
        old: KubernetesObject | None,
        subject: tuple[str, str] | None = None,
        plain: dict[str, Any] | None = None,
    ) -> Attributes:
        """``plain``: the object in JSON, where it is known better than ``obj`` tells."""
        user = requesters.known(self._authorizer.user(asking.by))
        return Attributes(asking, user, operation, resource, subresource, namespace, name, obj, old, subject, plain)

    async def mutate(self, attributes: Attributes, again: Again = _nothing) -> None:
        """Change the object as webhooks and policies want. ``again``: see :data:`Again`. Raises
        :class:`kemu.errors.ApiError`."""
        if matching.is_exempt(attributes):
            return
        invocations = Invocations()
        await self._mutate(attributes, invocations)
        if invocations.changed:
            invocations.is_second = True
            await again()
            attributes.touched()
            await self._mutate(attributes, invocations)

    async def _mutate(self, attributes: Attributes, invocations: Invocations) -> None:
        if self._mutating.are_there:
            await self._mutating.mutate(attributes, invocations)
        if self.webhooks.are_there:
            await self.webhooks.mutate(attributes, invocations)

    async def validate(self, attributes: Attributes) -> None:
        """Raises :class:`kemu.errors.ApiError`."""
        if matching.is_exempt(attributes):
            return
        if self._validating.are_there:
            await self._validating.validate(attributes)
        if self.webhooks.are_there:
            await self.webhooks.validate(attributes)

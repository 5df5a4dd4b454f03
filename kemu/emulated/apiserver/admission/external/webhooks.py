"""The admission plugins MutatingAdmissionWebhook and ValidatingAdmissionWebhook.

``apiserver/pkg/admission/plugin/webhook``: mutating webhooks are asked one after the other, ordered by the names of
their configurations, validating ones at the same time. Who answers is a process outside, or a hook of the scenario.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, NamedTuple

from kemu import errors as kemu_errors
from kemu.emulated.apiserver.admission.base import Derived
from kemu.emulated.apiserver.admission.external import conditions, matching, reviews, versions
from kemu.emulated.apiserver.admission.external.attributes import Attributes, Matched
from kemu.emulated.apiserver.admission.external.hooks import Hooks
from kemu.emulated.apiserver.admission.external.matching import Selectors
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.apiserver.webhooks.clients import BadClient, CallFailed, WebhookClient
from kemu.emulated.objects.conversion import convert, json_operations, sizes
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation.extensions.admission_registration import REVIEW_VERSIONS
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import WebhookAsked

IGNORE, IF_NEEDED = "Ignore", "IfNeeded"
_NO_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_PATIENCE_S = 10
_LONGEST_LOGGED = 2000
_MOST_OPERATIONS = 10_000
_LARGEST_CODE = 599
_HOOKS = "admission hooks"
"""Stands for the configuration of hooks that have none."""


class Webhook(NamedTuple):
    configuration: str
    message: Any
    """``MutatingWebhook`` or ``ValidatingWebhook``."""
    judged: dict[tuple[str, str, str, str, bool], tuple[Resource, Matched | None]]
    """What its rules have said of requests for a kind, as long as that is served as it was. Most say no."""

    def by_rules(self, of: Attributes) -> Matched | None:
        row = of.resource
        key = row.plural, row.api_version, of.subresource, of.operation, bool(of.namespace)
        found = self.judged.get(key)
        if found is None or found[0] is not row:
            matched = matching.by_rules(self.message.rules, self.message.matchPolicy, of)
            found = self.judged[key] = row, matched
        return found[1]

    @property
    def name(self) -> str:
        return str(self.message.name)

    @property
    def uid(self) -> tuple[str, str]:
        return self.configuration, self.name


class _CallFailed(Exception):
    """The webhook gave no answer that counts; its failure policy says what follows."""


class Invocations:
    """What mutating webhooks have been asked about one request, in up to two rounds."""

    __slots__ = ("_again", "again", "changed", "is_second", "last")

    def __init__(self) -> None:
        self.is_second = False
        self.changed = False
        """Something has changed the object: the plugins before run again."""
        self.last: dict[str, Any] | None = None
        """The object as the last webhook left it."""
        self.again: set[tuple[str, str]] = set()
        """Webhooks and policies that are to be asked again."""
        self._again: dict[tuple[str, str], None] = {}
        """Those that are asked again as soon as something changes."""

    def require(self) -> None:
        """The object has changed: those that were asked already, and wish so, are asked again."""
        self.again.update(self._again)
        self._again.clear()

    def note(self, uid: tuple[str, str]) -> None:
        self._again[uid] = None


class Webhooks:
    """Both plugins."""

    def __init__(
        self,
        env: Env,
        cache: WatchCache,
        selectors: Selectors,
        client: WebhookClient,
        hooks: Hooks,
        check: conditions.Conditions,
        new_uid: Callable[[], str],
    ) -> None:
        self._env = env
        self._selectors = selectors
        self._client = client
        self._hooks = hooks
        self._conditions = check
        self._new_uid = new_uid
        mutating = [one for one in hooks.standalone if isinstance(one, v1.MutatingWebhook)]
        validating = [one for one in hooks.standalone if isinstance(one, v1.ValidatingWebhook)]
        self._mutating = Derived(cache, "mutatingwebhookconfigurations", lambda found: _flatten(found, mutating))
        self._validating = Derived(cache, "validatingwebhookconfigurations", lambda found: _flatten(found, validating))
        kept = [cache.collections[f"{one}webhookconfigurations"].entries for one in ("mutating", "validating")]
        self.sources: tuple[Sized, ...] = (hooks.standalone, *kept)
        """All empty: nobody is to be asked."""

    @property
    def are_there(self) -> bool:
        return any(self.sources)

    async def mutate(self, attributes: Attributes, invocations: Invocations) -> None:
        """Ask one after the other. Raises :class:`kemu.errors.ApiError`."""
        if invocations.is_second and invocations.last is not None and attributes.plain != invocations.last:
            invocations.require()
        try:
            for index, webhook in enumerate(self._mutating.get()):
                matched = await self._matches(webhook, attributes)
                if matched is None or (invocations.is_second and webhook.uid not in invocations.again):
                    continue
                changed = await self._mutate_by(webhook, matched, attributes, index, invocations)
                if changed:
                    invocations.require()
                    invocations.changed = True
                if webhook.message.reinvocationPolicy == IF_NEEDED:
                    invocations.note(webhook.uid)
        finally:
            invocations.last = attributes.plain

    async def _mutate_by(
        self, webhook: Webhook, matched: Matched, attributes: Attributes, index: int, invocations: Invocations
    ) -> bool:
        try:
            answer = await self._ask(webhook, matched, attributes, mutating=True)
            self._settle(webhook, answer, attributes)
            return await _apply(webhook, matched, answer, attributes)
        except _CallFailed as error:
            if webhook.message.failurePolicy != IGNORE:
                raise _failed(webhook, error) from None
            place = f"round_{int(invocations.is_second)}_index_{index}"
            attributes.annotate(f"failed-open.mutation.webhook.admission.k8s.io/{place}", webhook.name)
            return False

    async def validate(self, attributes: Attributes) -> None:
        """Ask all at once; the first refusal, in their order, counts. Raises :class:`kemu.errors.ApiError`."""
        asked: list[tuple[Webhook, Matched]] = []
        for webhook in self._validating.get():
            matched = await self._matches(webhook, attributes)
            if matched is not None:
                asked.append((webhook, matched))
        if not asked:
            return
        if len(asked) == 1:
            results: Sequence[Any] = [await self._validate_by(*asked[0], attributes, 0)]
        else:
            results = await asyncio.gather(
                *(self._validate_by(*one, attributes, index) for index, one in enumerate(asked))
            )
        for result in results:
            if result is not None:
                raise result

    async def _validate_by(
        self, webhook: Webhook, matched: Matched, attributes: Attributes, index: int
    ) -> kemu_errors.ApiError | None:
        try:
            answer = await self._ask(webhook, matched, attributes, mutating=False)
            self._settle(webhook, answer, attributes)
        except _CallFailed as error:
            if webhook.message.failurePolicy != IGNORE:
                return _failed(webhook, error)
            key = f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{index}"
            attributes.annotate(key, webhook.name)
        except kemu_errors.ApiError as error:
            return error
        return None

    async def _matches(self, webhook: Webhook, attributes: Attributes) -> Matched | None:
        """As what the request concerns a webhook (``ShouldCallHook``). Raises :class:`kemu.errors.ApiError`."""
        message = webhook.message
        matched = webhook.by_rules(attributes)
        if matched is None or not await self._selectors.admits(message, attributes):
            return None
        if message.matchConditions:
            await versions.prepare(attributes, matched)
            fails = message.failurePolicy != IGNORE
            if not self._conditions.hold(message.matchConditions, attributes, matched, fails=fails):
                return None
        return matched

    async def _ask(
        self, webhook: Webhook, matched: Matched, attributes: Attributes, *, mutating: bool
    ) -> reviews.Answer:
        """Raises _CallFailed and :class:`kemu.errors.ApiError`."""
        message = webhook.message
        if attributes.dry_run and message.sideEffects not in _NO_SIDE_EFFECTS:
            if not message.HasField("sideEffects"):
                raise _CallFailed("Webhook SideEffects is nil")
            raise kemu_errors.BadRequest(f'admission webhook "{webhook.name}" does not support dry run')
        version = next((one for one in message.admissionReviewVersions if one in REVIEW_VERSIONS), "")
        if not version:
            why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise _CallFailed(f"could not create admission objects: {why}")
        await versions.prepare(attributes, matched)
        uid = self._new_uid()
        asked = reviews.request(attributes, matched, uid, *attributes.seen(matched))
        start_ns = self._env.clock.now_ns()
        try:
            if webhook.name in self._hooks:
                answer = self._hooks.answer(webhook.name, asked, mutating=mutating)
            else:
                timeout_s = message.timeoutSeconds or _PATIENCE_S
                found = await self._client.call(message.clientConfig, reviews.review(version, asked), timeout_s)
                answer = reviews.read(found, version, uid, mutating=mutating)
        except CallFailed as error:
            failure = f"failed to call webhook: {error}"
        except BadClient as error:
            failure = f"could not get REST client: {error}"
        except reviews.BadAnswer as error:
            failure = str(error)
        else:
            self._log(webhook, attributes, start_ns, answer, "")
            return answer
        self._log(webhook, attributes, start_ns, None, failure)
        raise _CallFailed(failure)

    def _log(
        self, webhook: Webhook, attributes: Attributes, start_ns: int, answer: reviews.Answer | None, failure: str
    ) -> None:
        status = (answer.status or {}) if answer is not None else {}
        patch = answer.patch if answer is not None else None
        self._env.log(
            WebhookAsked(
                webhook=webhook.name,
                configuration=webhook.configuration,
                operation=attributes.operation,
                resource=attributes.plural,
                subresource=attributes.subresource,
                namespace=attributes.namespace,
                name=attributes.name,
                start=start_ns,
                allowed=answer is not None and answer.allowed,
                changes=len(patch or ()) if answer is None or answer.changed is None else 1,
                message=(failure or str(status.get("message", "")))[:_LONGEST_LOGGED],
            )
        )

    def _settle(self, webhook: Webhook, answer: reviews.Answer, attributes: Attributes) -> None:
        """Warnings, annotations, and the refusal, if it is one."""
        for key, value in answer.annotations.items():
            attributes.annotate(f"{webhook.name}/{key}", value)
        for text in answer.warnings:
            attributes.warn(text)
        if not answer.allowed:
            raise _denied(webhook.name, answer.status)


async def _apply(webhook: Webhook, matched: Matched, answer: reviews.Answer, attributes: Attributes) -> bool:
    """Change the object as the webhook wants; whether that changes anything. Raises :class:`kemu.errors.ApiError`."""
    if answer.changed is None and not answer.patch:
        return False
    before, _ = attributes.seen(matched)
    if before is None or attributes.obj is None:
        why = "attempted to modify the object, which is not supported for this operation"
        raise internal(f'admission webhook "{webhook.name}" {why}')
    if answer.changed is not None:
        after: dict[str, Any] = answer.changed
    else:
        assert answer.patch is not None
        try:
            after = patched(before, answer.patch)
        except json_operations.DoesNotApply as error:
            raise internal(str(error)) from None
    after = await versions.back(attributes, matched, after)
    return replace(attributes, after, f'admission webhook "{webhook.name}"')


def internal(why: str) -> kemu_errors.InternalError:
    """``NewInternalError``."""
    return kemu_errors.InternalError(f"Internal error occurred: {why}", causes=[kemu_errors.Cause("", "", why)])


def patched(before: dict[str, Any], operations: Sequence[Any]) -> dict[str, Any]:
    """Raises :class:`kemu.emulated.objects.conversion.json_operations.DoesNotApply`."""
    if len(operations) > _MOST_OPERATIONS:
        raise json_operations.DoesNotApply(
            f"the patch has {len(operations)} operations; kemu carries out {_MOST_OPERATIONS}"
        )
    for one in operations:
        if not isinstance(one, dict) or any(not isinstance(one.get(key, ""), str) for key in ("op", "path", "from")):
            raise json_operations.DoesNotApply("an operation of the patch has an op, a path or a from that is no text")
    return json_operations.apply_told(before, operations)


def replace(attributes: Attributes, after: dict[str, Any], who: str) -> bool:
    """Make this the object, with its defaults; whether it is another one. Raises :class:`kemu.errors.ApiError`."""
    obj, before = attributes.obj, attributes.plain
    assert obj is not None
    try:
        sizes.check_json(json.dumps(after).encode())
    except (kemu_errors.RequestEntityTooLarge, RecursionError, ValueError) as error:
        raise internal(f"{who} made too large an object: {error}") from None
    expected = {"apiVersion": attributes.subject[0], "kind": attributes.subject[1]}
    for key, value in expected.items():
        if after.get(key) != value:
            raise internal(f"{who} changed {key} of the object to {json.dumps(after.get(key))}")
    made, problems = convert.partial_json(type(obj), after)
    wrong = [problem for problem in problems if not str(problem).endswith("unknown field")]
    if wrong:
        texts = "; ".join(str(problem) for problem in wrong)
        raise internal(f"{who} made an object that cannot be read: {texts}")
    changed = convert.to_manifest(made) != before
    defaults.apply(made)
    put(obj, made)
    attributes.touched()
    return changed


def put(obj: KubernetesObject, made: KubernetesObject) -> None:
    obj.CopyFrom(made)


def _flatten(found: Iterable[Any], standalone: Sequence[Any]) -> list[Webhook]:
    """By the names of their configurations."""
    webhooks = [
        Webhook(configuration.metadata.name, webhook, {})
        for configuration in sorted(found, key=lambda one: str(one.metadata.name))
        for webhook in configuration.webhooks
    ]
    return webhooks + [Webhook(_HOOKS, one, {}) for one in standalone]


def _failed(webhook: Webhook, why: _CallFailed) -> kemu_errors.ApiError:
    """``ErrCallingWebhook``, of which an internal error is made."""
    return internal(f'failed calling webhook "{webhook.name}": {why}')


def _denied(name: str, status: dict[str, Any] | None) -> kemu_errors.ApiError:
    """``ToStatusErr``."""
    status = status or {}
    by = f'admission webhook "{name}" denied the request'
    code = int(status.get("code") or 0)
    said, reason = str(status.get("message") or ""), str(status.get("reason") or "")
    message = f"{by}: {said or reason}" if said or reason else f"{by} without explanation"
    return kemu_errors.Denied(
        message, code if 400 <= code <= _LARGEST_CODE else 400, reason, status.get("details") or {}
    )

"""Conversion webhooks: one asks for an object of a custom kind in another version
(``apiextensions-apiserver/pkg/apiserver/conversion``).

    converter = conversions.of(definition)       # None: the kind converts by name alone
    found = await converter.convert(manifest, "example.com/v2")

As in Kubernetes each object is asked about by itself, also those of a list. Who answers is a process outside, or a
function in Python that a scenario names in its place (``conversionHooks``).
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from kemu.emulated.apiserver.webhooks.clients import BadClient, CallFailed, WebhookClient
from kemu.emulated.objects.conversion import sizes
from kemu.emulated.objects.managed_fields import go_texts
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.validation.extensions.definitions import REVIEW_VERSIONS
from kemu.emulated.objects.validation.metadata import check_annotations, check_labels
from kemu.emulated.schemas import problems
from kemu.errors import ApiError, Cause, RequestEntityTooLarge, SimulationError
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.runtime import user_code
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import ConversionAsked

T = TypeVar("T")
Manifest = dict[str, Any]
Hook = Callable[[Manifest, str], object]
"""(object, API version that is wanted): the object in that version."""

GROUP, KIND = "apiextensions.k8s.io", "ConversionReview"
WEBHOOK = "Webhook"
"""The strategy."""
TIMEOUT_S = 30.0
CALLS = 20
"""Most questions to one webhook at the same time: one that hangs leaves connections to the others."""
LARGEST_BYTES = 3 << 20
"""Of an object, as much as a client may send."""
_LONGEST_LOGGED = 2000
_DEADLINE = "context deadline exceeded"


class Conversions:
    """All conversion webhooks that one API server asks."""

    def __init__(
        self, env: Env, client: WebhookClient, new_uid: Callable[[], str], hooks: Sequence[Mapping[str, str]]
    ) -> None:
        """``hooks``: of each its ``name``, that of a definition, and its ``hook`` (``module:function``). Raises
        ImportError and AttributeError."""
        self._env = env
        self._client = client
        self._new_uid = new_uid
        self._hooks: dict[str, Hook] = {one["name"]: user_code.load(one["hook"]) for one in hooks}

    def of(self, definition: CustomResourceDefinition) -> Converter | None:
        """None: no webhook converts the kind."""
        if definition.spec.conversion.strategy != WEBHOOK:
            return None
        hook = self._hooks.get(definition.metadata.name)
        return Converter(definition, self._env, self._client, self._new_uid, hook)


class Converter:
    """Converts the objects of one kind, as its definition says."""

    def __init__(
        self,
        definition: CustomResourceDefinition,
        env: Env,
        client: WebhookClient,
        new_uid: Callable[[], str],
        hook: Hook | None,
    ) -> None:
        self._name = definition.metadata.name
        self._webhook = definition.spec.conversion.webhook
        self._env = env
        self._client = client
        self._new_uid = new_uid
        self._hook = hook
        self._slots = asyncio.Semaphore(CALLS)
        self._silences = 0
        """How often the webhook has not answered in time."""

    async def convert(self, obj: Manifest, wanted: str) -> Manifest:
        """A complete manifest in another API version, with the metadata that it had, but for labels and annotations.
        Raises :class:`kemu.errors.ApiError` in Kubernetes' words."""
        start_ns = self._env.clock.now_ns()
        group, _, version = obj["apiVersion"].rpartition("/")
        who = f"conversion webhook for {group}/{version}, Kind={obj['kind']}"
        error = ""
        try:
            answer = await self._ask(obj, wanted, who)
            return _checked(obj, answer, wanted, who)
        except ApiError as found:
            error = found.message
            raise
        finally:
            metadata = obj.get("metadata") or {}
            self._env.log(
                ConversionAsked(
                    definition=self._name,
                    wanted=wanted,
                    namespace=metadata.get("namespace", ""),
                    name=metadata.get("name", ""),
                    start=start_ns,
                    message=error[:_LONGEST_LOGGED],
                )
            )

    async def _ask(self, obj: Manifest, wanted: str, who: str) -> Json:
        """What comes as the converted object."""
        if self._hook is not None:
            return self._answer(self._hook, obj, wanted)
        version = next((one for one in self._webhook.conversionReviewVersions if one in REVIEW_VERSIONS), "")
        if not version:
            raise ApiError("no supported conversion review versions")
        uid = self._new_uid()
        asked: Json = {"uid": uid, "desiredAPIVersion": wanted, "objects": [obj]}
        review: Json = {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": asked}
        try:
            found = _read(await self._call(review), version, uid)
        except CallFailed as error:
            raise ApiError(f"{who} failed: {error}") from None
        if len(found) != 1:
            raise ApiError(f"{who} returned {len(found)} objects, expected 1")
        return found[0]  # type: ignore[no-any-return]

    async def _call(self, review: Json) -> dict[str, Any]:
        """Who has waited for one that did not answer in time does not wait for the next one. Raises CallFailed."""
        silences = self._silences
        async with self._slots:
            if silences != self._silences:
                raise CallFailed(_DEADLINE)
            try:
                return await self._client.call(self._webhook.clientConfig, review, TIMEOUT_S)
            except BadClient as error:
                raise CallFailed(str(error)) from None
            except CallFailed as error:
                if str(error).endswith(_DEADLINE):
                    self._silences += 1
                raise

    def _answer(self, hook: Hook, obj: Manifest, wanted: str) -> Json:
        """Raises what the function raises, which ends the run, and SimulationError for what it may not return."""
        found = hook(copy.deepcopy(obj), wanted)
        try:
            return json.loads(json.dumps(found))  # type: ignore[no-any-return]
        except (TypeError, ValueError, RecursionError) as error:
            raise SimulationError(f"conversion hook of {self._name} returned {found!r}: {error}") from None


# Answers --------------------------------------------------------------------------------------------------------------


def _read(review: dict[str, Any], version: str, uid: str) -> list[Any]:
    """The objects of a ConversionReview (``getConvertedObjectsFromResponse``). Raises CallFailed."""
    api_version, kind = _text(review, "apiVersion"), _text(review, "kind")
    group, _, found_version = api_version.rpartition("/")
    if (kind or KIND) != KIND or (group or GROUP) != GROUP or (found_version or version) not in REVIEW_VERSIONS:
        where = f'version "{api_version or f"{GROUP}/{version}"}" in scheme "pkg/runtime/scheme.go:111"'
        raise CallFailed(f'no kind "{kind or KIND}" is registered for {where}')
    if found_version and found_version != version:
        into = f"converting ({found_version}.{KIND}) to ({version}.{KIND})"
        raise CallFailed(f"{into}: unknown conversion")
    response = _of(review, "response", dict, f"{KIND}.response", f"{version}.ConversionResponse")
    place = "ConversionResponse.response"
    objects: list[Any] = []
    found_uid, result = "", dict[str, Any]()
    if response is not None:
        found_uid = _of(response, "uid", str, f"{place}.uid", "types.UID") or ""
        objects = _of(response, "convertedObjects", list, f"{place}.convertedObjects", "[]runtime.RawExtension") or []
        result = _of(response, "result", dict, f"{place}.result", "v1.Status") or {}
    status = _of(result, "status", str, "Status.response.result.status", "string") or ""
    message = _of(result, "message", str, "Status.response.result.message", "string") or ""
    if version == "v1" and (api_version, kind) != (f"{GROUP}/v1", KIND):
        told = f"{group}/{found_version}, Kind={kind}"
        raise CallFailed(f"expected webhook response of {GROUP}/v1, Kind={KIND}, got {told}")
    if response is None:
        raise CallFailed("no response provided")
    if version == "v1" and found_uid != uid:
        raise CallFailed(f'expected response.uid="{uid}", got {json.dumps(found_uid, ensure_ascii=False)}')
    if status != "Success":
        raise CallFailed(message or f"response.result.status was '{status}', not 'Success'")
    return objects


def _of(data: Mapping[str, Any], key: str, kind: type[T], field: str, told: str) -> T | None:
    """A value, as Go reads it into a field of that type. Raises CallFailed."""
    value = data.get(key)
    if value is None or isinstance(value, kind):
        return value
    raise CallFailed(f"json: cannot unmarshal {_json_kind(value)} into Go struct field {field} of type {told}")


def _json_kind(value: Json) -> str:
    kinds = ((bool, "bool"), (int | float, "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "object")


def _checked(obj: Manifest, answer: Json, wanted: str, who: str) -> Manifest:
    """What is taken of an answer (``validateConvertedObject``, ``restoreObjectMeta``). Raises ApiError."""
    if answer is None:
        raise ApiError("unexpected end of JSON input")
    if not isinstance(answer, dict):
        raise ApiError(f"json: cannot unmarshal {_json_kind(answer)} into Go value of type map[string]interface {{}}")
    if not answer.get("kind"):
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        raise ApiError(f"Object 'Kind' is missing in '{text}'")
    wrong = f"{who} returned invalid object"
    found, kind = _text(answer, "apiVersion"), _text(answer, "kind")
    if found != wanted:
        raise ApiError(f"{wrong} at index 0: invalid groupVersion (expected {wanted}, received {found})")
    if kind != obj["kind"]:
        raise ApiError(f"{wrong} at index 0: invalid kind (expected {obj['kind']}, received {kind})")
    metadata, own = answer.get("metadata"), obj.get("metadata") or {}
    said = metadata if isinstance(metadata, dict) else {}
    for key, name in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        before, after = _text(own, key), _text(said, key)
        if before != after:
            raise ApiError(f"{wrong}: must have the same {name}: {before} != {after}")
    wrong = f"{who} returned invalid metadata"
    if "metadata" not in answer:
        raise ApiError(f"{wrong}: missing metadata in converted object")
    if not isinstance(metadata, dict):
        raise ApiError(f"{wrong}: invalid metadata of type {go_texts.type_of(metadata)} in converted object")
    kept = copy.deepcopy(own)
    for key in ("labels", "annotations"):
        values = metadata.get(key)
        if values is None:
            kept.pop(key, None)
            continue
        _check_texts(values, key, kept.get(key) or {}, wrong)
        kept[key] = values
    try:
        data = json.dumps(answer).encode()
        sizes.check_json(data)
        if len(data) > LARGEST_BYTES:
            raise ValueError(f"limit is {LARGEST_BYTES} bytes")
    except (RequestEntityTooLarge, RecursionError, ValueError) as error:
        raise ApiError(f"{who} returned too large an object: {error}") from None
    return {**answer, "metadata": kept}


def _check_texts(values: Json, key: str, before: Mapping[str, str], wrong: str) -> None:
    """Labels or annotations that a webhook has made."""
    if not isinstance(values, dict):
        raise ApiError(f"{wrong}: invalid metadata.{key} of type {go_texts.type_of(values)} in converted object")
    for name, value in values.items():
        if not isinstance(value, str):
            kind = go_texts.type_of(value)
            raise ApiError(f"{wrong}: metadata.{key}[{name}] must be a string, but is {kind} in converted object")
    if values == before:
        return
    causes: list[Cause] = []
    if key == "labels":
        check_labels(values, "metadata.labels", causes)
    else:
        check_annotations(values, "metadata.annotation", causes)
    if causes:
        raise ApiError(f"{wrong}: {problems.aggregate(causes)}")


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


# For code that cannot wait --------------------------------------------------------------------------------------------


class Needed(Exception):
    """Code that cannot wait needs an object in another version: it is begun again when there is one."""

    def __init__(self, obj: Manifest, wanted: str, key: str) -> None:
        super().__init__(wanted)
        self.obj = obj
        self.wanted = wanted
        self.key = key


_FOUND: ContextVar[dict[str, Manifest | ApiError] | None] = ContextVar("converted", default=None)


def lookup(obj: Manifest, wanted: str) -> Manifest:
    """An object in another version, inside of :func:`supplied`. Raises Needed, and ApiError where it cannot be had."""
    found = _FOUND.get()
    if found is None:
        raise ApiError("nothing converts objects here")
    key = f"{wanted} {json.dumps(obj, sort_keys=True)}"
    answer = found.get(key)
    if answer is None:
        raise Needed(obj, wanted, key)
    if isinstance(answer, ApiError):
        raise answer
    return copy.deepcopy(answer)


async def supplied(converter: Converter, function: Callable[..., T], *arguments: object) -> T:
    """What ``function`` returns, which calls :func:`lookup`, once it has all that it needs. It may be called often."""
    found: dict[str, Manifest | ApiError] = {}
    token = _FOUND.set(found)
    try:
        while True:
            try:
                return function(*arguments)
            except Needed as needed:
                try:
                    found[needed.key] = await converter.convert(needed.obj, needed.wanted)
                except ApiError as error:
                    found[needed.key] = error
    finally:
        _FOUND.reset(token)

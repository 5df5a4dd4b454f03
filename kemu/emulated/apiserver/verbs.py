"""One request: found by its verb, carried out, and noted in the run log. The same for unary calls and for Session."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar, cast

from google.protobuf.message import DecodeError

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import connections, dry_runs, errors, request_warnings
from kemu.emulated.apiserver.admission import Chain
from kemu.emulated.apiserver.admission.external.attributes import ASKING, Asking
from kemu.emulated.apiserver.admission.external.subresources import Subresources
from kemu.emulated.apiserver.admission.identities import certificates
from kemu.emulated.apiserver.authorization import attributes, escalations, requesters
from kemu.emulated.apiserver.authorization.authorizers import Authorizer
from kemu.emulated.apiserver.custom import scales as custom_scales
from kemu.emulated.apiserver.registry import applies, bodies, deletions, entries, options, scales, strategies
from kemu.emulated.apiserver.registry.bindings import Binder, Outcome, refused_as_a_whole
from kemu.emulated.apiserver.registry.evictions import Evictor
from kemu.emulated.apiserver.registry.patching import patches
from kemu.emulated.apiserver.registry.reads import Reader
from kemu.emulated.apiserver.registry.registry import Registry
from kemu.emulated.apiserver.storage import NOT_WRITTEN, Entry
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert, go_structs
from kemu.emulated.objects.wire import shared_objects
from kemu.messages.k8s import autoscaling_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import ApiRequest, RequestRefused

Answer = bytes | api_pb2.ObjectResponse | api_pb2.ListResponse | api_pb2.CommitResponse
"""An object as clients get it, perhaps with more about it, a list, or what came of several bindings."""

PODS = resources.BY_PLURAL["pods"]

_READS = ("get", "list")

GATEWAY = "gateway"
"""The name of the actor that brings requests of clients outside."""

MAX_BODY_BYTES = 3 * 1024 * 1024
"""Most body bytes of an object or a patch that a client sends, as in kube-apiserver (``MaxRequestBodyBytes``), and of
all other fields of a request. etcd's own limit, half as large, applies to what is written."""

_Give = api_pb2.CreateRequest | api_pb2.UpdateRequest | api_pb2.UpdateStatusRequest | api_pb2.PatchRequest
"""With these, roles and bindings give rights away."""
_BY_USER = escalations.KINDS | {certificates.KIND, "resourceclaims"}
"""Kinds whose writes depend on more of the user than that it may write."""

_LONGEST_LOGGED = 20_000
"""Characters of a refused request that the run log keeps of each field: names in Kubernetes have at most 253."""


class Requests:
    """Carries out requests for their senders."""

    def __init__(
        self,
        env: Env,
        authorizer: Authorizer,
        admission: Chain,
        registry: Registry,
        reader: Reader,
        binder: Binder,
        evictor: Evictor,
        *,
        tracks_all: bool = False,
    ) -> None:
        """``tracks_all``: managed fields are kept for everything that is created."""
        self._env = env
        self._tracks_all = tracks_all
        self.authorizer = authorizer
        self._admission = admission
        self._registry = registry
        self._reader = reader
        self._binder = binder
        self._evictor = evictor
        self._scaler = scales.Scaler(registry, admission)
        self._subresources = Subresources(admission)
        self._verbs: dict[str, Callable[[Any, str, int], Coroutine[Any, Any, Answer | tuple[Entry, bool]]]] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "update_status": self._update_status,
            "patch": self._patch,
            "delete": self._delete,
            "delete_collection": self._delete_collection,
            "bind": self._bind,
            "evict": self._evict,
            "commit": self._commit,
        }

    async def answer(self, verb: str | None, request: attributes.Request | None, by: str) -> Answer:
        """``verb`` as in ``Call.request``. Raises :class:`kemu.errors.ApiError`."""
        start_ns = self._env.clock.now_ns()
        connections.REQUEST.set((verb, start_ns))
        try:
            if verb is None or request is None:
                raise kemu_errors.BadRequest("the call holds no request that this server knows")
            if request.ByteSize() > MAX_BODY_BYTES:
                body_bytes = _body_bytes(request)
                if body_bytes > MAX_BODY_BYTES or request.ByteSize() - body_bytes > MAX_BODY_BYTES:
                    raise errors.entity_too_large(MAX_BODY_BYTES)
            requester = self.authorizer.check(by, verb, request)
            external = self._admission.external
            if external is not None and any(external.sources) and verb not in _READS:
                return await self._answer_asking(verb, request, by, start_ns, requester)
            if isinstance(request, _Give) and request.resource.resource in _BY_USER:
                return await self._give(verb, request, by, start_ns)
            try:
                if requester is None:
                    answer = await self._verbs[verb](request, by, start_ns)
                else:
                    was = requesters.NODE.set(requester)
                    try:
                        answer = await self._verbs[verb](request, by, start_ns)
                    finally:
                        requesters.NODE.reset(was)
                if not isinstance(answer, tuple):
                    return answer
                entry, gone = answer  # _written, inlined
                return api_pb2.ObjectResponse(object=entry.wire, gone=True) if gone else entry.wire
            except (DecodeError, UnicodeDecodeError) as error:
                # Another client has written to the store.
                raise kemu_errors.InternalError(f"unable to decode an object in the store: {error}") from None
        except kemu_errors.ApiError as error:
            if not (verb == "list" and isinstance(error, kemu_errors.Gone)):
                self.log_refusal(verb or "", request, by, start_ns, error)
            raise
        except Exception as error:
            if by != GATEWAY and not by.startswith(f"{GATEWAY} "):
                raise
            # A mistake in the code ends a run, but not a cluster that clients outside use (``WithPanicRecovery``).
            found = kemu_errors.InternalError(f"This request caused apiserver to panic: {error!r}")
            self.log_refusal(verb or "", request, by, start_ns, found)
            raise found from error

    async def admit(self, by: str, request: api_pb2.AdmitRequest) -> api_pb2.AdmitResponse:
        """Ask admission about what stores nothing. Raises :class:`kemu.errors.ApiError`."""
        external, restriction = self._admission.external, self._admission.node_restriction
        user = self.authorizer.user(by)
        is_restricted = restriction is not None and user.node and request.subresource == "token"
        response = api_pb2.AdmitResponse()
        if not is_restricted and (external is None or not any(external.sources)):
            return response
        plain, _ = bodies.parse(request.object, bodies.JSON, "must be an object")
        if not all(isinstance(plain.get(key), str) for key in ("apiVersion", "kind")):
            raise kemu_errors.BadRequest("the object provided has no apiVersion and kind")
        if is_restricted and restriction is not None and not request.validates:
            where = request.namespace, request.name
            asked_for = _token_spec(plain)
            restriction.give_token(user.name, asked_for, *where, lambda asked: self.authorizer.allows(by, asked)[0])
        if external is None or not any(external.sources):
            return response
        obj, _ = convert.partial_json(CustomObject, plain)
        subject = plain["apiVersion"], plain["kind"]
        row = resources.BY_PLURAL.get(request.resource) or resources.Resource(
            request.resource, subject[1], request.api_version, CustomObject, bool(request.namespace), (), False
        )
        asking = Asking(by, request.operation.lower(), request)
        about = request.operation, row, request.subresource, request.namespace, request.name
        asked = external.attributes(asking, *about, obj, None, subject, plain)
        try:
            if request.validates:
                await external.validate(asked)
            else:
                await external.mutate(asked)
        except kemu_errors.ApiError as error:
            error.warnings = [*error.warnings, *asking.warnings]
            raise
        if asked.plain is not plain:
            response.object = json.dumps(asked.plain, ensure_ascii=False).encode()
        response.warnings.extend(asking.warnings)
        return response

    async def _answer_asking(
        self, verb: str, request: attributes.Request, by: str, start_ns: int, requester: requesters.Requester | None
    ) -> Answer:
        """A write about which webhooks, hooks or policies may have a say."""
        asking = Asking(by, verb, request)
        was, node = ASKING.set(asking), requesters.NODE.set(requester)
        try:
            if isinstance(request, _Give) and request.resource.resource in _BY_USER:
                answer: Answer | tuple[Entry, bool] = await self._give(verb, request, by, start_ns)
            else:
                answer = await self._verbs[verb](request, by, start_ns)
        except kemu_errors.ApiError as error:
            error.warnings = [*error.warnings, *asking.warnings]
            raise
        finally:
            requesters.NODE.reset(node)
            ASKING.reset(was)
        found = _written(*answer) if isinstance(answer, tuple) else answer
        if asking.warnings:
            if isinstance(found, bytes):
                found = api_pb2.ObjectResponse(object=found)
            if isinstance(found, api_pb2.ObjectResponse):
                found.warnings.extend(asking.warnings)
        return found

    async def _give(
        self,
        verb: str,
        request: _Give,
        by: str,
        start_ns: int,
    ) -> Answer:
        """A write of a role or a binding, of a request for a certificate, or of a claim for devices."""
        authorizer = self.authorizer
        was = escalations.CHECK.set(escalations.check_of(authorizer, by))
        asking = requesters.Asking(
            requesters.known(authorizer.user(by)),
            lambda asked: authorizer.allows(by, asked)[0],
            attributes.VERBS[verb],
        )
        before = requesters.ASKING.set(asking)
        try:
            answer = await self._verbs[verb](request, by, start_ns)
            return _written(*answer) if isinstance(answer, tuple) else answer
        finally:
            requesters.ASKING.reset(before)
            escalations.CHECK.reset(was)

    def log_refusal(
        self, verb: str, request: attributes.Request | None, by: str, start_ns: int, error: kemu_errors.ApiError
    ) -> None:
        """``request``: any request or watch of the service."""
        resource, namespace, name, uid = _target(request)
        self._env.log(
            RequestRefused(
                verb=verb,
                resource=resource[:_LONGEST_LOGGED],
                namespace=namespace[:_LONGEST_LOGGED],
                name=name[:_LONGEST_LOGGED],
                uid=uid[:_LONGEST_LOGGED],
                by=_asking(request, by),
                start=start_ns,
                reason=error.reason,
                message=error.message[:_LONGEST_LOGGED],
            ),
        )

    async def _get(self, request: api_pb2.GetRequest, by: str, start_ns: int) -> bytes:
        if request.subresource:
            return await self._get_part(request)
        return await self._reader.get(request)

    async def _list(self, request: api_pb2.ListRequest, by: str, start_ns: int) -> api_pb2.ListResponse:
        return await self._reader.list(request)

    async def _create(self, request: api_pb2.CreateRequest, by: str, start_ns: int) -> Answer:
        if request.content_type or request.HasField("options"):
            return await self._create_with_options(request, by, start_ns)
        where = request.resource
        writer = applies.actor(by, self._tracks_all)
        strategy = strategies.STRATEGIES.get(where.resource) or self._registry.strategy_of(where)
        sent = entries.decode(strategy.resource, request.object)
        entry, obj = await self._registry.create_of(strategy, where.namespace, sent, writer)
        if where.resource == "pods":
            self._log_pod("create", obj.metadata, by, start_ns, entry.revision)
        return entry.wire

    async def _create_with_options(self, request: api_pb2.CreateRequest, by: str, start_ns: int) -> Answer:
        where, asked = request.resource, request.options
        options.check_write("CreateOptions", asked)
        strategy = self._registry.strategy_of(where)
        body = _body(strategy.resource, request.object, request.content_type, asked.field_validation)
        sent, warnings, empties = body
        with request_warnings.Gathering(warnings), dry_runs.Pretending(bool(asked.dry_run)):
            writer = applies.writer(asked, by, self._tracks_all, empties)
            creating = self._registry.create_of(strategy, where.namespace, sent, writer)
            entry, obj = await (_stating(empties, creating) if empties else creating)
        if asked.dry_run:
            return api_pb2.ObjectResponse(object=entry.value, warnings=warnings)
        if where.resource == "pods":
            self._log_pod("create", obj.metadata, by, start_ns, entry.revision)
        return api_pb2.ObjectResponse(object=entry.wire, warnings=warnings)

    async def _get_part(self, request: api_pb2.GetRequest) -> bytes:
        """A subresource: the object itself, but for Scale."""
        strategy = self._registry.strategy_of(request.resource)
        resource = strategy.resource
        if request.subresource == scales.SCALE and strategy.custom is not None and strategy.custom.has_scale:
            return custom_scales.get(strategy.custom, await self._reader.get(request))
        if request.subresource != scales.SCALE or resource.plural not in scales.PLURALS:
            strategies.check_subresource(strategy, request.subresource)
            return await self._reader.get(request)
        obj: Any = resource.message.FromString(await self._reader.get(request))
        return bytes(scales.of(obj, obj.metadata.resourceVersion).SerializeToString(deterministic=True))

    async def _update(self, request: api_pb2.UpdateRequest, by: str, start_ns: int) -> Answer:
        where = request.resource
        if request.content_type or request.HasField("options") or request.subresource == scales.SCALE:
            return await self._update_with_options(request, by)
        writer = applies.actor(by, self._tracks_all)
        return _written(
            *await self._registry.update(
                where.resource, where.namespace, self._sent(where, request.object), request.subresource, writer,
                where.version,
            )
        )  # fmt: skip

    async def _update_with_options(self, request: api_pb2.UpdateRequest, by: str) -> Answer:
        where, asked = request.resource, request.options
        options.check_write("UpdateOptions", asked)
        is_scale = request.subresource == scales.SCALE
        resource = scales.RESOURCE if is_scale else self._registry.strategy_of(where).resource
        sent, warnings, empties = _body(resource, request.object, request.content_type, asked.field_validation)
        writer = applies.writer(asked, by, self._tracks_all, empties)
        with request_warnings.Gathering(warnings), dry_runs.Pretending(bool(asked.dry_run)):
            if is_scale:
                wanted = cast(autoscaling_v1_pb2.Scale, sent)
                entries.check_address(wanted.metadata, where.namespace, request.name)
                wire = await self._scaler.scale(where, wanted.metadata.name, lambda scale: wanted, writer)
                return api_pb2.ObjectResponse(object=wire, warnings=warnings)
            putting = self._registry.put(
                where.resource, where.namespace, sent, request.subresource, writer, request.name, where.version
            )
            entry, gone, created = await (_stating(empties, putting) if empties else putting)
        wire = entry.value if entry.revision == NOT_WRITTEN else entry.wire
        return api_pb2.ObjectResponse(object=wire, gone=gone, created=created, warnings=warnings)

    async def _update_status(self, request: api_pb2.UpdateStatusRequest, by: str, start_ns: int) -> Answer:
        where = request.resource
        writer = applies.actor(by, self._tracks_all)
        sent = self._sent(where, request.object)
        return _written(
            *await self._registry.update(where.resource, where.namespace, sent, "status", writer, where.version)
        )

    def _patch(
        self, request: api_pb2.PatchRequest, by: str, start_ns: int
    ) -> Coroutine[Any, Any, Answer | tuple[Entry, bool]]:
        if request.HasField("options") or request.subresource == scales.SCALE or request.type == patches.APPLY:
            return self._patch_with_options(request, by)
        return self._registry.patch(request, None, applies.actor(by, self._tracks_all))

    async def _patch_with_options(self, request: api_pb2.PatchRequest, by: str) -> Answer:
        asked, where, warnings = request.options, request.resource, list[str]()
        options.check_patch(request)
        writer = applies.writer(asked, by, self._tracks_all)
        with request_warnings.Gathering(warnings), dry_runs.Pretending(bool(asked.dry_run)):
            if request.subresource == scales.SCALE:
                change: Callable[[Any], Any]
                if request.type == patches.APPLY:
                    applied = applies.Apply(scales.RESOURCE, request, self._registry.unix_now_ns())
                    warnings += applied.warnings
                    change, writer = applied.apply, applies.APPLIED
                else:
                    patch = patches.Json(request, warnings)

                    def change(scale: autoscaling_v1_pb2.Scale) -> autoscaling_v1_pb2.Scale:
                        patch.apply(scales.RESOURCE, scale)
                        return scale

                wire = await self._scaler.scale(where, request.name, change, writer)
                return api_pb2.ObjectResponse(object=wire, warnings=warnings)
            if request.type == patches.APPLY:
                entry, gone, created = await self._registry.apply(request, warnings)
                wire = entry.value if entry.revision == NOT_WRITTEN else entry.wire
                return api_pb2.ObjectResponse(object=wire, gone=gone, created=created, warnings=warnings)
            entry, gone = await self._registry.patch(request, warnings, writer)
        return api_pb2.ObjectResponse(object=entry.wire, gone=gone, warnings=warnings)

    async def _delete(self, request: api_pb2.DeleteRequest, by: str, start_ns: int) -> Answer:
        with dry_runs.Pretending(bool(request.dry_run)):
            entry, gone = await self._registry.delete(request)
        if request.resource.resource == "pods" and not request.dry_run:
            self._log_pod("delete", _metadata(entry), by, start_ns, entry.revision)
        warnings = deletions.warnings(request)
        if not gone and not warnings:
            return entry.wire
        return api_pb2.ObjectResponse(object=entry.wire, gone=gone, warnings=warnings)

    async def _delete_collection(
        self, request: api_pb2.DeleteCollectionRequest, by: str, start_ns: int
    ) -> api_pb2.ListResponse:
        """One delete after the other, each for itself (``Store.DeleteCollection``): a refusal ends it."""
        which = request.list
        resource = self._registry.strategy_of(which.resource).resource
        deletions.refuse_collections(resource)
        found = await self._reader.list(which)
        one = api_pb2.DeleteRequest()
        one.CopyFrom(request.delete)
        one.resource.resource, one.resource.version = resource.plural, which.resource.version
        for wire in found.items:
            metadata = resource.message.FromString(wire).metadata  # type: ignore[attr-defined]
            one.resource.namespace, one.name = metadata.namespace, metadata.name
            try:
                await self._delete(one, by, start_ns)
            except kemu_errors.NotFound:
                continue  # another client was faster
        return found

    async def _bind(self, request: api_pb2.BindRequest, by: str, start_ns: int) -> bytes:
        if self._admission.bind is not None:
            request = self._admission.bind(request)
        asking = self._admission.asks()
        if asking is not None:
            request = await self._subresources.bind(asking, request)
        entry, _ = await self._binder.bind(request)
        self._log_pod("bind", _metadata(entry), _asking(request, by), start_ns, entry.revision)
        return entry.wire

    async def _commit(self, request: api_pb2.CommitRequest, by: str, start_ns: int) -> api_pb2.CommitResponse:
        """The run log has one entry for each binding, as if they had come one by one."""
        if self._admission.bind is not None:
            bindings = map(self._admission.bind, request.bindings)
            request = api_pb2.CommitRequest(all_or_nothing=request.all_or_nothing, bindings=bindings)
        asking = self._admission.asks()
        outcome = await self._binder.commit(request) if asking is None else await self._commit_asking(asking, request)
        response = api_pb2.CommitResponse()
        if outcome.refused_by is not None:
            response.refused_by = outcome.refused_by
        for binding, result in zip(request.bindings, outcome.results, strict=True):
            if isinstance(result, kemu_errors.ApiError):
                self.log_refusal("bind", binding, by, start_ns, result)
                response.results.add().error = errors.encode(result)
            else:
                self._log_pod("bind", _metadata(result), by, start_ns, result.revision)
                response.results.add().object = result.wire
        return response

    async def _commit_asking(self, asking: Asking, request: api_pb2.CommitRequest) -> Outcome:
        """Others are asked about each binding, before any is judged."""
        allowed = api_pb2.CommitRequest(all_or_nothing=request.all_or_nothing)
        refused: dict[int, kemu_errors.ApiError] = {}
        for index, binding in enumerate(request.bindings):
            try:
                allowed.bindings.append(await self._subresources.bind(asking, binding))
            except kemu_errors.ApiError as error:
                if request.all_or_nothing:
                    return refused_as_a_whole(request, error, index)
                refused[index] = error
        outcome = await self._binder.commit(allowed)
        results = iter(outcome.results)
        merged = [refused[index] if index in refused else next(results) for index in range(len(request.bindings))]
        return Outcome(merged, outcome.refused_by)

    async def _evict(self, request: api_pb2.EvictRequest, by: str, start_ns: int) -> bytes:
        self._admission.evict(request.name, request.namespace)
        is_dry = options.check_dry_run("DeleteOptions", request.dry_run)
        with dry_runs.Pretending(is_dry):
            asking = self._admission.asks()
            if asking is not None:
                request = await self._subresources.evict(asking, request)
            entry, _ = await self._evictor.evict(request)
        if not is_dry:
            self._log_pod("evict", _metadata(entry), by, start_ns, entry.revision)
        return entry.wire

    def _sent(self, where: api_pb2.Resource, data: bytes) -> KubernetesObject:
        strategy = strategies.STRATEGIES.get(where.resource) or self._registry.strategy_of(where)
        return entries.decode(strategy.resource, data)

    def _log_pod(self, verb: str, metadata: meta_v1_pb2.ObjectMeta, by: str, start_ns: int, revision: int) -> None:
        self._env.log(
            ApiRequest(
                verb=verb,
                resource="pods",
                namespace=metadata.namespace,
                name=metadata.name,
                uid=metadata.uid,
                by=by,
                start=start_ns,
                rev=revision,
            ),
        )


def _asking(request: attributes.Request | None, by: str) -> str:
    """Who asks for a binding: ``gateway/kube-scheduler`` where the caller says for whom it speaks."""
    client = getattr(request, "client", "")
    return f"{by}/{client}" if client else by


_Result = TypeVar("_Result")


async def _stating(empties: Iterable[go_structs.Path], write: Awaitable[_Result]) -> _Result:
    with go_structs.stating(empties):
        return await write


def _body(resource: resources.Resource, data: bytes, content_type: str, level: str) -> bodies.Body:
    if content_type:
        return bodies.read(resource, data, content_type, level)
    return entries.decode(resource, data), [], ()


def _written(entry: Entry, gone: bool) -> Answer:
    return api_pb2.ObjectResponse(object=entry.wire, gone=True) if gone else entry.wire


def _body_bytes(request: attributes.Request) -> int:
    if isinstance(request, api_pb2.PatchRequest):
        return len(request.patch) + len(request.removed)
    return len(request.object) if isinstance(request, attributes.WithObject) else 0


def _metadata(entry: Entry) -> meta_v1_pb2.ObjectMeta:
    return shared_objects.OBJECTS.parse(PODS.message, entry.revision, entry.wire).metadata


def _target(request: attributes.Request | None) -> tuple[str, str, str, str]:
    """Resource, namespace, name and UID that a request speaks of, as far as it says."""
    if request is None:
        return "", "", "", ""
    if isinstance(request, api_pb2.BindRequest):
        return "pods", request.namespace, request.name, request.uid
    if isinstance(request, api_pb2.CommitRequest):
        return "pods", "", "", ""
    if isinstance(request, api_pb2.EvictRequest):
        return "pods", request.namespace, request.name, request.preconditions.uid
    if isinstance(request, api_pb2.DeleteCollectionRequest):
        return request.list.resource.resource, request.list.resource.namespace, "", ""
    where = request.resource
    if isinstance(request, attributes.WithObject):
        resource = resources.BY_PLURAL.get(where.resource)
        try:
            obj: Any = resource.message.FromString(request.object) if resource is not None else None
        except DecodeError:
            obj = None
        if obj is not None:
            metadata = obj.metadata
            return where.resource, where.namespace or metadata.namespace, metadata.name, metadata.uid
        return where.resource, where.namespace, "", ""
    uid = request.preconditions.uid if isinstance(request, (api_pb2.PatchRequest, api_pb2.DeleteRequest)) else ""
    return where.resource, where.namespace, getattr(request, "name", ""), uid


def _token_spec(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a TokenRequest, as far as it is read. Raises BadRequest."""
    spec = plain.get("spec")
    reference = (spec.get("boundObjectRef") or {}) if isinstance(spec, Mapping) else None
    if isinstance(spec, Mapping) and isinstance(reference, Mapping):
        audiences = spec.get("audiences") or []
        if isinstance(audiences, list) and all(isinstance(one, str) for one in (*reference.values(), *audiences)):
            return spec
    raise kemu_errors.BadRequest("the spec of the TokenRequest cannot be read")

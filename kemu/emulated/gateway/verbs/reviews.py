"""What is posted to be answered, not stored: who one is, what a user may do, and tokens of service accounts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

from kemu.emulated.apiserver.registry import bodies as registry_bodies
from kemu.emulated.apiserver.registry import options
from kemu.emulated.gateway.answers import representations, responses
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.authentication import service_accounts
from kemu.emulated.gateway.backends import Refused
from kemu.emulated.gateway.requests import bodies, negotiation
from kemu.emulated.gateway.verbs import admissions, calls
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.gateway.verbs.subresources import Handler, bind
from kemu.emulated.objects import identities, names, resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation import causes
from kemu.errors import BadRequest, Cause, Conflict, Forbidden, NotAcceptable, Unauthorized
from kemu.messages.k8s import authentication_v1_pb2, authorization_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2

AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io/v1", "authentication.k8s.io/v1"


# What a user may do ------------------------------------------------------------------------------------------------


async def _access_of_self(call: Call) -> Response:
    review, admission = await _read(call)
    _refuse(call, [*_of_attributes(review.spec), *_of_metadata(review, "must be empty")], "", admission.warnings)
    await _decide(call, review, admission, api_pb2.ReviewRequest())
    return _answer(call, review, admission)


async def _access(call: Call) -> Response:
    """A review for any user; what is local to a namespace speaks of that one."""
    review, admission = await _read(call)
    spec = review.spec
    exclusive, selectors = _of_attributes(spec), _of_selectors(spec)
    problems = [one for one in exclusive if one not in selectors]
    if not spec.user and not spec.groups:
        problems.append(causes.invalid("spec.user", "", "at least one of user or group must be specified"))
    problems += selectors
    if not call.row.namespaced:
        problems += _of_metadata(review, "must be empty")
    else:
        problems += _of_metadata(review, "must be empty except for namespace")
        stated = spec.resourceAttributes.namespace
        if spec.HasField("resourceAttributes") and stated != review.metadata.namespace:
            problems.append(
                causes.invalid("spec.resourceAttributes.namespace", stated, "must match metadata.namespace")
            )
        if spec.HasField("nonResourceAttributes"):
            text = "disallowed on this kind of request"
            problems.append(causes.invalid("spec.nonResourceAttributes", _path_in_go(spec), text))
    _refuse(call, problems, "", admission.warnings)
    await _decide(call, review, admission, api_pb2.ReviewRequest(user=spec.user, groups=spec.groups))
    return _answer(call, review, admission)


_Spec = authorization_v1_pb2.SelfSubjectAccessReviewSpec | authorization_v1_pb2.SubjectAccessReviewSpec


def _of_attributes(spec: _Spec) -> list[Cause]:
    """What is wrong with what is asked (``ValidateSelfSubjectAccessReviewSpec``)."""
    found: list[Cause] = []
    if spec.HasField("resourceAttributes") and spec.HasField("nonResourceAttributes"):
        text = "cannot be specified in combination with resourceAttributes"
        found.append(causes.invalid("spec.nonResourceAttributes", _path_in_go(spec), text))
    elif not spec.HasField("resourceAttributes") and not spec.HasField("nonResourceAttributes"):
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        found.append(causes.invalid("spec.resourceAttributes", None, text))
    return [*found, *_of_selectors(spec)]


def _path_in_go(spec: _Spec) -> dict[str, str]:
    """As Go prints its struct."""
    return {"Path": spec.nonResourceAttributes.path, "Verb": spec.nonResourceAttributes.verb}


_Requirement = meta_v1_pb2.FieldSelectorRequirement | meta_v1_pb2.LabelSelectorRequirement


def _of_selectors(spec: _Spec) -> list[Cause]:
    found: list[Cause] = []
    for name, kind in (("fieldSelector", "field"), ("labelSelector", "label")):
        if not spec.resourceAttributes.HasField(name):  # type: ignore[arg-type]
            continue
        place, selector = f"spec.resourceAttributes.{name}", getattr(spec.resourceAttributes, name)
        if selector.rawSelector and selector.requirements:
            text = "may not specified at the same time as requirements"
            found.append(causes.invalid(f"{place}.rawSelector", selector.rawSelector, text))
        if not selector.rawSelector and not selector.requirements:
            text = f"when {place} is specified, requirements or rawSelector is required"
            found.append(causes.required(f"{place}.requirements", text))
        for index, one in enumerate(selector.requirements):
            found += _of_requirement(f"{place}.requirements[{index}]", one, is_label=kind == "label")
    return found


def _of_requirement(place: str, requirement: _Requirement, *, is_label: bool) -> list[Cause]:
    """``ValidateLabelSelectorRequirement`` and ``ValidateFieldSelectorRequirement``; operators may be newer."""
    found: list[Cause] = []
    if not is_label and not requirement.key:
        found.append(causes.required(f"{place}.key", "must be specified"))
    if requirement.operator in ("In", "NotIn") and not requirement.values:
        text = "must be specified when `operator` is 'In' or 'NotIn'"
        found.append(causes.required(f"{place}.values", text))
    if requirement.operator in ("Exists", "DoesNotExist") and requirement.values:
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        found.append(causes.forbidden(f"{place}.values", text))
    if is_label:
        found += [causes.invalid(f"{place}.key", requirement.key, why) for why in names.label_key(requirement.key)]
    return found


def _of_metadata(review: KubernetesObject, text: str) -> list[Cause]:
    metadata = meta_v1_pb2.ObjectMeta()
    metadata.CopyFrom(review.metadata)
    metadata.ClearField("managedFields")
    if "namespace" in text:
        metadata.ClearField("namespace")
    if not metadata.ByteSize():
        return []
    shown = json.dumps(convert.to_json(review.metadata), ensure_ascii=False, separators=(",", ":"))
    return [Cause("metadata", causes.INVALID, f"Invalid value: {shown}: {text}")]


async def _decide(
    call: Call,
    review: authorization_v1_pb2.SelfSubjectAccessReview | authorization_v1_pb2.SubjectAccessReview,
    admission: admissions.Review,
    request: api_pb2.ReviewRequest,
) -> None:
    """Fills in the status."""
    spec = review.spec
    await admission.validate(review)
    if spec.HasField("nonResourceAttributes"):
        stated = spec.nonResourceAttributes
        request.non_resource.verb, request.non_resource.path = stated.verb, stated.path
    else:
        asked, found = request.resource, spec.resourceAttributes
        asked.verb, asked.group, asked.resource = found.verb, found.group, found.resource
        asked.subresource, asked.namespace, asked.name = found.subresource, found.namespace, found.name
    answer = await call.ask("Review", request)
    review.status.allowed = answer.allowed
    if answer.reason:
        review.status.reason = answer.reason


async def _rules_of_self(call: Call) -> Response:
    review, admission = await _read(call)
    if not review.spec.namespace:
        error = BadRequest("no namespace on request")
        error.warnings = admission.warnings
        raise error
    await admission.validate(review)
    found = await call.ask("Rules", api_pb2.RulesRequest(namespace=review.spec.namespace))
    # The answer is an object of its own, which does not repeat what was asked.
    review.Clear()
    review.spec.SetInParent()
    status = review.status
    status.incomplete = found.incomplete
    if found.error:
        status.evaluationError = found.error
    for rule in found.rules:
        if rule.paths:
            status.nonResourceRules.add(verbs=rule.verbs, nonResourceURLs=rule.paths)
        else:
            status.resourceRules.add(
                verbs=rule.verbs, apiGroups=rule.groups, resources=rule.resources, resourceNames=rule.names
            )
    return _answer(call, review, admission)


# Who a user is ----------------------------------------------------------------------------------------------------


async def _self(call: Call) -> Response:
    review, admission = await _read(call)
    await admission.validate(review)
    if call.request.user == identities.ANONYMOUS:
        raise Forbidden("Forbidden")
    review.Clear()
    review.metadata.creationTimestamp.seconds = int(call.now_s())
    info = review.status.userInfo
    _tell(info, call.request.user)
    return _answer(call, review, admission)


async def _token(call: Call) -> Response:
    await call.require("create")
    review, admission = await _read(call)
    if not review.spec.token:
        raise BadRequest("token is required for TokenReview in authentication")
    await admission.validate(review)
    try:
        found = await call.settings.authenticator.identify(review.spec.token, list(review.spec.audiences))
    except Unauthorized as error:
        review.status.user.SetInParent()
        review.status.error = error.message
    else:
        review.status.authenticated = True
        _tell(review.status.user, found.user)
        review.status.audiences.extend(found.audiences)
    return _answer(call, review, admission)


def _tell(info: authentication_v1_pb2.UserInfo, user: identities.User) -> None:
    info.username = user.name
    if user.uid:
        info.uid = user.uid
    info.groups.extend(user.groups)
    for key, values in user.extra:
        info.extra[key].items.extend(values)


async def token_of_account(call: Call) -> Response:
    """``TokenREST.Create`` of ``core/serviceaccount/storage``."""
    await call.require("create", "token")
    tokens = call.settings.accounts
    if tokens is None:
        raise calls.unknown_resource()
    call = call._replace(shown=TOKEN_REQUEST)
    asked, admission = await _read(call)
    path, metadata, spec = call.path, asked.metadata, asked.spec
    for name, stated, wanted in (
        ("name", metadata.name, path.name), ("namespace", metadata.namespace, path.namespace)
    ):  # fmt: skip
        if stated and stated != wanted:
            text = f"must match the service account {name} if specified"
            _refuse(call, [causes.invalid(f"metadata.{name}", stated, text)], path.name)
    request = api_pb2.GetRequest(resource=call.where(), name=path.name)
    found = await call.backend.call("Get", request, identities.ADMINISTRATOR)
    account = core_v1_pb2.ServiceAccount.FromString(found.object)
    uid = account.metadata.uid
    if metadata.uid and metadata.uid != uid:
        text = f"the UID in the token request ({metadata.uid}) does not match the UID of the service account ({uid})"
        what = f'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "{path.name}": {text}'
        raise Conflict(what, kind="TokenRequest", name=path.name)
    seconds = spec.expirationSeconds if spec.HasField("expirationSeconds") else service_accounts.USUAL_S
    problems = []
    if seconds < service_accounts.SHORTEST_S:
        text = "may not specify a duration less than 10 minutes"
        problems.append(causes.invalid("spec.expirationSeconds", seconds, text))
    if seconds > service_accounts.LONGEST_S:
        text = "may not specify a duration larger than 2^32 seconds"
        problems.append(causes.invalid("spec.expirationSeconds", seconds, text))
    _refuse(call, problems)
    await admission.validate(asked)
    bound = await _bound(call, spec.boundObjectRef) if spec.HasField("boundObjectRef") else []
    now_s = int(call.now_s())
    spec.expirationSeconds = seconds
    if not spec.audiences:
        spec.audiences.append(tokens.issuer)
    metadata.name, metadata.namespace, metadata.uid = path.name, path.namespace, uid
    metadata.creationTimestamp.seconds = now_s
    owner = service_accounts.Account(path.namespace, path.name, uid)
    lasts_s, warn_after_s = seconds, 0
    is_of_pod = bool(bound) and bound[0].kind == "Pod"
    if is_of_pod and seconds == service_accounts.PROJECTED_S and set(spec.audiences) <= {tokens.issuer}:
        lasts_s, warn_after_s = service_accounts.EXTENDED_S, seconds
    asked.status.token = tokens.sign(
        owner, now_s=now_s, seconds=lasts_s, audiences=list(spec.audiences), bound=bound, warn_after_s=warn_after_s
    )
    asked.status.expirationTimestamp.seconds = now_s + seconds
    return _answer(call, asked, admission)


_BINDS = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}


async def _bound(call: Call, ref: authentication_v1_pb2.BoundObjectReference) -> list[service_accounts.Bound]:
    """The object that is named, and the node of a pod."""
    group, _, version = ref.apiVersion.rpartition("/")
    plural = _BINDS.get(ref.kind)
    if group or plural is None:
        raise BadRequest(f"cannot bind token to object of type {group}/{version}, Kind={ref.kind}")
    namespace = "" if plural == "nodes" else call.path.namespace
    found = await _object(call, plural, namespace, ref.name)
    if isinstance(found, core_v1_pb2.Pod) and found.spec.serviceAccountName != call.path.name:
        text = f'cannot bind token for serviceaccount "{call.path.name}" to pod running with different serviceaccount'
        raise BadRequest(f"{text} name.")
    uid = found.metadata.uid
    if ref.uid and ref.uid != uid:
        text = (
            f"the UID in the bound object reference ({ref.uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        what = f'Operation cannot be fulfilled on {ref.kind} "{ref.name}": {text}'
        raise Conflict(what, kind=ref.kind, name=ref.name)
    bound = [service_accounts.Bound(ref.kind, ref.name, uid)]
    if isinstance(found, core_v1_pb2.Pod) and found.spec.nodeName:
        node = service_accounts.Bound("Node", found.spec.nodeName)
        with contextlib.suppress(Refused):
            metadata = (await _object(call, "nodes", "", found.spec.nodeName)).metadata
            node = service_accounts.Bound("Node", found.spec.nodeName, metadata.uid)
        bound.append(node)
    return bound


async def _object(call: Call, plural: str, namespace: str, name: str) -> KubernetesObject:
    resource = api_pb2.Resource(resource=plural, namespace=namespace)
    answer = await call.look("Get", api_pb2.GetRequest(resource=resource, name=name))
    return resources.BY_PLURAL[plural].message.FromString(answer.object)


# What all of them do ------------------------------------------------------------------------------------------------


async def _read(call: Call) -> tuple[Any, admissions.Review]:
    """What is posted, as admission from outside wants it, and who judges it later."""
    row, admission = call.shown, admissions.Review(call)
    call.form()
    body = await bodies.read(call.request, call.settings.max_body_bytes, ((row.api_version, row.kind),))
    stated = call.write_options()
    options.check_write("CreateOptions", stated)
    content_type = body.content_type or negotiation.PROTOBUF
    found, warnings, _ = registry_bodies.read(row, body.data, content_type, stated.field_validation)
    admission.warnings += warnings
    _check_namespace(call, found.metadata)
    if call.shown is TOKEN_REQUEST and not found.spec.HasField("expirationSeconds"):
        found.spec.expirationSeconds = service_accounts.USUAL_S
    _manage(call, stated, found)
    return await admission.mutate(found), admission


def _check_namespace(call: Call, metadata: meta_v1_pb2.ObjectMeta) -> None:
    """``EnsureObjectNamespaceMatchesRequestNamespace``."""
    wanted = call.path.namespace
    if metadata.namespace == wanted:
        return
    if not metadata.namespace:
        metadata.namespace = wanted
    elif not wanted:
        metadata.ClearField("namespace")
    else:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def _manage(call: Call, stated: api_pb2.WriteOptions, found: KubernetesObject) -> None:
    """Who has stated it, as for objects that are kept (``FieldManager``)."""
    row = call.shown
    fields = _fields(convert.to_json(found).get("spec") or {})
    del found.metadata.managedFields[:]
    if not fields:
        return
    fields = {"f:spec": fields}
    manager = stated.field_manager or call.request.agent.partition("/")[0]
    entry = found.metadata.managedFields.add(
        manager=manager,
        operation="Update",
        apiVersion=row.api_version,
        fieldsType="FieldsV1",
    )
    if call.path.subresource:
        entry.subresource = call.path.subresource
    entry.time.seconds = int(call.now_s())
    entry.fieldsV1.Raw = json.dumps(fields, separators=(",", ":")).encode()


def _fields(value: dict[str, Any]) -> dict[str, Any]:
    """Fields as managed fields state them; lists of reviews are atomic."""
    found: dict[str, Any] = {}
    for key, one in sorted(value.items()):
        below = _fields(one) if isinstance(one, dict) else {}
        found[f"f:{key}"] = {".": {}, **below} if below else {}
    return found


def _refuse(call: Call, problems: list[Any], name: str = "", warnings: Sequence[str] = ()) -> None:
    """Raises :class:`kemu.errors.Invalid` where there are any."""
    if problems:
        row = call.shown
        # As Kubernetes writes it, reviews of access have no kind.
        kind = "" if row.api_version == AUTHORIZATION else row.kind
        error = causes.error_of_kind(f"{kind}.{row.group}", f"{kind}.{row.group}", name, problems)
        error.warnings = warnings
        raise error


def _answer(call: Call, message: KubernetesObject, admission: admissions.Review) -> Response:
    form, row = call.form(), call.shown
    message.metadata.SetInParent()
    if form.transform == negotiation.PARTIAL_LIST:
        package = row.group.partition(".")[0]
        kind = f"*{package}.{row.kind}"
        raise NotAcceptable(f"you requested PartialObjectMetadataList, but the requested object is not a list ({kind})")
    if form.transform:
        partial = type(message)(metadata=message.metadata)
        found = representations.message(form, f"meta.k8s.io/{form.version}", negotiation.PARTIAL, partial)
        return Response(201, form.media, (found,), responses.warnings(admission.warnings))
    body = (representations.message(form, row.api_version, row.kind, message),)
    return Response(201, form.media, body, responses.warnings(admission.warnings))


def _row(api_version: str, plural: str, message: Any, namespaced: bool = False) -> Resource:
    return Resource(plural, message.DESCRIPTOR.name, api_version, message, namespaced, (), False)


TOKEN_REQUEST = _row(AUTHENTICATION, "tokenrequests", authentication_v1_pb2.TokenRequest, namespaced=True)

_HANDLERS: tuple[tuple[Resource, Handler], ...] = (
    (_row(AUTHORIZATION, "selfsubjectaccessreviews", authorization_v1_pb2.SelfSubjectAccessReview), _access_of_self),
    (_row(AUTHORIZATION, "subjectaccessreviews", authorization_v1_pb2.SubjectAccessReview), _access),
    (_row(AUTHORIZATION, "localsubjectaccessreviews", authorization_v1_pb2.LocalSubjectAccessReview, True), _access),
    (_row(AUTHORIZATION, "selfsubjectrulesreviews", authorization_v1_pb2.SelfSubjectRulesReview), _rules_of_self),
    (_row(AUTHENTICATION, "selfsubjectreviews", authentication_v1_pb2.SelfSubjectReview), _self),
    (_row(AUTHENTICATION, "tokenreviews", authentication_v1_pb2.TokenReview), _token),
    (_row("v1", "bindings", core_v1_pb2.Binding, namespaced=True), bind),
)

ROWS: dict[tuple[str, str], Resource] = {(row.api_version, row.plural): row for row, _ in _HANDLERS}
"""The kinds that are only ever posted, by API version and plural."""
CREATIONS: dict[str, Handler] = {row.plural: handler for row, handler in _HANDLERS}
"""By plural."""

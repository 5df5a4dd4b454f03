"""Patches of an object: merge patch (RFC 7386) and strategic merge patch as JSON, and the latter as messages.

A strategic patch knows which lists are maps by a key (conditions by ``type``, containers by ``name``) or sets
(finalizers); Kubernetes says so in its Go types (``patchMergeKey``, ``patchStrategy``), kemu in :data:`MERGE_KEYS`.
Lists that are not in the table, taints and tolerations among them, are replaced as a whole, as there. Directives:
``$patch: replace|delete|merge``, ``$deleteFromPrimitiveList/<field>``, ``$setElementOrder/<field>``, ``$retainKeys``.

A patch of messages (:func:`merge_message`, :func:`remove`) knows the same lists. It says what a two-way patch of two
objects says (``strategicpatch.CreateTwoWayMergePatch``) without JSON, for those who write several for every pod.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from kemu.emulated.apiserver.custom.served import Served
from kemu.emulated.apiserver.registry import bodies, options
from kemu.emulated.apiserver.registry.patching import json_patches, strategic_merges
from kemu.emulated.objects import plain, times
from kemu.emulated.objects.conversion import convert, go_syntax, json_operations, sizes
from kemu.emulated.objects.managed_fields import go_decoding, go_texts, schemas, shapes
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation import causes
from kemu.errors import ApiError, BadRequest, Cause, Invalid, UnsupportedMediaType
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1.api_pb2 import PatchRequest

MERGE, STRATEGIC, MESSAGE, JSON, APPLY = 0, 1, 2, 3, 4
"""As ``PatchRequest.Type``."""

SET = ""
"""In :data:`MERGE_KEYS`: a list of scalars, each of which occurs once."""

_CONTAINER = {"ports": "containerPort", "env": "name", "volumeMounts": "mountPath", "volumeDevices": "devicePath"}

MERGE_KEYS: dict[str, dict[str, str]] = {
    "ObjectMeta": {"ownerReferences": "uid", "finalizers": SET},
    "PodSpec": {
        "volumes": "name",
        "initContainers": "name",
        "containers": "name",
        "ephemeralContainers": "name",
        "imagePullSecrets": "name",
        "hostAliases": "ip",
        "topologySpreadConstraints": "topologyKey",
        "schedulingGates": "name",
        "resourceClaims": "name",
    },
    "Container": _CONTAINER,
    "EphemeralContainerCommon": _CONTAINER,
    "PodStatus": {"conditions": "type", "podIPs": "ip", "hostIPs": "ip", "resourceClaimStatuses": "name"},
    "NodeSpec": {"podCIDRs": SET},
    "NodeStatus": {"conditions": "type", "addresses": "type"},
    "NamespaceStatus": {"conditions": "type"},
    "ServiceSpec": {"ports": "port"},
    "ServiceStatus": {"conditions": "type"},
    "ReplicationControllerStatus": {"conditions": "type"},
    "ReplicaSetStatus": {"conditions": "type"},
    "StatefulSetStatus": {"conditions": "type"},
    "DeploymentStatus": {"conditions": "type"},
    "DaemonSetStatus": {"conditions": "type"},
    "JobStatus": {"conditions": "type"},
    "PodDisruptionBudgetStatus": {"conditions": "type"},
}
"""By message and field: the key by which its elements merge."""

UNKNOWN_FORMAT = "the body of the request was in an unknown format - accepted media types include"
CUSTOM_MEDIA = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
"""Patches of custom kinds: no strategic ones."""

_PIECES = ("metadata", "spec", "status")
_decode = json.JSONDecoder(object_pairs_hook=bodies.mapping).decode


def parse(text: bytes) -> dict[str, Any]:
    """Raises :class:`kemu.errors.BadRequest` unless the text is a JSON object."""
    sizes.check_json(text)
    if problem := go_syntax.problem(text):
        raise BadRequest(f"error decoding patch: {problem}")
    try:
        # json.loads, which would make a decoder each time.
        patch = _decode(text.decode(json.detect_encoding(text), "surrogatepass"))
    except ValueError as error:
        raise BadRequest(f"error decoding patch: {error}") from None
    except RecursionError:
        raise BadRequest("error decoding patch: exceeded max depth") from None
    if not isinstance(patch, dict):
        why = f"json: cannot unmarshal {bodies.go_kind(patch)} into Go value of type map[string]interface {{}}"
        raise BadRequest(f"error decoding patch: {why}")
    if text.count(b"{") + text.count(b"[") > bodies.MAX_DEPTH and bodies.depth(patch) > bodies.MAX_DEPTH:
        raise BadRequest("error decoding patch: exceeded max depth")
    return patch


class Json:
    """A patch in JSON, and what becomes of fields that the kind does not have."""

    __slots__ = ("_duplicates", "_kind", "_level", "_patch", "_text", "_warnings", "_wrong")

    def __init__(self, request: PatchRequest, warnings: list[str] | None) -> None:
        """``warnings``: where to. Raises :class:`kemu.errors.BadRequest`."""
        self._kind, self._text = request.type, request.patch
        # A client that states options at all is warned if it says nothing else.
        self._level = request.options.field_validation or (options.WARN if request.HasField("options") else "")
        self._warnings = warnings
        self._duplicates: list[str] = []
        self._patch: Any = None
        self._wrong: BadRequest | None = None
        """Why it is none, which is found when the object is there."""
        try:
            self._parse()
        except BadRequest as error:
            self._wrong = error

    def _parse(self) -> None:
        if self._kind == JSON:
            self._patch = json_patches.parse(self._text)
            self._duplicates = json_patches.problems(self._patch) if self._level else []
        elif self._text.strip() == b"null":
            if self._kind == MERGE:
                raise BadRequest("Invalid JSON Patch")
            self._patch = {}
        else:
            try:
                self._patch = parse(self._text)
            except BadRequest as error:
                if self._kind != STRATEGIC:
                    raise
                raise BadRequest(error.message.removeprefix("error decoding patch: ")) from None
            self._duplicates = bodies.duplicates(self._patch) if self._level else []

    def apply(self, resource: Resource, obj: Message) -> None:
        """As :func:`apply`; fields that stand twice in the patch count among the unknown ones."""
        if self._wrong is not None:
            raise self._wrong
        shown: list[str] | None = [] if self._level == options.STRICT else None
        if isinstance(resource, Served) and self._kind == STRATEGIC:
            raise UnsupportedMediaType(f"{UNKNOWN_FORMAT}: {', '.join(CUSTOM_MEDIA)}")
        problems = [*self._duplicates, *apply(resource, obj, self._patch, self._kind, self._level, shown)]
        if not problems or self._level == options.IGNORE:
            return
        if self._level == options.STRICT:
            raise _refused(shown[0] if shown else "", bodies.strict(problems))
        if self._warnings is not None:
            self._warnings[:] = problems


def apply(
    resource: Resource, obj: Message, patch: Any, kind: int, level: str = "", shown: list[str] | None = None
) -> list[str]:
    """Patch ``obj`` in place, by JSON. ``kind``: :data:`MERGE`, :data:`STRATEGIC` or :data:`JSON`.

    ``level``: what becomes of unknown fields, as in :mod:`kemu.emulated.apiserver.registry.options`; "": they are
    refused with all other mistakes. Returns them where they are not; then ``shown`` gets what a refusal shows of the
    patch. Raises
    :class:`kemu.errors.ApiError`.
    """
    if kind == STRATEGIC and shown is None and isinstance(obj, core_v1_pb2.Pod) and len(patch) == 1:
        status = patch.get("status")
        if isinstance(status, dict) and _set_condition(obj.status, status):
            return []
    if isinstance(resource, Served):
        return _apply_custom(resource, obj, patch, kind, level, shown)
    whole = schemas.find(resource.api_version, resource.kind) or ""
    if kind == JSON:
        data = convert.to_manifest(obj)
        if whole:
            data = cast(dict[str, Any], schemas.as_go_writes(whole, data))
        data = json_operations.apply(data, patch)
        made, unknown = _made(resource, type(obj), data, level, _Places(whole, kind, patch), shown)
        obj.CopyFrom(made)
        shapes.tidy(resource.kind, obj)
        return unknown
    for field, wanted in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if patch.get(field, wanted) != wanted:
            raise BadRequest(f"the {field} of the patch ({patch[field]}) is not that of the object ({wanted})")
    changes = {key: _copied(value) for key, value in patch.items() if key not in ("kind", "apiVersion")}
    descriptor: Any = obj.DESCRIPTOR
    if all(
        key in _PIECES and isinstance(value, dict) and key in descriptor.fields_by_name
        for key, value in changes.items()
    ):
        # Only the pieces that the patch touches go through JSON, unless something is to be told of the whole.
        pieces: list[tuple[Any, Message]] = []
        for key, value in changes.items():
            piece = getattr(obj, key)
            data = convert.to_json(piece)
            try:
                merged = (
                    merge(data, value)
                    if kind == MERGE
                    else strategic_merges.merge(data, value, schemas.field_type(whole, key))
                )
            except ApiError:
                break  # what it shows of the object is what Go writes
            made, problems = convert.partial_json(type(piece), merged)
            if problems:
                break
            pieces.append((piece, made))
        else:
            if shown is None or not bodies.duplicates(patch):
                for piece, made in pieces:
                    piece.CopyFrom(made)
                return []
        changes = {key: _copied(value) for key, value in patch.items() if key not in ("kind", "apiVersion")}
    data = convert.to_json(obj)
    if whole:
        data = cast(dict[str, Any], schemas.as_go_writes(whole, data))
    merged = merge(data, changes) if kind == MERGE else strategic_merges.merge(data, changes, whole)
    made, unknown = _made(resource, type(obj), merged, level, _Places(whole, kind, {**patch, **changes}), shown)
    obj.CopyFrom(made)
    if whole:
        shapes.tidy(resource.kind, obj)
    return unknown


def _apply_custom(
    resource: Served, obj: Message, patch: Any, kind: int, level: str, shown: list[str] | None
) -> list[str]:
    data = convert.to_manifest(obj)
    if kind == JSON:
        data = json_operations.apply(data, patch)
    else:
        data = merge(data, {key: _copied(value) for key, value in patch.items()})
    if shown is not None:
        shown.append(json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True))
    found = resource.coerce(data, tells_unknown=level not in ("", options.IGNORE))
    made, wrong = convert.partial_json(type(obj), data)
    if wrong:
        raise BadRequest(f"the patched object is not a {resource.kind}: {'; '.join(map(str, wrong))}")
    obj.CopyFrom(made)
    return [f'unknown field "{path}"' for path in found]


_TEXTS = ("type", "status", "reason", "message", "lastTransitionTime")
_ORDER = "$setElementOrder/conditions"


def _set_condition(status: core_v1_pb2.PodStatus, patch: dict[str, Any]) -> bool:
    """What a scheduler writes about a pod (``meta.condition_patch``), without JSON of the whole status: one condition,
    and perhaps the nomination. False, and nothing was changed, for any other patch: where something is wrong, where an
    element would come to another place, and so on."""
    changes = patch.get("conditions")
    if not (isinstance(changes, list) and len(changes) == 1 and isinstance(changes[0], dict)):
        return False
    (change,) = changes
    for key in patch:
        if key not in ("conditions", _ORDER, "nominatedNodeName"):
            return False
    for key, value in change.items():
        if not (type(value) is str if key in _TEXTS else key == "observedGeneration" and type(value) is int):
            return False
    nominated = patch.get("nominatedNodeName")
    if not (nominated is None or type(nominated) is str) or not -(2**63) <= change.get("observedGeneration", 0) < 2**63:
        return False
    known = status.conditions[:]
    places = {one.type: place for place, one in enumerate(known)}
    mine = change.get("type")
    if len(places) != len(known) or mine is None or (known and mine not in places):
        return False
    if _ORDER in patch:
        order = patch[_ORDER]
        if not isinstance(order, list):
            return False
        last, is_named = -1, False
        for one in order:
            if not isinstance(one, dict) or len(one) != 1 or type(one.get("type")) is not str:
                return False
            is_named = is_named or one["type"] == mine
            place = places.get(one["type"])
            if place is not None:
                if place <= last:
                    return False
                last = place
        if not is_named:
            return False
    try:
        time_s = times.parse_time(change["lastTransitionTime"]) // 1_000_000_000 if _TEXTS[-1] in change else None
    except ValueError:
        return False
    condition = known[places[mine]] if known else status.conditions.add()
    for key, value in change.items():
        if key != _TEXTS[-1]:
            setattr(condition, key, value)
    if time_s is not None:
        condition.ClearField("lastTransitionTime")
        condition.lastTransitionTime.seconds = time_s
    if nominated is not None:
        status.nominatedNodeName = nominated
    elif "nominatedNodeName" in patch:
        status.ClearField("nominatedNodeName")
    return True


def _copied(value: object) -> Any:
    """Patches are changed while they are applied, and may have to be applied again."""
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class _Places:
    """What is told of a patch that does not make an object."""

    expression: str
    kind: int
    patch: Any = None

    def shown(self, manifest: dict[str, Any]) -> str:
        if self.kind == STRATEGIC:
            return go_texts.plain(self.patch)
        return json.dumps(manifest, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    def why(self, manifest: dict[str, Any]) -> str | None:
        """In Go's words."""
        if not self.expression:
            return None
        if self.kind == STRATEGIC:
            return go_decoding.of_unstructured(self.expression, manifest)
        # What a merge touches is written with its keys in order.
        written = plain.in_order(manifest) if self.kind == MERGE else json_operations.as_written(manifest, self.patch)
        return go_decoding.of_json(self.expression, written)


def _made(
    resource: Resource,
    message: type[Message],
    data: dict[str, Any],
    level: str,
    places: _Places,
    shown: list[str] | None,
) -> tuple[Message, list[str]]:
    """A message as ``data`` describe it, and the fields that it does not have."""
    made, problems = convert.partial_json(message, data)
    if shown is not None:
        shown.append(places.shown(data))
    unknown = sorted(bodies.unknown(problems)) if level else []
    if len(unknown) < len(problems):
        why = places.why(data)
        if level and why:
            raise _refused(places.shown(data), why)
        found = [Cause(problem.path, "FieldValueInvalid", problem.message) for problem in problems]
        texts = "; ".join(str(problem) for problem in problems)
        raise BadRequest(f"the patched object is not a {resource.kind}: {texts}", causes=found)
    return made, unknown


def _refused(shown: str, why: str) -> Invalid:
    found = [causes.invalid("patch", shown, why)]
    return Invalid(f' "" is invalid: patch: {found[0].message}', causes=found)


# Merge patch --------------------------------------------------------------------------------------------------------


def merge(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386: objects merge, null deletes, everything else replaces. Changes and returns ``target``."""
    for key, value in patch.items():
        old = target.get(key)
        if value is None:
            target.pop(key, None)
        elif not isinstance(old, dict):
            target[key] = _without_nulls(value)
        else:
            target[key] = merge(old, value) if isinstance(value, dict) else value
    return target


def _without_nulls(value: object) -> Any:
    """Without those of objects, also in lists (``pruneNulls``)."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


# Patch of messages --------------------------------------------------------------------------------------------------


Places = dict[str, "str | Places | None"]
"""Where lists stand in a message, by field: the merge key of a list, or the places in a message that has some."""


K = TypeVar("K", bound=KubernetesObject)


def merge_message(target: K, patch: K) -> None:
    """Change ``target`` to what ``patch``, a message of its type, says. Elements with a merge key go last, whole."""
    _make_room(target, patch, _places(target.DESCRIPTOR))
    target.MergeFrom(patch)


def remove(target: Message, removed: Message) -> None:
    """Take away from ``target`` what is set in ``removed``, a message of its type."""
    for field, value in removed.ListFields():
        name, nested = field.name, field.message_type
        found = getattr(target, name)
        if nested is not None and nested.GetOptions().map_entry:
            for key in sorted(value):
                if key in found:
                    del found[key]
        elif not field.is_repeated:
            if nested is None:
                target.ClearField(name)
            elif target.HasField(name):
                remove(found, value)
        else:
            _remove_elements(found, value, MERGE_KEYS.get(target.DESCRIPTOR.name, {}).get(name))


def _make_room(target: Message, patch: Message, places: Places) -> None:
    """For the lists of a patch, so that merging the messages, which appends, brings about what it says."""
    for field, value in patch.ListFields():
        name = field.name
        if name in places:
            place = places[name]
            if type(place) is dict:
                if target.HasField(name):
                    _make_room(getattr(target, name), value, place)
            else:
                elements = getattr(target, name)
                if elements:
                    _remove_elements(elements, value, place)


def _remove_elements(elements: Any, doomed: Any, key: Any) -> None:
    """``key``: a merge key; None: all of them."""
    if not elements:
        return
    if key is None:
        del elements[:]
        return
    names = [getattr(one, key) for one in doomed] if key else list(doomed)
    found = [i for i, one in enumerate(elements[:]) if (getattr(one, key) if key else one) in names]
    if len(found) == len(elements):
        del elements[:]
        return
    for index in reversed(found):
        del elements[index]


@lru_cache(256)
def _places(descriptor: Descriptor) -> Places:
    keys = MERGE_KEYS.get(descriptor.name, {})
    places: Places = {}
    for field in descriptor.fields:
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            continue
        if field.is_repeated:
            places[field.name] = keys.get(field.name)
        elif inner is not None and (within := _places(inner)):
            places[field.name] = within
    return places

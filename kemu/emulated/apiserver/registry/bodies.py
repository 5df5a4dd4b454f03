"""Objects in the body of a request: protobuf as actors send them, JSON and YAML as people do.

A field that the kind does not have, or one that stands twice, is refused, told as a warning, or ignored, as the request
says (``fieldValidation``). The texts are those of ``apiserver/pkg/endpoints/handlers`` and of the strict decoders.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml
from google.protobuf.message import DecodeError

from kemu.emulated.apiserver.custom.served import Served
from kemu.emulated.apiserver.registry import options
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert, go_structs, go_syntax, go_values, json_readers, sizes, yaml_texts
from kemu.emulated.objects.managed_fields import go_decoding, schemas
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.resources import Resource
from kemu.errors import BadRequest

PROTOBUF, JSON, YAML = "", "application/json", "application/yaml"
GO_PROTOBUF = "application/vnd.kubernetes.protobuf"
"""As programs in Go write it: also of fields that have no value (:mod:`kemu.emulated.objects.conversion.go_values`)."""
MAX_DEPTH = 100
"""Largest depth of nested objects and lists; messages of protobuf are not deeper either."""
TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
"""What finds version and kind first (``SimpleMetaFactory``)."""
_UNMARSHAL = "yaml: unmarshal errors:"


class _Mapping(dict[str, Any]):
    """An object of JSON that remembers its keys and values where some of them stood twice."""

    __slots__ = ("pairs",)

    pairs: list[tuple[str, Any]] | None


Body = tuple[Any, list[str], tuple[go_structs.Path, ...]]
"""What a request sends: an object, warnings about it, and which lists and maps it states that have nothing
(:func:`.schemas.stated_empties`)."""


def read(resource: Resource, data: bytes, content_type: str, level: str) -> Body:
    """``level``: of :mod:`options`, or "". Raises :class:`kemu.errors.BadRequest`."""
    message: Any = resource.message
    if isinstance(resource, Served):
        return _read_custom(resource, data, content_type, level)
    if content_type in (PROTOBUF, GO_PROTOBUF):
        try:
            obj = message.FromString(data)
            sizes.check_message(obj, len(data))
            if content_type == GO_PROTOBUF:
                go_values.tidy(obj)
        except (DecodeError, ValueError) as error:
            raise BadRequest(f"the object is not a {resource.kind}: {error}") from None
        return obj, [], ()
    plain, problems = parse(data, content_type, f"must be of type {resource.kind}")
    _check_kind(resource, plain, data)
    # Go's decoder reads the second value of a key into what it has made of the first.
    folded = _folded(plain) if problems and content_type == JSON else plain
    assert isinstance(folded, dict)
    types: dict[str, Any] = {"apiVersion": resource.api_version, "kind": resource.kind}
    if "kind" not in message.DESCRIPTOR.fields_by_name:
        # Kinds that are never kept have messages without them.
        folded, types = {key: one for key, one in folded.items() if key not in types}, {}
    obj, more = convert.partial_json(message, {**folded, **types})
    what = (
        f'{resource.kind} in version "{resource.api_version.rpartition("/")[2]}" cannot be handled as a {resource.kind}'
    )
    wrong = [problem for problem in more if not _is_unknown(problem)]
    name = schemas.find(resource.api_version, resource.kind)
    why = go_decoding.of_json(name, plain) if name is not None and (wrong or problems) else None
    if wrong or why:
        raise BadRequest(f"{what}: {why or '; '.join(str(problem) for problem in wrong)}")
    go_values.trim(obj)
    empties: tuple[go_structs.Path, ...] = ()
    if name is not None and (b"[]" in data or b"{}" in data):
        empties = tuple(schemas.stated_empties(name, plain))
    if name is not None and content_type == JSON and (problems or more):
        return obj, judged(go_decoding.strict(name, plain), level, what), empties
    return obj, judged([*problems, *unknown(more)], level, what), empties


def _read_custom(resource: Served, data: bytes, content_type: str, level: str) -> Body:
    """As :func:`read`: there is no protobuf of custom kinds but kemu's own."""
    if content_type == PROTOBUF:
        try:
            return resource.message.FromString(data), [], ()
        except DecodeError as error:
            raise BadRequest(f"the object is not a {resource.kind}: {error}") from None
    plain, problems = parse(data, content_type, f"must be of type {resource.kind}")
    _check_custom_kind(resource, plain)
    what = (
        f'{resource.kind} in version "{resource.api_version.rpartition("/")[2]}" cannot be handled as a {resource.kind}'
    )
    tells = level != options.IGNORE
    try:
        more = [f'unknown field "{path}"' for path in resource.coerce(plain, tells_unknown=tells)]
    except BadRequest as error:
        raise BadRequest(f"{what}: {error.message}") from None
    obj, wrong = convert.partial_json(resource.message, plain)
    if wrong:
        raise BadRequest(f"{what}: {'; '.join(map(str, wrong))}")
    return obj, judged([*problems, *more], level, what), ()


def _check_custom_kind(resource: Served, plain: dict[str, Any]) -> None:
    """The version is that of the request; validation looks at the kind."""
    kind, version = plain.get("kind"), plain.get("apiVersion", "")
    if not kind:
        shown = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {resource.kind}): couldn't get "
            f"version/kind; json parse error: Object 'Kind' is missing in '{shown}'"
        )
    if version != resource.api_version:
        raise BadRequest(
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )


def parse(data: bytes, content_type: str, what: str) -> tuple[dict[str, Any], list[str]]:
    """A mapping, and which of its fields stand twice. ``what``: it should be. Raises BadRequest."""
    if content_type not in (JSON, YAML):
        raise BadRequest(
            f"the body of the request was in an unknown format - accepted media types include: {JSON}, {YAML}"
        )
    twice: list[str] = []
    try:
        if content_type == JSON:
            sizes.check_json(data)
            if problem := go_syntax.problem(data):
                raise ValueError(problem)
            found = json.loads(data, object_pairs_hook=mapping)
        else:
            found, repeated = yaml_texts.load(data)
            twice = [_unmarshal_errors(repeated)] if repeated else []
    except yaml.YAMLError as error:
        raise unrecognized(what, f"yaml: {yaml_problem(error)}", data) from None
    except (ValueError, RecursionError) as error:
        raise unrecognized(what, f"couldn't get version/kind; json parse error: {error}", data) from None
    if found is None:
        return {}, twice
    if not isinstance(found, dict):
        why = f"json: cannot unmarshal {go_kind(found)} into Go value of type {TYPE_META}"
        raise unrecognized(what, f"couldn't get version/kind; json parse error: {why}", data)
    if depth(found) > MAX_DEPTH:
        raise BadRequest(f"the object provided is unrecognized ({what}): exceeded max depth")
    for name in ("apiVersion", "kind"):
        value = found.get(name)
        if value is not None and not isinstance(value, str):
            why = f"json: cannot unmarshal {go_kind(value)} into Go struct field .{name} of type string"
            raise unrecognized(what, f"couldn't get version/kind; json parse error: {why}", data)
    return found, twice or duplicates(found)


def unrecognized(what: str, why: str, data: bytes) -> BadRequest:
    """``transformDecodeError``."""
    shown = data[:_SHOWN].decode(errors="replace") if data.startswith(b"{") else data[:_SHOWN].hex()
    text = f"{shown} ..." if len(data) > _SHOWN else shown or "<empty>"
    return BadRequest(f"the object provided is unrecognized ({what}): {why} ({text})")


_SHOWN = 30
"""Bytes of a body that cannot be read."""


def _unmarshal_errors(repeated: list[str]) -> str:
    return "\n  ".join((_UNMARSHAL, *repeated))


def read_applied(data: bytes, level: str) -> tuple[dict[str, Any], list[str]]:
    """What an apply sends, and warnings about keys that stand twice. Raises BadRequest (``applyPatcher``)."""
    try:
        found, repeated = yaml_texts.load(data)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise BadRequest(f"error decoding YAML: error converting YAML to JSON: yaml: {yaml_problem(error)}") from None
    if found is None:
        found = {}
    if not isinstance(found, dict):
        raise BadRequest(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal"
            f" {go_kind(found)} into Go value of type map[string]interface {{}}"
        )
    if depth(found) > MAX_DEPTH:
        raise BadRequest("error decoding YAML: exceeded max depth")
    if not repeated or level == options.IGNORE:
        return found, []
    text = f"error converting YAML to JSON: {_unmarshal_errors(repeated)}"
    if level == options.STRICT:
        raise BadRequest(f"error strict decoding YAML: {text}")
    return found, repeated


def go_kind(value: Json) -> str:
    """What Go's JSON decoder calls a value."""
    return _GO_KINDS.get(type(value), "object") if value is not None else "null"


_GO_KINDS: dict[type, str] = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def yaml_problem(error: Exception) -> str:
    """As ``go-yaml`` says it: the parser counts lines from none, the scanner from one, and the first is not told."""
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    line = 0
    if mark is not None and mark.line:
        line = mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif context is not None:
        line = context.line
    return f"line {line}: {problem}" if line else str(problem)


def duplicates(found: Json) -> list[str]:
    """``duplicate field "spec.foo"`` for each key that stood twice in what :func:`mapping` made."""
    return [f'duplicate field "{path}"' for path in dict.fromkeys(_twice(found, ""))]


def depth(value: Json) -> int:
    """How deeply objects and lists are nested."""
    level: list[Any] = [value]
    levels = 0
    while level:
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        levels += 1
    return levels


def unknown(problems: Sequence[Any]) -> list[str]:
    """``unknown field "spec.foo"`` for each of those."""
    return [f'unknown field "{problem.path}"' for problem in problems if _is_unknown(problem)]


def judged(problems: Sequence[str], level: str, what: str) -> list[str]:
    """The warnings that come of unknown and duplicate fields. Raises BadRequest where they are refused."""
    if not problems or level == options.IGNORE:
        return []
    if level == options.STRICT:
        raise BadRequest(f"{what}: {strict(problems)}")
    return [line.strip() for one in problems for line in one.removeprefix(f"{_UNMARSHAL}\n").split("\n")]


def strict(problems: Sequence[str]) -> str:
    return f"strict decoding error: {', '.join(problems)}"


def _is_unknown(problem: json_readers.FieldProblem) -> bool:
    return bool(problem.message.startswith("unknown field"))


def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A hook for JSON's decoder."""
    found = _Mapping(pairs)
    found.pairs = pairs if len(found) < len(pairs) else None
    return found


def _folded(value: Json) -> Json:
    if isinstance(value, list):
        return [_folded(one) for one in value]
    if not isinstance(value, _Mapping):
        return value
    found: dict[str, Json] = {}
    for key, one in value.items() if value.pairs is None else value.pairs:
        found[key] = _into(found.get(key), _folded(one))
    return found


def _into(old: Json, new: Json) -> Json:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    return {**old, **{key: _into(old.get(key), one) for key, one in new.items()}}


def _twice(value: Json, path: str) -> list[str]:
    """Paths of the keys that stand twice, in the order of the text."""
    if isinstance(value, list):
        return [found for index, one in enumerate(value) for found in _twice(one, f"{path}[{index}]")]
    if not isinstance(value, _Mapping):
        return []
    found: list[str] = []
    seen: set[str] = set()
    for key, one in value.items() if value.pairs is None else value.pairs:
        here = f"{path}.{key}" if path else key
        if key in seen:
            found.append(here)
        seen.add(key)
        if isinstance(one, list | _Mapping):
            found += _twice(one, here)
    return found


def _check_kind(resource: Resource, stated: dict[str, Any], data: bytes) -> None:
    """Kind and version may be absent: those of the URL hold."""
    kind, version = stated.get("kind") or resource.kind, stated.get("apiVersion") or resource.api_version
    if version.count("/") > 1:
        raise unrecognized(f"must be of type {resource.kind}", f"unexpected GroupVersion string: {version}", data)
    if (kind, version) == (resource.kind, resource.api_version):
        return
    short = str(version).rpartition("/")[2]
    found = resources.BY_KIND.get(kind) or resources.BY_KIND.get(kind.removesuffix("List"))
    if found is not None and found.api_version == version:
        package = resource.group.partition(".")[0] or "core"
        why = f"converting ({short}.{kind}) to ({package}.{resource.kind}): unknown conversion"
    else:
        why = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
    raise BadRequest(f'{kind} in version "{short}" cannot be handled as a {resource.kind}: {why}')

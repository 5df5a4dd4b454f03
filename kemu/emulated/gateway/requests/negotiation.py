"""In which form the client wants the answer (``NegotiateMediaTypeOptions`` of ``apiserver/pkg/endpoints/handlers``)."""

from __future__ import annotations

from typing import NamedTuple

from kemu.emulated.objects.caches import text_cache
from kemu.emulated.objects.validation import causes
from kemu.errors import BadRequest, NotAcceptable

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
SERVED = (JSON, YAML, PROTOBUF)

TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
META_GROUP = "meta.k8s.io"
META_VERSIONS = ("v1", "v1beta1")

_INCLUDED = ("Metadata", "Object", "None")
_HUMAN_AGENTS = ("curl", "Wget", "Mozilla/5.0")


class Form(NamedTuple):
    """How an answer is to be written."""

    media: str = JSON
    transform: str = ""
    """``Table``, ``PartialObjectMetadata`` or ``PartialObjectMetadataList`` instead of the object itself."""
    version: str = "v1"
    """The version of the group ``meta.k8s.io`` of what it is transformed into."""
    pretty: bool = False
    include: str = "Metadata"
    """What of its object a row of a Table holds: ``Metadata``, ``Object`` or ``None``."""


class Clause(NamedTuple):
    type: str
    parameters: dict[str, str]


@text_cache(1024)
def negotiate(accept: str, with_tables: bool = True) -> Form:
    """The first clause that can be served. Raises :class:`kemu.errors.NotAcceptable`."""
    if not accept:
        return Form()
    for clause in clauses(accept):
        for media in SERVED:
            if clause.type in (media, "application/*", "*/*"):
                form = _form(media, clause.parameters)
                if form is not None and (with_tables or form.transform != TABLE):
                    return form
    raise not_acceptable()


@text_cache(1024)
def form(accept: str, include: str, pretty: str, agent: str, with_tables: bool = True) -> Form:
    """The form of an answer, by two headers of its request and the parameters ``includeObject`` and ``pretty``. Raises
    :class:`kemu.errors.NotAcceptable`."""
    found = including(negotiate(accept, with_tables), include)
    return found._replace(pretty=True) if is_human(pretty, agent) else found


@text_cache(1024)
def of_status(accept: str, pretty: str, agent: str) -> Form:
    """The form of a Status, which is never transformed. Raises :class:`kemu.errors.NotAcceptable`."""
    found = Form()
    if accept:
        for clause in clauses(accept):
            if any(clause.parameters.get(name) is not None for name in ("as", "g", "v")):
                continue
            media = next((one for one in SERVED if clause.type in (one, "application/*", "*/*")), "")
            served = _form(media, clause.parameters) if media else None
            if served is not None:
                found = served
                break
        else:
            raise not_acceptable()
    return found._replace(pretty=True) if is_human(pretty, agent) else found


def not_acceptable() -> NotAcceptable:
    return NotAcceptable(f"only the following media types are accepted: {', '.join(SERVED)}")


def check_stream(form: Form) -> None:
    """A watch has no YAML. Raises :class:`kemu.errors.NotAcceptable`."""
    if form.media == YAML:
        streams = f"{JSON};stream=watch, {PROTOBUF};stream=watch"
        raise NotAcceptable(f"only the following media types are accepted: {streams}")


def including(form: Form, include: str) -> Form:
    """With the parameter ``includeObject``, whatever it says."""
    return form if form.transform != TABLE or not include else form._replace(include=include)


def check_included(form: Form) -> None:
    """When an answer is there: only then that parameter is read. Raises :class:`kemu.errors.BadRequest`."""
    if form.transform == TABLE and form.include not in _INCLUDED:
        cause = causes.invalid("includeObject", form.include, "must be 'Metadata', 'Object', 'None', or empty")
        raise BadRequest(f"Unable to convert to Table as requested: {cause.field}: {cause.message}")


def is_human(pretty: str, agent: str) -> bool:
    """Whether the answer is to be indented (``isPrettyPrint``)."""
    if pretty:
        return pretty in ("1", "t", "T", "true", "TRUE", "True")
    return agent.startswith(_HUMAN_AGENTS)


def _form(media: str, parameters: dict[str, str]) -> Form | None:
    transform, version = parameters.get("as", ""), parameters.get("v", "")
    if parameters.get("stream") not in (None, "", "watch") or parameters.get("sv"):
        return None
    if transform or version or parameters.get("g"):
        if parameters.get("g") != META_GROUP or version not in META_VERSIONS:
            return None
        if transform == TABLE:
            if media == PROTOBUF:
                return None
        elif transform not in (PARTIAL, PARTIAL_LIST):
            return None
    return Form(media, transform, version or "v1", parameters.get("pretty") == "1")


def clauses(accept: str) -> list[Clause]:
    """The best first (``goautoneg.ParseAccept``)."""
    found: list[tuple[float, Clause]] = []
    for part in accept.split(","):
        kind, *rest = part.split(";")
        parameters: dict[str, str] = {}
        quality = 1.0
        for one in rest:
            name, _, value = one.strip().partition("=")
            value = value.strip().strip('"')
            if name.strip() == "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 1.0
            else:
                parameters[name.strip()] = value
        found.append((quality, Clause(kind.strip().lower(), parameters)))
    found.sort(key=lambda pair: -pair[0])
    return [clause for _, clause in found]

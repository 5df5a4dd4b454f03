"""``/statusz``: what runs, since when, and which paths tell of it (``component-base/zpages/statusz``)."""

from __future__ import annotations

import datetime as dt

from kemu.emulated.gateway import discoveries
from kemu.emulated.gateway.answers import documents, responses
from kemu.emulated.gateway.answers.responses import Response
from kemu.emulated.gateway.requests import negotiation
from kemu.emulated.objects.plain import Json
from kemu.errors import NotAcceptable

PATH = "/statusz"
_NAME, _GROUP, _KIND = "apiserver", "config.k8s.io", "Statusz"
_VERSIONS = ("v1alpha1", "v1beta1")
_PATHS = ("/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version")
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)


def response(accept: str, began_unix_s: int, now_unix_s: int) -> Response:
    """``began_unix_s``: when the server began. Raises :class:`kemu.errors.NotAcceptable`."""
    up_s = now_unix_s - began_unix_s
    for clause in negotiation.clauses(accept or "*/*"):
        version = clause.parameters.get("v", "")
        if clause.type in (negotiation.JSON, negotiation.YAML):
            stated = clause.parameters.get("g"), clause.parameters.get("as"), version in _VERSIONS
            if stated == (_GROUP, _KIND, True):
                document = documents.text(_document(version, began_unix_s, up_s))
                as_json = clause.type == negotiation.JSON
                body = documents.indented(document) + b"\n" if as_json else documents.as_yaml(document)
                return Response(200, f"{clause.type};g={_GROUP};v={version};as={_KIND}", (body,))
        elif clause.type in ("text/plain", "text/*", "*/*"):
            return responses.text(200, _text(began_unix_s, up_s))
    raise NotAcceptable(
        f"only the following media types are accepted: {negotiation.JSON}, {negotiation.YAML}, text/plain"
    )


def _document(version: str, began_unix_s: int, up_s: int) -> Json:
    return {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/{version}",
        "metadata": {"name": _NAME},
        "startTime": f"{_time(began_unix_s):%Y-%m-%dT%H:%M:%SZ}",
        "uptimeSeconds": up_s,
        "goVersion": discoveries.GO,
        "binaryVersion": discoveries.MINOR,
        "emulationVersion": discoveries.MINOR,
        "paths": list(_PATHS),
    }


def _text(began_unix_s: int, up_s: int) -> str:
    """Kubernetes draws what stands between names and values, so that no program reads this."""
    minutes, seconds = divmod(up_s, 60)
    hours, minutes = divmod(minutes, 60)
    lines = (
        f"Started: {_time(began_unix_s):%a %b %d %H:%M:%S UTC %Y}",
        f"Up: {hours} hr {minutes:02} min {seconds:02} sec",
        f"Go version: {discoveries.GO}",
        f"Binary version: {discoveries.MINOR}",
        f"Emulation version: {discoveries.MINOR}",
        f"Paths: {' '.join(_PATHS)}",
    )
    return "\n".join(("", f"{_NAME} statusz", _WARNING, "", *lines, ""))


def _time(unix_s: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(unix_s, dt.UTC)

"""What a URL names (``RequestInfoFactory.NewRequestInfo`` of ``apiserver/pkg/endpoints/request``)."""

from __future__ import annotations

from typing import NamedTuple

from kemu.errors import InternalError

_NAMESPACE_PARTS = ("status", "finalize")
"""What may stand after the name of a namespace without being a resource."""


class Path(NamedTuple):
    """The parts of a URL below ``/api`` or ``/apis/<group>``."""

    group: str
    version: str
    namespace: str
    resource: str
    """Plural."""
    name: str
    """Empty: the collection."""
    subresource: str
    rest: tuple[str, ...]
    """What comes after the subresource."""
    watches: bool
    """By the deprecated prefix ``watch``."""


def parse(path: str) -> Path | None:
    """None: the URL names no resource."""
    parts = path.strip("/").split("/")
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return None
    group = ""
    if parts[0] == "apis":
        if len(parts) < 4:
            return None
        group = parts[1]
        parts = parts[2:]
    else:
        parts = parts[1:]
    version, *parts = parts
    watches = parts[0] == "watch"
    if watches:
        if len(parts) < 2:
            raise InternalError(f"unable to determine kind and namespace from url, {path}")
        parts = parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in _NAMESPACE_PARTS:
        namespace = parts[1]
        parts = parts[2:]
    resource, name, subresource, *rest = [*parts, "", ""] if len(parts) < 3 else parts
    return Path(group, version, namespace, resource, name, subresource, tuple([one for one in rest if one]), watches)

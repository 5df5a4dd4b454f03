"""Kubeconfig files: whom to call, whom to trust, and as whom.

A file that is there keeps its other clusters, users and contexts. Only its owner can read what is written.
"""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.objects.conversion import user_files
from kemu.errors import KemuError

NAME = "kemu"
"""Name of cluster, user and context."""

_OF_CLUSTER = f"@{NAME}"
_LISTS = ("clusters", "users", "contexts")


def document(
    url: str, *, authority: bytes = b"", token: str = "", others: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """``token``: of the administrator, who is the current user. ``others``: tokens by name of a user, each with a
    context of his own, ``alice@kemu``."""
    cluster: dict[str, Any] = {"server": url}
    users = {NAME: token, **{f"{name}{_OF_CLUSTER}": own for name, own in (others or {}).items()}}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": own} if own else {}} for user, own in users.items()],
        "contexts": [{"name": user, "context": {"cluster": NAME, "user": user}} for user in users],
        "current-context": NAME,
    }


def write(file: Path, made: dict[str, Any]) -> Callable[[], None]:
    """Returns what takes it back, once the cluster is gone: a file that was there then has no word of it, unless a
    later cluster has written to it. Raises KemuError where the file is there and is no kubeconfig, or cannot be
    written."""
    before = _before(file)
    _put(file, made if before is None else _merged(before, made))
    if before is None:
        return lambda: None
    others = {plural: _others(before, plural) for plural in _LISTS}
    context = before.get("current-context", "")
    url = made["clusters"][0]["cluster"]["server"]

    def take_back() -> None:
        found = _before(file)
        if found is None or url not in [_server(one) for one in found.get("clusters") or ()]:
            return
        left = {**found, **{plural: _others(found, plural) for plural in others}}
        if found.get("current-context") == NAME:
            left["current-context"] = "" if _is_ours(context) else context
        _put(file, left)

    return take_back


def _put(file: Path, document: Mapping[str, Any]) -> None:
    """Raises KemuError."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # A link (as ~/.kube/config may be one) stays a link.
        target = file.resolve()
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            os.fchmod(handle, 0o600)
            with os.fdopen(handle, "w") as out:
                yaml.safe_dump(dict(document), out, sort_keys=False)
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise KemuError(f"{file}: {error.strerror or error}") from None


def read(file: Path) -> dict[str, Any] | None:
    """None: there is nothing in it. Raises FileProblem."""
    found = user_files.read_yaml(file)
    if found is None:
        return None
    if not isinstance(found, dict) or found.get("kind", "Config") != "Config":
        raise user_files.FileProblem("is no kubeconfig")
    for plural in _LISTS:
        named = found.get(plural)
        if named is not None and not (isinstance(named, list) and all(isinstance(one, dict) for one in named)):
            raise user_files.FileProblem(f"is no kubeconfig: {plural} must be a list of mappings")
    return found


def _before(file: Path) -> dict[str, Any] | None:
    """None: there is nothing in it, or no file. Raises KemuError."""
    try:
        return read(file) if file.exists() else None
    except user_files.FileProblem as error:
        raise KemuError(f"{file} is there, and {error}: choose another file (--kubeconfig)") from None


def _merged(found: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    lists = {plural: [*_others(found, plural), *made[plural]] for plural in _LISTS}
    return {**made, **found, **lists, "current-context": NAME}


def _others(found: Mapping[str, Any], plural: str) -> list[Any]:
    return [one for one in found.get(plural) or () if not _is_ours(one.get("name"))]


def _server(cluster: Mapping[str, Any]) -> object:
    named = cluster.get("cluster")
    return named.get("server") if isinstance(named, dict) else None


def _is_ours(name: object) -> bool:
    """Whether the name is of an earlier cluster."""
    return isinstance(name, str) and (name == NAME or name.endswith(_OF_CLUSTER))

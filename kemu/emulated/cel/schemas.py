"""Declared types of OpenAPI schemas, as Kubernetes derives them for rules of custom resources and admission policies."""

from __future__ import annotations

from collections.abc import Mapping

from kemu.emulated.cel import types
from kemu.emulated.cel.values import Value


def declared(schema: Mapping[str, Value], *, root: bool = False, name: str = "object") -> types.Type | None:
    """The type of values of `schema` (JSON of an OpenAPI v3 schema), or None if expressions cannot see them.

    `root`: the schema is of a whole object, so ``apiVersion``, ``kind``, ``metadata.name`` and ``metadata.generateName``
    are known. `name`: the name of the object type, from which the names of nested ones follow.
    """
    raise NotImplementedError


def escape(name: str) -> str | None:
    """The identifier by which expressions know the property `name`, such as ``foo__dot__bar``; None if there is none."""
    raise NotImplementedError


def unescape(identifier: str) -> str | None:
    """The property that expressions know as `identifier`; None if it escapes nothing."""
    raise NotImplementedError

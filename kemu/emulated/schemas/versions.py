"""The schema of one version of a custom kind, ready to use: what a request loses and gains, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kemu.emulated.schemas import correlation, defaulting, embedded, lists, problems, pruning, structural
from kemu.emulated.schemas.definitions import defaults
from kemu.emulated.schemas.problems import Value
from kemu.emulated.schemas.structural import Node
from kemu.emulated.schemas.values import Validator
from kemu.errors import Cause

if TYPE_CHECKING:
    from kemu.emulated.objects.managed_fields.schemas import Type
    from kemu.emulated.schemas.rules import Rules

_GO_MAP = "map[string]interface{}"
MAX_VALUE_DEPTH = 200
"""Deeper objects are refused before anything follows them."""
SKIPPED_RULES = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


class CustomSchema:
    """Made once for each version of a definition; holds nothing of the objects. The schema must have passed
    :func:`.definitions.checks.check`."""

    def __init__(self, schema: Mapping[str, Any] | None, *, preserves_unknown: bool = False) -> None:
        """``schema``: ``openAPIV3Schema`` in JSON, None where a version has none.

        ``preserves_unknown``: ``spec.preserveUnknownFields``, with which nothing is pruned.
        """
        self._preserves = preserves_unknown
        self.node: Node | None = structural.parse(schema) if schema is not None else None
        if self.node is not None:
            defaults.prune(self.node)
        self._embeds = embedded.has_embedded(self.node)
        self._has_lists = lists.has_any(self.node)

    # --- what requests and the store lose and gain --------------------------------------------------------------------

    def coerce(self, document: dict[str, Any], *, drops: bool = False, tells_unknown: bool = False) -> list[str]:
        """Prune a complete manifest in place (``unstructuredSchemaCoercer``).

        The paths of unknown fields, if asked for, in the order in which the API server tells of them. ``drops``: of
        wrong metadata, what is wrong goes, as when an object comes from the store. Raises ValueError with the words of
        the API server for metadata that cannot be decoded, :class:`.structural.TooDeep` for a hostile document.
        """
        if structural.depth_of(document) > MAX_VALUE_DEPTH:
            raise structural.TooDeep(f"object is nested more than {MAX_VALUE_DEPTH} levels deep")
        unknown: list[str] | None = [] if tells_unknown else None
        head: dict[str, Any] = {name: document[name] for name in ("apiVersion", "kind") if name in document}
        for name, value in head.items():
            if not isinstance(value, str):
                kind = problems.as_json(value) if value is None else _go_type(value)
                raise ValueError(f".{name} accessor error: {_plain(value)} is of the type {kind}, expected string")
        metadata = embedded.metadata_of(document, "", drops=drops, unknown=unknown)
        if not self._preserves:
            pruning.prune(document, self.node, is_root=True, unknown=unknown)
            defaulting.prune_nulls(document, self.node)
        if self._embeds:
            inner: list[str] = []
            try:
                embedded.coerce(
                    document, self.node, "", is_root=False, drops=drops, unknown=None if unknown is None else inner
                )
            except embedded.WrongMeta as error:
                raise ValueError(str(error)) from None
            if unknown is not None:
                unknown += sorted(inner, key=str.encode)
        document.update(head)
        if metadata is not None:
            document["metadata"] = metadata
        return unknown or []

    def default(self, document: dict[str, Any]) -> None:
        """Fill in defaults in place, after :meth:`coerce`: of a request as well as of what comes from the store."""
        defaulting.default(document, self.node)

    def read(self, content: dict[str, Any]) -> None:
        """Make of an object from the store, in place, what it is by this schema; it was stored by another one perhaps.
        It needs no metadata. What is wrong in the metadata of embedded objects goes."""
        if not self._preserves:
            pruning.prune(content, self.node, is_root=True)
            defaulting.prune_nulls(content, self.node)
        if self._embeds:
            embedded.coerce(content, self.node, "", is_root=False, drops=True)
        defaulting.default(content, self.node)

    # --- what is refused ----------------------------------------------------------------------------------------------

    def check_new(
        self, document: dict[str, Any], found: list[Cause], *, scale: Mapping[str, Any] | None = None
    ) -> None:
        """Judge a new object; ``found`` has the causes of its metadata already, to which others are added.

        ``scale``: the subresource of the version (``specReplicasPath``, …). The document is not changed.
        """
        self._validator.check(document, "", found)
        check_scale(document, scale, found)
        embedded.check(document, self.node, "", is_root=False, found=found)
        if self._has_lists:
            lists.check(document, self.node, "", found)
        self._check_rules(document, None, found)

    def check_update(
        self,
        document: dict[str, Any],
        old: dict[str, Any],
        found: list[Cause],
        *,
        scale: Mapping[str, Any] | None = None,
        warnings: list[str] | None = None,
    ) -> None:
        """Judge what became of ``old``: what did not change is not judged again (ratcheting).

        ``warnings``: the list to which broken rules about values that did not change are added.
        """
        pair = correlation.Pair(document, old, self.node)
        self._validator.check_update(pair, "", found)
        check_scale(document, scale, found)
        embedded.check(document, self.node, "", is_root=False, found=found)
        self._check_lists(document, old, found)
        self._check_rules(document, old, found, pair, warnings)

    def check_status(
        self,
        document: dict[str, Any],
        old: dict[str, Any],
        found: list[Cause],
        *,
        scale: Mapping[str, Any] | None = None,
        warnings: list[str] | None = None,
    ) -> None:
        """As :meth:`check_update`, for the subresource ``status``."""
        pair = correlation.Pair(document, old, self.node)
        if "status" in document and self._status is not None:
            below = pair.key("status")
            if below is None:
                self._status.check(document["status"], "status", found)
            else:
                self._status.check_update(below, "status", found)
        check_scale(document, scale, found, spec=False)
        self._check_lists(document, old, found)
        self._check_rules(document, old, found, pair, warnings)

    def _check_lists(self, document: dict[str, Any], old: dict[str, Any], found: list[Cause]) -> None:
        if not self._has_lists:
            return
        of_old: list[Cause] = []
        lists.check(old, self.node, "", of_old)
        if not of_old:
            lists.check(document, self.node, "", found)

    def _check_rules(
        self,
        document: dict[str, Any],
        old: dict[str, Any] | None,
        found: list[Cause],
        pair: correlation.Pair | None = None,
        warnings: list[str] | None = None,
    ) -> None:
        rules = self._rules
        if rules is None:
            return
        if any(cause.reason in problems.BLOCKING for cause in found):
            found.append(problems.invalid("", None, SKIPPED_RULES))
        else:
            rules.check(document, old, found, pair, warnings)

    @cached_property
    def _validator(self) -> Validator:
        return Validator(self.node or Node())

    @cached_property
    def _status(self) -> Validator | None:
        """None: the schema says nothing of the status."""
        below = None if self.node is None else self.node.properties.get("status")
        return None if below is None else Validator(below)

    @cached_property
    def _rules(self) -> Rules | None:
        if self.node is None or not structural.has_rules(self.node):
            return None
        from kemu.emulated.schemas import rules  # Loads CEL.

        return rules.Rules(self.node)

    # --- managed fields -----------------------------------------------------------------------------------------------

    @cached_property
    def merging(self) -> Type:
        """How fields merge, for :mod:`kemu.emulated.objects.managed_fields`."""
        from kemu.emulated.schemas import merging

        return merging.type_of(self.node)


def check_scale(
    document: dict[str, Any], scale: Mapping[str, Any] | None, found: list[Cause], *, spec: bool = True
) -> None:
    """What the paths of the subresource ``scale`` lead to (``ValidateScaleSpec``, ``ValidateScaleStatus``)."""
    if scale is None:
        return
    for name in ("specReplicasPath", "statusReplicasPath") if spec else ("statusReplicasPath",):
        path = scale[name]
        value, wrong = _nested(document, path, int, "int64")
        if wrong:
            found.append(problems.invalid(path, 0, wrong))
        elif value is not None and value < 0:
            found.append(problems.invalid(path, value, "should be a non-negative integer"))
        elif value is not None and value > 2**31 - 1:
            found.append(problems.invalid(path, value, f"should be less than or equal to {2**31 - 1}"))
    path = scale.get("labelSelectorPath")
    if path:
        _, wrong = _nested(document, path, str, "string")
        if wrong:
            found.append(problems.invalid(path, "", wrong))


def _nested(document: dict[str, Any], path: str, kind: type, name: str) -> tuple[Any, str]:
    """The value at a simple path, and why it cannot be had (``unstructured.NestedFieldNoCopy``)."""
    steps = path.removeprefix(".").split(".")
    value: Any = document
    for index, step in enumerate(steps):
        if value is None:
            return None, ""
        if not isinstance(value, dict):
            at = "." + ".".join(steps[: index + 1])
            return (
                None,
                f"{at} accessor error: {_plain(value)} is of the type {_go_type(value)}, expected {_GO_MAP}",
            )
        if step not in value:
            return None, ""
        value = value[step]
    if not isinstance(value, kind) or isinstance(value, bool):
        at = "." + ".".join(steps)
        return None, f"{at} accessor error: {_plain(value)} is of the type {_go_type(value)}, expected {name}"
    return value, ""


def _go_type(value: Value) -> str:
    from kemu.emulated.objects.managed_fields import go_texts

    return go_texts.type_of(value)


def _plain(value: Value) -> str:
    from kemu.emulated.objects.managed_fields import go_texts

    return go_texts.plain(value)

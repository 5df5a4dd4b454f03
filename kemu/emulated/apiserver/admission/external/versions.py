"""Objects as webhooks and policies see them whose rules are about another version than that of the request
(``matchPolicy: Equivalent``).

Custom kinds are served in the versions of their definition; events and autoscalers of Kubernetes in two each. What is
asked sees the objects in the version that its rules name, and what it changes is turned back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kemu.emulated.apiserver.admission.external.attributes import Attributes, Matched, as_go_writes
from kemu.emulated.apiserver.custom.served import Served
from kemu.emulated.objects import events
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.kinds import autoscalers
from kemu.errors import ApiError, Cause, InternalError
from kemu.messages.k8s.objects import KubernetesObject


class _Form(NamedTuple):
    """Another form of a kind of Kubernetes."""

    matched: Matched
    message: type[Any]
    shown: Callable[[Any], Any]
    stored: Callable[[Any], Any]


_FORMS = {
    module.STORED.plural: _Form(
        Matched(module.ROW.group, module.ROW.api_version.rpartition("/")[2]),
        module.ROW.message,
        module.shown,
        module.stored,
    )
    for module in (events, autoscalers)
}


def equivalents(attributes: Attributes) -> list[Matched]:
    """Other groups and versions that the same objects are served as (``EquivalentResourcesFor``)."""
    row = attributes.resource
    if isinstance(row, Served):
        part = attributes.subresource
        return [
            Matched(row.group, one.name)
            for one in row.definition.spec.versions
            if one.served and one.name != attributes.version and (not part or one.subresources.HasField(part))  # type: ignore[arg-type]
        ]
    form = _FORMS.get(row.plural)
    return [form.matched] if form is not None else []


async def prepare(attributes: Attributes, matched: Matched) -> None:
    """For :meth:`Attributes.seen`. Raises :class:`kemu.errors.InternalError`."""
    if not attributes.differs(matched):
        return
    for obj, views in ((attributes.obj, attributes.views), (attributes.old, attributes.old_views)):
        if obj is not None and matched not in views:
            views[matched] = await _in_version(attributes, obj, matched)


async def _in_version(attributes: Attributes, obj: KubernetesObject, matched: Matched) -> dict[str, Any]:
    row = attributes.resource
    if not isinstance(row, Served):
        return as_go_writes(_FORMS[row.plural].shown(obj))
    return await _converted(row, convert.to_manifest(obj), _api_version(matched))


async def back(attributes: Attributes, matched: Matched, after: dict[str, Any]) -> dict[str, Any]:
    """A changed object, in the version of the request. Raises :class:`kemu.errors.InternalError`."""
    row, wanted = attributes.resource, attributes.subject[0]
    if not attributes.differs(matched) or after.get("apiVersion") != _api_version(matched):
        return after
    if isinstance(row, Served):
        other = row.version_of(after["apiVersion"])
        assert other is not None
        other.schema.default(after)
        return await _converted(row, after, wanted)
    form = _FORMS[row.plural]
    try:
        return convert.to_manifest(form.stored(convert.from_json(form.message, after)))
    except convert.ConversionError as error:
        raise _internal(str(error)) from None


async def _converted(row: Served, manifest: dict[str, Any], wanted: str) -> dict[str, Any]:
    if row.converter is None:
        return {**manifest, "apiVersion": wanted}
    try:
        return await row.converter.convert(manifest, wanted)
    except ApiError as error:
        raise _internal(error.message) from None


def _api_version(matched: Matched) -> str:
    return f"{matched.group}/{matched.version}" if matched.group else matched.version


def _internal(why: str) -> InternalError:
    return InternalError(f"Internal error occurred: {why}", causes=[Cause("", "", why)])

"""Requests about objects in another form than the one that is stored, as requests about the stored ones.

Events of events.k8s.io are stored as those of the core group, autoscalers of autoscaling/v1 as those of v2. Removed
betas are served only where somebody wants them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from kemu.emulated.gateway.requests import bodies, documents, negotiation
from kemu.emulated.gateway.requests.bodies import Body
from kemu.emulated.objects import events
from kemu.emulated.objects.conversion import sizes
from kemu.emulated.objects.kinds import autoscalers, removed_betas
from kemu.emulated.objects.resources import Resource
from kemu.errors import BadRequest
from kemu.messages.v1 import api_pb2

_T = TypeVar("_T")
_TERM = re.compile(r"(?P<field>[^=!,]+)(?P<rest>[^,]*)")


@dataclass(frozen=True)
class OtherForm:
    row: Resource
    """Row of the form."""
    kept: Resource
    """Row of what is stored."""
    shown: Callable[[Any], Any]
    """From a stored message to one of the form."""
    stored: Callable[[Any], Any]
    renamed: Callable[[Any], dict[str, Any]]
    """From the JSON of an object, or of a part of one, to that of a stored one."""
    renamed_operation: Callable[[dict[str, Any]], dict[str, Any]]
    """The same of an operation of a JSON patch."""
    selected: Callable[[str], str] = str
    """The same of a field in a selector."""

    def body(self, found: Body) -> Body:
        """Raises :class:`kemu.errors.BadRequest`."""
        if found.content_type:
            document = self.renamed(documents.mapping(found.data, found.content_type))
            return found._replace(data=json.dumps(document).encode(), content_type=negotiation.JSON)
        message = bodies.parse(found, self.row.message)
        return found._replace(data=self.stored(message).SerializeToString(deterministic=True))

    def patch(self, kind: api_pb2.PatchRequest.Type, data: bytes) -> bytes:
        """Raises :class:`kemu.errors.BadRequest`."""
        if kind == api_pb2.PatchRequest.APPLY:
            return yaml.safe_dump(self.renamed(documents.mapping(data, negotiation.YAML))).encode()
        sizes.check_json(data)
        try:
            found: Any = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise BadRequest(f"error decoding patch: {error}") from None
        if kind != api_pb2.PatchRequest.JSON:
            return json.dumps(self.renamed(found)).encode() if isinstance(found, dict) else data
        if not isinstance(found, list):
            return data
        changed = [self.renamed_operation(one) if isinstance(one, dict) else one for one in found]
        return json.dumps(changed).encode()

    def selector(self, text: str) -> str:
        """A field selector."""
        return _TERM.sub(lambda term: self.selected(term["field"]) + term["rest"], text)


_SERVED = (
    OtherForm(
        events.ROW,
        events.STORED,
        events.shown,
        events.stored,
        events.renamed,
        events.renamed_operation,
        events.selected,
    ),
    OtherForm(
        autoscalers.ROW,
        autoscalers.STORED,
        autoscalers.shown,
        autoscalers.stored,
        autoscalers.renamed,
        autoscalers.renamed_operation,
    ),
)


def _as_it_is(found: _T) -> _T:
    return found


_REMOVED = (
    OtherForm(
        removed_betas.BUDGETS,
        removed_betas.BUDGETS_STORED,
        removed_betas.shown_budget,
        removed_betas.stored_budget,
        removed_betas.renamed_budget,
        _as_it_is,
    ),
    OtherForm(
        removed_betas.CRON_JOBS,
        removed_betas.CRON_JOBS_STORED,
        _as_it_is,
        _as_it_is,
        removed_betas.renamed_cron_job,
        _as_it_is,
    ),
)
FORMS = {(form.row.api_version, form.row.plural): form for form in (*_SERVED, *_REMOVED)}
"""By API version and plural."""
ROWS = tuple(form.row for form in _SERVED)
REMOVED = tuple(form.row for form in _REMOVED)
"""Of removed betas."""


def of(row: Resource) -> OtherForm | None:
    """None: the objects of a row are stored as they are."""
    return FORMS.get((row.api_version, row.plural))

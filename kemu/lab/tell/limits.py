"""The tables of ``docs/limits.md``: how kemu treats every field, made from :mod:`kemu.emulated.objects.fields`.

``scripts/gendocs limits`` puts what this module prints into the page; with ``--check`` it compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import descriptors
from kemu.emulated.objects.fields import scheduler_configuration, tables
from kemu.emulated.objects.fields.sorts import Acts, Harmless, Parts, Reason, Refused, Sort

ACT = "act"
"""The first cell of the row with the fields that act as in Kubernetes."""


def made() -> str:
    """All tables, in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    sorts = (*tables.SORTS.values(), *scheduler_configuration.SORTS.values(), *kubelet_configurations.SORTS.values())
    act, harmless, refused = (sum(isinstance(sort, kind) for sort in sorts) for kind in (Acts, Harmless, Refused))
    yield f"{act} entries say that a field acts, {harmless} that it cannot matter, {refused} that it is refused."
    yield "An entry covers all that is below its field. Why a field cannot matter:"
    yield ""
    for reason in Reason:
        yield f"* **{reason.name.lower()}**: {reason.value}."
    yield ""
    seen: dict[str, str] = {}
    for kind in tables.ACCEPTED:
        yield f"### {kind}"
        yield ""
        yield from _messages(kind, seen)
    yield "### Other kinds"
    yield ""
    yield "The API server stores them; scenarios that hold one are refused."
    yield ""
    for kind, why in tables.REFUSED_KINDS.items():
        yield f"* {kind}: {why}."
    yield ""
    for title, sorts_by_path in (
        ("KubeSchedulerConfiguration", scheduler_configuration.SORTS),
        ("KubeletConfiguration", kubelet_configurations.SORTS),
    ):
        yield f"### {title}"
        yield ""
        yield from _table("field", sorts_by_path)


def _messages(kind: str, seen: dict[str, str]) -> Iterator[str]:
    """A table for each message of a kind. ``seen``: where those stand that have one already."""
    where: list[tuple[str, Any]] = [("", resources.BY_KIND[kind].message.DESCRIPTOR)]
    while where:
        path, descriptor = where.pop(0)
        if descriptor.name in seen:
            yield f"`{path}`: as {seen[descriptor.name]}."
            yield ""
            continue
        seen[descriptor.name] = f"`{path}` of {kind}" if path else kind
        own: dict[str, Sort] = {}
        for field, sort in tables.parts_of(descriptor):
            here = path if descriptors.is_inline(field) else f"{path}.{field.name}".removeprefix(".")
            here += "[]" if field.is_repeated and descriptors.map_value(field) is None else ""
            if isinstance(sort, Parts):
                where.append((here, field.message_type))
            elif sort is not None:
                own[field.name] = sort
        if own:
            yield from _table(f"`{path}`" if path else "field", own)


def _table(title: str, sorts: Mapping[str, Sort]) -> Iterator[str]:
    """One row for all fields of the same sort."""
    rows: dict[str, list[str]] = {ACT: []}
    for name, sort in sorts.items():
        if not isinstance(sort, Parts):
            rows.setdefault(_said(sort), []).append(name)
    yield f"| {title} | |"
    yield "|---|---|"
    for said in sorted(rows, key=_order):
        if rows[said]:
            yield f"| {said} | {_code(rows[said])} |"
    yield ""


def _said(sort: Sort) -> str:
    if isinstance(sort, Acts):
        return f"act: {sort.note}" if sort.note else ACT
    if isinstance(sort, Harmless):
        return f"cannot matter: {sort.reason.name.lower()}"
    assert isinstance(sort, Refused)
    if sort.gate:
        return f"act with the feature gate `{sort.gate}` of a scheduler; **refused** without it"
    harmless = [value for value in sort.unless if value not in ("", {}, [])]
    return f"**refused**{f', but for {_values(harmless)}' if harmless else ''}: {sort.why}"


def _order(said: str) -> int:
    return 0 if said == ACT else 1 if said.startswith("act") else 2 if said.startswith("cannot") else 3


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _values(values: Iterable[object]) -> str:
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    return _code(text.replace("'", "") for text in texts)


if __name__ == "__main__":
    print(made(), end="")

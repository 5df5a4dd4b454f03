"""What people bring of a cluster: files, folders, and what ``kubectl cluster-info dump`` writes.

A file holds objects (YAML or JSON, several documents, Lists), what ``kubectl top`` prints, or an export of Prometheus
(:mod:`kemu.lab.incidents.measured`). Files of a folder that hold none of these, such as logs, are counted and left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kemu import errors
from kemu.emulated.objects.conversion import user_files
from kemu.emulated.settings import documents
from kemu.lab.incidents import measured

_OBJECTS = (".yaml", ".yml", ".json")
_TEXTS = (".txt", ".csv", ".tsv", ".top", ".out")
_GROUPS_OF_EVENTS = ("", "events.k8s.io")


class Key(NamedTuple):
    """What tells an object from all others."""

    group: str
    kind: str
    namespace: str
    """"": the kind has no namespaces, or the file does not say."""
    name: str


@dataclass
class Dump:
    """All that was read."""

    objects: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """Of an object that stands in several files the newest one, by its resource version."""
    usage: list[measured.Series] = field(default_factory=list)
    repeated: int = 0
    """Objects that stood in another file as well."""
    other_files: list[str] = field(default_factory=list)
    """Files of a folder that hold neither objects nor usage."""
    files: int = 0


def read(paths: Sequence[Path], usage: Sequence[Path] = ()) -> Dump:
    """``usage``: files that must hold usage. Raises ScenarioError with every mistake of all files."""
    found, problems = Dump(), list[errors.Problem]()
    for path in paths:
        if path.is_dir():
            files = sorted(each for each in path.rglob("*") if each.is_file() and not each.name.startswith("."))
            for file in files:
                _read_file(file, found, problems, is_named=False)
            if not files:
                problems.append(errors.Problem(str(path), 1, 1, "", "is an empty folder"))
        else:
            _read_file(path, found, problems, is_named=True)
    for path in usage:
        try:
            series = measured.parse(user_files.read_text(path), str(path))
        except (user_files.FileProblem, measured.UsageError) as error:
            problems.append(errors.Problem(str(path), 1, 1, "", str(error)))
            continue
        if not series:
            problems.append(errors.Problem(str(path), 1, 1, "", f"holds no usage: {measured.FORMS}"))
        found.usage += series
    if problems:
        raise errors.ScenarioError(problems)
    found.usage = measured.without_totals(found.usage)
    return found


def add(found: Dump, data: Mapping[str, Any]) -> None:
    """Keep an object, or the items of a List."""
    for each in _items(data):
        key = key_of(each)
        if key.kind in ("PodMetrics", "NodeMetrics"):
            found.usage += measured.of_metrics(each)
            continue
        known = found.objects.get(key)
        if known is not None:
            found.repeated += key.kind != "Event"  # Served by two groups.
            if _version(each) < _version(known):
                continue
        found.objects[key] = each


def key_of(data: Mapping[str, Any]) -> Key:
    metadata = data.get("metadata") or {}
    group = str(data.get("apiVersion", "")).rpartition("/")[0]
    kind = str(data.get("kind"))
    if kind == "Event" and group in _GROUPS_OF_EVENTS:
        group = ""  # One object, served by both.
    return Key(group, kind, str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def _read_file(file: Path, found: Dump, problems: list[errors.Problem], *, is_named: bool) -> None:
    """``is_named``: the user named this very file, so it has to hold something."""
    if file.suffix.lower() not in _OBJECTS and not (is_named and file.suffix.lower() not in _TEXTS):
        _read_usage(file, found, problems, is_named=is_named)
        return
    try:
        text = user_files.read_text(file)
    except user_files.FileProblem as error:
        problems.append(errors.Problem(str(file), 1, 1, "", str(error)))
        return
    if measured.looks_like(text):
        _add_usage(text, file, found, problems)
        return
    try:
        read_documents = documents.parse(text, str(file))
    except errors.ScenarioError as error:
        problems += error.problems
        return
    count = 0
    for document in read_documents:
        before = len(problems)
        complaints = [*_complaints(document)] if is_named or _is_object(document.data) else []
        problems += complaints
        if len(problems) == before and _is_object(document.data):
            add(found, document.data)
            count += 1
    if count:
        found.files += 1
    elif is_named and not problems:
        problems.append(errors.Problem(str(file), 1, 1, "", "holds no Kubernetes object"))
    elif not is_named:
        found.other_files.append(str(file))


def _read_usage(file: Path, found: Dump, problems: list[errors.Problem], *, is_named: bool) -> None:
    if file.suffix.lower() in _TEXTS or is_named:
        try:
            text = user_files.read_text(file)
        except user_files.FileProblem as error:
            if is_named:
                problems.append(errors.Problem(str(file), 1, 1, "", str(error)))
                return
            text = ""
        if measured.looks_like(text):
            _add_usage(text, file, found, problems)
            return
    if is_named:
        text = f"holds neither objects nor usage: {measured.FORMS}"
        problems.append(errors.Problem(str(file), 1, 1, "", text))
    else:
        found.other_files.append(str(file))


def _add_usage(text: str, file: Path, found: Dump, problems: list[errors.Problem]) -> None:
    try:
        found.usage += measured.parse(text, str(file))
        found.files += 1
    except measured.UsageError as error:
        problems.append(errors.Problem(str(file), error.line, 1, "", str(error)))


def _is_object(data: object) -> bool:
    return isinstance(data, dict) and isinstance(data.get("kind"), str) and "apiVersion" in data


def _complaints(document: documents.Document) -> Iterator[errors.Problem]:
    """About documents and items of Lists that are no objects."""
    data = document.data
    if not _is_object(data):
        yield document.problem((), "is no Kubernetes object: it has no apiVersion and kind")
        return
    items = data.get("items") if data["kind"].endswith("List") else None
    for index, item in enumerate(items if isinstance(items, list) else ()):
        path = ("items", index)
        if not isinstance(item, dict):
            yield document.problem(path, "is no Kubernetes object")
        elif data["kind"] == "List" and not _is_object(item):
            yield document.problem(path, "has no apiVersion and kind")
        elif not isinstance((item.get("metadata") or {}).get("name"), str):
            yield document.problem(path, "metadata.name is missing")


def _items(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind = str(data.get("kind"))
    if not (kind.endswith("List") and "items" in data):
        yield dict(data)
        return
    items = data["items"] or ()  # Go writes null for an empty list.
    item_kind = kind.removesuffix("List")
    given = {"apiVersion": data.get("apiVersion"), "kind": item_kind} if item_kind else {}
    for item in items:
        yield from _items({**given, **item})


def _version(data: Mapping[str, Any]) -> int:
    text = str((data.get("metadata") or {}).get("resourceVersion") or "0")
    return int(text) if text.isdecimal() else 0

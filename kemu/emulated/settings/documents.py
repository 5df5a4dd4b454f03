"""YAML files as plain data that remembers where everything stood.

Role: the first step of :mod:`kemu.lab.scenario.loading.loader`; every later complaint asks a :class:`Document` for the
line and column of the path that it is about.

Scalars are read as Kubernetes reads them (YAML 1.1 as in go-yaml): ``on``, ``off``, ``yes`` and ``no`` are booleans,
``0644`` is octal; but ``1:30`` and ``2000-01-01`` are text, and ``1e3`` is a number. A key that stands twice in a
mapping is an error, as are tags and documents that contain themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from kemu import errors
from kemu.emulated.objects.conversion import user_files, yaml_texts
from kemu.emulated.objects.plain import Json

Path = tuple[str | int, ...]
"""Keys and indexes from the root of a document."""

MAX_VALUES = 2_000_000
"""A document that grows beyond this (through aliases of aliases) is refused."""

_MANY_VALUES = 100_000
"""So many a document may stand for by its aliases, however few it has itself."""
MAX_MESSAGE = 1500
"""Longer messages quote too much of the input."""
_MANY_BRACKETS = 1000
"""libyaml before 0.2.6 has no limit of depth: from here on the shape is looked at before nodes are made."""
_LARGEST = 2**64

_TAG = "tag:yaml.org,2002:"
_BOOLEANS = {
    spelling: value
    for word, value in (("true", True), ("yes", True), ("on", True), ("false", False), ("no", False), ("off", False))
    for spelling in (word, word.capitalize(), word.upper())
}
_NULLS = ("", "~", "null", "Null", "NULL")
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)$")
_OCTAL = re.compile(r"[-+]?0o?[0-7_]+$")
_HEXADECIMAL = re.compile(r"[-+]?0x[0-9a-fA-F_]+$")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*\.[0-9_]*|[0-9][0-9_]*(?=[eE]))([eE][-+]?[0-9]+)?$")
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$")

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column of a value and, where it is the value of a mapping, of its key; from 1."""

    line: int
    column: int
    key_line: int
    key_column: int


@dataclass
class Document:
    """One YAML document: its data and the place of every path in it."""

    file: str
    data: Any
    places: dict[Path, Place] = field(default_factory=dict)
    octals: set[Path] = field(default_factory=set)
    """Numbers written with a leading zero: Kubernetes means octal, most people do not."""
    overridden: dict[Path, str] = field(default_factory=dict)
    """Paths whose values come from the command line: what stands there, in place of a file."""

    def place(self, path: Path) -> Place:
        """The place of the path itself or, where it does not exist, of what comes closest to it."""
        for end in range(len(path), -1, -1):
            place = self.places.get(path[:end])
            if place is not None:
                return place
        return Place(1, 1, 1, 1)

    def problem(
        self, path: Path, message: str, suggestion: str = "", *, key: bool = False, root: str = ""
    ) -> errors.Problem:
        """``key``: the complaint is about the key, not about its value. ``root``: text put before the path."""
        place, file = self.place(path), self.file
        line, column = (place.key_line, place.key_column) if key else (place.line, place.column)
        for end in range(len(path), 0, -1) if self.overridden else ():
            if path[:end] in self.overridden:
                file, line, column = self.overridden[path[:end]], 1, 1
        shown = message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 200]} … {message[-200:]}"
        return errors.Problem(file, line, column, join(root, path_text(path)), shown, suggestion)


def path_text(path: Path) -> str:
    """``spec.nodes[0].labels[topology.kubernetes.io/zone]``; what cannot be printed is escaped."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not step.isprintable():
            text += f"[{step.encode('unicode_escape').decode()}]"
        elif re.fullmatch(r"[A-Za-z0-9_-]+", step):
            text += f".{step}" if text else step
        else:
            text += f"[{step}]"
    return text


def join(root: str, path: str) -> str:
    if not root or not path:
        return root or path
    return root + path if path.startswith("[") else f"{root}.{path}"


def follow(data: Json, text: str) -> tuple[Path, str]:
    """The longest path in ``data`` that ``text`` describes, as far as it exists there, and the rest of the text.

    ``text`` is a field path as Kubernetes writes them, ``spec.containers[0].resources.requests[cpu]``; keys that hold
    dots (``metadata.labels.app.kubernetes.io/name``) are found too, and items of a list by their names
    (``pluginConfig[NodeResourcesFit]``).
    """
    path: list[str | int] = []
    rest = text
    while rest:
        if rest.startswith("["):
            inside, _, after = rest[1:].partition("]")
            inside = inside.strip("\"'")
            if isinstance(data, list) and inside.isdecimal() and int(inside) < len(data):
                path.append(int(inside))
                data = data[int(inside)]
            elif isinstance(data, dict) and inside in data:
                path.append(inside)
                data = data[inside]
            elif isinstance(data, list) and inside in (names := [_name(item) for item in data]):
                path.append(names.index(inside))
                data = data[names.index(inside)]
            else:
                break
            rest = after
            continue
        word = rest.removeprefix(".")
        if not isinstance(data, dict):
            break
        matching = [key for key in data if word.startswith(key) and word[len(key) : len(key) + 1] in ("", ".", "[")]
        if not matching:
            break
        key = max(matching, key=len)
        path.append(key)
        data = data[key]
        rest = word[len(key) :]
    return tuple(path), rest


def _name(item: Json) -> Any:
    return item.get("name") if isinstance(item, dict) else None


def read(file: FilePath, *, name: str = "") -> list[Document]:
    """The documents of a file. Raises ScenarioError for a file that cannot be read or is not YAML."""
    shown = name or str(file)
    try:
        text = user_files.read_text(file)
    except user_files.FileProblem as error:
        raise errors.ScenarioError([errors.Problem(shown, 1, 1, "", str(error))]) from None
    return parse(text, shown)


def parse(text: str, file: str) -> list[Document]:
    """The documents of a text; empty ones are left out. Raises ScenarioError with everything that is not plain YAML."""
    documents: list[Document] = []
    problems: list[errors.Problem] = []
    try:
        brackets = sum(text.count(mark) for mark in ("[", "{", "- ", "? "))
        if brackets > _MANY_BRACKETS or ("&" in text and "*" in text):
            yaml_texts.check_shape(text, _MANY_VALUES)
        for node in yaml.compose_all(text, Loader=_Loader):
            if node is None:
                continue
            document = Document(file, None)
            document.data = _Reading(document, problems).value(node, ())
            if document.data is not None:
                documents.append(document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        what = " ".join(part for part in (error.context, error.problem) if part)
        tab = _tab(text, line)
        if tab:
            column, what = tab, "a tab stands in the indentation; YAML allows spaces only"
        problems.append(errors.Problem(file, line, column, "", f"is not YAML: {what}"))
    except yaml_texts.TooDeep as error:
        problems.append(errors.Problem(file, error.line, error.column, "", _TOO_DEEP))
    except yaml_texts.BadShape as error:
        text = f"{error}: it stands for many more values than it has"
        problems.append(errors.Problem(file, error.line, error.column, "", text))
    except yaml.YAMLError as error:
        problems.append(errors.Problem(file, 1, 1, "", f"is not YAML: {error}"))
    if problems:
        raise errors.ScenarioError(problems)
    return documents


def _tab(text: str, line: int) -> int:
    """The column of a tab in the indentation of a line; 0: there is none."""
    lines = text.splitlines()
    written = lines[line - 1] if 0 < line <= len(lines) else ""
    indentation = written[: len(written) - len(written.lstrip())]
    return indentation.find("\t") + 1


_TOO_DEEP = f"is nested more than {yaml_texts.MAX_DEPTH} levels deep"


class _Reading:
    """The walk over the nodes of one document."""

    def __init__(self, document: Document, problems: list[errors.Problem]) -> None:
        self.document = document
        self.problems = problems
        self.open: list[yaml.Node] = []
        self.keys: dict[yaml.Node, list[tuple[yaml.Node, yaml.Node]]] = {}
        """Keys of mappings that are merged into others."""

    def problem(self, node: yaml.Node, path: Path, message: str, suggestion: str = "") -> None:
        mark = node.start_mark
        self.problems.append(
            errors.Problem(self.document.file, mark.line + 1, mark.column + 1, path_text(path), message, suggestion)
        )

    def value(self, node: yaml.Node, path: Path, key: yaml.Node | None = None) -> Any:
        places = self.document.places
        mark = node.start_mark
        key_mark = mark if key is None else key.start_mark
        places[path] = Place(mark.line + 1, mark.column + 1, key_mark.line + 1, key_mark.column + 1)
        if len(places) > MAX_VALUES or any(node is outer for outer in self.open):
            why = "contains itself" if len(places) <= MAX_VALUES else f"has more than {MAX_VALUES:,} values"
            self.problem(node, path, f"the document {why}")
            raise errors.ScenarioError(self.problems)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if len(self.open) >= yaml_texts.MAX_DEPTH:
            self.problem(node, path[:3], _TOO_DEEP)
            raise errors.ScenarioError(self.problems)
        self.open.append(node)
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            return self.mapping(node, path)
        finally:
            self.open.pop()

    def mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: list[tuple[yaml.Node, yaml.Node]] = []
        for key, item in node.value:
            if key.tag == f"{_TAG}merge":
                merged += self.merged(item, path, [node])
                continue
            if not isinstance(key, yaml.ScalarNode):
                self.problem(key, path, "a key must be a plain word")
                continue
            name = key.value
            if name in result:
                first = self.document.places[(*path, name)]
                self.problem(key, (*path, name), "stands twice in the same mapping", f"first in line {first.key_line}")
                continue
            result[name] = self.value(item, (*path, name), key)
        for key, item in merged:
            if isinstance(key, yaml.ScalarNode) and key.value not in result:
                result[key.value] = self.value(item, (*path, key.value), key)
        return result

    def merged(self, item: yaml.Node, path: Path, around: list[yaml.Node]) -> list[tuple[yaml.Node, yaml.Node]]:
        """The keys that ``<<: item`` brings, those that count first; ``around``: the mappings that they go into."""
        found: list[tuple[yaml.Node, yaml.Node]] = []
        for source in item.value if isinstance(item, yaml.SequenceNode) else [item]:
            if not isinstance(source, yaml.MappingNode):
                self.problem(source, path, "only mappings can be merged with <<")
            elif any(source is one for one in around):
                self.problem(source, path, "a mapping cannot be merged into itself")
            else:
                found += self.all_keys(source, path, around)
        return found

    def all_keys(self, source: yaml.Node, path: Path, around: list[yaml.Node]) -> list[tuple[yaml.Node, yaml.Node]]:
        """Those of a mapping, and those that are merged into it; each once."""
        known = self.keys.get(source)
        if known is None:
            pairs = [pair for pair in source.value if pair[0].tag != f"{_TAG}merge"]
            for key, item in source.value:
                if key.tag == f"{_TAG}merge":
                    pairs += self.merged(item, path, [*around, source])
            first: dict[Any, tuple[yaml.Node, yaml.Node]] = {}
            for key, item in pairs:
                first.setdefault(key.value if isinstance(key, yaml.ScalarNode) else key, (key, item))
            known = self.keys[source] = [*first.values()]
        return known

    def scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        text: str = node.value
        kind = node.tag.removeprefix(_TAG)
        if kind not in ("str", "int", "float", "bool", "null", "timestamp", "value", "merge"):
            self.problem(node, path, f"the tag {node.tag} has no meaning here")
            return text
        if node.style:  # quoted, or a block
            return text
        if text in _NULLS:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if _INTEGER.match(text):
            return _whole(text.replace("_", ""), 10)
        if _OCTAL.match(text):
            self.document.octals.add(path)
            return _whole(text.replace("_", "").replace("o", ""), 8)
        if _HEXADECIMAL.match(text):
            return _whole(text.replace("_", ""), 16)
        if _FLOAT.match(text):
            return float(text.replace("_", ""))
        if _SPECIAL_FLOAT.match(text):
            return float(text.replace(".", ""))
        return text


def _whole(digits: str, base: int) -> int | float:
    """As go-yaml: what no integer of 64 bits holds is a number with a floating point, perhaps infinite."""
    if len(digits) > 80:
        return float("-inf" if digits.startswith("-") else "inf") if base != 10 else float(digits)
    value = int(digits, base)
    return value if -_LARGEST < value < _LARGEST else float(value)


def copy(data: object) -> Any:
    """A copy of plain data that shares no mapping or list with it."""
    if isinstance(data, Mapping):
        return {key: copy(value) for key, value in data.items()}
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return [copy(value) for value in data]
    return data

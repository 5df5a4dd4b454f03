"""The messages of ``proto/kemu/k8s`` in another version of Kubernetes.

kemu's files have only the messages that it needs, and some of their own. So what changes between Kubernetes' files of
two versions (``generated.proto``) is done to kemu's: fields come, go and change, messages come where a field needs them
and go where Kubernetes has them no more. What both versions say alike stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.upgrades import modules

FOLDER = Path("proto/kemu/k8s")
OWN = "kemu.k8s."
_META = (
    "apis/meta/v1",
    "api/resource",
    "runtime",
    "util/intstr",
)
_FIELD = re.compile(r"^  (?:(optional|repeated) )?(map<[^>]*>|[.\w]+) (\w+) = (\d+)( \[[^\]]*\])?;$")
_INLINE = re.compile(r'json:"(?:,inline)?"[^`]*protobuf:"[^"]*name=(\w+)')
_STRUCT = re.compile(r"^type (\w+) struct \{$")
_THEIRS = re.compile(r"\.?k8s\.io\.(?:\w|[-.])+\.")


@dataclass
class Message:
    name: str
    fields: dict[str, str] = field(default_factory=dict)
    """Lines by name, in their order."""
    comment: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    """Other lines of the body, as they are: comments."""

    def needs(self) -> Iterator[str]:
        """Types of its fields, with their packages if these are others."""
        for line in self.fields.values():
            kind = line.split(" = ")[0].rpartition(" ")[0].split()[-1].removesuffix(">")
            if kind.rpartition(".")[2][:1].isupper():
                yield kind

    def lines(self) -> list[str]:
        return [*self.comment, f"message {self.name} {{", *(self.rest or self.fields.values()), "}"]

    @property
    def is_kind(self) -> bool:
        """Of objects of their own, and no list of them."""
        return "ObjectMeta metadata = 1;" in self.fields.get("metadata", "") and not self.name.endswith("Template")


@dataclass
class File:
    head: list[str]
    messages: dict[str, Message]

    def text(self) -> str:
        parts = ["\n".join(self.head).rstrip(), *("\n".join(one.lines()) for one in self.messages.values())]
        return "\n\n".join(parts) + "\n"


@dataclass
class Change:
    message: str
    """``core.v1.PodSpec``."""
    what: str

    def __str__(self) -> str:
        return f"{self.message}: {self.what}"


def source(package: str, version: str) -> list[Path]:
    """The folders of Kubernetes' types of a package of ours: ``core_v1``, ``meta_v1``."""
    if package == "meta_v1":
        return [modules.published("apimachinery", version) / "pkg" / part for part in _META]
    group, _, api_version = package.rpartition("_")
    outside = {"apiextensions": "apiextensions-apiserver", "apiregistration": "kube-aggregator"}
    if group in outside:
        return [modules.published(outside[group], version) / "pkg/apis" / group / api_version]
    return [modules.published("api", version) / group / api_version]


def theirs(package: str, version: str) -> dict[str, Message]:
    """Kubernetes' messages, as kemu would write them; empty if it has no such package."""
    found: dict[str, Message] = {}
    for folder in source(package, version):
        file = folder / "generated.proto"
        if file.exists():
            embedded = _embedded(folder)
            for message in read(file.read_text(), embedded).messages.values():
                found[message.name] = message
    return found


def _embedded(folder: Path) -> set[tuple[str, str]]:
    """Fields whose own fields stand in the JSON of their parents, from the Go types: struct, field."""
    found = set()
    for file in sorted(folder.glob("*.go")):
        struct = ""
        for line in file.read_text().splitlines():
            if begins := _STRUCT.match(line):
                struct = begins[1]
            elif tagged := _INLINE.search(line):
                found.add((struct, tagged[1]))
    return found


def read(text: str, embedded: set[tuple[str, str]] | None = None) -> File:
    """A file of messages. With ``embedded`` it is one of Kubernetes', whose comments go and whose names become ours."""
    file = File([], {})
    message: Message | None = None
    comment: list[str] = []
    for line in text.splitlines():
        if begins := re.match(r"^message (\w+) \{(\})?$", line):
            message = Message(begins[1], comment=[] if embedded is not None else comment)
            file.messages[message.name] = message
            comment = []
            if begins[2]:
                message = None
        elif message is None:
            if line.startswith("//") and file.messages:
                comment.append(line)
            elif not file.messages:
                file.head.append(line)
                if line.startswith("//") and embedded is None and _after_imports(file.head):
                    comment.append(file.head.pop())
        elif line == "}":
            message = None
        elif matched := _FIELD.match(line):
            written = line
            if embedded is not None:
                inline = " [(kemu.k8s.inline) = true]" if (message.name, matched[3]) in embedded else ""
                written = _ours(f"{line.rstrip(';').removesuffix(matched[5] or '')}{inline};")
            message.fields[matched[3]] = written
            message.rest.append(written)
        elif embedded is None:
            message.rest.append(line)
    for one in file.messages.values():
        if len(one.rest) == len(one.fields):
            one.rest = []  # nothing but fields
    return file


def _after_imports(head: list[str]) -> bool:
    return any(line.startswith("package ") for line in head)


def _ours(line: str) -> str:
    """``.k8s.io.api.core.v1.PodSpec`` in our words."""

    def named(match: re.Match[str]) -> str:
        parts = match[0].strip(".").split(".")
        if "apimachinery" in parts:
            return f".{OWN}meta.v1."
        return f".{OWN}{'.'.join(parts[-2:])}."

    return _THEIRS.sub(named, line)


def changed(name: str, file: File, before: dict[str, Message], after: dict[str, Message]) -> list[Change]:
    """Makes of ``file``, which is of the version of ``before``, one of the version of ``after``, and says what that
    changes. ``name``: of the package, ``core.v1``."""
    changes = []
    for message in list(file.messages.values()):
        was, now = before.get(message.name), after.get(message.name)
        if now is None:
            if was is not None:
                del file.messages[message.name]
                changes.append(Change(f"{name}.{message.name}", "is gone"))
        elif was is not None:
            changes += [Change(f"{name}.{message.name}", what) for what in _merge(message, was, now)]
    fresh = [each for each in after if each not in before and each not in file.messages and after[each].is_kind]
    fresh += _missing(file, after)
    added: list[str] = []
    while fresh:
        for each in fresh:
            file.messages[each] = Message(each, dict(after[each].fields))
            what = "is a new kind" if after[each].is_kind else "is new"
            changes.append(Change(f"{name}.{each}", f"{what}: {', '.join(after[each].fields)}"))
        added += fresh
        fresh = _missing(file, after)
    _place(file, added)
    return changes


def _merge(ours: Message, was: Message, now: Message) -> list[str]:
    found = []
    for name in was.fields.keys() - now.fields.keys() & ours.fields.keys():
        _drop(ours, name)
        found.append(f"- {name}")
    place = 0
    for name, line in now.fields.items():
        if name in ours.fields:
            if name in was.fields and was.fields[name] != line:
                found.append(f"{name}: {was.fields[name].strip()} -> {line.strip()}")
                if ours.rest:
                    ours.rest[ours.rest.index(ours.fields[name])] = line
                ours.fields[name] = line
            place = list(ours.fields).index(name) + 1
        elif name not in was.fields:
            items = list(ours.fields.items())
            items.insert(place, (name, line))
            ours.fields = dict(items)
            if ours.rest:
                ours.rest.append(line)
            place += 1
            found.append(f"+ {line.strip()}")
    return sorted(found)


def _drop(message: Message, name: str) -> None:
    line = message.fields.pop(name)
    if message.rest:
        message.rest.remove(line)


def _missing(file: File, after: dict[str, Message]) -> list[str]:
    """Messages of this package that fields have as types."""
    needed = {kind for one in file.messages.values() for kind in one.needs() if not kind.startswith(".")}
    return sorted((needed - file.messages.keys()) & after.keys())


def _place(file: File, fresh: list[str]) -> None:
    """Puts new messages in alphabetical order between the others, which keep theirs."""
    kept = [each for each in file.messages if each not in fresh]
    for name in sorted(fresh):
        place = next((number for number, each in enumerate(kept) if each > name), len(kept))
        kept.insert(place, name)
    file.messages = {name: file.messages[name] for name in kept}


def _imports(file: File, package: str) -> None:
    """Imports what fields need, and nothing else."""
    text = "\n".join(line for one in file.messages.values() for line in one.lines())
    needed = set()
    for found in re.findall(r"\.kemu\.k8s\.(\w+)\.(\w+)\.", text):
        if "_".join(found) != package:
            needed.add(f'import "kemu/k8s/{"_".join(found)}.proto";')
    if "(kemu.k8s.inline)" in text:
        needed.add('import "kemu/k8s/options.proto";')
    place = next(number for number, line in enumerate(file.head) if line.startswith("package ")) + 1
    rest = [line for line in file.head[place:] if line.strip() and not line.startswith("import ")]
    file.head = [*file.head[:place], *(["", *sorted(needed)] if needed else []), *rest]


def upgrade(tree: Path, before: str, after: str) -> list[Change]:
    """Changes the files of ``tree``, which are of version ``before``, to those of ``after``."""
    changes = []
    for path in sorted((tree / FOLDER).glob("*_v*.proto")):
        file = read(path.read_text())
        package = path.stem
        changes += changed(package.replace("_", ".", 1), file, theirs(package, before), theirs(package, after))
        _imports(file, package)
        file.head = [line.replace(f"(v{modules.minor(before)})", f"(v{modules.minor(after)})") for line in file.head]
        path.write_text(file.text())
    return changes

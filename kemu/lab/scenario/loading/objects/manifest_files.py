"""Kubernetes objects that a scenario names by file: one file, a folder, a pattern; several documents, Lists.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`, for ``manifests`` and for events that create objects. What is
found goes into the resolved document, so that the run folder needs no other file.
"""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from kemu import errors
from kemu.emulated.objects import resources
from kemu.emulated.objects.fields.unsimulated import UNSIMULATED
from kemu.emulated.objects.kinds import removed_betas
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings import documents
from kemu.emulated.settings.documents import Document, Path
from kemu.emulated.settings.shapes import Report
from kemu.lab.scenario.loading.objects import imports, manifests

SUFFIXES = (".yaml", ".yml", ".json")
"""As kubectl looks for in a folder."""
REFUSE, IGNORE = "refuse", "ignore"

Source = tuple[Any, Path, Report]
"""An object as data, and where it stands."""

_FIRST = ("Namespace",)
_EARLY = (
    "CustomResourceDefinition",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "CSIDriver",
    "ResourceQuota",
    "LimitRange",
)
"""What the API server wants to know before the objects that need it."""


class ManifestFiles:
    """Reads the files that a scenario names, relative to itself."""

    def __init__(
        self,
        beside: FilePath,
        unsimulated: object,
        controllers: object = None,
        api_servers: object = None,
        schedulers: object = None,
    ) -> None:
        """``unsimulated``: the key of the scenario: "ignore", or the kinds that are left out. ``controllers``: another
        one: those that it names. ``api_servers``: another one, which says whether removed betas are known.
        ``schedulers``: another one, for their feature gates."""
        named = tuple(controllers) if isinstance(controllers, list | dict) else ()
        self.acting = (*named, *_gates(schedulers, beside))
        """The controllers that the scenario names, and the feature gates that a scheduler has on."""
        self.documents: list[Document] = []
        """All that was read."""
        self.skipped: list[errors.Problem] = []
        """Objects that the scenario leaves out because kemu does not simulate them."""
        self.dropped = imports.Dropped()
        self._imported: dict[int, Any] = {}
        """Objects with traces of a server, by their identity."""
        self._dropped_at: tuple[Report, Path] | None = None
        """Where the first object stands of which something was dropped."""
        self._defined: set[str] = set()
        """Custom kinds, as ``manifests.defined_by`` names them."""
        self._beside = beside
        self._unsimulated = unsimulated
        self._takes_betas = isinstance(api_servers, dict) and api_servers.get("removedBetas") is True

    def sources(self, data: Json, path: Path, report: Report) -> list[Source]:
        """The objects that ``data`` stands for: itself, the items of a List, or the content of a file."""
        if not isinstance(data, dict) or set(data) != {"file"}:
            return list(self._simulated(_without_lists([(data, path, report)])))
        name = data["file"]
        if not isinstance(name, str) or not name:
            report.add((*path, "file"), "must be the name of a file")
            return []
        found: list[Source] = []
        files = self._files(name, (*path, "file"), report)
        for file in files:
            for each in self.read(file, (*path, "file"), report):
                found += _without_lists([(each.data, (), Report(each, report.problems))])
        found = list(self._simulated(found))
        return sorted(found, key=_rank) if len(files) > 1 else found

    def notes(self) -> list[errors.Problem]:
        """What is told of the objects: one line about what was dropped of them, and what was left out."""
        if self._dropped_at is None:
            return self.skipped
        report, path = self._dropped_at
        text = f"what servers wrote is dropped: {self.dropped}"
        return [report.document.problem(path, text, root=report.root), *self.skipped]

    def with_owners(self, sources: Sequence[Source]) -> list[Source]:
        """The same; what comes from a cluster has only owners that come along."""
        known = {imports.name_of(data) for data, _, _ in sources}
        found = []
        for data, path, report in sources:
            is_imported = id(data) in self._imported
            found.append((imports.owned(data, known, self.dropped) if is_imported else data, path, report))
        return found

    def read(self, name: str, path: Path, report: Report) -> list[Document]:
        """The documents of one file."""
        try:
            found = documents.read(self._beside / name)
        except errors.ScenarioError as error:
            for problem in error.problems:
                if problem.message.startswith("cannot be read"):
                    report.add(path, f"{problem.file} {problem.message}")
                else:
                    report.problems.append(problem)
            return []
        if not found:
            report.add(path, f"{name} holds no document")
        self.documents += found
        return found

    def _files(self, name: str, path: Path, report: Report) -> list[str]:
        """The files of a name, in their order. A folder gives those directly in it, as with kubectl."""
        place = self._beside / name
        if place.is_dir():
            found = sorted(file.name for file in place.iterdir() if file.is_file() and file.suffix in SUFFIXES)
            if not found:
                report.add(path, f"{name} is a folder without manifests", f"their names end in {', '.join(SUFFIXES)}")
            return [str(FilePath(name) / file) for file in found]
        if glob.has_magic(name) and not place.exists():
            found = sorted(glob.glob(name, root_dir=self._beside, recursive=True))
            if not found:
                report.add(path, f"no file is named like {name}")
            return [file for file in found if (self._beside / file).is_file()]
        return [name]

    def _simulated(self, sources: Iterable[Source]) -> Iterator[Source]:
        """Without those that the scenario leaves out."""
        found = list(sources)
        if self._takes_betas:
            found = [(removed_betas.upgraded(data), path, report) for data, path, report in found]
        self._defined.update(manifests.defined_by(data) for data, _, _ in found)
        for data, path, report in found:
            why = self._why_skipped(data)
            if why:
                name = (
                    (data.get("metadata") or {}).get("name") if isinstance(data.get("metadata"), dict) else ""
                ) or ""
                text = f"{data['kind']} {name} is left out: {why}".replace("  ", " ")
                self.skipped.append(report.document.problem((*path, "kind"), text, root=report.root))
            else:
                before = self.dropped.counts.total()
                cleaned = imports.cleaned(data, self.dropped)
                if self.dropped.counts.total() > before:
                    self._imported[id(cleaned)] = cleaned
                    self._dropped_at = self._dropped_at or (report, path)
                yield cleaned, path, report

    def _why_skipped(self, data: Mapping[str, Any]) -> str:
        """Empty for what is simulated, and for what the scenario does not want to leave out."""
        kind = data.get("kind") if isinstance(data, dict) else None
        if not isinstance(kind, str) or self._unsimulated in (None, REFUSE, []):
            return ""
        if self._unsimulated != IGNORE and kind not in self._unsimulated:  # type: ignore[operator]
            return ""
        why = manifests.why_unsimulated(data, self.acting, self._defined)
        known = kind in resources.BY_KIND or f"{kind}.{str(data.get('apiVersion')).rpartition('/')[0]}" in self._defined
        return why or ("" if known else "kemu does not know this kind")


def left_out(kinds: Iterable[str]) -> list[str]:
    """Those of these kinds that a scenario cannot leave out, because kemu simulates them."""
    return [kind for kind in kinds if kind in resources.BY_KIND and kind not in UNSIMULATED]


def _without_lists(sources: Iterable[Source]) -> Iterator[Source]:
    """Objects; in place of a List its items. Those of a typed list, a PodList, need not state their kind."""
    for data, path, report in sources:
        kind = data.get("kind") if isinstance(data, dict) else None
        items = data.get("items") if isinstance(kind, str) and kind.endswith("List") else None
        if not isinstance(items, list):
            yield data, path, report
            continue
        item_kind = kind.removesuffix("List")  # type: ignore[union-attr]
        given = {"apiVersion": data.get("apiVersion"), "kind": item_kind} if item_kind else {}
        for index, item in enumerate(items):
            each = {**given, **item} if isinstance(item, dict) else item
            yield from _without_lists([(each, (*path, "items", index), report)])


def _rank(source: Source) -> int:
    kind = source[0].get("kind") if isinstance(source[0], dict) else None
    if kind in _FIRST:
        return 0
    return 1 if kind in _EARLY else 2


def _gates(schedulers: object, beside: FilePath) -> Iterator[str]:
    """Those that are on in the configuration of some scheduler; its mistakes are reported elsewhere."""
    for one in schedulers if isinstance(schedulers, list) else ():
        stated = one if isinstance(one, dict) else {}
        config, file = stated.get("config"), stated.get("configFile")
        if isinstance(file, str):
            with contextlib.suppress(errors.ScenarioError):
                config = next((each.data for each in documents.read(beside / file)), None)
        gates = config.get("featureGates") if isinstance(config, dict) else None
        yield from (gate for gate, is_on in gates.items() if is_on is True) if isinstance(gates, dict) else ()

"""From a file to a hunt: the cluster, the controllers, and what is done to them step by step.

apiVersion: kemu.dev/v1
kind: Hunt
metadata: {name: zookeeper}
spec:
  cluster: {nodes: 3, manifests: [crds/]}
  controllers: [{name: operator, command: [bin/manager, --kubeconfig, "{kubeconfig}"]}]
  steps: [{apply: cr.yaml}, {wait: 2m}]
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings import documents
from kemu.emulated.settings.documents import Document
from kemu.emulated.settings.shapes import (
    INVALID,
    NAME,
    POSITIVE_SECONDS,
    SECONDS,
    AsWritten,
    Free,
    Key,
    ListOf,
    MapOf,
    Reading,
    Record,
    Report,
    Switch,
    Text,
    Whole,
    kind_of,
)
from kemu.errors import Problem, ScenarioError
from kemu.lab.scenario.loading import mistakes

T = TypeVar("T")

KIND = "Hunt"
LASTING = ("freeze", "hide", "delay", "pause", "slowWrites", "lag", "outage", "lateAnswer", "depose", "mutate")
"""Perturbations that last a while, by their names in :mod:`kemu.lab.hunt.perturbations`."""
WITHIN_S = 300.0
"""Virtual time in which what a step waits for has to come about."""
STABLE_S = 20.0
"""Virtual time before the end in which nothing may change any more."""
READY_S = 30.0
"""Real time in which a controller has to be ready."""


def _regex(value: Json) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a text")
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return value


_PATTERN = Reading(_regex, {"type": "string", "format": "regex"})
_TEXT = Text()
_OBJECT = Record(
    {
        "kind": Key(
            Text(r"[A-Za-z][A-Za-z0-9]*(\.[a-z0-9.-]+)?", "a kind, as StatefulSet or Widget.example.com"),
            "Its kind.",
            required=True,
        ),
        "name": Key(_TEXT, "Its name.", required=True),
        "namespace": Key(NAME, "Its namespace; default."),
    }
)
_UNTIL = Record(
    {
        "object": Key(_OBJECT, "Which object.", required=True),
        "field": Key(_TEXT, "A field of it, such as status.readyReplicas."),
        "equals": Key(Free(mapping=False), "What the field has to be."),
        "exists": Key(Switch(), "Whether the object is there; true."),
    }
)
_ANY_STEP = {
    "apply": Key(Free(mapping=False), "Objects, or files of them, beside this one: applied on the server's side."),
    "delete": Key(_OBJECT, "An object that is deleted."),
    "patch": Key(_OBJECT, "An object that is changed, by a merge patch."),
    "scale": Key(_OBJECT, "An object with the subresource scale."),
    "until": Key(AsWritten(Free(mapping=False)), "What is waited for: an object, or a condition of kemu step."),
    "wait": Key(POSITIVE_SECONDS, "So much time passes."),
}
_STEP = Record(
    {"namespace": Key(NAME, "Of apply and until: where objects are that do not say so; default.")},
    choices=_ANY_STEP,
    noun="deed",
    companions={
        "patch": Record({"with": Key(Free(), "What is changed.", required=True)}),
        "scale": Record({"replicas": Key(Whole(0), "How many.", required=True)}),
        "until": Record({"within": Key(POSITIVE_SECONDS, "Time in which it has to come about; 5m.")}),
    },
)
_CONTROLLER = Record(
    {
        "name": Key(NAME, "Its name.", required=True),
        "command": Key(
            ListOf(_TEXT, 1),
            "What starts it. {kubeconfig}, {folder} (of the trial), {here} (where this file is), {operators} (those "
            "of scripts/operators), {port} (a free one, the same for all) and {python} (that of kemu) are replaced.",
            required=True,
        ),
        "env": Key(MapOf(Text(".*")), "Its environment, beside that of kemu; the same is replaced."),
        "directory": Key(_TEXT, "Where it runs, beside this file; where this file is."),
        "clock": Key(Text("python", "python"), "Whose sleeps and timers pass in virtual time: python."),
        "replicas": Key(Whole(1), "How many of it there are, of which one leads; 1 or 2."),
        "ready": Key(
            Record({"log": Key(_PATTERN, "A line that it prints when it works.", required=True)}),
            "When it works; by default as soon as it has asked for something.",
        ),
    }
)
_HUNT = Record(
    {
        "cluster": Key(
            Record(
                {
                    "nodes": Key(Whole(1), "How many nodes it has; 3."),
                    "manifests": Key(ListOf(_TEXT), "Files and folders of objects that are there from the start."),
                    "removedBetas": Key(
                        Switch(), "Old operators find the betas that they ask for: kemu up --removed-betas."
                    ),
                    "set": Key(Free(), "Values of a scenario, by paths below its spec."),
                }
            ),
            "The cluster.",
        ),
        "controllers": Key(ListOf(_CONTROLLER, 1), "Whom the hunt is for.", required=True),
        "steps": Key(ListOf(_STEP, 1), "What is done, in order.", required=True),
        "properties": Key(ListOf(Free()), "Expectations, as in a scenario, that have to hold."),
        "ignore": Key(
            ListOf(
                Record(
                    {
                        "path": Key(_TEXT, "A field, such as metadata.annotations.last-update.", required=True),
                        "kind": Key(_TEXT, "Of this kind only."),
                    }
                )
            ),
            "Fields whose values say nothing.",
        ),
        "lasts": Key(
            Record({kind: Key(POSITIVE_SECONDS, "So long.") for kind in LASTING}),
            "Virtual time that perturbations last, by kind, where it is not the usual one: {lag: 6m}.",
        ),
        "settle": Key(POSITIVE_SECONDS, "Real time without a word after which controllers have reacted; 20ms."),
        "stable": Key(SECONDS, "Virtual time before the end in which nothing may change any more; 20s."),
        "rest": Key(SECONDS, "Virtual time after the last step until the end; 2m."),
    }
)
_FILE = Record(
    {
        "apiVersion": Key(Text(r"kemu\.dev/v1", "kemu.dev/v1"), "", required=True),
        "kind": Key(Text(KIND, KIND), "", required=True),
        "metadata": Key(
            Record({"name": Key(NAME, "", required=True), "description": Key(_TEXT, "")}), "", required=True
        ),
        "spec": Key(_HUNT, "", required=True),
    }
)


SECOND = "-2"
"""What the name of a controller's second replica ends with."""
_MOST_REPLICAS = 2


@dataclass(frozen=True)
class Controller:
    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""
    ready: str = ""
    """A regular expression of a line; empty: it is ready when it asks for something."""
    clock: str = ""
    """``python``: its timers are in virtual time by :mod:`kemu.lab.hunt.running.clocks`."""
    stands_by: bool = False
    """It waits for the lease of another one, which has its name without :data:`SECOND`."""


@dataclass(frozen=True)
class Named:
    """An object by its kind and name."""

    kind: str
    """``StatefulSet``, ``Widget.example.com``"""
    name: str
    namespace: str = "default"

    def __str__(self) -> str:
        place = "" if self.namespace in ("", "default") else f"{self.namespace}/"
        return f"{self.kind} {place}{self.name}"


@dataclass(frozen=True)
class Step:
    """One thing that is done."""

    what: str
    """``apply delete patch scale until wait``"""
    subject: Named | None = None
    objects: tuple[Mapping[str, Any], ...] = ()
    """Of ``apply``."""
    change: Mapping[str, Any] = field(default_factory=dict)
    """Of ``patch``."""
    replicas: int = 0
    condition: str = ""
    """Of ``until``, as kemu step takes it, where it names no object."""
    test: str = ""
    """Of ``until``, for :attr:`subject`: ``exists``, ``gone``, ``.status.readyReplicas=3``."""
    seconds: float = 0.0
    """Of ``wait``; of ``until`` the limit."""
    namespace: str = "default"

    def __str__(self) -> str:
        if self.what == "apply":
            names = [f"{one.get('kind')} {one.get('metadata', {}).get('name', '')}" for one in self.objects]
            return f"apply {', '.join(names)}"
        if self.what == "until":
            return f"until {self.condition or f'{self.subject} {self.test}'}"
        if self.what == "wait":
            return f"wait {self.seconds:g} s"
        if self.what == "scale":
            return f"scale {self.subject} to {self.replicas}"
        return f"{self.what} {self.subject}"


@dataclass(frozen=True)
class Ignored:
    """A field whose value says nothing. ``kind`` empty: of all kinds."""

    path: str
    kind: str = ""


@dataclass(frozen=True)
class Project:
    name: str
    file: Path
    controllers: tuple[Controller, ...]
    steps: tuple[Step, ...]
    nodes: int = 3
    manifests: tuple[Path, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    properties: tuple[Mapping[str, Any], ...] = ()
    ignored: tuple[Ignored, ...] = ()
    settle_s: float = 0.02
    rest_s: float = 120.0
    stable_s: float = STABLE_S
    lasts_s: Mapping[str, float] = field(default_factory=dict)
    """How long perturbations last, by kind, where it is not the usual time."""

    @property
    def here(self) -> Path:
        return self.file.absolute().parent

    def with_seconds(self, names: Collection[str]) -> Project:
        """With a second replica of each of these controllers."""
        known = {one.name for one in self.controllers}
        added = [
            second_of(one)
            for one in self.controllers
            if one.name in names and f"{one.name}{SECOND}" not in known  # one that the file asks for is there
        ]
        return replace(self, controllers=(*self.controllers, *added))


def second_of(one: Controller) -> Controller:
    """Who waits for a lease may never print that it works."""
    return replace(one, name=f"{one.name}{SECOND}", ready="", stands_by=True)


def operators() -> Path:
    """Where scripts/operators puts operators."""
    stated = os.environ.get("KEMU_OPERATORS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(stated) if stated else cache / "kemu-tools" / "operators"


def load(file: Path) -> Project:
    """Raises ScenarioError with every mistake."""
    found = documents.read(file)
    if len(found) != 1:
        raise ScenarioError([Problem(str(file), 1, 1, "", f"holds {len(found)} documents; a hunt is one")])
    return _Loading(found[0], file).project()


class _Loading:
    def __init__(self, document: Document, file: Path) -> None:
        self._document = document
        self._file = file
        self._here = file.absolute().parent
        self._problems: list[Problem] = []
        self._report = Report(document, self._problems)

    def project(self) -> Project:
        checked = _FILE.check(self._document.data, (), self._report)
        spec: Mapping[str, Any] = {} if checked is INVALID else checked.get("spec", {})
        nothing: Mapping[str, Any] = {}
        none: Sequence[Any] = ()
        cluster = _valid(spec.get("cluster"), nothing)
        steps = [
            self._step(each, ("spec", "steps", index))
            for index, each in enumerate(_valid(spec.get("steps"), none))
            if each is not INVALID
        ]
        controllers = [
            one
            for index, each in enumerate(_valid(spec.get("controllers"), none))
            if _is_started(each)
            for one in self._replicas(self._controller(each, ("spec", "controllers", index)), each, index)
        ]
        names = [each.name for each in controllers]
        for index, name in enumerate(names):
            if name in names[:index]:
                self._report.add(("spec", "controllers", index, "name"), f"there are two controllers {name}")
        manifests = self._manifests(_valid(cluster.get("manifests"), none))
        if self._problems:
            raise ScenarioError(mistakes.in_order(self._problems, self._document.file))
        return Project(
            checked["metadata"]["name"],
            self._file,
            tuple(controllers),
            tuple(each for each in steps if each is not None),
            cluster.get("nodes", 3),
            tuple(manifests),
            {**cluster.get("set", {}), **({"apiServers.removedBetas": True} if cluster.get("removedBetas") else {})},
            tuple(spec.get("properties", ())),
            tuple(Ignored(each["path"], each.get("kind", "")) for each in spec.get("ignore", ())),
            spec.get("settle", 0.02),
            spec.get("rest", 120.0),
            spec.get("stable", min(STABLE_S, spec.get("rest", STABLE_S))),
            lasts_s=spec.get("lasts", {}),
        )

    def _manifests(self, stated: Sequence[str]) -> list[Path]:
        found = []
        for index, name in enumerate(stated):
            if name is INVALID:
                continue
            found.append(self._found(name, self._here, ("spec", "cluster", "manifests", index)))
        return found

    def _found(self, name: str, folder: Path, path: documents.Path) -> Path:
        """The file or folder of that name, if it exists; what only a trial knows (``{folder}``) is not looked at."""
        is_built = "{operators}" in name
        place = folder / name.replace("{operators}", str(operators())).replace("{here}", str(self._here))
        if "{" not in str(place) and not place.exists():
            text = (
                f"there is no {place}" if is_built or folder != self._here else f"there is no {name} beside this file"
            )
            self._report.add(path, text, "scripts/operators builds operators" if is_built else "")
        return place

    def _controller(self, stated: Mapping[str, Any], path: documents.Path) -> Controller:
        ready: Mapping[str, Any] = _valid(stated.get("ready"), {})
        directory = _valid(stated.get("directory"), "")
        program = next(iter(_valid(stated["command"], ())), "")
        if isinstance(program, str) and "/" in program:  # others are on the PATH
            self._found(program, self._here / directory, (*path, "command", 0))
        return Controller(
            stated["name"],
            tuple(stated["command"]),
            stated.get("env", {}),
            directory,
            _valid(ready.get("log"), ""),
            _valid(stated.get("clock"), ""),
        )

    def _replicas(self, one: Controller, stated: Mapping[str, Any], index: int) -> list[Controller]:
        count = _valid(stated.get("replicas"), 1)
        if count > _MOST_REPLICAS:
            self._report.add(("spec", "controllers", index, "replicas"), "at most 2: one leads, the other one waits")
        return [one, second_of(one)] if count > 1 else [one]

    def _step(self, stated: Mapping[str, Any], path: documents.Path) -> Step | None:
        what = next((key for key in _ANY_STEP if key in stated), "")
        value: Any = stated.get(what)
        namespace = stated.get("namespace", "default")
        if what == "apply":
            objects = self._objects(value, (*path, "apply"))
            return Step(what, objects=tuple(objects), namespace=namespace)
        if what == "wait":
            return Step(what, seconds=value)
        if what == "until":
            return self._until(value, (*path, "until"), stated.get("within", WITHIN_S), namespace)
        if not _is_named(value):
            return None
        return Step(what, _named(value), change=stated.get("with", {}), replicas=stated.get("replicas", 0))

    def _until(self, value: Json, path: documents.Path, within_s: float, namespace: str) -> Step | None:
        if isinstance(value, str):
            return Step("until", condition=value, seconds=within_s, namespace=namespace)
        checked = _UNTIL.check(value, path, self._report)
        if checked is INVALID or not _is_named(checked.get("object")):
            return None
        named, name = checked["object"], checked.get("field", "")
        if bool(name) != ("equals" in checked) or (name and "exists" in checked):
            self._report.add(path, "has to have field and equals, or exists")
            return None
        equals = checked.get("equals")
        shown = str(equals).lower() if isinstance(equals, bool) else str(equals)
        test = f".{name.lstrip('.')}={shown}" if name else "exists" if checked.get("exists", True) else "gone"
        return Step("until", _named(named), test=test, seconds=within_s)

    def _objects(self, value: Json, path: documents.Path) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str):
                found += self._read(one, path)
            elif isinstance(one, dict):
                found.append(one)
            else:
                self._report.add(path, f"must be an object or the name of a file, not {kind_of(one)}")
        for each in found:
            if not (each.get("apiVersion") and each.get("kind") and each.get("metadata", {}).get("name")):
                self._report.add(path, "an object has to have apiVersion, kind and metadata.name")
        return found

    def _read(self, name: str, path: documents.Path) -> list[Mapping[str, Any]]:
        place = self._here / name
        files = sorted(place.glob("*.y*ml")) if place.is_dir() else [place]
        found: list[Mapping[str, Any]] = []
        for file in files:
            try:
                found += [each.data for each in documents.read(file) if isinstance(each.data, dict)]
            except ScenarioError as error:
                self._problems += error.problems
        if not found and not self._problems:
            self._report.add(path, f"{name} holds no object")
        return found


def _named(stated: Mapping[str, Any]) -> Named:
    return Named(stated["kind"], stated["name"], stated.get("namespace", "default"))


def _valid(value: object, default: T) -> T:
    return default if value is None or value is INVALID else cast(T, value)


def _is_named(stated: object) -> bool:
    return isinstance(stated, Mapping) and {"kind", "name"} <= stated.keys()


def _is_started(stated: object) -> bool:
    return isinstance(stated, Mapping) and {"name", "command"} <= stated.keys()

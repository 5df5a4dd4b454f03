"""From a YAML file to an experiment, or to all of its mistakes at once.

The scenario goes through its own loader, once as it is and once for each variant; a mistake in a value that varies is
told at the place in the experiment that holds the value.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import yaml

from kemu.emulated.objects.conversion import user_files
from kemu.emulated.settings import documents
from kemu.emulated.settings.documents import Document, Path
from kemu.emulated.settings.shapes import INVALID, Report, kind_of
from kemu.errors import KemuError, Problem, ScenarioError
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader, matrices, mistakes, overriding, references
from kemu.lab.scenario.loading.objects import foreign_files
from kemu.lab.scenario.playing import plays
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.sweep.cells import Metric
from kemu.lab.sweep.experiments import experiments, keys
from kemu.lab.sweep.experiments.experiments import Experiment, Limits
from kemu.lab.sweep.statistics import claims
from kemu.lab.sweep.statistics.claims import Claim

_VARY: Path = ("spec", "vary")
_SCENARIO: Path = ("spec", "scenario")
_METRIC = re.compile(r"([^()\s]+)\(\s*priority\s*=\s*(-?[0-9]+)\s*\)")
_DEFAULT_METRICS = (Metric("waiting.p99_s"), Metric("utilisation.cpu"), Metric("preemptions"))


def load(
    path: str | FilePath, data_dir: str | FilePath | None = None, settings: Mapping[str, Any] | None = None
) -> Experiment:
    """Read an experiment.

    ``data_dir`` is where traces are found. ``settings`` are values for paths below the scenario's spec, beside those of
    ``set``. Raises ScenarioError with every mistake, in the order of the file.
    """
    found = documents.read(FilePath(path))
    text = user_files.read_text(FilePath(path))
    if settings and foreign_files.is_experiment(found):
        text = _with_settings(found[0], settings)
    return _of_documents(found, text, str(path), data_dir)


def _with_settings(document: Document, settings: Mapping[str, Any]) -> str:
    """The text of the experiment whose ``set`` has these, too, which the document gets."""
    spec = document.data.get("spec")
    if isinstance(spec, dict) and isinstance(stated := spec.setdefault("set", {}), dict):
        stated |= settings
        document.overridden |= {("spec", "set", path): f"{mistakes.OVERRIDE} {path}" for path in settings}
    return yaml.safe_dump(document.data, sort_keys=False, width=120, allow_unicode=True)


def loads(text: str, name: str = "experiment.yaml", data_dir: str | FilePath | None = None) -> Experiment:
    """The same from a text; files that it names are looked for beside ``name``."""
    return _of_documents(documents.parse(text, name), text, name, data_dir)


def _of_documents(found: Sequence[Document], text: str, name: str, data_dir: str | FilePath | None) -> Experiment:
    if foreign_files.is_experiment(found):
        return _Loading(found[0], text, None if data_dir is None else FilePath(data_dir)).build()
    if len(found) > 1:
        raise ScenarioError([Problem(name, 1, 1, "", f"holds {len(found)} documents; an experiment is one document")])
    if not found:
        raise ScenarioError([Problem(name, 1, 1, "", "holds no document")])
    document, data = found[0], found[0].data
    if not isinstance(data, dict):
        raise ScenarioError([document.problem((), f"is no experiment: it is {kind_of(data)}")])
    if data.get("kind") == "Scenario":
        hint = f"kemu run {name} runs it; an experiment names it: spec.scenario: {name}"
        raise ScenarioError([document.problem(("kind",), "is a scenario, not an experiment", hint)])
    # Whatever else is wrong is told key by key.
    problems: list[Problem] = []
    keys.EXPERIMENT.check(data, (), Report(document, problems))
    raise ScenarioError(mistakes.in_order(problems, name))


@dataclass(frozen=True)
class _Place:
    """Where a document of a scenario stands."""

    document: Document
    prefix: str = ""
    """Put before the path of a mistake where the scenario stands in the experiment."""
    cut: str = ""
    """Taken away there: an inline scenario may be only its spec."""
    source: str = ""

    def told(self, problem: Problem) -> Problem:
        if not self.prefix or problem.file != self.document.file:
            return problem
        path = problem.path
        if self.cut and (path == self.cut or path.startswith((f"{self.cut}.", f"{self.cut}["))):
            path = path[len(self.cut) :].removeprefix(".")
        return dataclasses.replace(problem, path=documents.join(self.prefix, path))


class _Loading:
    """Loading of one experiment."""

    def __init__(self, document: Document, text: str, data_dir: FilePath | None) -> None:
        self._document = document
        self._text = text
        self._data_dir = data_dir
        self._problems: list[Problem] = []
        self._report = Report(document, self._problems)

    def build(self) -> Experiment:
        """Raises ScenarioError with every mistake."""
        checked = keys.EXPERIMENT.check(self._document.data, (), self._report)
        spec = checked.get("spec", {}) if checked is not INVALID else {}
        dimensions = self._dimensions(spec.get("vary", {}))
        metrics = self._metrics(spec.get("metrics"))
        stated = {each.name: tuple(shown for shown, _ in each.choices) for each in dimensions}
        # A claim may name a path whose values are wrong: that is told once.
        whole = len(stated) == len(_names(self._document.data))
        found = self._claims(spec.get("claims", []), stated) if whole else []
        settings = spec.get("set", {})
        place = self._scenario(spec["scenario"]) if "scenario" in spec else None
        scenario = self._base(place, settings) if place is not None else None
        combinations: list[matrices.Combination] = []
        warnings: list[Problem] = []
        if place is not None and scenario is not None:
            dimensions = [each for each in dimensions if self._fits(each, place, settings)]
            combinations = list(matrices.combinations(dimensions)) or [matrices.Combination({}, {})]
            warnings = self._variants(combinations, place, settings)
        if self._problems or scenario is None or place is None:
            raise ScenarioError(mistakes.in_order(self._problems, self._document.file))
        metadata = checked.get("metadata", {})
        return Experiment(
            name=metadata.get("name") or FilePath(self._document.file).stem,
            description=metadata.get("description", ""),
            file=self._document.file,
            text=self._text,
            scenario=scenario,
            source=place.source,
            settings=settings,
            data_dir="" if self._data_dir is None else str(self._data_dir),
            varied=tuple(each.name for each in dimensions),
            variants=tuple(each.variant for each in combinations),
            overrides=tuple(each.values for each in combinations),
            seeds=spec["seeds"],
            metrics=tuple(dict.fromkeys(_with_those_of(found, metrics))),
            claims=tuple(found),
            limits=_limits(spec.get("limits", {})),
            warnings=tuple(mistakes.in_order(warnings, self._document.file)),
        )

    # --- the scenario ------------------------------------------------------------------------------------------------

    def _scenario(self, stated: Any) -> _Place | None:
        """The document of the scenario."""
        if isinstance(stated, dict):
            return self._inline(stated)
        beside = FilePath(self._document.file).parent / stated
        try:
            path = beside if beside.is_file() else catalog.find(stated)
            found = documents.read(path)
            document = loader.only(found, str(path))
        except ScenarioError as error:
            self._problems.extend(error.problems)
        except KemuError as error:
            self._report.add(_SCENARIO, str(error).removeprefix(f"{stated}: "))
        else:
            return _Place(document, source=str(path) if beside.is_file() else stated)
        return None

    def _inline(self, stated: Mapping[str, Any]) -> _Place:
        is_whole = "spec" in stated
        head = {"apiVersion": "kemu.dev/v1", "kind": "Scenario"}
        data = {**head, **stated} if is_whole else {**head, "spec": stated}
        # A scenario without a name of its own is called as the experiment.
        name = (self._document.data.get("metadata") or {}).get("name")
        if "metadata" not in data and isinstance(name, str):
            data["metadata"] = {"name": name}
        below: Path = () if is_whole else ("spec",)
        places = {
            (*below, *path[len(_SCENARIO) :]): place
            for path, place in self._document.places.items()
            if path[: len(_SCENARIO)] == _SCENARIO
        }
        places[()] = self._document.place(_SCENARIO)
        octals = {(*below, *path[len(_SCENARIO) :]) for path in self._document.octals if path[:2] == _SCENARIO}
        document = Document(self._document.file, documents.copy(data), places, octals)
        return _Place(document, "spec.scenario", "" if is_whole else "spec")

    def _base(self, place: _Place, settings: Mapping[str, Any]) -> Scenario | None:
        """The scenario before anything varies."""
        if "seed" in settings:
            self._report.add(("spec", "set", "seed"), "cannot be set: seeds says which seeds run", key=True)
            return None
        try:
            return loader.of_document(matrices.clone(place.document), self._data_dir, settings)
        except ScenarioError as error:
            stand_at: dict[str, Path] = {text: ("spec", "set", text) for text in settings}
            self._problems += (self._at_override(each, stand_at, place) for each in error.problems)
            return None

    # --- what varies -------------------------------------------------------------------------------------------------

    def _dimensions(self, vary: Mapping[str, Any]) -> list[matrices.Dimension]:
        """As far as they are right."""
        found = []
        for text, values in vary.items():
            if text == keys.PARAMETERS:
                continue
            found.append(matrices.Dimension(text, tuple((value, {text: value}) for value in values)))
            for index, value in enumerate(values):
                if any(type(value) is type(other) and value == other for other in values[:index]):
                    self._report.add((*_VARY, text, index), "stands twice: the same variant would run twice")
        parameters = vary.get(keys.PARAMETERS)
        for name, stated in parameters.items() if isinstance(parameters, dict) else ():
            choices = matrices.choices_of(stated)
            if choices:
                found.append(matrices.Dimension(name, choices))
        count = 1
        for each in found:
            count *= len(each.choices)
        if count > matrices.MAX_VARIANTS:
            text = f"has {count:,} combinations; an experiment has at most {matrices.MAX_VARIANTS:,} variants"
            self._report.add(_VARY, text, key=True)
            return []
        return found

    def _place_of(self, dimension: str, index: int | None = None) -> Path:
        path: Path = (*_VARY, keys.PARAMETERS, dimension)
        if path in self._document.places:
            return path
        path = (*_VARY, dimension)
        item = path if index is None else (*path, index)
        return item if item in self._document.places else path

    def _fits(self, dimension: matrices.Dimension, place: _Place, settings: Mapping[str, Any]) -> bool:
        """Whether its paths lead somewhere in the scenario."""
        for _, values in dimension.choices:
            for text in values:
                if text == "seed" or text.startswith("spec.seed"):
                    self._report.add(
                        self._place_of(dimension.name), "cannot vary: seeds says which seeds run", key=True
                    )
                    return False
                if text in settings:
                    self._report.add(self._place_of(dimension.name), f"{text} is set already, below spec.set", key=True)
                    return False
            try:
                overriding.apply(matrices.clone(place.document), {**settings, **values})
            except ScenarioError as error:
                for problem in error.problems:
                    _, _, told = problem.message.partition(" cannot be overridden: ")
                    self._report.add(self._place_of(dimension.name), told or problem.message, key=True)
                return False
        return True

    def _variants(
        self, combinations: Iterable[matrices.Combination], place: _Place, settings: Mapping[str, Any]
    ) -> list[Problem]:
        """Look at every variant; returns warnings."""
        warnings: list[Problem] = []
        told: set[Problem] = set()
        for combination in combinations:
            values, variant = combination.values, combination.variant
            found: Sequence[Problem] = ()
            try:
                scenario = loader.of_document(matrices.clone(place.document), self._data_dir, {**settings, **values})
                plays.refuse_what_sim_cannot(scenario)
                warnings += (place.told(each) for each in scenario.warnings)
                if scenario.variants:
                    paths = ", ".join(scenario.matrix)
                    text = f"has a matrix: say what its paths are, below spec.vary or spec.set: {paths}"
                    self._report.add(_SCENARIO, text)
                    return warnings
            except ScenarioError as error:
                found = error.problems
            except KemuError as error:
                self._report.add(_SCENARIO, str(error))
            # What is wrong in many variants is told of the first.
            found = [each for each in found if each not in told]
            told.update(found)
            stand_at = {text: self._path_in(variant, text) for text in values} if found else {}
            self._problems += (self._at_override(each, stand_at, place, variant) for each in found)
        return warnings

    def _path_in(self, variant: experiments.Variant, text: str) -> Path:
        """Where the value of a path of a variant stands."""
        if text not in variant:
            # A parameter sets it.
            parameters = self._document.data["spec"]["vary"].get(keys.PARAMETERS, {})
            for name, stated in parameters.items():
                if any(text in values for _, values in matrices.choices_of(stated)):
                    return self._place_of(name)
        stated = self._document.data["spec"]["vary"].get(text)
        return self._place_of(text, stated.index(variant[text]) if isinstance(stated, list) else None)

    def _at_override(
        self,
        problem: Problem,
        stand_at: Mapping[str, Path],
        place: _Place,
        variant: experiments.Variant | None = None,
    ) -> Problem:
        """A problem of the scenario, at the value of the experiment that it comes from; ``stand_at``: where those of
        each path stand."""
        for text, path in stand_at.items():
            if documents.join("spec", text).startswith((f"{problem.path}.", f"{problem.path}[")):
                # The path leads to where nothing may stand.
                key = path[:-1] if isinstance(path[-1], int) else path
                return self._document.problem(key, f"{problem.path}: {problem.message}", problem.suggestion, key=True)
            if problem.file == f"{mistakes.OVERRIDE} {text}":
                inner = problem.path.removeprefix("spec.")
                where = "" if inner == text else f"{inner}: "
                return self._document.problem(path, f"{where}{problem.message}", problem.suggestion)
            if problem.message.startswith(f"{text} cannot be overridden: "):
                told = problem.message.partition(" cannot be overridden: ")[2]
                return self._document.problem(path, told, problem.suggestion, key=True)
        told_at = place.told(problem)
        if variant:
            told = ", ".join(f"{name} = {value}" for name, value in variant.items())
            return dataclasses.replace(told_at, message=f"{told_at.message}, in the variant {told}")
        return told_at

    # --- what is looked at -------------------------------------------------------------------------------------------

    def _metrics(self, stated: Sequence[Any] | None) -> list[Metric]:
        if stated is None:
            return list(_DEFAULT_METRICS)
        found = []
        for index, item in enumerate(stated):
            if item is INVALID or (isinstance(item, dict) and "metric" not in item):
                continue
            path: Path = ("spec", "metrics", index)
            match = _METRIC.fullmatch(item) if isinstance(item, str) else None
            if isinstance(item, dict):
                metric = Metric(item["metric"], item.get("priority"))
            else:
                metric = Metric(match[1], int(match[2])) if match else Metric(item)
            key, message, hint = references.metric_complaint(metric.name, metric.priority)
            if message:
                self._report.add((*path, key) if isinstance(item, dict) else path, message, hint)
            found.append(metric)
        return found

    def _claims(self, stated: Sequence[Any], vary: Mapping[str, Sequence[Any]]) -> list[Claim]:
        found: list[Claim] = []
        for index, item in enumerate(stated):
            if not isinstance(item, dict) or not {"id", "says"} <= item.keys():
                continue
            path: Path = ("spec", "claims", index)
            if any(each.id == item["id"] for each in found):
                self._report.add((*path, "id"), f"another claim is called {item['id']}")
            confidence = item.get("confidence", claims.CONFIDENCE)
            try:
                found.append(claims.parse(item["says"], vary, name=item["id"], confidence=confidence))
            except ValueError as error:
                self._report.add((*path, "says"), str(error))
        return found


def _names(data: Any) -> list[str]:
    """Names of everything that varies, right or wrong."""
    vary = data["spec"].get("vary") if isinstance(data.get("spec"), dict) else None
    if not isinstance(vary, dict):
        return []
    parameters = vary.get(keys.PARAMETERS)
    named = list(parameters) if isinstance(parameters, dict) else []
    return [*(key for key in vary if key != keys.PARAMETERS), *named]


def _with_those_of(found: Iterable[Claim], metrics: Iterable[Metric]) -> Iterable[Metric]:
    yield from metrics
    for claim in found:
        for term in (claim.left, claim.right):
            if term.metric is not None:
                yield term.metric


def _limits(stated: Mapping[str, Any]) -> Limits:
    default = Limits()
    return Limits(
        stated.get("events", default.events), stated.get("waiting", default.waiting), stated.get("cpu", default.cpu_s)
    )

"""What a test of kemu's is for pytest: how it is run, and how its failure reads.

Role: behind :mod:`pytest_plugin`, which imports this when there is such a test.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import shlex
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.api import live_clusters, reports, runs
from kemu.doors.testing import pytest_names, repetitions, tapes
from kemu.doors.testing.runnables import Runnable, RunnableProgram, RunnableScenario
from kemu.errors import KemuError, ScenarioError
from kemu.lab.scenario import forms
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime import runtimes
from kemu.runtime.words import counted

_MOST_OF_MESSAGE = 24
"""Lines of an exception's own text."""


class TestFailed(Exception):
    """A run failed; the text is all that pytest prints."""

    __test__ = False


@dataclass(frozen=True)
class Wanted:
    """What the marker of a test says, where the command line does not say otherwise."""

    scenario: Any = None
    runs: int = 1
    strategy: str | Iterable[str] | None = None
    seed: int | None = None
    settings: Mapping[str, Any] | None = None
    runtime: str | None = None
    speed: float = 1.0

    def search(self, config: pytest.Config) -> repetitions.Settings:
        asked = config.getoption("--kemu-strategy") or self.strategy or ()
        names = asked.split(",") if isinstance(asked, str) else asked
        return repetitions.Settings(
            runs=config.getoption("--kemu-runs") or self.runs,
            strategies=tuple(name.strip() for name in names),
            seed=self.seed or 0,
            shrink=config.getoption("--kemu-shrink"),
        )


def wanted(item: pytest.Item) -> Wanted:
    said: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers(pytest_names.MARKER))):  # the closest last
        if marker.args:
            raise pytest.UsageError(f"{item.nodeid}: the marker kemu takes keywords only: scenario=…")
        said |= marker.kwargs
    try:
        found = Wanted(**said)
    except TypeError:
        known = ", ".join(Wanted.__dataclass_fields__)
        raise pytest.UsageError(f"{item.nodeid}: the marker kemu takes {known}, not {', '.join(said)}") from None
    runtime = item.config.getoption("--kemu-runtime")
    return found if runtime is None else Wanted(**{**said, "runtime": runtime})


def adopt(config: pytest.Config, items: list[pytest.Item], ours: list[pytest.Item]) -> None:
    """Run ``ours`` as tests of kemu's, those first that failed before; with ``--kemu-replay`` only that of the tape."""
    tape = _tape_to_replay(config)
    if tape is not None:
        left = [item for item in items if item.nodeid != tape.test]
        items[:] = [item for item in items if item.nodeid == tape.test]
        config.hook.pytest_deselected(items=left)
        if not items:
            raise pytest.UsageError(f"--kemu-replay {tape.file}: {tape.test} is not among the tests")
        ours = list(items)
    for item in ours:
        if isinstance(item, pytest.Function):
            _adopt_function(item)
    shelf = shelf_of(config)
    first = {item.nodeid for item in ours if shelf.has(item.nodeid)}
    items.sort(key=lambda item: item.nodeid not in first)


def _adopt_function(item: pytest.Function) -> None:
    said = wanted(item)
    is_program = inspect.iscoroutinefunction(item.function)
    if is_program and said.runtime in runtimes.REAL:
        return  # as every other coroutine: by pytest-asyncio
    if is_program and pytest_names.RUN in item.fixturenames:
        raise pytest.UsageError(f"{item.nodeid}: {pytest_names.RUN} is for functions that are not async")
    if not is_program and said.scenario is None:
        if pytest_names.RUN in item.fixturenames or not item.iter_markers(pytest_names.MARKER):
            raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.kemu(scenario=…) has to say which scenario")
        return
    # Whatever class other plugins have made of the item: it is run here.
    item.runtest = functools.partial(_run_function, item, said)  # type: ignore[method-assign]
    usual = item.repr_failure
    item.repr_failure = functools.partial(_represent, usual)  # type: ignore[method-assign]


def _represent(usual: Callable[..., Any], error: pytest.ExceptionInfo[BaseException], style: object = None) -> Any:
    return str(error.value) if isinstance(error.value, TestFailed) else usual(error)


def _run_function(item: pytest.Function, said: Wanted) -> None:
    function = item.obj
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    if inspect.iscoroutinefunction(function):
        main: Callable[[], Coroutine[Any, Any, object]] = functools.partial(function, **arguments)
        carry_out(item, RunnableProgram(main, said.seed or 0), said)
        return
    try:
        scenario = _scenario(item, said)
    except KemuError as error:  # what kemu does with it does not tell what is wrong
        raise TestFailed(str(error)) from None
    if pytest_names.RUN not in arguments:
        carry_out(item, _runnable(scenario, None), said)
        function(**arguments)
        return

    def look(run: runs.Run) -> None:
        function(**{**arguments, pytest_names.RUN: run})

    carry_out(item, _runnable(scenario, look), said)


def _scenario(item: pytest.Item, said: Wanted) -> Scenario:
    source = said.scenario
    if isinstance(source, str) and "\n" not in source:
        beside = item.path.parent / source
        source = beside if beside.is_file() else source
    seed = {} if said.seed is None else {"seed": said.seed}
    return forms.load(source, {**(said.settings or {}), **seed})


def _runnable(scenario: Scenario, look: Callable[[runs.Run], object] | None) -> RunnableScenario:
    if scenario.variants:
        raise KemuError(f"{scenario.name} has a matrix; test one of its variants: pin its paths with settings=…")
    return RunnableScenario(scenario, look)


def carry_out(item: pytest.Item, runnable: Runnable, said: Wanted) -> None:
    """Raises TestFailed."""
    tell = functools.partial(item.add_report_section, "call", pytest_names.SAYS)
    tape = _tape_to_replay(item.config)
    if tape is not None:
        again = repetitions.stored(runnable, tape, tell)
        if again is not None:
            raise _failed(item, again)
        return
    settings = said.search(item.config)
    found = repetitions.search(runnable, shelf_of(item.config), item.nodeid, settings, tell)
    if isinstance(found, repetitions.Found):
        raise _failed(item, found)
    if not found.is_judged:
        how_often = f"\nnot judged in any of {settings.runs} runs" if settings.runs > 1 else ""
        raise TestFailed(found.text + how_often)


def _failed(item: pytest.Item, found: repetitions.Found) -> TestFailed:
    outcome, tape = found.outcome, found.tape
    assert tape.file is not None
    file = _relative(tape.file, item.config)
    ending = [
        *([found.said] if found.said else []),
        f"{_how(found)}",
        f"again: pytest {shlex.quote(item.nodeid)} --kemu-replay {shlex.quote(file)}",
    ]
    if tape.scenario is not None:
        ending.append(f"or:    kemu run {shlex.quote(file)}")
    room = reports.MOST_LINES - len(ending)
    text = outcome.text if outcome.error is None else _of_error(item, outcome.error, room)
    failure = TestFailed("\n".join([*text.splitlines()[:room], *ending]))
    failure.__cause__ = outcome.error
    return failure


def _how(found: repetitions.Found) -> str:
    outcome = found.outcome
    how = (
        "failed before: "
        if found.number == 0
        else f"run {found.number}{f' ({found.strategy})' if found.strategy else ''}: "
    )
    held = f", {counted(len(outcome.holds), 'hold')}" if outcome.holds else ""
    shrunk = f", shrunk in {found.executions} runs" if found.executions else ""
    return f"{how}seed {outcome.seed}{held}{shrunk}"


def _of_error(item: pytest.Item, error: BaseException, room: int) -> str:
    """Where in the test it was raised, what it says, and the story of the cluster."""
    trace, place, source = error.__traceback__, "", ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if Path(file) == item.path:
            place = f"{item.path.name}:{trace.tb_lineno} in {trace.tb_frame.f_code.co_qualname.rpartition('>.')[2]}"
            source = linecache.getline(file, trace.tb_lineno).strip()
        trace = trace.tb_next
    said = str(error).splitlines() or [""]
    lines = [f"{place}: {source}" if place else item.nodeid]
    lines += [f"E   {type(error).__name__}: {said[0]}", *(f"E   {line}" for line in said[1:])]
    if len(lines) > _MOST_OF_MESSAGE and getattr(error, "__notes__", None):
        lines = [*lines[:_MOST_OF_MESSAGE], "E   …"]
    for note in getattr(error, "__notes__", ()):
        lines += note.splitlines()
    return "\n".join(lines[:room])


def shelf_of(config: pytest.Config) -> tapes.Shelf:
    """In pytest's cache, or beside it where there is none."""
    cache = getattr(config, "cache", None)
    return tapes.Shelf(Path(cache.mkdir("kemu")) if cache is not None else config.rootpath / ".kemu")


def _relative(file: Path, config: pytest.Config) -> str:
    try:
        return str(file.relative_to(config.invocation_params.dir))
    except ValueError:
        return str(file)


def _tape_to_replay(config: pytest.Config) -> tapes.Tape | None:
    file: Path | None = config.getoption("--kemu-replay")
    if file is None:
        return None
    try:
        return tapes.read(config.invocation_params.dir / file)
    except KemuError as error:
        raise pytest.UsageError(f"--kemu-replay: {error}") from None


def cluster_maker(item: pytest.Item) -> Callable[..., live_clusters.Cluster]:
    said = wanted(item)

    def make(scenario: forms.Source | None = None, **arguments: Any) -> live_clusters.Cluster:
        if scenario is None and said.scenario is not None:
            scenario = _scenario(item, said)
        arguments.setdefault("runtime", said.runtime or "sim")
        arguments.setdefault("speed", said.speed)
        if said.settings:
            arguments["settings"] = {**said.settings, **(arguments.get("settings") or {})}
        return live_clusters.cluster(scenario, **arguments)

    return make


# Scenarios as tests -------------------------------------------------------------------------------------------------


def scenario_items(file: pytest.File) -> Iterable[pytest.Item]:
    """Scenario items of ``*.kemu.yaml``: a test for each variant of its matrix, or one."""
    try:
        scenario = loader.load(file.path)
    except ScenarioError as error:
        raise file.CollectError(str(error)) from None
    for variant, each in loader.variants(scenario):
        name = runner.variant_name(variant) if variant else file.path.name.removesuffix(pytest_names.SUFFIX)
        yield ScenarioItem.from_parent(file, name=name, scenario=each)


class ScenarioItem(pytest.Item):
    def __init__(self, *, scenario: Scenario, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.scenario = scenario

    def runtest(self) -> None:
        carry_out(self, RunnableScenario(self.scenario), Wanted(seed=self.scenario.seed))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> Any:
        return _represent(super().repr_failure, excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, 0, f"scenario {self.name}"

"""The pytest plugin: options, the marker ``kemu``, fixtures, ``*.kemu.yaml`` files (docs/testing.md).

It costs nothing where it is not used: nothing of kemu is imported before a test needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.testing.pytest_names import CLUSTER, CLUSTER_UP, MARKER, RUN, SAYS, SUFFIX, UP_MARKER

_MARKER_DOC = (
    "kemu(scenario=None, runs=1, strategy=None, seed=None, settings=None, runtime=None, speed=1.0): a test in virtual"
    " time, run so many times"
)
_UP_MARKER_DOC = "kemu_up(scenario=None, *, nodes=3, settings=None, chaos=(), …): the cluster of the fixture kemu_up"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kemu", "kemu: clusters in virtual time")
    group.addoption("--kemu-runs", type=int, metavar="N", help="how often each test runs; default: as it says, or once")
    group.addoption("--kemu-strategy", metavar="NAME[,NAME]", help="how runs differ; default: as the test says, or all")
    group.addoption("--kemu-replay", type=Path, metavar="TAPE", help="run one failing tape, and its test alone")
    group.addoption("--kemu-shrink", action="store_true", help="shrink what fails to the least that fails so")
    group.addoption(
        "--kemu-runtime", choices=("sim", "wall", "ray"), help="where clusters of tests run; default: as tests say"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER_DOC)
    config.addinivalue_line("markers", _UP_MARKER_DOC)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return ScenarioFile.from_parent(parent, path=file_path) if file_path.name.endswith(SUFFIX) else None


class ScenarioFile(pytest.File):
    """A scenario that is a test."""

    def collect(self) -> Iterable[pytest.Item]:
        from kemu.doors.testing import pytest_items

        return pytest_items.scenario_items(self)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if is_ours(item)]
    if not ours and config.getoption("--kemu-replay") is None:
        return
    from kemu.doors.testing import pytest_items

    pytest_items.adopt(config, items, ours)


def is_ours(item: pytest.Item) -> bool:
    """Whether the plugin runs it: it has the marker or one of the fixtures, or it is a scenario."""
    names = getattr(item, "fixturenames", ())
    return (
        item.path.name.endswith(SUFFIX)
        or CLUSTER in names
        or RUN in names
        or item.get_closest_marker(MARKER) is not None
    )


@pytest.fixture
def kemu_cluster(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """``kemu.cluster`` with the scenario, settings and runtime of the marker, and the seed of the run."""
    from kemu.doors.testing import pytest_items

    return pytest_items.cluster_maker(request.node)


@pytest.fixture
def kemu_run() -> None:
    """The ``kemu.Run`` of the marker's scenario. The test function is called for every run."""


@pytest.fixture
def kemu_up(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster of ``kemu up`` whose clock stands still (:mod:`kemu.lab.up.embedded`), for programs that speak with
    a cluster. Arguments of its ``up``: ``@pytest.mark.kemu_up(nodes=10, …)``. When the test fails, its report tells
    what happened, and where the run folder is kept."""
    from kemu.doors.testing import up_reports
    from kemu.lab.up import embedded

    marker = request.node.get_closest_marker(UP_MARKER)
    arguments = dict(marker.kwargs) if marker is not None else {}
    keep = "folder" in arguments
    folder = arguments.setdefault("folder", tmp_path_factory.mktemp("kemu-up") / "run")
    given = marker.args if marker is not None else ()
    with (
        up_reports.of(request.node, Path(folder), keep=keep) as reports,
        embedded.up(*given, **arguments) as cluster,
    ):
        reports.cluster = cluster
        yield cluster


@pytest.fixture
def kemu_hunt(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """``kemu.hunt``, which fails the test with the first finding and the command that tries it again. What it finds
    stays in a temporary folder, unless ``out`` says where."""
    import kemu

    def hunt(project: str | Path, **arguments: Any) -> kemu.HuntResult:
        found = kemu.hunt(project, **{"out": tmp_path_factory.mktemp("kemu-hunt") / "out", **arguments})
        found.check()
        return found

    return hunt


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if CLUSTER_UP in getattr(item, "fixturenames", ()) and report.failed:
        from kemu.doors.testing import up_reports

        up_reports.add_to(report, item)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests that passed have to say: otherwise pytest shows the sections of failed ones only."""
    said = [
        f"{report.nodeid}: {text}"
        for report in terminalreporter.stats.get("passed", ())
        for title, text in report.sections
        if title == f"Captured {SAYS} call"
    ]
    if said:
        terminalreporter.section("kemu")
        for line in said:
            terminalreporter.write_line(line)

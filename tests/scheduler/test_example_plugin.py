"""The example of docs/plugins.md works as it says: by module and class, by entry point, and makes the difference."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.scheduler import framework
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.configuration.configurations import ConfigurationError
from kemu.emulated.scheduler.cycle.profiles import ENTRY_POINTS, Profile
from kemu.emulated.scheduler.plugins.in_tree import REGISTRY
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from tests.scheduler import objects

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plugins"
SCENARIO = EXAMPLE / "power-budget.yaml"
BY_CLASS = "power_budget:PowerBudget"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield
    sys.modules.pop("power_budget", None)


def install(site: Path) -> None:
    """What an installer leaves of the example's entry points in a folder of packages."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    offered = project["entry-points"][ENTRY_POINTS]
    (info / "entry_points.txt").write_text(
        f"[{ENTRY_POINTS}]\n" + "".join(f"{name} = {target}\n" for name, target in offered.items())
    )


def run(out: Path, **overrides: Any) -> dict[str, Any]:
    scenario = loader.load(SCENARIO, overrides=overrides)
    return runner.run_all(scenario, runner.Options(out=out, runtime="sim"))[0]


def configuration(name: str, **arguments: Any) -> dict[str, Any]:
    return {
        "plugins": {"multiPoint": {"enabled": [{"name": name, "weight": 50}]}},
        "pluginConfig": [{"name": name, "args": arguments}],
    }


def failed(verdict: dict[str, Any]) -> set[str]:
    return {found["id"] for found in verdict["expectations"] if found["holds"] is not True}


def test_the_document_shows_the_plugin_as_it_is() -> None:
    text = (EXAMPLE.parents[1] / "docs" / "plugins.md").read_text()
    assert (EXAMPLE / "power_budget.py").read_text() in text


def test_all_that_the_plugin_imports_of_kemu_is_public() -> None:
    tree = ast.parse((EXAMPLE / "power_budget.py").read_text())
    imported = {
        node.module: [alias.name for alias in node.names]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kemu")
    }
    assert list(imported) == ["kemu.scheduler.framework"]
    assert set(imported["kemu.scheduler.framework"]) <= set(framework.__all__)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_scenario_holds(seed: int, tmp_path: Path) -> None:
    verdict = run(tmp_path, seed=seed)
    assert verdict["verdict"] == "holds", failed(verdict)


def test_without_the_plugin_nobody_waits_for_power(tmp_path: Path) -> None:
    verdict = run(tmp_path, **{"schedulers[0].config": {}})
    assert verdict["verdict"] == "fails"
    assert verdict["counts"]["pods_running"] == verdict["counts"]["pods_created"] == 6
    assert verdict["counts"].get("preemptions", 0) == 0


def test_the_same_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    site.mkdir()
    profile = "schedulers[0].config.profiles[0]"
    overrides = {
        f"{profile}.plugins.multiPoint.enabled[0].name": "PowerBudget",
        f"{profile}.pluginConfig[0].name": "PowerBudget",
    }
    install(site)
    monkeypatch.syspath_prepend(str(site))
    verdict = run(tmp_path / "run", **overrides)
    assert verdict["verdict"] == "holds", failed(verdict)


def test_unless_installed_the_name_means_nothing() -> None:
    with pytest.raises(ConfigurationError, match="there is no plugin 'PowerBudget'"):
        objects.decider(objects.cluster_of([]), configuration("PowerBudget"))


def test_a_mistake_in_its_arguments_is_told_with_its_path() -> None:
    with pytest.raises(ConfigurationError) as caught:
        objects.decider(objects.cluster_of([]), configuration(BY_CLASS, defaultWatts=-1))
    assert caught.value.path == "profiles[0].pluginConfig[0].args.defaultWatts"


def test_filter_and_score_one_by_one() -> None:
    watts = {"n1": "300", "n2": "200", "n3": ""}
    nodes = [objects.node(name, {"example.com/watts": text} if text else {}) for name, text in watts.items()]
    running = [objects.pod("unlabelled", on="n2"), objects.pod("labelled", on="n2", labels={"example.com/watts": "90"})]
    cluster = objects.cluster_of(nodes, running)
    decider = objects.decider(cluster, configuration(BY_CLASS, defaultWatts=10))
    wanted = {"100": "n1", "200": "n1", "301": "n3"}
    for wish, node in wanted.items():
        pod = objects.pod(f"wants-{wish}", labels={"example.com/watts": wish})
        assert decider.decide(cluster.pending(pod)).node == node, wish


def test_it_is_a_filter_and_a_score() -> None:
    made = Profile(
        configurations.profile_of(configuration(BY_CLASS), "profiles[0]"),
        objects.decider(objects.cluster_of([])).profile.handle,
        REGISTRY,
    )
    assert "PowerBudget" in [plugin.name for plugin in made.line_up.filters]
    assert (
        dict(zip([plugin.name for plugin in made.line_up.scorers], made.line_up.weights, strict=True))["PowerBudget"]
        == 50
    )

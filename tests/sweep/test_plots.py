"""``kemu plot``: what the pictures show, and that the same results give the same bytes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli.main import main
from kemu.lab.sweep.cells import Metric
from kemu.lab.sweep.engine.sweeps import Sweep
from kemu.lab.sweep.experiments import loader
from kemu.lab.sweep.plots import fronts, pictures, styles, waiting_curves
from kemu.lab.sweep.plots.sources import Source, figure
from kemu.lab.sweep.statistics import samples, waiting

EXPERIMENT = """\
apiVersion: kemu.dev/v1
kind: Experiment
metadata: {name: small}
spec:
  scenario:
    duration: 20s
    nodes: [{namePrefix: node-, count: 2, allocatable: {cpu: "2", memory: 4Gi, pods: "110"}}]
    timing: {watchLatency: {uniform: {min: 1ms, max: 400ms}}}
    priorityClasses: {high: 100}
    schedulers: [{name: s1}, {name: s2}]
    workloads:
      - name: a
        arrivals: {poisson: {rate: 2/s}, until: 15s}
        pods:
          spec:
            schedulerName: s1
            priorityClassName: high
            containers: [{name: main, resources: {requests: {cpu: "1"}}}]
        life: {runSeconds: 2}
      - name: b
        arrivals: {poisson: {rate: 2/s}, until: 15s}
        pods: {spec: {schedulerName: s1, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
        life: {runSeconds: 2}
  vary:
    workloads[1].arrivals.poisson.rate: [0.5/s, 2/s]
    parameters:
      schedulers:
        values:
          1: {"workloads[1].pods.spec.schedulerName": s1}
          2: {"workloads[1].pods.spec.schedulerName": s2}
  seeds: 2
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    file = folder / "small.yaml"
    file.write_text(EXPERIMENT)
    assert main(["sweep", str(file), "--jobs", "1", "--json", "--out", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture
def source(results: Path) -> Source:
    return Source(results)


def values(source: Source, kind: str, **manner: Any) -> list[dict[str, Any]]:
    """All that a picture is drawn from."""
    made = pictures.chart(source, kind, pictures.Manner(**manner)).to_dict(validate=False)
    return [row for data in _data(made) for row in data]


def _data(part: Any) -> Iterator[list[dict[str, Any]]]:
    if isinstance(part, dict):
        if isinstance(part.get("data"), dict) and "values" in part["data"]:
            yield part["data"]["values"]
        for each in part.values():
            yield from _data(each)
    elif isinstance(part, list):
        for each in part:
            yield from _data(each)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("form", ["svg", pytest.param("png", marks=pytest.mark.nightly("five seconds, as for SVG"))])
def test_all_pictures_twice_give_the_same_bytes_in_another_process_without_fonts(
    form: str, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", str(results), "--format", form, "--out", str(tmp_path / "here")]) == 0
    told = capsys.readouterr().out.split()
    expected = [str(tmp_path / "here" / f"{kind}.{form}") for kind in pictures.KINDS]
    assert told == expected
    call = f"main(['plot', {str(results)!r}, '--format', {form!r}, '--out', {str(tmp_path / 'there')!r}])"
    code = f"from kemu.doors.cli.main import main; {call}"
    # A machine without fonts, and with another order of sets.
    environment = {**os.environ, "FONTCONFIG_FILE": os.devnull, "HOME": str(tmp_path), "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
    for file in expected:
        other = tmp_path / "there" / Path(file).name
        assert Path(file).read_bytes() == other.read_bytes(), file


def test_an_svg_has_its_own_background_and_text_in_a_font_that_every_machine_has(results: Path, tmp_path: Path) -> None:
    for theme in ("light", "dark"):
        folder = tmp_path / theme
        assert main(["plot", str(results), "starvation", "--theme", theme, "--out", str(folder)]) == 0
        text = (folder / "starvation.svg").read_text()
        assert f'fill="{styles.THEMES[theme].background}"' in text
        assert 'font-family="Liberation Sans, Arial' in text
        assert "99th percentile of the wait until bound (s)" in text
        assert "rate (per second)" in text


def test_the_starvation_curve_is_the_mean_of_each_priority_over_the_load(source: Source) -> None:
    points = values(source, "starvation")
    assert {point["x"] for point in points} == {0.5, 2}
    assert {point["panel"] for point in points} == {"pods of priority 100", "pods of priority 0"}
    assert {point["line"] for point in points} == {"schedulers=1", "schedulers=2"}
    (mean,) = source.rows(
        'SELECT avg("waiting.p99_s") AS mean FROM priorities WHERE priority = 100 AND variant_index = 0'
    )
    (first,) = (
        point for point in points
        if (point["x"], point["line"], point["panel"]) == (0.5, "schedulers=1", "pods of priority 100")
    )  # fmt: skip
    assert first["mean"] == pytest.approx(mean["mean"])
    assert first["low"] <= first["mean"] <= first["high"]


def test_a_metric_and_a_priority_can_be_chosen(source: Source) -> None:
    points = values(source, "starvation", metric="waiting.max_s", priority=100, x="schedulers")
    assert {point["x"] for point in points} == {1, 2}
    assert {point["line"] for point in points} == {"rate=0.5", "rate=2"}


def test_a_figure_of_pods_that_still_wait_is_at_least_so_much(source: Source) -> None:
    bounded = source.rows(
        "SELECT DISTINCT variant_index FROM priorities WHERE list_contains(lower_bounds, 'waiting.p99_s')"
    )
    points = values(source, "starvation")
    assert bounded
    assert {point["kind"] for point in points} == {"mean", "at least"}


@pytest.mark.parametrize(
    "metric", ["waiting.p50_s", "waiting.p99_s", "running.max_s", "utilisation.cpu", "preemptions"]
)
def test_a_picture_has_the_figures_of_the_summary(results: Path, source: Source, metric: str) -> None:
    """Also where a figure is known only as at least and at most."""
    with Sweep(loader.load(results / "experiment.yaml"), results) as sweep:
        records = sweep.ordered()
    figures = source.metric(metric)
    assert len(figures) == 4
    for variant in source.variants:
        one = figures[variant.index]
        of_variant = [record for record in records if record.cell.index == variant.index]
        sample = samples.of(of_variant, Metric(metric), {})
        mean = samples.mean(sample)
        assert mean is not None
        assert (one.mean, one.low) == (pytest.approx(mean.estimate), pytest.approx(mean.low))
        assert one.at_least == any(figure.is_open for figure in sample.figures.values())
        if not one.at_least:
            assert one.high == pytest.approx(mean.high)


def test_what_is_drawn_of_bounds() -> None:
    between = figure({1: samples.Figure(1, 5)})
    assert (between.mean, between.low, between.high, between.at_least) == (1, 1, 5, False)
    open_end = figure({1: samples.Figure(1, math.inf), 2: samples.Figure(3, 3)})
    assert open_end.at_least
    assert open_end.mean == 2
    assert math.isfinite(open_end.high)


def test_conflicts_are_counted_for_each_hundred_pods(source: Source) -> None:
    points = [point for point in values(source, "conflicts") if point["line"].startswith("rejected")]
    rows = source.rows(
        "SELECT schedulers, rate, avg(100 * admissions_rejected / pods_created) AS mean FROM runs GROUP BY 1, 2"
    )
    expected = {(float(row["schedulers"]), f"rate={float(row['rate'][:-2]):g}"): row["mean"] for row in rows}
    assert {(point["x"], point["panel"]): pytest.approx(point["mean"]) for point in points} == expected
    assert max(expected.values()) > 0


def test_waiting_curves_have_a_tick_for_each_pod_that_was_never_bound(source: Source) -> None:
    rows = values(source, "waiting")
    ticks = [row for row in rows if row.get("kind") == "tick"]
    (never,) = source.rows("SELECT count(*) AS pods FROM pods WHERE censored")
    assert 0 < len(ticks) <= never["pods"]
    curves = [row for row in rows if row.get("kind") == "curve"]
    assert {row["priority"] for row in curves} == {"priority 100", "priority 0"}
    assert len({row["line"] for row in curves}) == 4
    by_line: dict[tuple[str, str], list[float]] = {}
    for row in curves:
        by_line.setdefault((row["line"], row["priority"]), []).append(row["bound"])
    assert all(shares == sorted(shares) for shares in by_line.values())


def test_a_curve_with_censored_pods_stays_below_what_leaving_them_out_would_say() -> None:
    curve = waiting.curve(waiting.Waits([1.0, 2.0, 3.0, 3.0], [False, False, True, True]))
    points = waiting_curves._points(curve)
    assert points[-1]["bound"] == 50
    assert points[-1]["s"] == 3


def test_a_variant_is_on_the_front_unless_another_beats_it() -> None:
    metrics = ("utilisation.cpu", "waiting.p99_s")
    one, other = {"x": 0.8, "y": 10.0}, {"x": 0.7, "y": 20.0}
    assert fronts._beats(one, other, metrics)
    assert not fronts._beats(other, one, metrics)
    assert not fronts._beats(one, dict(one), metrics), "equal variants do not beat each other"
    assert not fronts._beats({"x": 0.9, "y": 30.0}, one, metrics), "a trade"


def test_occupancy_is_the_share_of_a_node_that_its_pods_request(source: Source) -> None:
    cells = values(source, "occupancy")
    assert {cell["row"] for cell in cells} == {"node-1", "node-2"}
    assert 0 <= min(cell["percent"] for cell in cells) < 50 < max(cell["percent"] for cell in cells) <= 100
    # Rates, variants and time add up: what all pods requested while they ran.
    (pods,) = source.rows(
        "SELECT sum(cpu_milli * (least(coalesce(finished_s, virtual_s), coalesce(deleted_s, virtual_s)) - running_s)) "
        "AS used "
        "FROM pods JOIN runs USING (variant_index, seed) "
        "WHERE variant_index = 0 AND seed = 1 AND running_s IS NOT NULL"
    )
    name = source.variants[0].name
    seen = sum((cell["to"] - cell["from"]) * cell["percent"] / 100 * 2000 for cell in cells if cell["panel"] == name)
    assert seen == pytest.approx(pods["used"], rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["waitings"], "no picture of that name; there are waiting, starvation, conflicts, pareto, occupancy"),
        (["starvation", "--metric", "waiting.p98_s"], "waiting.p98_s: no metric of these results"),
        (["starvation", "--x", "speed"], "no number of that name varies; there are rate, schedulers"),
        (["starvation", "--metric", "preemptions", "--priority", "100"], "preemptions: is not told by priority"),
    ],
)
def test_mistakes(results: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(results), *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_single_run_has_waiting_and_occupancy_and_says_why_it_has_no_curves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "seeds/preemption-example-1", "--json", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["plot", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(tmp_path / "plots" / "waiting.svg"),
        "no starvation: no number varies",
        "no conflicts: no number varies",
        "no pareto: a front needs at least two variants",
        str(tmp_path / "plots" / "occupancy.svg"),
    ]


def test_a_sweep_draws_what_it_has_at_its_end(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = ["sweep", str(results.parent / "small.yaml"), "--out", str(results)]
    assert main([*again, "--no-plots"]) == 0
    assert not (results / "plots").exists()
    capsys.readouterr()
    assert main(again) == 0
    names = [f"{kind}.svg" for kind in pictures.KINDS]
    assert capsys.readouterr().out.splitlines()[-1] == f"plots in {results / 'plots'}: {', '.join(names)}"
    assert sorted(file.name for file in (results / "plots").iterdir()) == sorted(names)


def test_without_the_extra_it_says_what_to_install(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "kemu.lab.sweep.plots.pictures")
    monkeypatch.delattr("kemu.lab.sweep.plots.pictures")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert main(["plot", str(results)]) == 2
    assert "pip install 'kemu[plots]'" in capsys.readouterr().err

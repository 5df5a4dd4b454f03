"""Experiments: what a file may say, and how its mistakes are told."""

from pathlib import Path
from typing import Any

import pytest

from kemu.errors import ScenarioError
from kemu.lab.sweep.cells import Metric
from kemu.lab.sweep.experiments import keys, loader
from kemu.lab.sweep.experiments.experiments import Experiment

HEAD = "apiVersion: kemu.dev/v1\nkind: Experiment\n"
INLINE = """\
  scenario:
    duration: 5s
    nodes: [{name: n, allocatable: {cpu: "2", memory: 1Gi, pods: "9"}}]
    workloads:
      - name: w
        arrivals: {poisson: {rate: 1/s}}
        pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
"""
RATE = "workloads[0].arrivals.poisson.rate"


def experiment(rest: str, scenario: str = INLINE) -> Experiment:
    return loader.loads(f"{HEAD}spec:\n{scenario}{rest}", "e.yaml")


def mistakes(text: str, name: str = "e.yaml") -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        loader.loads(text, name)
    return [str(problem) for problem in caught.value.problems]


def test_variants_are_all_combinations_and_every_variant_runs_with_every_seed() -> None:
    found = experiment(f"  vary: {{'{RATE}': [1/s, 2/s], 'nodes[0].allocatable.cpu': ['1', '2', '4']}}\n  seeds: 2\n")
    assert [tuple(variant.values()) for variant in found.variants] == [
        ("1/s", "1"), ("1/s", "2"), ("1/s", "4"), ("2/s", "1"), ("2/s", "2"), ("2/s", "4"),
    ]  # fmt: skip
    cells = [(cell.seed, cell.index) for cell in found.cells()]
    # Seed by seed, so that a sweep that was stopped compares its variants fairly.
    assert cells == [(seed, index) for seed in (1, 2) for index in range(6)]
    assert found.size == 12


@pytest.mark.parametrize(
    ("stated", "values"),
    [
        ("{from: 1, to: 2, steps: 3}", [1, 1.5, 2]),
        ("{from: 1, to: 64, steps: 7, log: true}", [1, 2, 4, 8, 16, 32, 64]),
        ("{from: 1, to: 10, steps: 4, log: true, whole: true}", [1, 2, 5, 10]),
        ("{from: 0.5/s, to: 2/s, steps: 3, log: true}", ["0.5/s", "1/s", "2/s"]),
        ("1..3", [1, 2, 3]),
    ],
)
def test_a_series_of_values(stated: str, values: list[Any]) -> None:
    checked = keys.SPEC["vary"].shape.check(
        {"a": loader.documents.parse(stated, "x")[0].data}, (), loader.Report(loader.Document("x", {}), [])
    )
    assert checked == {"a": values}


def test_a_parameter_sets_several_paths_under_one_label() -> None:
    rest = f"  vary: {{parameters: {{load: {{values: {{low: 1/s, high: 4/s}}, sets: ['{RATE}']}}}}}}\n  seeds: [7]\n"
    found = experiment(rest)
    assert found.variants == ({"load": "low"}, {"load": "high"})
    assert found.overrides == ({RATE: "1/s"}, {RATE: "4/s"})
    assert found.seeds == (7,)


def test_a_shipped_scenario_whose_matrix_the_experiment_pins() -> None:
    found = experiment(
        "  set: {'schedulers[0].policy.queue': fifo}\n  vary: {'schedulers[0].policy.nomination': [off, on]}\n"
        "  metrics: [waiting.max_s, 'waiting.max_s(priority=1000)', {metric: preemptions}]\n"
        "  claims: [{id: a, says: 'waiting.max_s(priority=1000, nomination=off) > preemptions(nomination=on)'}]\n"
        "  seeds: 1\n",
        "  scenario: seeds/starvation\n",
    )
    assert found.variants == ({"schedulers[0].policy.nomination": False}, {"schedulers[0].policy.nomination": True})
    # Those of claims are there already.
    assert found.metrics == (Metric("waiting.max_s"), Metric("waiting.max_s", 1000), Metric("preemptions"))
    assert found.source == "seeds/starvation"


def test_settings_from_outside_make_it_another_experiment(tmp_path: Path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text(f"{HEAD}spec:\n{INLINE.replace('name: n,', 'namePrefix: n-, count: 2,')}  seeds: 2\n")
    small, large = loader.load(file), loader.load(file, settings={"scale": 10, "timing": "realistic"})
    assert (len(small.scenario.nodes), len(large.scenario.nodes)) == (2, 20)
    assert small.identity() != large.identity()
    # Its copy beside the results says the same.
    assert loader.loads(large.text, str(file)).identity() == large.identity()
    with pytest.raises(ScenarioError, match=r"--set scale:1:1: spec.set.scale: must be at least 1"):
        loader.load(file, settings={"scale": 0})


def test_a_scenario_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("apiVersion: kemu.dev/v1\nkind: Scenario\nspec: {nodes: [{name: n}]}\n")
    (tmp_path / "e.yaml").write_text(f"{HEAD}spec: {{scenario: s.yaml, seeds: 1}}\n")
    found = loader.load(tmp_path / "e.yaml")
    assert found.scenario.name == "s"
    assert found.variants == ({},)


def test_all_mistakes_at_once_at_their_places() -> None:
    text = f"""{HEAD}spec:
  scenario: seeds/starvation
  vary:
    schedulers[0].policy.queue: [fifo, priorty]
    schedulers[0].policy.nomination: [on, on]
    workloads[1].arivals.poisson.rate: [1/s]
    seed: [1]
  seeds: 0
  metrics: [waiting.maxs, utilisation.cpu(priority=3)]
  limit: {{events: 3}}
"""
    queue, rate = "spec.vary[schedulers[0].policy.queue][1]", "spec.vary[workloads[1].arivals.poisson.rate]"
    there_are = "there are: name, start, pods, life, usage, probes, replaceFinished"
    assert mistakes(text) == [
        f"e.yaml:6:40: {queue}: must be priority or fifo, not 'priorty' (did you mean priority?)",
        "e.yaml:7:43: spec.vary[schedulers[0].policy.nomination][1]: stands twice: the same variant would run twice",
        f"e.yaml:8:5: {rate}: spec.workloads[1].arivals: is not a key that may stand here ({there_are})",
        "e.yaml:9:5: spec.vary.seed: cannot vary: seeds says which seeds run",
        "e.yaml:10:10: spec.seeds: must be at least 1, but is 0",
        "e.yaml:11:13: spec.metrics[0]: there is no metric waiting.maxs (did you mean waiting.max_s?)",
        "e.yaml:11:27: spec.metrics[1]: utilisation.cpu is not told by priority",
        "e.yaml:12:3: spec.limit: is not a key that may stand here (did you mean limits?)",
    ]


def test_a_mistake_in_an_inline_scenario_stands_where_it_is() -> None:
    (told,) = mistakes(f"{HEAD}spec:\n{INLINE.replace('duration', 'duraton')}  seeds: 1\n")
    assert told == ("e.yaml:5:5: spec.scenario.duraton: is not a key that may stand here (did you mean duration?)")


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("  seeds: 1\n", "has a matrix: say what its paths are, below spec.vary or spec.set"),
        ("  vary: {'schedulers[9].x': [1]}\n  seeds: 1\n", "leads nowhere: spec.schedulers has 1 item"),
        ("  vary: {duration: {from: 1s, to: 2m, steps: 3}}\n  seeds: 1\n", "from and to must have the same unit"),
        ("  vary: {speed: {from: 0, to: 2, steps: 3, log: on}}\n  seeds: 1\n", "log needs two ends of the same sign"),
        ("  set: {seed: 3}\n  seeds: 1\n", "cannot be set: seeds says which seeds run"),
        ("  set: {duration: 9m}\n  vary: {duration: [1m]}\n  seeds: 1\n", "duration is set already, below spec.set"),
        ("  seeds: [1, 2, 1]\n", "the seed 1 stands twice"),
        ("  vary: {duration: [5m]}\n  seeds: 1\n  claims: [{id: a, says: waiting.p9_s > 3}]\n", "did you mean"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_what_to_write(rest: str, told: str) -> None:
    found = mistakes(f"{HEAD}spec:\n  scenario: seeds/starvation\n{rest}")
    assert any(told in each for each in found), found
    assert all(each.startswith("e.yaml:") for each in found), found


def test_a_scenario_is_no_experiment() -> None:
    (told,) = mistakes("apiVersion: kemu.dev/v1\nkind: Scenario\nspec: {}\n")
    assert "is a scenario, not an experiment (kemu run e.yaml runs it" in told


def test_the_schema_accepts_what_the_loader_does() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(keys.json_schema())
    text = f"{HEAD}spec:\n{INLINE}  vary: {{'{RATE}': {{from: 1/s, to: 2/s, steps: 3}}, a: 1..3}}\n  seeds: [1]\n"
    validator.validate(loader.documents.parse(text, "x")[0].data)
    assert list(validator.iter_errors({"apiVersion": "kemu.dev/v1", "kind": "Experiment", "spec": {"seeds": 1}}))


def test_what_it_is_about_does_not_make_it_another_experiment() -> None:
    """Findings are written when the results are there: no cell runs again for that."""
    words = "  question: Why?\n  quotes: [{document: d, section: s, text: t}]\n  finding: Therefore.\n"
    assert experiment(f"  seeds: 2\n{words}").identity() == experiment("  seeds: 2\n").identity()
    assert (
        "spec.quotes[0]" in mistakes(f"{HEAD}spec:\n{INLINE}  seeds: 2\n  quotes: [{{document: d, section: s}}]\n")[0]
    )

"""The experiments about what the source documents leave open, and the page of their results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from experiments.findings import catalogue, checks, headlines, pages, repeats, runs
from kemu.emulated.settings import documents
from kemu.lab.exploration.workers import Inline
from kemu.lab.scenario.loading import loader as scenario_loader
from kemu.lab.scenario.playing import runner
from kemu.lab.sweep.experiments import loader
from kemu.lab.sweep.results import files

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = [path for path in sorted((ROOT / "experiments").glob("*.yaml")) if "\n  quotes:" in path.read_text()]
SOURCES = ROOT.parent / "shared" / "seeds"
SCALE = sorted((ROOT / "experiments" / "scale").glob("*.yaml"))
TINY = """\
apiVersion: kemu.dev/v1
kind: Experiment
metadata: {name: tiny, description: Who waits?}
spec:
  question: Who waits?
  finding: The second pod of a node. Nobody else does.
  scenario:
    duration: 20s
    nodes: [{namePrefix: node-, count: 2, allocatable: {cpu: "1"}}]
    workloads:
      - name: w
        arrivals: {count: 2}
        pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
        life: {runSeconds: {uniform: {min: 3, max: 6}}}
  vary: {"workloads[0].arrivals.count": [2, 4]}
  seeds: 8
  metrics: [waiting.max_s]
  claims:
    - {id: four-wait-longer-than-two, says: waiting.max_s(count=4) > 10 * waiting.max_s(count=2), confidence: 0.99}
    - {id: nobody-waits, says: waiting.max_s(count=4) < 1, confidence: 0.99}
    - {id: a-guess, says: waiting.max_s(count=4) > 1}
"""


def plain(text: str) -> str:
    """Without line breaks and what Markdown and typography add."""
    words = re.sub(r"\s+", " ", re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", r"\1", text))
    return words.translate({0x201C: '"', 0x201D: '"', 0x2019: "'"}).strip()


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_an_experiment_says_what_it_is_about(file: Path) -> None:
    experiment = loader.load(file)
    assert experiment.name == file.stem
    assert documents.read(file)[0].data["spec"]["question"]
    assert experiment.claims


@pytest.mark.skipif(not SOURCES.exists(), reason="not beside the project: ../shared/seeds, the source documents")
@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_quotations_are_exact(file: Path) -> None:
    sources = {path.name[:3]: plain(path.read_text()) for path in SOURCES.glob("*.txt")}
    for quote in documents.read(file)[0].data["spec"]["quotes"]:
        number = re.search(r"\(document (\d+)\)$", quote["document"])
        assert number, quote["document"]
        assert plain(quote["text"]) in sources[number[1]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Experiments and results of their own, none yet."""
    (tmp_path / "results").mkdir()
    (tmp_path / "scale").mkdir()
    monkeypatch.setattr(catalogue, "EXPERIMENTS", tmp_path)
    monkeypatch.setattr(catalogue, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(catalogue, "ORDER", ())
    monkeypatch.setattr(pages, "PAGE", tmp_path / "findings.md")
    monkeypatch.setattr(headlines, "FOLDER", tmp_path / "pictures" / "scale")
    monkeypatch.setattr(headlines, "HEADLINES", ())
    return tmp_path


@pytest.fixture
def small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One experiment that quotes, stored and written."""
    name = "ping-pong"
    for below in ("", "results/"):
        for file in (ROOT / "experiments" / below).glob(f"{name}.*"):
            (folder / below / file.name).write_text(file.read_text())
    monkeypatch.setattr(catalogue, "ORDER", (name,))
    monkeypatch.setattr(repeats, "NOT_YET", {name: 1})
    monkeypatch.setattr(repeats, "WHY", {})
    found = json.loads((folder / "results" / f"{name}.json").read_text())
    found.pop("large", None)
    (folder / "results" / f"{name}.json").write_text(json.dumps(found))
    pages.PAGE.write_text(pages.page())
    assert list(checks.complaints()) == []
    return folder


def test_results_belong_to_the_experiment_as_it_stands(small: Path) -> None:
    file = small / "ping-pong.yaml"
    file.write_text(file.read_text().replace("rate: 0.1/s", "rate: 0.2/s"))
    assert "has changed since its results were stored" in next(checks.complaints())


def test_words_may_change_without_another_run_and_the_page_follows(small: Path) -> None:
    file = small / "ping-pong.yaml"
    file.write_text(file.read_text().replace("  finding: >-\n", "  finding: >-\n    In other words:\n"))
    assert list(checks.complaints()) == ["docs/findings.md differs from the stored results: scripts/findings writes it"]
    pages.PAGE.write_text(pages.page())
    assert "In other words:" in pages.PAGE.read_text()
    assert list(checks.complaints()) == []


def test_a_figure_that_changed_makes_another_page(small: Path) -> None:
    file = small / "results" / "ping-pong.json"
    found = json.loads(file.read_text())
    found["variants"][0]["metrics"]["evictions"]["mean"] += 1
    file.write_text(json.dumps(found))
    assert list(checks.complaints()) == ["docs/findings.md differs from the stored results: scripts/findings writes it"]


def judged(says: str, outcome: str = "holds", ratio: float | None = None, mean: float = 1, bounds: int = 0) -> Any:
    """A stored judgement, as far as it is read."""
    return {
        "id": says.partition("(")[0].replace(".", "-"),
        "says": says,
        "outcome": outcome,
        "ratio": None if ratio is None else {"estimate": ratio},
        "left": {"mean": mean, "lower_bounds": bounds},
        "right": {"mean": 1, "lower_bounds": 0},
    }


@pytest.mark.parametrize(
    ("says", "small", "large", "fate"),
    [
        ("m(a) > 3 * m(b)", {"ratio": 12}, {"ratio": 9}, "stands"),
        ("m(a) > 3 * m(b)", {"ratio": 12}, {"ratio": 5}, "weakens"),
        ("m(a) > 3 * m(b)", {"ratio": 12}, {"ratio": 5, "bounds": 2}, "stands"),  # at least 5
        ("m(a) > 3 * m(b)", {"ratio": 12}, {"ratio": 2, "outcome": "fails"}, "turns"),
        ("m(a) > 3 * m(b)", {"ratio": 12}, {"ratio": 4, "outcome": "undecided"}, "is undecided"),
        ("m(a) > 3 * m(b)", {"outcome": "undecided"}, {"outcome": "undecided"}, "stays undecided"),
        ("m(a) > 3 * m(b)", {"outcome": "undecided"}, {"outcome": "fails"}, "is decided"),
        # As good as: the nearer to one the better.
        ("m(a) <= 1.1 * m(b)", {"ratio": 1.01}, {"ratio": 0.99}, "stands"),
        ("m(a) <= 1.1 * m(b)", {"ratio": 1.01}, {"ratio": 1.09}, "weakens"),
        ("m(a) < 0.5", {"mean": 0.1}, {"mean": 0.09}, "stands"),
        ("m(a) < 0.5", {"mean": 0.1}, {"mean": 0.4}, "weakens"),
        ("m(a) > 5", {"outcome": "fails", "mean": 0}, {"outcome": "fails", "mean": 1}, "stands"),
    ],
)
def test_what_became_of_a_claim_on_more_nodes(says: str, small: Any, large: Any, fate: str) -> None:
    assert repeats.fate(judged(says, **small), judged(says, **large)) == fate


def test_a_count_is_compared_with_one_in_proportion() -> None:
    small, large = judged("m(a) < 0.5", mean=0.1), judged("m(a) < 50", mean=10)
    assert repeats.fate(small, large) == "stands"
    assert repeats.fate(small, judged("m(a) < 50", mean=40)) == "weakens"


def test_a_sentence_tells_how_many_claims_stand_and_names_the_others() -> None:
    assert repeats.sentence({"stands": ["a", "b"]}) == "all 2 claims stand"
    assert repeats.sentence({"turns": ["a-b"]}) == "no claim stands; “a b” turns"
    found = {"stands": ["a", "b"], "turns": ["c-d", "e"], "is undecided": ["f"]}
    assert repeats.sentence(found) == "2 of 5 claims stand; “c d” and “e” turn; “f” is undecided"
    assert repeats.counted(found) == "2 stand, 2 turn, 1 is undecided"


@pytest.mark.thorough
def test_the_large_repetition_is_the_same_experiment_on_more_nodes() -> None:
    large = catalogue.large("ping-pong")
    experiment, _ = catalogue.load("ping-pong")
    assert 500 < len(large.scenario.nodes) <= catalogue.LARGE_NODES
    assert [claim.id for claim in large.claims] == [claim.id for claim in experiment.claims]
    assert catalogue.digest(large) != catalogue.digest(experiment)
    # Each node of its kind has the pod that stands on it from the start; counts in claims are in proportion.
    bound = {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in large.settings["manifests"]}
    assert len(bound) == len(large.scenario.nodes) == 1000
    assert (bound["busy-499"], bound["calm-2"]) == ("best-effort-499", "resident-2")
    assert [claim.right.factor for claim in large.claims] == [1250, 1250, 1250, 25]
    assert large.claims[0].says == "eviction_returns(avoidEvictedNode=off, uses=within-request, ranking=current) > 1250"
    # No claim speaks of pods beyond their request where priorities come first and nodes are not avoided.
    assert len(large.variants) == len(experiment.variants) - 1 == len(large.overrides)


def test_shorter_times_of_a_large_repetition_belong_to_its_digest_and_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in catalogue.LARGE_TIMES:
        assert catalogue.large(name).scenario.duration_ns < catalogue.load(name)[0].scenario.duration_ns
    shorter = catalogue.digest(catalogue.large("victim-search"))
    assert repeats.times("victim-search").startswith(" Its runs are shorter there (`duration: 60s`, ")
    monkeypatch.setattr(catalogue, "LARGE_TIMES", {})
    assert catalogue.digest(catalogue.large("victim-search")) != shorter
    assert repeats.times("ping-pong") == ""


def test_gangs_quotas_and_node_groups_grow_with_the_cluster() -> None:
    gangs, quota, groups = (catalogue.large(name) for name in ("backfilling", "greedy-tenant", "autoscaler-cut-off"))
    sizes = [group["spec"]["schedulingPolicy"]["gang"]["minCount"] for group in gangs.settings["manifests"]]
    assert sizes == [20, 40, 80]
    path = "manifests[2].spec.hard.pods"
    assert [variant[path] for variant in quota.variants] == ["10000", "4", "0"]
    assert [values[path] for values in quota.overrides] == ["1250000", "500", "0"]
    assert groups.scenario.autoscaler is not None
    (group,) = groups.scenario.autoscaler.groups
    assert (group.settings.min, group.settings.max) == (50, 1000)
    assert len(quota.seeds) == 8  # fewer cannot decide at 99 %


def test_what_is_said_of_repeats_is_what_is_stored(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "NOT_YET", {})
    assert "ping-pong is not repeated, and NOT_YET lacks it" in next(checks.complaints())
    found = json.loads((small / "results" / "ping-pong.json").read_text())
    found["large"] = {"claims": [{**claim, "outcome": "fails"} for claim in found["claims"]]}
    assert repeats.complaint("ping-pong", found) == (
        "ping-pong is judged otherwise, and WHY lacks it: on 1000 nodes, experiments/findings/repeats.py"
    )
    monkeypatch.setattr(repeats, "WHY", {"ping-pong": "Because."})
    assert repeats.complaint("ping-pong", found) is None
    found["large"]["claims"] = found["claims"]
    assert "ping-pong is judged as before" in str(repeats.complaint("ping-pong", found))


@pytest.mark.parametrize("file", SCALE, ids=lambda file: file.stem)
def test_an_experiment_at_scale_is_large_and_its_claims_are_strict(file: Path) -> None:
    experiment = loader.load(file)
    assert experiment.name == file.stem
    assert len(experiment.scenario.nodes) >= catalogue.LARGE_NODES
    assert len(experiment.seeds) >= 8
    assert all(claim.confidence >= headlines.CONFIDENCE for claim in experiment.claims)
    metrics = {metric.text for metric in experiment.metrics}
    named = [
        side.metric for claim in experiment.claims for side in (claim.left, claim.right) if side.metric is not None
    ]
    assert {metric.text for metric in named} <= metrics  # so that pictures can show them


def test_shards_split_the_pods_of_one_name(tmp_path: Path) -> None:
    shards = "".join(
        f"""
    - name: s{index}
      config:
        profiles:
          - schedulerName: default-scheduler
            plugins: {{preEnqueue: {{enabled: [{{name: "shards:Shard"}}]}}}}
            pluginConfig: [{{name: "shards:Shard", args: {{of: 3, index: {index}}}}}]"""
        for index in range(2)  # the third part is nobody's
    )
    file = tmp_path / "shards.yaml"
    file.write_text(f"""\
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  duration: 10s
  modules: [{ROOT / "experiments" / "scale"}]
  nodes: [{{namePrefix: node-, count: 3}}]
  schedulers:{shards}
  workloads: [{{name: w, arrivals: {{count: 60}}, pods: {{spec: {{containers: [{{name: main}}]}}}}}}]
""")
    result = runner.run(scenario_loader.load(file), runner.Options(out=tmp_path / "run"))
    counts = result.verdict["counts"]
    assert 25 < counts["pods_bound"] == counts["scheduling_attempts"] < 55
    assert counts["bind_conflicts"] == 0


@pytest.fixture
def tiny(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One experiment at a scale of two nodes, run in this process, stored and written."""
    monkeypatch.setattr(runs, "Workers", lambda jobs, limit_s: Inline())
    monkeypatch.setattr(catalogue, "LARGE_NODES", 2)
    for module in (checks, pages, headlines):
        monkeypatch.setattr(module, "LARGE_NODES", 2)
    (folder / "scale" / "tiny.yaml").write_text(TINY)
    assert runs.run(["tiny"], 1, folder / "runs") == 0
    pages.write()
    assert list(checks.complaints()) == []
    return folder


def test_the_head_of_the_page_tells_the_strongest_claim_at_scale(tiny: Path) -> None:
    assert headlines.counted() == {"holds": 1, "fails": 1, "undecided": 0}
    (headline,) = headlines.all_of_them()
    assert (headline.says, headline.claims) == ("Four wait longer than two", {"four-wait-longer-than-two": "holds"})
    page = pages.PAGE.read_text()
    assert "**2 claims** about 2 nodes or more are decided at a confidence of 99 %: 1 hold and 1 do not" in page
    assert "* Four wait longer than two: ✓ holds at 99 %. " in page
    detail = catalogue.stored("tiny")["claims"][0]["detail"]
    assert detail[1:] in page.partition("## How to read")[0]
    assert "`kemu sweep experiments/scale/tiny.yaml`" in page
    assert b"longest wait until bound" in headlines.picture_of(headline).read_bytes()


def test_a_sentence_must_say_what_the_results_say(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = headlines.Headline("tiny", {"nobody-waits": "holds"}, "Nobody waits")
    monkeypatch.setattr(headlines, "HEADLINES", (wrong,))
    assert "the headline of tiny says that nobody-waits holds; it is fails" in list(checks.complaints())


def test_judgements_follow_from_the_table_of_all_cells(tiny: Path) -> None:
    path = catalogue.raw("tiny")
    records = files.read(path).records
    assert [record.cell.seed for record in records] == [*range(1, 9), *range(1, 9)]
    assert all(record.rows is not None and record.rows.run["pods_bound"] for record in records)
    files.write_to(path, records[:12], ("workloads[0].arrivals.count",))
    assert (
        "experiments/results/scale/tiny.parquet gives other judgements than are stored: scripts/findings run tiny"
        in (list(checks.complaints()))
    )
    path.unlink()
    assert any("tiny.parquet is missing" in complaint for complaint in checks.complaints())


def test_a_picture_that_does_not_follow_from_the_results_is_noticed(tiny: Path) -> None:
    (picture,) = headlines.FOLDER.glob("*.svg")
    picture.write_bytes(picture.read_bytes().replace(b"until bound", b"until it ran"))
    (complaint,) = checks.complaints()
    assert complaint.startswith(f"docs/pictures/findings/scale/{picture.name} differs")
    (headlines.FOLDER / "stale.svg").write_bytes(b"")
    pages.write()
    assert list(headlines.FOLDER.glob("*.svg")) == [picture]
    assert list(checks.complaints()) == []


def test_drift_of_a_cell_at_scale_is_noticed(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHEAP", ())
    monkeypatch.setattr(checks, "CELLS", {"tiny": 1})
    assert list(checks.drift(1)) == []
    results_of, more = runs.results_of, [0.0]

    def other(*arguments: Any) -> dict[str, Any]:
        found = results_of(*arguments)
        found["first seed"]["figures"][0]["waiting.max_s"] += more[0]
        return found

    monkeypatch.setattr(runs, "results_of", other)
    # Other draws are no other finding; what strays from all seeds is.
    more[0] = 0.001
    assert list(checks.drift(1)) == []
    more[0] = 1000.0
    (told,) = checks.drift(1)
    assert told.startswith("tiny, variant 1: waiting.max_s is 1")
    assert told.endswith("scripts/findings run tiny")

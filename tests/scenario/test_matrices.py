"""A matrix makes variants; expectations may count in some of them, and compare them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu import errors
from kemu.scenario.expectations import Comparison
from kemu.scenario.format import documents, paths
from kemu.scenario.format.documents import Place
from kemu.scenario.loading import loader, matrices
from tests.scenario.texts import load, pod, problems

TWO_BY_TWO = f"""\
seed: 0
schedulers: [{{name: default-scheduler, policy: {{queue: priority}}}}]
events: [{{at: 1s, create: {pod("a")}}}]
matrix:
  schedulers[0].policy.queue: [fifo, priority]
  schedulers[0].policy.nomination: [on, off]
expect:
- {{pod: a, bound: {{}}}}
- {{pod: a, running: {{}}, when: {{"schedulers[0].policy.queue": fifo}}}}
- {{pod: a, neverBound: true, when: {{"schedulers[0].policy.queue": fifo, "schedulers[0].policy.nomination": off}}}}
- compare:
    metric: waiting.p99_s
    of: {{"schedulers[0].policy.queue": fifo, "schedulers[0].policy.nomination": on}}
    timesThatOf: {{"schedulers[0].policy.queue": priority, "schedulers[0].policy.nomination": on}}
    atLeast: 2
"""


def test_all_combinations_in_order_the_last_path_changing_fastest() -> None:
    scenario = load(TWO_BY_TWO)
    queue, nomination = "schedulers[0].policy.queue", "schedulers[0].policy.nomination"
    assert [dict(variant) for variant, _ in loader.variants(scenario)] == [
        {queue: "fifo", nomination: True},
        {queue: "fifo", nomination: False},
        {queue: "priority", nomination: True},
        {queue: "priority", nomination: False},
    ]
    assert [dict(each.schedulers[0].policy) for _, each in loader.variants(scenario)] == [
        {"queue": "fifo", "nomination": True},
        {"queue": "fifo", "nomination": False},
        {"queue": "priority", "nomination": True},
        {"queue": "priority", "nomination": False},
    ]


def test_expectations_count_where_their_condition_holds() -> None:
    scenario = load(TWO_BY_TWO)
    assert [[found.id for found in each.expectations] for _, each in loader.variants(scenario)] == [
        ["a.bound", "a.running"],
        ["a.bound", "a.running", "a.never.bound"],
        ["a.bound"],
        ["a.bound"],
    ]
    assert scenario.expectations == ()


def test_comparisons_belong_to_the_whole_and_name_one_variant_each() -> None:
    scenario = load(TWO_BY_TWO)
    (comparison,) = scenario.comparisons
    assert isinstance(comparison.subject, Comparison)
    assert loader.select(scenario, comparison.subject.of) == [0]
    assert loader.select(scenario, comparison.subject.times_that_of) == [2]
    assert all(not each.comparisons for _, each in loader.variants(scenario))


def test_the_resolved_document_of_a_variant_is_that_variant() -> None:
    for _, each in loader.variants(load(TWO_BY_TWO)):
        again = loader.loads(each.to_yaml())
        assert not again.variants
        assert again.schedulers == each.schedulers
        assert [found.subject for found in again.expectations] == [found.subject for found in each.expectations]
        assert again.to_yaml() == each.to_yaml()


def test_the_resolved_document_of_the_whole_has_the_matrix() -> None:
    scenario = load(TWO_BY_TWO)
    assert len(loader.loads(scenario.to_yaml()).variants) == 4


def test_overriding_a_path_of_the_matrix_pins_it() -> None:
    scenario = load(TWO_BY_TWO.partition("- compare")[0], overrides={"schedulers[0].policy.queue": "fifo"})
    assert [each.schedulers[0].policy["queue"] for _, each in loader.variants(scenario)] == ["fifo", "fifo"]


def test_expectations_of_variants_that_an_override_took_away_do_not_count() -> None:
    text = (
        "schedulers: [{name: a}]\n"
        "matrix: {'schedulers[0].policy.queue': [fifo, priority]}\n"
        "expect:\n"
        "  - {counter: preemptions, equals: 1, when: {'schedulers[0].policy.queue': fifo}}\n"
        "  - {counter: preemptions, equals: 0, when: {'schedulers[0].policy.queue': priority}}\n"
    )
    scenario = load(text, overrides={"schedulers[0].policy.queue": "priority"})
    assert [found.line for found in scenario.expectations] == [load(text).variants[1][1].expectations[0].line]


def test_whole_mappings_may_vary() -> None:
    scenario = load(
        "schedulers: [{name: a}]\n"
        "matrix: {'schedulers[0].policy': [{queue: fifo, nomination: off}, {queue: priority}]}\n"
        "expect: [{counter: preemptions, equals: 0, when: {'schedulers[0].policy.queue': fifo}}]"
    )
    first, second = (each for _, each in loader.variants(scenario))
    assert first.schedulers[0].policy == {"queue": "fifo", "nomination": False}
    assert second.schedulers[0].policy == {"queue": "priority"}
    assert (len(first.expectations), len(second.expectations)) == (1, 0)


def test_names_are_looked_up_in_the_variant() -> None:
    matrix = "matrix: {'nodes[0].count': [1, 3]}\n"
    expect = f"events: [{{at: 1s, create: {pod('a')}}}]\nexpect: [{{pod: a, bound: {{node: node-3}}"
    nodes = "  nodes: [{namePrefix: node-, count: 1}]\n"
    scenario = load(matrix + expect + ", when: {'nodes[0].count': 3}}]", nodes=nodes)
    assert [len(each.expectations) for _, each in loader.variants(scenario)] == [0, 1]
    assert [problem.message for problem in problems(matrix + expect + "}]", nodes=nodes)] == ["there is no node node-3"]


def test_a_comparison_must_name_exactly_one_variant() -> None:
    text = TWO_BY_TWO.replace(', "schedulers[0].policy.nomination": on}', "}")
    assert [problem.path for problem in problems(text)] == [
        "spec.expect[3].compare.of", "spec.expect[3].compare.timesThatOf",
    ]  # fmt: skip


def test_too_many_combinations_are_refused() -> None:
    numbers = ", ".join(str(n) for n in range(40))
    (problem,) = problems(f"matrix: {{seed: [{numbers}], duration: [{', '.join(f'{n}s' for n in range(1, 41))}]}}")
    assert "1000 combinations" in problem.message


def test_paths_that_take_each_other_away_are_refused() -> None:
    found = problems("schedulers: [{name: a}]\nmatrix: {schedulers: [[]], 'schedulers[0].policy.queue': [fifo]}")
    assert [problem.path for problem in found] == ["spec.matrix"]


def test_an_override_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(errors.ScenarioError, match="cannot be overridden"):
        load("", overrides={"schedulers[0].name": "x"})


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("seed", ("spec", "seed")),
        ("spec.seed", ("spec", "seed")),
        ("nodes[0].labels[topology.kubernetes.io/zone]", ("spec", "nodes", 0, "labels", "topology.kubernetes.io/zone")),
        ("nodes[0].labels['a.b/c'].x", ("spec", "nodes", 0, "labels", "a.b/c", "x")),
    ],
)
def test_paths(text: str, path: documents.Path) -> None:
    assert matrices.parse_path(text) == path


@pytest.mark.parametrize("text", ["", ".", "a..b", "a[", "a]", "a b", ".a", "[0"])
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        matrices.parse_path(text)


_steps = st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9]*", fullmatch=True), min_size=1, max_size=5)


@given(_steps, st.integers())
def test_what_was_put_is_there(steps: list[str], value: int) -> None:
    document = documents.Document("f", {"spec": {}}, {(): Place(1, 1, 1, 1)})
    path = ("spec", *steps)
    matrices.put(document, path, value, Place(3, 4, 5, 6))
    assert paths.get(document.data, path) == value
    assert document.place(path).line == 3
    assert matrices.matches(document.data, {".".join(steps): value})
    assert not matrices.matches(document.data, {".".join(steps): value + 1})

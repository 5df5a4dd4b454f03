"""A matrix makes variants; expectations may count in some of them, and compare them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu import errors
from kemu.emulated.settings import documents, paths
from kemu.emulated.settings.documents import Place
from kemu.lab.scenario.expectations import Comparison
from kemu.lab.scenario.loading import loader, matrices
from kemu.lab.scenario.playing import runner
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
    assert matrices.matches(document.data, {".".join(steps): value}, {})
    assert not matrices.matches(document.data, {".".join(steps): value + 1}, {})


PARAMETERS = f"""\
seed: 0
duration: 1m
nodes: [{{namePrefix: node-, count: 2, allocatable: {{cpu: 4, memory: 8Gi, pods: 110}}}}]
workloads:
- {{name: w, arrivals: {{poisson: {{rate: 1/s}}, count: 4}}, pods: {{spec: {{containers: [{{name: c}}]}}}}}}
- {{name: v, arrivals: {{every: 1s, count: 4}}, pods: {{spec: {{containers: [{{name: c}}]}}}}}}
events: [{{at: 1s, create: {pod("a")}}}]
matrix:
  seed: 3..5
  parameters:
    load: {{values: [1/s, 2/s], sets: ["workloads[*].arrivals.poisson.rate"]}}
    size:
      values: {{small: {{"nodes[0].count": 1, "workloads[*].arrivals.count": 2}}, large: {{"nodes[0].count": 3}}}}
expect:
- {{pod: a, bound: {{}}, when: {{size: large, seed: 4}}}}
- compare:
    metric: waiting.p99_s
    of: {{seed: 3, load: 2/s, size: small}}
    timesThatOf: {{seed: 3, load: 2/s, size: large}}
    atLeast: 0
"""


def test_ranges_and_named_parameters_vary_like_paths() -> None:
    made = loader.variants(load(PARAMETERS, nodes=""))
    assert [dict(variant) for variant, _ in made] == [
        {"seed": seed, "load": rate, "size": size}
        for seed in (3, 4, 5)
        for rate in ("1/s", "2/s")
        for size in ("small", "large")
    ]
    assert [each.seed for _, each in made] == [3] * 4 + [4] * 4 + [5] * 4
    shapes = [
        [each.resolved["spec"][key][index] for key, index in (("nodes", 0), ("workloads", 0), ("workloads", 1))]
        for _, each in made[2:4]
    ]
    # Only the workload that has a rate gets the new one; every one gets the new count.
    assert [(node["count"], w["arrivals"], v["arrivals"]) for node, w, v in shapes] == [
        (1, {"poisson": {"rate": "2/s"}, "count": 2}, {"every": "1s", "count": 2}),
        (3, {"poisson": {"rate": "2/s"}, "count": 4}, {"every": "1s", "count": 4}),
    ]


def test_conditions_may_name_parameters() -> None:
    scenario = load(PARAMETERS, nodes="")
    made = loader.variants(scenario)
    expecting = [dict(variant) for variant, each in made if each.expectations]
    assert expecting == [{"seed": 4, "load": rate, "size": "large"} for rate in ("1/s", "2/s")]
    assert loader.select(scenario, {"seed": 3, "load": "2/s", "size": "large"}) == [3]


def test_a_parameter_can_be_pinned_also_to_another_value() -> None:
    scenario = load(PARAMETERS, {"load": "9/s", "seed": 4, "size": "large"}, nodes="")
    assert scenario.variants == []
    assert scenario.resolved["spec"]["workloads"][0]["arrivals"]["poisson"] == {"rate": "9/s"}
    assert scenario.resolved["spec"]["nodes"][0]["count"] == 3
    assert [each.id for each in scenario.expectations] == ["a.bound"]
    assert scenario.comparisons == ()
    again = loader.loads(scenario.to_yaml())
    assert [each.id for each in again.expectations] == ["a.bound"]


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        (
            {"size": "medium"},
            "size cannot be overridden: the parameter size has no value medium (there are: small, large)",
        ),
        (
            {"nodes[0].count": 7},
            "nodes[0].count cannot be overridden: the parameter size sets it: --set size=VALUE",
        ),
        (
            {"workloads[*].arrivals.ramp.from": 7},
            (
                "workloads[*].arrivals.ramp.from cannot be overridden: "
                "workloads[*].arrivals.ramp.from leads nowhere: no item of the list has that"
            ),
        ),
    ],
)
def test_half_a_parameter_is_refused(overrides: dict[str, object], text: str) -> None:
    with pytest.raises(errors.ScenarioError) as raised:
        load(PARAMETERS, overrides, nodes="")
    assert [problem.message for problem in raised.value.problems] == [text]


def test_a_parameter_that_stands_beside_the_parameters_is_told_where_it_belongs() -> None:
    (found,) = problems("matrix: {load: {values: [1, 2], sets: seed}}")
    assert (found.path, found.message, found.suggestion) == (
        "spec.matrix.load",
        "must be a list, or a range such as 1..10, not a mapping",
        "a named parameter stands below parameters",
    )


def test_a_wrong_value_of_a_parameter_is_told_at_the_parameter() -> None:
    spec = (
        "workloads: [{name: w, arrivals: {poisson: {rate: 1/s}}, pods: {spec: {containers: [{name: m}]}}}]\n"
        "matrix:\n  seed: 1..2\n  parameters:\n"
        '    load: {values: [VALUE], sets: "workloads[0].arrivals.poisson.rate"}'
    )
    found = {(each.line, each.message) for each in problems(spec.replace("VALUE", "0.5"))}
    there = {each.line for each in problems(spec.replace("VALUE", ""))}
    assert found == {(line, "0.5 is not a rate; write 0.5/s") for line in there}
    assert len(there) == 1


@pytest.mark.parametrize(
    ("matrix", "path", "text"),
    [
        ("{seed: 5..1}", "seed", "the range 5..1 ends before it begins; write 1..5"),
        ("{seed: 1..1000000}", "seed", "the range 1..1000000 is too long"),
        ("{seed: 7}", "seed", "must be a list, or a range such as 1..10, not the number 7"),
        ("{seed: []}", "seed", "must not be empty: nothing would run"),
        (
            "{parameters: {load: [1, 2]}}",
            "parameters.load",
            "must be a mapping, not a list; write {values: [1, 2], sets: [workloads[0].arrivals.count]}",
        ),
        (
            "{parameters: {load: {values: [1, 2]}}}",
            "parameters.load",
            "sets is missing: the paths that take the value; or give each label a mapping of paths",
        ),
        (
            "{parameters: {load: {value: [1, 2], sets: seed}}}",
            "parameters.load.value",
            "is not a key that may stand here (there are: values, sets)",
        ),
        (
            "{parameters: {load: {values: [1, 2], sets: [seed, [7]]}}}",
            "parameters.load.sets",
            "must be a path below spec, or a list of paths",
        ),
        (
            "{parameters: {load: {values: [[1], [2]], sets: seed}}}",
            "parameters.load.values",
            "holds values that are no good labels; write a mapping of labels to values",
        ),
        (
            "{seed: [1], parameters: {seed: {values: [1], sets: seed}}}",
            "parameters.seed",
            "seed is a path of the matrix already; choose another name",
        ),
        (
            '{parameters: {load: {values: [1, 2], sets: "workloads[*].arrivals.count"}}}',
            "parameters.load",
            "workloads[*].arrivals.count leads nowhere: no item of the list has that",
        ),
    ],
)
def test_mistakes_in_a_matrix_are_told_once(matrix: str, path: str, text: str) -> None:
    found = problems(f"matrix: {matrix}")
    assert [(problem.path, problem.message) for problem in found] == [(f"spec.matrix.{path}", text)]


def test_names_of_variants_read_like_yaml() -> None:
    name = runner.variant_name
    assert name({"load": 0.5, "size": "small", "seed": 3}) == "load=0.5 size=small seed=3"
    assert name({"schedulers[0].policy.nomination": True}) == "nomination=on"
    assert name({"a.b": None, "c.d": [1, {"e": False}]}) == "b=null d=[1, {e: off}]"
    # As much of the path as tells them apart.
    queues = {"schedulers[0].policy.queue": "fifo", "schedulers[1].policy.queue": "priority"}
    assert name(queues) == "schedulers[0].policy.queue=fifo schedulers[1].policy.queue=priority"
    assert name({"a.x.count": 1, "b.y.count": 2}) == "x.count=1 y.count=2"

"""The final screen: what failed comes last, nothing is cut, and it never sounds like a success of nothing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

import kemu
from kemu.lab.tell import layouts, matrices, stories, story_tables, telling_pods, terminal

STORM = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: storm}
spec:
  duration: 40s
  nodes: [{namePrefix: node-, count: 2, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}]
  priorityClasses: {high: 1000, low: 10}
  schedulers: [{name: a, replicas: 2}, {name: b}]
  checks: {starvation: {maxWait: 20s}}
  workloads:
    - name: web
      arrivals: {every: 1s, until: 4s}
      pods:
        spec:
          {schedulerName: a, priorityClassName: low,
           containers: [{name: m, resources: {requests: {cpu: "2"}}}]}
    - name: batch
      start: 10s
      arrivals: {every: 1s, until: 13s}
      pods:
        spec:
          {schedulerName: b, priorityClassName: high,
           containers: [{name: m, resources: {requests: {cpu: "2"}}}]}
  expect:
    - {pods: {workload: web}, all: {running: {}}}
    - {id: web-came-first, pod: web-0, bound: {before: 5s}}
    - {id: nobody-is-hurt, counter: preemptions, equals: 0}
    - {pods: {workload: batch}, none: {bound: {}}}
"""
NOTHING_EXPECTED = STORM.partition("  expect:")[0].replace("  checks: {starvation: {maxWait: 20s}}\n", "")
NO_NODES = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: empty}
spec:
  duration: 10s
  nodes: []
  workloads:
    - {name: nobody, arrivals: {count: 0}, pods: {spec: {containers: [{name: m}]}}}
  manifests:
    - {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: m}]}}
"""
TOO_LARGE = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: large}
spec:
  duration: 10s
  nodes: [{name: node-1, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}]
  workloads:
    - {name: big, arrivals: {count: 3}, pods: {spec: {containers: [{name: m, resources: {requests: {cpu: "8"}}}]}}}
    - {name: fits, arrivals: {count: 2}, pods: {spec: {containers: [{name: m, resources: {requests: {cpu: "3"}}}]}}}
"""


def shown(run: kemu.Run, width: int, commands: Sequence[tuple[str, str]] = ()) -> str:
    console = Console(file=io.StringIO(), width=width)
    terminal.show_run(console, {"wall_s": 0.0, **run.data}, run.history, run.scenario.description, commands)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def storm() -> kemu.Run:
    return kemu.run(STORM)


def test_what_failed_comes_last(storm: kemu.Run) -> None:
    """Passing checks are one line, expectations are sentences with their id, the verdict is the last line."""
    bottom = shown(storm, 80).partition("✓ 17")[1:]
    assert "".join(bottom) == (
        "✓ 17 checks hold, 32 had nothing to judge\n"
        "✓ web.all.running  every pod of web runs: 4 of 4 pods\n"
        "✓ web-came-first  web-0 is bound before 5 s: bound to node-2 by a/0 at 0.006 s\n"
        "✗ nobody-is-hurt  the counter preemptions is 0\n"
        "    preemptions = 3\n"
        "✗ batch.none.bound  no pod of batch is bound\n"
        "    3 of 3 pods\n"
        "    default/batch-0: bound to node-2 by b/0 at 10.019 s\n"
        "\n"
        "storm fails: 2 of 4 expectations\n"
    )


def test_an_assertion_that_fails_has_the_sentences_too(storm: kemu.Run) -> None:
    with pytest.raises(kemu.RunFailed) as caught:
        storm.check()
    assert str(caught.value).splitlines()[:5] == [
        "storm fails (sim, seed 0, 14 s)",
        "  ✗ nobody-is-hurt: preemptions = 3",
        "      expected: the counter preemptions is 0",
        "  ✗ batch.none.bound: 3 of 3 pods; default/batch-0: bound to node-2 by b/0 at 10.019 s",
        "      expected: no pod of batch is bound",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_nothing_is_cut(storm: kemu.Run, width: int) -> None:
    text = shown(storm, width, [("kemu explain runs/storm-sim-0", "why it fails")])
    lines = text.splitlines()
    assert [line for line in lines if len(line) > width] == []
    assert "…" not in text
    for title in ("overtaken", "preempted", "unschedulable", "conflicts"):
        assert title in text


def test_commands_stand_on_lines_of_their_own(storm: kemu.Run) -> None:
    command = "kemu trace runs/a-folder-with-a-name-that-is-longer-than-the-terminal-is-wide/storm-sim-0 batch-0"
    lines = shown(storm, 60, [(command, "what batch-0 went through, span by span")]).splitlines()
    assert lines[lines.index("next") + 1 :][:2] == [f"  {command}", "      what batch-0 went through, span by span"]


def test_the_figures_tell_workloads_and_replicas_apart(storm: kemu.Run) -> None:
    assert """\
priority     pods  unbound  wait p50      p99      max  overtaken
high (1000)     3        -   0.017 s  0.017 s  0.017 s          0
low (10)        4        -   0.004 s  0.004 s  0.004 s          0

workload  created  bound  unbound  wait p50      p99      max  overtaken  preempted
web             4      4        -   0.004 s  0.004 s  0.004 s          0          3
batch           3      3        -   0.017 s  0.017 s  0.017 s          0          -

scheduler  attempts  unschedulable  bound  conflicts  preempted
a/0               4              -      4          -          -
a/1               4              -      -          4          -
b/0               6              3      3          -          3
""" in shown(storm, 100)
    assert storm.data["schedulers"]["a/1"] == {
        "attempts": 4, "unschedulable": 0, "bound": 0, "conflicts": 4, "preempted": 0,
    }  # fmt: skip
    assert storm.data["workloads"]["web"]["preempted"] == 3


@pytest.mark.parametrize(
    ("scenario", "headline"),
    [
        (NOTHING_EXPECTED, "storm: nothing was expected; 16 checks hold"),
        (
            NO_NODES,
            (
                "empty: nothing was expected; 9 checks hold; there was no node; workload nobody made no pod; "
                "1 pod was never bound; no node can take it"
            ),
        ),
        (
            TOO_LARGE,
            "large: nothing was expected; 14 checks hold; 4 pods were never bound; no node can take 3 of them",
        ),
        (
            TOO_LARGE + "  checks: {starvation: {maxWait: 60s}}\n",
            (
                "large: nothing was expected but no-pod-starves; 15 checks hold; 4 pods were never bound; "
                "no node can take 3 of them"
            ),
        ),
    ],
)
def test_without_expectations_a_run_is_no_success(scenario: str, headline: str) -> None:
    run = kemu.run(scenario)
    assert shown(run, 200).splitlines()[-1] == headline
    assert run.verdict == "holds", "as the format defines it"
    assert headline.endswith(run.data["headline"])


MATRIX = NOTHING_EXPECTED.replace("spec:\n", "spec:\n  matrix: {'schedulers[0].policy.queue': [fifo, priority]}\n", 1)


def of_matrix(run: kemu.Run, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    histories = [each.history for each in run.variants]
    matrices.show(console, {"wall_s": 0.0, **run.data}, histories, "")
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_title_of_a_matrix_names_its_seeds() -> None:
    over = MATRIX.replace("matrix: {", "matrix: {seed: 3..5, ")
    assert of_matrix(kemu.run(over))[0].startswith("storm  sim, 3 seeds from 3 to 5, ")
    assert of_matrix(kemu.run(MATRIX))[0].startswith("storm  sim, seed 0, ")


def test_nor_is_a_matrix() -> None:
    shown = of_matrix(kemu.run(MATRIX))
    assert shown[-1] == "storm: nothing was expected; 2 variants"
    assert all("holds:" not in line for line in shown)


EXPECTED_OF_BOTH = """\
  expect:
    - {id: first, pod: web-0, bound: {before: 1s}}
    - {id: one-too-many, counter: preemptions, equals: 2, when: {'schedulers[0].policy.queue': fifo}}
    - {id: nobody-is-hurt, counter: preemptions, equals: 0}
"""


def test_a_matrix_says_each_thing_once_and_what_failed_last() -> None:
    """What holds in all variants is one line, what does not names the variants."""
    shown = of_matrix(kemu.run(MATRIX + EXPECTED_OF_BOTH))
    begin = next(number for number, line in enumerate(shown) if line.startswith("✓"))
    assert shown[begin:] == [
        "✓ 14 checks hold in both variants, 2 hold in some and had nothing to judge in the others, 32 had",
        "  nothing to judge",
        "✓ first  web-0 is bound before 1 s: in 2 variants",
        "✗ one-too-many  the counter preemptions is 2 with queue=fifo",
        "    queue=fifo: preemptions = 3",
        "✗ nobody-is-hurt  the counter preemptions is 0",
        "    queue=fifo: preemptions = 3",
        "    queue=priority: preemptions = 3",
        "    in both variants",
        "",
        "storm fails: 2 of 2 variants",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_matrix_is_one_table(width: int) -> None:
    """Its first columns are what the matrix varies; of what has no room beside them nothing is lost."""
    run = kemu.run(MATRIX.replace("matrix: {", "matrix: {seed: 3..4, ") + EXPECTED_OF_BOTH)
    shown = of_matrix(run, width)
    assert [line for line in shown if len(line) > width] == []
    titles = [line.split() for line in shown if line.startswith(("seed ", "variant "))]
    if width >= 60:
        assert [line[:3] for line in titles] == [["seed", "queue", "priority"]] * len(titles)
    told = " ".join(word for line in titles for word in line)
    for title in ("priority", "pods", "unbound", "wait p50", "p99", "max", "overtaken"):
        assert title in told
    assert len(titles) == 1 or width < 80


def test_pods_that_were_never_bound_are_told_with_the_reason() -> None:
    run = kemu.run(TOO_LARGE)
    assert run.data["unbound"] == {
        "pods": 4,
        "hopeless": 3,
        "reasons": [
            {"reason": "Insufficient cpu", "hopeless": True, "pods": 3, "first": "default/big-0"},
            {"reason": "Insufficient cpu", "hopeless": False, "pods": 1, "first": "default/fits-1"},
        ],
    }
    assert (
        "never bound: 4 pods\n"
        "  big-0 and 2 others: Insufficient cpu, no node can take it\n"
        "  fits-1: Insufficient cpu\n" in shown(run, 80)
    )
    assert "never bound: 1 pod\n  a: there was no node\n" in shown(kemu.run(NO_NODES), 80)


# The pod to look at -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "pod"),
    [
        ("{pod: web-2, phase: Running}", "web-2"),
        ("{pods: {workload: web}, all: {phase: Running}}", "web-1"),
        ("{pods: {workload: batch}, none: {bound: {}}}", "batch-0"),
        ("{pods: {workload: batch}, any: {evicted: {}}}", "batch-0"),
        ("{counter: preemptions, equals: 0}", "web-1"),
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_pod_that_failed_is_the_one_to_look_at(expected: str, pod: str, seed: int) -> None:
    run = kemu.run(f"{NOTHING_EXPECTED}  expect: [{expected}]\n", seed=seed)
    assert run.verdict == "fails"
    found = telling_pods.of_run(run.data, run.history)
    assert found == pod or (pod == "web-1" and found in ("web-0", "web-2", "web-3"))


def test_the_pod_that_starves_is_the_one_to_look_at() -> None:
    starving = TOO_LARGE.replace("{count: 3}", "{count: 1}") + "  checks: {starvation: {maxWait: 5s}}\n"
    text = starving.replace("  workloads:", "  events: [{at: 8s, create: {apiVersion: v1, kind: Pod,"
        " metadata: {name: late}, spec: {containers: [{name: m}]}}}]\n  workloads:")  # fmt: skip
    run = kemu.run(text)
    (check,) = (check for check in run.data["checks"] if check["id"] == "no-pod-starves")
    assert telling_pods.of_run(run.data, run.history) == check["detail"].split()[0].removeprefix("default/")


def test_the_pod_that_starved_is_the_one_to_look_at_although_all_is_as_expected() -> None:
    """Not the first preemptor, nor the first of the most frequent reason: the one that others overtook most."""
    text = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: starving}
spec:
  duration: 60s
  nodes: [{name: node-1, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}]
  priorityClasses: {low: 10}
  workloads:
    - name: small
      arrivals: {every: 1s}
      pods: {spec: {priorityClassName: low, containers: [{name: m, resources: {requests: {cpu: "1"}}}]}}
      life: {runSeconds: 3}
    - name: big
      start: 10s
      arrivals: {count: 1}
      pods: {spec: {priorityClassName: low, containers: [{name: m, resources: {requests: {cpu: "4"}}}]}}
  expect: [{pod: big-0, phase: Pending}]
"""
    run = kemu.run(text)
    assert run.verdict == "holds"
    wait = telling_pods.starved(run.data, run.history)
    assert wait is not None
    assert telling_pods.name(wait) == telling_pods.of_run(run.data, run.history) == "big-0"
    assert wait.overtaken > 30
    assert wait.seconds == pytest.approx(50, abs=1)


# Layout -------------------------------------------------------------------------------------------------------------


def lines(found: Any) -> list[str]:
    return [line.plain.rstrip() for line in found]


STORY = [
    stories.Line(5_002_000_000, "user", "blue-pod is created", "wants 3 cpu", "plain"),
    stories.Line(
        5_508_000_000, "kubelet ip-10-0-12-7.eu-central-1.compute.internal", "blue-pod is rejected: OutOfcpu",
        "Node didn't have enough resource: cpu, requested: 3000, used: 3000, capacity: 4000", "bad",
    ),
]  # fmt: skip


def test_a_reason_wraps_below_its_row_and_a_long_name_squeezes_nothing() -> None:
    assert lines(story_tables.rows(STORY, 60)) == [
        "5.002 s  user  blue-pod is created  wants 3 cpu",
        "5.508 s  kubelet ip-10-0-12-7.eu-central-1.compute.internal",
        "               blue-pod is rejected: OutOfcpu",
        "                 Node didn't have enough resource: cpu,",
        "                 requested: 3000, used: 3000, capacity: 4000",
    ]
    wide = lines(story_tables.rows(STORY, 200))
    assert len(wide) == 2
    assert wide[0].index("wants 3 cpu") == wide[1].index("Node didn't")


def test_a_terminal_without_unicode() -> None:
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii", write_through=True), width=60)
    layouts.show(console, [layouts.text(("✗", "red"), " web: ≥ 3 → …"), Text("é")])
    assert raw.getvalue().decode().splitlines() == ["x web: > 3 > ~", "?"]


def test_counters_are_a_grid_downwards() -> None:
    items = [("pods created", "90"), ("pods bound", "65"), ("evictions", "7"), ("nominations", "25"), ("faults", "3")]
    assert lines(layouts.grid(items, 45)) == [
        "pods created  90    nominations  25",
        "pods bound    65    faults        3",
        "evictions      7",
    ]
    assert lines(layouts.grid(items, 20)) == [
        "pods created  90", "pods bound    65", "evictions      7", "nominations   25", "faults         3",
    ]  # fmt: skip


def test_columns_that_name_a_row_stand_in_each_part_of_a_table() -> None:
    titles = ["queue", "priority", "pods", "overtaken", "preemptions"]
    rows = [["fifo", "1000", "3", "227", "184"], ["", "10", "289", "108", ""]]
    assert lines(layouts.table(titles, rows, 34, keys=2)) == [
        "queue priority pods overtaken",
        "fifo  1000        3       227",
        "      10        289       108",
        "queue priority preemptions",
        "fifo  1000             184",
    ]


def test_columns_without_room_stand_below() -> None:
    titles = ["variant", "pods", "overtaken"]
    rows = [["queue=fifo nomination=off", "30", "0"], ["queue=priority", "60", Text("12", "bold")]]
    assert lines(layouts.table(titles, rows, 60)) == [
        "variant                    pods  overtaken",
        "queue=fifo nomination=off    30          0",
        "queue=priority               60         12",
    ]
    assert lines(layouts.table(titles, rows, 30)) == [
        "variant         pods overtaken",
        "queue=fifo        30         0",
        "nomination=off",
        "queue=priority    60        12",
    ]
    assert lines(layouts.table(titles, rows, 22)) == [
        "variant      pods",
        "queue=fifo     30",
        "nomination=o",
        "ff",
        "queue=priori   60",
        "ty",
        "variant      overtaken",
        "queue=fifo           0",
        "nomination=o",
        "ff",
        "queue=priori        12",
        "ty",
    ]


def test_of_many_variants_that_fail_alike_three_are_shown() -> None:
    many = NOTHING_EXPECTED.replace("spec:\n", "spec:\n  matrix: {seed: 1..5}\n", 1)
    shown = of_matrix(kemu.run(many + "  expect: [{counter: pods_created, equals: 77}]\n"))
    assert shown[-7:] == [
        "✗ pods_created  the counter pods_created is 77",
        "    seed=1: pods_created = 7",
        "    seed=2: pods_created = 7",
        "    seed=3: pods_created = 7",
        "    in all 5 variants",
        "",
        "storm fails: 5 of 5 variants",
    ]

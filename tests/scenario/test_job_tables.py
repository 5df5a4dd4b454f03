"""Tables of jobs: what their rows become, what is played of them, and what is said about rows that are wrong."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.objects.amounts import requests
from kemu.lab.scenario.format.traces import Trace
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.loading.objects import job_tables, job_traces, manifests
from kemu.lab.scenario.playing import runner, workloads
from kemu.lab.scenario.scenarios import Scenario
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS as S
from kemu.runtime.random_streams import random_stream
from tests.scenario.texts import HEAD

NODES = (
    "  nodes: [{namePrefix: n-, count: 2, allocatable: {cpu: '8', memory: 32Gi, pods: '110', nvidia.com/gpu: '8'}}]\n"
)
COLUMNS = """{name: job_id, submit: submit_time, runSeconds: duration, cpu: cores, memory: {column: mem_gb, unit: Gi},
          gpu: gpus, replicas: workers, priority: prio, tenant: user}"""
HEADER = "job_id,submit_time,duration,cores,mem_gb,gpus,workers,prio,user\n"
JOBS = (
    HEADER
    + """\
Job 1,0,30,1,2,0,1,100,Alice B.
"job, two",5,20.5,0.5,1.5,0,3,,bob
job-3,2.25,,2,1,1,1,high,
"""
)


def load(
    folder: Path, table: str, columns: str = COLUMNS, more: str = "", spec: str = "", **overrides: Any
) -> Scenario:
    """A scenario with the table as its trace."""
    (folder / "jobs.csv").write_text(table)
    file = folder / "scenario.yaml"
    trace = f"{{format: csv, file: jobs.csv, columns: {columns}{', ' if more else ''}{more}}}"
    file.write_text(
        f"{HEAD}{NODES}  priorityClasses: {{high: 1000}}\n{spec}  workloads: [{{name: jobs, trace: {trace}}}]\n"
    )
    return loader.load(file, overrides=overrides)


def trace_of(scenario: Scenario) -> Trace:
    found = scenario.workloads[0].trace
    assert found is not None
    return found


def read(folder: Path, table: str, columns: str = COLUMNS, more: str = "", **overrides: Any) -> Trace:
    return trace_of(load(folder, table, columns, more, **overrides))


def pods(scenario: Scenario, seed: int = 1) -> list[tuple[int, core_v1_pb2.Pod]]:
    (workload,) = scenario.workloads
    stream = workloads.Stream(workloads.plain(workload), seed, functools.partial(random_stream, seed))
    found = []
    while (when_ns := stream.next_ns()) is not None:
        found.append((when_ns, stream.arrival()[1]))
    return found


def problems(folder: Path, table: str, columns: str = COLUMNS, more: str = "") -> list[errors.Problem]:
    with pytest.raises(errors.ScenarioError) as raised:
        load(folder, table, columns, more)
    return list(raised.value.problems)


def test_rows_become_pods_in_the_order_of_their_arrival(tmp_path: Path) -> None:
    made = pods(load(tmp_path, JOBS))
    names = ["job-1", "job-3", "job-two-0", "job-two-1", "job-two-2"]
    assert [pod.metadata.name for _, pod in made] == names
    assert [when_ns for when_ns, _ in made] == [0, 2_250_000_000, 5 * S, 5 * S, 5 * S]
    assert [pod.metadata.annotations[job_traces.ORIGINAL] for _, pod in made] == ["Job 1", "job-3", *["job, two"] * 3]
    assert [pod.metadata.namespace for _, pod in made] == ["alice-b", "default", "bob", "bob", "bob"]
    assert [pod.spec.priorityClassName for _, pod in made] == ["priority-100", "high", "", "", ""]
    runs = [pod.metadata.annotations.get(manifests.RUN_SECONDS) for _, pod in made]
    assert runs == ["30", None, "20.5", "20.5", "20.5"]
    first, third, *_ = (requests.pod_requests(pod) for _, pod in made)
    assert first == {"cpu": 1000, "memory": 2 << 30}
    assert third == {"cpu": 2000, "memory": 1 << 30, "nvidia.com/gpu": 1}
    assert {pod.spec.restartPolicy for _, pod in made} == {"Never"}


def test_tenants_are_namespaces_that_a_quota_can_bound(tmp_path: Path) -> None:
    quota = """  manifests:
    - {apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: bob}, spec: {hard: {pods: "2"}}}
  duration: 60s
"""
    result = runner.run(load(tmp_path, JOBS, spec=quota), runner.Options(out=tmp_path / "out"))
    bound = [pod.key for pod in result.history.pods.values() if pod.bound_ns is not None]
    assert bound == ["alice-b/job-1", "default/job-3", "bob/job-two-0", "bob/job-two-1"]
    assert result.verdict["refused"]["create pods: Forbidden"] == 1


def test_expectations_may_name_the_pods_of_a_trace(tmp_path: Path) -> None:
    load(tmp_path, JOBS, spec="  expect: [{pod: bob/job-two-2, bound: {}}, {pod: job-3, bound: {}}]\n")
    with pytest.raises(errors.ScenarioError, match="creates the pod job-0"):
        load(tmp_path, JOBS, spec="  expect: [{pod: job-0, bound: {}}]\n")


@pytest.mark.parametrize(
    ("unit", "text", "ns"),
    [
        ("", "90", 90 * S), ("", "1.5", 1_500_000_000), ("", "1h30m", 5400 * S), ("s", "2e3", 2000 * S),
        ("ms", "250", 250_000_000), ("us", "7", 7000), ("ns", "7", 7), ("m", "1.5", 90 * S), ("h", "2", 7200 * S),
        ("d", "0.5", 43_200 * S),
    ],
)  # fmt: skip
def test_times_have_units(unit: str, text: str, ns: int, tmp_path: Path) -> None:
    columns = f"{{submit: {{column: t{', unit: ' + unit if unit else ''}}}}}"
    assert read(tmp_path, f"t\n{text}\n", columns).at_ns == (ns,)


def test_timestamps_begin_with_the_first_of_them(tmp_path: Path) -> None:
    table = "t\n2023-03-01T00:00:10Z\n2023-03-01 08:00:05+08:00\n1677628801\n2023-03-01 00:00:02.5\n"
    assert read(tmp_path, table, "{submit: {column: t, unit: timestamp}}").at_ns == (0, 1_500_000_000, 4 * S, 9 * S)


@pytest.mark.parametrize(
    ("key", "unit", "text", "resource", "amount"),
    [
        ("cpu", "", "500m", "cpu", 500), ("cpu", "", "1.5", "cpu", 1500), ("cpu", "milli", "250", "cpu", 250),
        ("cpu", "cores", "0.0005", "cpu", 1), ("memory", "", "1024", "memory", 1024),
        ("memory", "", "4Gi", "memory", 4 << 30),
        ("memory", "G", "1.5", "memory", 1_500_000_000), ("memory", "MB", "3", "memory", 3_000_000),
        ("memory", "Mi", "0.5", "memory", 1 << 19), ("memory", "KiB", "2", "memory", 2048),
        ("storage", "Gi", "2", "ephemeral-storage", 2 << 30), ("gpu", "", "2", "nvidia.com/gpu", 2),
        ("gpu", "", "4.0", "nvidia.com/gpu", 4), ("gpu", "milli", "460", "kemu.dev/gpu-milli", 460),
        ("gpu", "milli", "2000", "nvidia.com/gpu", 2),
    ],
)  # fmt: skip
def test_amounts_have_units(key: str, unit: str, text: str, resource: str, amount: int, tmp_path: Path) -> None:
    columns = f"{{submit: t, {key}: {{column: x{', unit: ' + unit if unit else ''}}}}}"
    (template,) = read(tmp_path, f"t,x\n0,{text}\n", columns).templates
    assert requests.pod_requests(template)[resource] == amount


def test_limits_and_exit_codes(tmp_path: Path) -> None:
    columns = """{submit: t, cpu: c, cpuLimit: cl, memory: m, memoryLimit: {column: ml, unit: Gi},
          exitCode: {column: state, values: {DONE: 0, FAILED: 3}}}"""
    (pod,) = read(tmp_path, "t,c,cl,m,ml,state\n0,1,2,1Gi,4,FAILED\n", columns).templates
    limits = pod.spec.containers[0].resources.limits
    assert {name: limits[name].string for name in limits} == {"cpu": "2000m", "memory": "4Gi"}
    assert pod.metadata.annotations[manifests.EXIT_CODE] == "3"


def test_amounts_of_the_job_are_divided_among_its_pods(tmp_path: Path) -> None:
    columns = (
        "{submit: t, replicas: n, cpu: {column: c, of: job}, gpu: {column: g, of: job}, memory: {column: m, unit: Gi}}"
    )
    trace = read(tmp_path, "t,n,c,g,m\n0,3,6,8,5\n", columns)
    found = [requests.pod_requests(trace.templates[index]) for index in trace.template]
    assert [each["nvidia.com/gpu"] for each in found] == [3, 3, 2]
    assert [each["cpu"] for each in found] == [2000] * 3
    assert [each["memory"] for each in found] == [5 << 30] * 3


def test_run_times_from_a_beginning_and_an_end(tmp_path: Path) -> None:
    """Who never began is left out, who has no end runs for ever."""
    columns = "{submit: t, start: b, end: {column: e, unit: m}}"
    trace = read(tmp_path, "t,b,e\n0,60,3\n1,,\n2,5,nan\n", columns)
    assert trace.run_s == (120.0, None)
    assert trace.at_ns == (0, 2 * S)


def test_names_are_valid_and_unique(tmp_path: Path) -> None:
    long = "x" * 80
    rows = ["A_b", "a.b", "a-b", "---", "a-0", "a", long, long, "Ä1"]
    table = "t,n,w\n" + "".join(f"{n},{name},{2 if name == 'a' else 1}\n" for n, name in enumerate(rows))
    trace = read(tmp_path, table, "{submit: t, name: n, replicas: w}")
    assert trace.names == (
        "a-b", "a-b-2", "a-b-3", "jobs-3", "a-0", "a-0-2", "a-1", "x" * 63, "x" * 61 + "-2", "1",
    )  # fmt: skip
    assert len(set(trace.names)) == len(trace.names)


def test_without_names_pods_are_numbered(tmp_path: Path) -> None:
    made = pods(load(tmp_path, "t\n3\n1\n", "{submit: t}"))
    assert [(when_ns, pod.metadata.name) for when_ns, pod in made] == [(1 * S, "jobs-0"), (3 * S, "jobs-1")]


TEN = "t,n\n" + "".join(f"{10 * n},j{n}\n" for n in (3, 1, 0, 2, *range(4, 10)))


def names(folder: Path, more: str, **overrides: Any) -> tuple[str, ...]:
    return read(folder, TEN, "{submit: t, name: n}", more, **overrides).names


def test_only_a_part_is_played(tmp_path: Path) -> None:
    assert names(tmp_path, "limit: 3") == ("j0", "j1", "j2")
    assert names(tmp_path, "from: 20s, until: 50s") == ("j2", "j3", "j4")
    part = read(tmp_path, TEN, "{submit: t, name: n}", "from: 20s, limit: 2, speedUp: 4")
    assert (part.names, part.at_ns) == (("j2", "j3"), (0, 2_500_000_000))


def test_a_sample_is_drawn_by_the_seed_whatever_the_window(tmp_path: Path) -> None:
    samples = {seed: names(tmp_path, "sample: 50%", seed=seed) for seed in range(8)}
    assert samples == {seed: names(tmp_path, "sample: 0.5", seed=seed) for seed in range(8)}
    assert len(set(samples.values())) > 4
    for seed, found in samples.items():
        part = names(tmp_path, "sample: 0.5, from: 30s", seed=seed)
        assert part == tuple(name for name in found if name >= "j3")


def test_speed_ups_divide_times(tmp_path: Path) -> None:
    columns = "{submit: t, runSeconds: r}"
    assert read(tmp_path, "t,r\n100,50\n", columns, "speedUp: 10").run_s == (5.0,)
    both = read(tmp_path, "t,r\n100,50\n", columns, "speedUp: 10, runSpeedUp: 2")
    assert (both.at_ns, both.run_s) == ((10 * S,), (25.0,))


def test_a_template_has_what_the_table_does_not_say(tmp_path: Path) -> None:
    more = "template: {metadata: {labels: {team: x}}, spec: {nodeSelector: {kubernetes.io/hostname: n-2}}}"
    ((_, pod),) = pods(load(tmp_path, "t,c\n0,2\n", "{submit: t, cpu: c}", more))
    assert dict(pod.metadata.labels) == {"team": "x", workloads.LABEL: "jobs"}
    assert dict(pod.spec.nodeSelector) == {"kubernetes.io/hostname": "n-2"}
    assert requests.pod_requests(pod) == {"cpu": 2000}


def test_life_tells_what_the_table_does_not(tmp_path: Path) -> None:
    load(tmp_path, "t\n0\n", "{submit: t}")
    file = tmp_path / "scenario.yaml"
    text = file.read_text().replace("{name: jobs,", "{name: jobs, life: {runSeconds: 5},")
    file.write_text(text)
    ((_, pod),) = pods(loader.load(file))
    assert pod.metadata.annotations[manifests.RUN_SECONDS] == "5"
    file.write_text(text.replace("submit: t", "submit: t, runSeconds: t"))
    with pytest.raises(errors.ScenarioError, match="is told by the trace"):
        loader.load(file)


def test_every_bad_row_is_named_with_its_place(tmp_path: Path) -> None:
    rows = """\
a,x,30,1,2,0,1,100,u
"b, c",1,-1,1,2,0,1,100,u
c,1,1,one,2,0,1,99999999999,u
d,1,1
e,2020-01-01 10:00:00,1,1,1,1,1,1,!!
f,1,1,1,1,0.5,0,1,u
g,1,1,1,1,0.5,1,1,u
"""
    found = [(one.line, one.column, one.path) for one in problems(tmp_path, HEADER + rows)]
    assert found == [
        (2, 3, "submit_time"), (3, 10, "duration"), (4, 7, "cores"), (4, 17, "prio"), (5, 1, ""), (6, 3, "submit_time"),
        (6, 35, "user"), (7, 15, "workers"), (8, 11, "gpus"),
    ]  # fmt: skip
    told = [f"{one.message}" for one in problems(tmp_path, HEADER + rows)]
    assert told[0] == "must be a number of seconds or a duration such as 1h30m, not 'x'"
    assert told[1] == "must not be negative, but is -1"
    assert told[4] == "has 3 cells where the first line has 9"
    assert "unit: timestamp" in told[5]
    assert "unit: milli" in told[8]


def test_of_many_bad_rows_the_first_are_named_and_all_are_counted(tmp_path: Path) -> None:
    found = problems(tmp_path, "t\n" + "x\n" * 500 + "1\n", "{submit: t}")
    assert len(found) == job_tables.MAX_PROBLEMS + 1
    assert found[-1].message == "after this line, 480 further mistakes in this file"


@pytest.mark.parametrize(
    ("table", "columns", "what"),
    [
        ("submitted\n1\n", "{submit: submited}", "there is no such column (did you mean submitted?)"),
        ("t,p\n1,nosuch\n", "{submit: t, priority: p}", "no PriorityClass with name nosuch was found"),
        ("t,s\n1,LOST\n", "{submit: t, exitCode: {column: s, values: {DONE: 0}}}", "'LOST' is none of DONE"),
        ("t,b,e\n1,5,4\n", "{submit: t, start: b, end: e}", "is before it began"),
        ("t,m,l\n1,2,1\n", "{submit: t, memory: m, memoryLimit: l}", "is less than m, which it limits"),
        ('t\n"1\n2\n', "{submit: t}", "is not CSV: unexpected end of data; the rest was not read"),
        ("", "{submit: t}", "there is no such column"),
    ],
)
def test_what_is_wrong_with_a_table_is_told(table: str, columns: str, what: str, tmp_path: Path) -> None:
    (found,) = problems(tmp_path, table, columns)
    assert what in f"{found.message} ({found.suggestion})"
    assert found.file == str(tmp_path / "jobs.csv")


@pytest.mark.parametrize(
    ("columns", "more", "path", "what"),
    [
        ("{name: t}", "", "columns", "submit is missing"),
        (
            "{submit: {column: t, unit: Gi}}",
            "",
            "columns.submit.unit",
            "must be one of ns, us, ms, s, m, h, d, timestamp",
        ),
        ("{submit: t, name: {column: t, unit: s}}", "", "columns.name.unit", "has no unit"),
        ("{submit: t, cpu: {column: t, of: job}}", "", "columns.cpu.of", "needs the column replicas"),
        ("{submit: t, end: t}", "", "columns.end", "needs start and end"),
        ("{submit: t, start: t, end: t, runSeconds: t}", "", "columns.end", "says what runSeconds says"),
        ("{submit: t, cores: t}", "", "columns.cores", "not a key"),
        ("{submit: t}", "nodes: x.csv", "nodes", "is not for the format csv"),
        ("{submit: t}", "from: 5s, until: 5s", "until", "is not after from"),
        ("{submit: t}", "sample: 0", "sample", "more than 0"),
        ("{submit: t}", "template: {spec: {nodeNam: x}}", "template.spec.nodeNam", "unknown field"),
        ("{submit: t}", "template: {spec: {schedulerName: x}}", "template.spec.schedulerName", "no scheduler serves"),
        ("{submit: t}", f"digest: '{'0' * 64}'", "digest", "is another file"),
    ],
)
def test_mistakes_in_the_scenario_have_their_path(
    columns: str, more: str, path: str, what: str, tmp_path: Path
) -> None:
    (found,) = problems(tmp_path, "t\n1\n", columns, more)
    assert found.path == f"spec.workloads[0].trace.{path}"
    assert what in f"{found.message} ({found.suggestion})"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    load(tmp_path, "t\n1\n", "{submit: t}")
    (tmp_path / "jobs.csv").rename(tmp_path / "moved.csv")
    with pytest.raises(errors.ScenarioError, match=r"there is no jobs\.csv in"):
        loader.load(tmp_path / "scenario.yaml")
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "moved.csv").rename(data / "jobs.csv")
    assert trace_of(loader.load(tmp_path / "scenario.yaml", data)).at_ns == (S,)


def test_what_was_resolved_finds_the_file_and_refuses_another(tmp_path: Path) -> None:
    scenario = load(tmp_path, JOBS)
    again = loader.loads(scenario.to_yaml())
    assert trace_of(again) == trace_of(scenario)
    (tmp_path / "jobs.csv").write_text(JOBS.replace("30", "31"))
    with pytest.raises(errors.ScenarioError, match="is another file"):
        loader.loads(scenario.to_yaml())


def test_a_pod_that_comes_back_gets_a_name_that_no_table_has(tmp_path: Path) -> None:
    spec = "  duration: 30s\n  events: [{at: 5s, evict: {pod: alice-b/job-1}}]\n"
    scenario = load(tmp_path, JOBS, spec=spec)
    file = tmp_path / "scenario.yaml"
    file.write_text(file.read_text().replace("{name: jobs,", "{name: jobs, replaceFinished: true,"))
    result = runner.run(loader.load(file), runner.Options(out=tmp_path / "out"))
    assert len(scenario.workloads) == 1
    (again,) = [pod for pod in result.history.pods.values() if pod.replaces]
    assert (again.key, again.replaces) == ("alice-b/job-1.r5", "alice-b/job-1")


# Published tables: rows of our own, in the layouts that their descriptions give. ------------------------------------

HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
11,uA,vcOne,16,12,2,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:06,2020-06-09 18:42:06,60,5
12,uB,vcTwo,0,3,1,NODE_FAIL,2020-06-09 18:41:00,2020-06-09 18:41:00,2020-06-09 18:41:30,30,0
13,uB,vcTwo,1,1,1,CANCELLED,2020-06-09 18:41:02,,,0,0
"""
SEREN = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
501,u7,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0
"""
KALOS = """\
job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,\
fail_time,stop_time,duration,queue,gpu_time
dlcx,uf,2,16,24,1000,100.0,Other,CANCELLED,2023-05-17 11:28:42+00:00,2023-05-17 11:28:54+00:00,\
2023-05-17 11:30:04+00:00,,2023-05-17 11:30:04+00:00,82,12.0,1312.0
"""
DLRM = """\
instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,\
memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time
instance_1,HN,app_0,12,12,1,1,25,25,120.0,120.0,680.0,800.0,8,,,
instance_2,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,1435.0,1440.5,1570.5
"""


def published(folder: Path, name: str, table: str) -> list[tuple[int, core_v1_pb2.Pod]]:
    (folder / "table.csv").write_text(table)
    file = folder / "published.yaml"
    trace = f"{{format: {name}, file: table.csv}}"
    file.write_text(f"{HEAD}  duration: 1h\n{NODES}  workloads: [{{name: jobs, trace: {trace}}}]\n")
    return pods(loader.load(file))


def told(pod: core_v1_pb2.Pod) -> tuple[str, str, str, str | None, dict[str, int]]:
    """Its key, run time, exit code, and requests."""
    annotations = pod.metadata.annotations
    exit_code = annotations.get(manifests.EXIT_CODE)
    run_s = annotations.get(manifests.RUN_SECONDS, "")
    return pod.metadata.namespace, pod.metadata.name, run_s, exit_code, requests.pod_requests(pod)


def test_helios(tmp_path: Path) -> None:
    made = published(tmp_path, "helios", HELIOS)
    assert [when_ns for when_ns, _ in made] == [0, S, S]
    half = {"cpu": 6000, "nvidia.com/gpu": 8}
    assert [told(pod) for _, pod in made] == [
        ("vctwo", "12", "30", "1", {"cpu": 3000}),
        ("vcone", "11-0", "60", None, half),
        ("vcone", "11-1", "60", None, half),
    ]


def test_acme(tmp_path: Path) -> None:
    ((when_ns, pod),) = published(tmp_path, "acme", SEREN)
    assert (when_ns, told(pod)) == (0, ("u7", "501", "117", "1", {"cpu": 128_000, "nvidia.com/gpu": 8}))
    made = published(tmp_path, "acme", KALOS)
    # Its duration, 82 s, includes the 12 s in the queue.
    amounts = {"cpu": 12_000, "memory": 1000 * 10**9, "nvidia.com/gpu": 8}
    assert [told(pod) for _, pod in made] == [("uf", f"dlcx-{n}", "70", None, amounts) for n in (0, 1)]


def test_disaggregated_dlrm(tmp_path: Path) -> None:
    (before_ns, before), (later_ns, later) = published(tmp_path, "alibaba-dlrm", DLRM)
    assert (before_ns, later_ns) == (0, 1435 * S)
    gib = 1 << 30
    assert told(before)[:4] == ("default", "instance-1", "", None)
    assert told(before)[4] == {"cpu": 12_000, "ephemeral-storage": 680 * gib, "memory": 120 * gib, "nvidia.com/gpu": 1}
    assert told(later)[1:3] == ("instance-2", "130")
    assert later.spec.containers[0].resources.limits["memory"].string == "320Gi"


def test_a_published_table_without_its_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.ScenarioError) as raised:
        published(tmp_path, "helios", HELIOS.replace("gpu_num", "gpus"))
    (problem,) = raised.value.problems
    assert (problem.path, problem.message, problem.line) == ("gpu_num", "there is no such column", 1)


PHILLY = """\
[
  {"status": "Failed", "vc": "ee9e", "jobid": "application_1_2", "submitted_time": "2017-10-07 01:11:39", "user": "c",
   "attempts": [
     {"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:12:30", "detail": [{"ip": "m1", "gpus": ["g0"]}]},
     {"start_time": "2017-10-07 01:13:00", "end_time": "2017-10-07 01:14:00",
      "detail": [{"ip": "m2", "gpus": ["g0", "g1"]}, {"ip": "m3", "gpus": ["g0"]}]}]},
  {"status": "Killed", "vc": "b4", "jobid": "never-began", "submitted_time": "2017-10-07 01:11:40", "attempts": []},
  {"status": "Pass", "vc": "b4", "jobid": "goes-on", "submitted_time": "2017-10-07 01:11:44",
   "attempts": [{"start_time": "2017-10-07 01:12:00", "end_time": null, "detail": [{"ip": "m1", "gpus": ["g0"]}]}]}
]
"""


def test_philly(tmp_path: Path) -> None:
    made = published(tmp_path, "philly", PHILLY)
    assert [when_ns for when_ns, _ in made] == [0, 0, 5 * S]
    assert [told(pod) for _, pod in made] == [
        ("ee9e", "application-1-2-0", "90", "1", {"nvidia.com/gpu": 2}),
        ("ee9e", "application-1-2-1", "90", "1", {"nvidia.com/gpu": 1}),
        ("b4", "goes-on", "", None, {"nvidia.com/gpu": 1}),
    ]


@pytest.mark.parametrize(
    ("old", "new", "place", "what"),
    [
        ('"Pass"', '"Past"', (8, 3, "status"), "must be one of Pass, Killed, Failed, not 'Past'"),
        ("01:14:00", "01:12:00", (2, 3, "attempts[1].end_time"), "is before it began"),
        ("2017-10-07 01:11:44", "then", (8, 3, "submitted_time"), "must be a time such as"),
        ('"attempts": []', '"attempts": 5', (7, 3, "attempts"), "must be a list"),
        ("]}\n]\n", "]}\n", (10, 1, ""), "is not a JSON list of jobs"),
        ("[\n  {", "{\n  {", (1, 1, ""), "it does not begin with ["),
    ],
)
def test_jobs_of_philly_that_cannot_be_read(
    old: str, new: str, place: tuple[int, int, str], what: str, tmp_path: Path
) -> None:
    assert old in PHILLY
    with pytest.raises(errors.ScenarioError) as raised:
        published(tmp_path, "philly", PHILLY.replace(old, new))
    (problem,) = raised.value.problems
    assert (problem.line, problem.column, problem.path) == place
    assert what in problem.message

"""``kemu conformance live``: what it hears, how it judges; and that it agrees with a real kube-scheduler."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from kemu.doors.cli import main
from kemu.emulated.client import clients
from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.real import executables
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.errors import KemuError
from kemu.lab.conformance.live import (
    drawn_extenders,
    drawn_pods,
    makers,
    plays,
    reports,
    scheduler_logs,
    shadows,
    verdicts,
)
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.scheduling_v1alpha2_pb2 import PodGroup
from kemu.messages.v1 import extender_pb2
from kemu.runtime.env import Env
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import sim

LOG = """\
I1123 02:44:01.000001   77 eventhandlers.go:63] "Add event for node" node="n1"
I1123 02:44:01.000002   77 schedule_one.go:123] "Attempting to schedule pod" pod="dev/web"
I1123 02:44:01.000003   77 schedule_one.go:982] "Plugin scored node for pod" pod="dev/web" plugin="NodeResourcesFit" node="n1" score=40
I1123 02:44:01.000004   77 schedule_one.go:982] "Plugin scored node for pod" pod="dev/web" plugin="ImageLocality" node="n1" score=2
I1123 02:44:01.000005   77 schedule_one.go:1050] "Calculated node's final score for pod" pod="dev/web" node="n1" score=42
I1123 02:44:01.000006   77 schedule_one.go:1050] "Calculated node's final score for pod" pod="dev/web" node="n2" score=42
I1123 02:44:01.000007   77 schedule_one.go:481] "Successfully bound pod to node" pod="dev/web" node="n1" evaluatedNodes=2 feasibleNodes=2
I1123 02:44:02.000001   77 schedule_one.go:123] "Attempting to schedule pod" pod="dev/big"
I1123 02:44:02.000002   77 preemption.go:162] "the target node for the preemption is determined" node="n2" pod="dev/big"
I1123 02:44:02.000003   77 schedule_one.go:1239] "Unable to schedule pod; no fit; waiting" pod="dev/big" err="0/2 nodes are available: 2 node(s) didn't match \\"x\\"."
I1123 02:44:02.000004   77 executor.go:251] "Start the preemption asynchronously" preemptor="dev/big" node="n2" numVictims=2 numVictimsToDelete=2
I1123 02:44:02.000005   77 executor.go:152] "Preemptor Pod preempted victim Pod" preemptor="dev/big" victim="dev/a" node="n2"
I1123 02:44:02.000006   77 schedule_one.go:123] "Attempting to schedule pod" pod="dev/big"
I1123 02:44:02.000007   77 preemption.go:162] "the target node for the preemption is determined" node="n2" pod="dev/big"
I1123 02:44:02.000007   77 executor.go:213] "Victim Pod is already being deleted, skipping the API call for it" preemptor="dev/big" node="n2" victim="dev/b"
I1123 02:44:02.000007   77 executor.go:152] "Preemptor Pod preempted victim Pod" preemptor="dev/big" victim="dev/b" node="n2"
I1123 02:44:02.000007   77 executor.go:149] "Victim Pod is already deleted" preemptor="dev/big" victim="dev/c" node="n2"
I1123 02:44:02.000008   77 executor.go:303] "Async Preemption finished completely" preemptor="dev/big" node="n2" result="success"
E1123 02:44:03.000001   77 schedule_one.go:1243] "Error scheduling pod; retrying" err="it broke" logger="UnhandledError" pod="dev/big"
E1123 02:44:03.000002   77 reflector.go:1] "Failed to watch" err="gone"
"""  # noqa: E501


def _heard() -> tuple[scheduler_logs.SchedulerLog, list[scheduler_logs.Attempt]]:
    ended: list[scheduler_logs.Attempt] = []
    heard = scheduler_logs.SchedulerLog(ended.append)
    for line in LOG.splitlines(keepends=True):
        heard.hear(line)
    return heard, ended


def test_a_decision_is_heard_with_all_scores() -> None:
    heard, ended = _heard()
    bound = ended[0]
    assert (bound.pod, bound.outcome, bound.node, bound.number) == ("dev/web", scheduler_logs.BOUND, "n1", 1)
    assert bound.scores == {"n1": {"NodeResourcesFit": 40, "ImageLocality": 2}}
    assert bound.totals == {"n1": 42, "n2": 42}
    assert heard.handled["Add event for node", "n1"] == 1
    assert len(heard.complaints) == 1


def test_victims_belong_to_the_attempt_that_chose_them() -> None:
    """The next attempt may begin, and choose the same node, before the last victim is named."""
    _, ended = _heard()
    failed, broken = ended[1:]
    assert (failed.outcome, failed.nominated, failed.victims) == (
        scheduler_logs.FAILED, "n2", ["dev/a", "dev/b", "dev/c"],
    )  # fmt: skip
    assert failed.message == '0/2 nodes are available: 2 node(s) didn\'t match "x".'
    assert not failed.is_evicting
    assert (broken.outcome, broken.message, broken.number) == (scheduler_logs.ERROR, "it broke", 2)
    assert broken.victims == ["dev/b"]


def test_the_members_of_a_group_are_heard_in_the_order_of_the_first_attempt() -> None:
    heard = scheduler_logs.SchedulerLog(lambda attempt: None)
    begins = '"Attempting to schedule a pod belonging to a pod group" podGroup="dev/g" podGroup="dev/g"'
    for text in (
        f'{begins} pod="dev/b"',
        f'{begins} pod="dev/a"',
        '"Unable to schedule pod belonging to a pod group; waiting" podGroup="dev/g" pod="dev/b" err="it waits"',
        '"Unable to schedule a pod group" podGroup="dev/g" unschedulablePods=2',
        f'{begins} pod="dev/a"',
    ):
        heard.hear(f"I1123 02:44:01.000001   77 schedule_one_podgroup.go:1] {text}\n")
    cycle = heard.group_cycles["dev/g"]
    assert (cycle.members, cycle.is_over) == (["dev/b", "dev/a"], True)
    assert (heard.first["dev/b"].outcome, heard.first["dev/b"].message) == (scheduler_logs.FAILED, "it waits")


def _member(attempt: scheduler_logs.Attempt, **answer: Any) -> verdicts.Verdict:
    return verdicts.of_member(attempt, {"node": "", "fails": "", "preemptsOn": "", **answer})


def test_a_member_is_judged_by_its_node_its_scores_and_what_fails() -> None:
    placed = _answer("a", a=3, b=2)
    assert _member(_bound("a", a=3, b=2), **placed).kind == verdicts.ALIKE
    assert _member(_bound("a", a=3, b=2), **{**placed, "fails": "no"}).differences == ["fails: real '', kemu 'no'"]
    waits = scheduler_logs.Attempt("dev/web", outcome=scheduler_logs.FAILED, message="m", totals={"a": 3})
    assert _member(waits, **_answer("a", a=3), fails="m").kind == verdicts.ALIKE
    assert _member(waits, **_answer("a", a=2), fails="m").kind == verdicts.DIFFERENT
    message = 'running PreBind plugin "DynamicResources": claim dev/c got allocated elsewhere in the meantime'
    late = scheduler_logs.Attempt("dev/web", outcome=scheduler_logs.ERROR, message=message, node="a", totals={"a": 3})
    assert verdicts.lost_claim(late) == "dev/c"
    assert _member(late, **placed).kind == verdicts.DIFFERENT
    late.totals["b"] = 2
    assert verdicts.of_member(late, {**placed, "fails": "", "preemptsOn": ""}, is_overtaken=True).kind == verdicts.ALIKE
    assert verdicts.of_group("dev/g", ("True", "Scheduled", ""), ("False", "Unschedulable", "m")).differences


def test_the_condition_of_a_group_is_that_of_its_first_cycle() -> None:
    """With its watch behind the real scheduler writes False over True, when it goes on with the member that waits. What
    it did to the members is shown later."""
    begins = '"Attempting to schedule a pod belonging to a pod group" podGroup="dev/g"'
    waits = "0/1 nodes are available: 1 Too many pods. no new claims to deallocate"
    waits += ", preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    said = (
        f'{begins} pod="dev/a"',
        f'{begins} pod="dev/b"',
        f'"Unable to schedule pod; no fit; waiting" podGroup="dev/g" pod="dev/b" err="{waits}"',
        '"Successfully scheduled a pod group" podGroup="dev/g" scheduledPods=1 unschedulablePods=1',
        f'{begins} pod="dev/b"',
        '"Unable to schedule a pod group" podGroup="dev/g" unschedulablePods=1',
        '"Successfully bound pod to node" podGroup="dev/g" pod="dev/a" node="n" evaluatedNodes=1 feasibleNodes=1',
    )
    conditions = ("True", "Scheduled", ""), ("False", "Unschedulable", "pod group is unschedulable")

    async def judge(runtime: SimRuntime) -> list[verdicts.Verdict]:
        env = runtime.env("live")
        client = clients.Client(env)
        shadow = shadows.Shadow(env, client, drawn_pods.PROFILES)
        real = scheduler_logs.SchedulerLog(lambda attempt: None)
        shadow.engine.node_feed.on_add(_node(pods=1))
        members = _members("ab")
        for pod in members:
            shadow.engine.pod_feed.on_add(pod)
        informer = shadow.informers["podgroups"]
        watch: Any = informer._handler
        group = PodGroup(metadata={"name": "g", "namespace": "dev"})
        group.spec.schedulingPolicy.gang.minCount = 1
        shadow.pause("dev/g")
        pods: Any = shadow.informers["pods"]._handler
        pods.on_update(members[0], _changed(members[0], node="n"))  # the watch of groups is the slower one
        assert not shadow.is_complete()
        watch.on_add(group)
        assert shadow.is_complete()
        for text in said:
            real.hear(f"I1123 02:44:01.000001   77 schedule_one_podgroup.go:1] {text}\n")
        for status, reason, message in conditions:
            before, group = group, PodGroup(metadata=group.metadata, spec=group.spec)
            group.status.conditions.add(type="PodGroupScheduled", status=status, reason=reason, message=message)
            informer.store["dev/g"] = group
            watch.on_update(before, group)
        return await plays.Play(client, shadow, real, lambda: None, 1)._group_verdicts("dev/g")

    found = sim(judge)
    assert [(one.pod, one.outcome, one.differences) for one in found] == [
        ("dev/a", "bound", []), ("dev/b", "failed", []), ("dev/g", "group scheduled", []),
    ]  # fmt: skip


@pytest.mark.parametrize(("is_assumed", "order", "victim"), [(True, "abc", "b"), (False, "bac", "a")])
def test_members_that_are_assumed_together_change_places_when_they_are_bound(
    is_assumed: bool, order: str, victim: str
) -> None:
    """The real scheduler has a list ``a b c`` before the first binding, and puts each pod last whose update comes; of
    equal victims it takes the last one."""

    async def decide(runtime: SimRuntime) -> tuple[str, list[str]]:
        env = runtime.env("live")
        shadow = shadows.Shadow(env, clients.Client(env), drawn_pods.PROFILES)
        shadow.engine.node_feed.on_add(_node(pods=3))
        feed, members = shadow.engine.pod_feed, _members("abc")
        for pod in members:
            feed.on_add(pod)
        if is_assumed:
            shadow.assume({f"dev/{pod.metadata.name}": "n" for pod in members})
        bound = [_changed(pod, node="n") for pod in members]
        for old, new in zip(members, bound, strict=True):
            feed.on_update(old, new)
        for old, start in zip(bound, (5, 5, 1), strict=True):
            feed.on_update(old, _changed(old, start=start))
        shadow.decide(_waiting("big", 9), shadow.answers)
        victims = shadow.answers["dev/big"]["preemption"]["candidates"]["n"]["victims"]
        places = [pod.name for pod in shadow.engine.cluster.nodes["n"].pods.values()]
        return "".join(places), victims

    assert sim(decide) == (order, [victim])


def _node(pods: int) -> core_v1_pb2.Node:
    node = core_v1_pb2.Node(metadata={"name": "n"})
    for resource, amount in (("cpu", "9"), ("memory", "9Gi"), ("pods", str(pods))):
        node.status.allocatable[resource].string = amount
    return node


def _members(names: str) -> list[core_v1_pb2.Pod]:
    members = [_waiting(name, 0) for name in names]
    for pod in members:
        pod.spec.schedulingGroup.podGroupName = "g"
    return members


def _waiting(name: str, priority: int) -> core_v1_pb2.Pod:
    pod = core_v1_pb2.Pod(metadata={"name": name, "namespace": "dev", "uid": name})
    pod.spec.schedulerName, pod.spec.priority = drawn_pods.PROFILES[0]["schedulerName"], priority
    pod.spec.containers.add(name="c", image="x")
    return pod


def _changed(pod: core_v1_pb2.Pod, *, node: str = "", start: int = 0) -> core_v1_pb2.Pod:
    changed = meta.copied(pod)
    if node:
        changed.spec.nodeName = node
    if start:
        changed.status.startTime.seconds = start
    return changed


async def test_both_schedulers_get_one_answer_from_an_extender() -> None:
    """By the names of nodes, and by Nodes; over HTTP, and in the process of kemu's."""
    server = drawn_extenders.Server()
    await server.start()
    pod = core_v1_pb2.Pod()
    pod.metadata.name = "p"
    nodes = [f"n{number}" for number in range(20)]
    objects = extender_pb2.NodeList(items=[core_v1_pb2.Node(metadata={"name": name}) for name in nodes])
    info: Any = SimpleNamespace(name="p", pod=pod)
    near = drawn_extenders.of_shadow(cast(Env, None), Cluster()).clients
    for far, client in zip(server.configured(), near, strict=True):
        by_name = client.configuration.node_cache_capable
        assert by_name == bool(far.get("nodeCacheCapable"))
        asked: dict[str, Any] = {"Pod": {"metadata": {"name": "p"}}}
        arguments = extender_pb2.ExtenderArgs(pod=pod)
        if by_name:
            asked["NodeNames"] = nodes
            arguments.node_names.names.extend(nodes)
        else:
            asked["Nodes"] = {"items": [{"metadata": {"name": name}} for name in nodes]}
            arguments.nodes.CopyFrom(objects)
        told = await _post(f"{far['urlPrefix']}/filter", asked)
        result = await client._call(info, "Filter", None, arguments, 20)
        assert dict(result.failed_nodes) == told["FailedNodes"]
        assert dict(result.failed_and_unresolvable_nodes) == told["FailedAndUnresolvableNodes"]
        kept = [one["metadata"]["name"] for one in told["Nodes"]["items"]] if not by_name else told["NodeNames"]
        assert 0 < len(kept) < 20
        assert kept == (list(result.node_names.names) or [one.metadata.name for one in result.nodes.items])
        scores = await client._call(info, "Prioritize", None, arguments, 20)
        assert [{"Host": one.host, "Score": one.score} for one in scores.items] == (
            await _post(f"{far['urlPrefix']}/prioritize", asked)
        )
    server.stop()


async def _post(url: str, asked: object) -> Any:
    async with httpx.AsyncClient() as client:
        return (await client.post(url, json=asked)).json()


def _bound(node: str, **totals: int) -> scheduler_logs.Attempt:
    return scheduler_logs.Attempt("dev/web", totals=totals, outcome=scheduler_logs.BOUND, node=node)


def _answer(*best: str, **totals: int) -> dict[str, Any]:
    return {"node": best[0], "best": list(best), "feasible": sorted(totals), "totals": totals, "scores": {}}


def test_errors_of_several_nodes_may_come_in_any_order() -> None:
    for kemu, kind in (("x. preemption: [b, a]", verdicts.ALIKE), ("x. preemption: [b, c]", verdicts.DIFFERENT)):
        attempt = scheduler_logs.Attempt("dev/web", outcome=scheduler_logs.FAILED, message="x. preemption: [a, b]")
        assert verdicts.of("f", attempt, {"node": "", "fullMessage": kemu, "feasible": []}).kind == kind


def test_of_equal_nodes_any_may_be_taken_and_that_is_a_tie() -> None:
    assert verdicts.of("f", _bound("a", a=3, b=2), _answer("a", a=3, b=2)).kind == verdicts.ALIKE
    tied = verdicts.of("f", _bound("b", a=3, b=3), _answer("a", "b", a=3, b=3))
    assert (tied.kind, tied.tie) == (verdicts.TIE, ("a", "b"))


@pytest.mark.parametrize(
    ("attempt", "answer", "text"),
    [
        (_bound("b", a=3, b=3), _answer("a", a=3, b=2), "node: real b, kemu any of a"),
        # The node may be right by chance: every total counts.
        (_bound("a", a=3, b=1), _answer("a", a=3, b=2), "total of b: real 1, kemu 2"),
        (_bound("a"), {"node": "", "fullMessage": "0/1", "feasible": []}, "node: real a, kemu none: 0/1"),
        (
            scheduler_logs.Attempt("dev/web", outcome=scheduler_logs.FAILED, message="0/1 x."),
            {"node": "", "fullMessage": "0/1 y.", "feasible": []},
            "message: real '0/1 x.', kemu '0/1 y.'",
        ),
        (
            scheduler_logs.Attempt(
                "dev/web", outcome=scheduler_logs.FAILED, message="m", nominated="a", victims=["d/p"]
            ),
            {
                "node": "", "fullMessage": "m", "feasible": [],
                "preemption": {"chosenAnyOf": ["a"], "candidates": {"a": {"victims": ["q"]}}},
            },
            "victims on a: real ['p'], kemu ['q']",
        ),
        (
            scheduler_logs.Attempt("dev/web", outcome=scheduler_logs.FAILED, message="m"),
            {"node": "", "fullMessage": "m", "feasible": [], "preemption": {"chosen": "a", "chosenAnyOf": ["a"]}},
            "preempts on: real '', kemu 'a'",
        ),
    ],
)  # fmt: skip
def test_a_difference_is_named(attempt: scheduler_logs.Attempt, answer: dict[str, Any], text: str) -> None:
    verdict = verdicts.of("f", attempt, answer)
    assert verdict.kind == verdicts.DIFFERENT
    assert verdict.differences[0].startswith(text)
    report = reports.Report()
    report.add(verdict)
    assert not report.is_alike
    assert any(text in line for line in report.lines(5))
    assert report.lines(5)[-1].startswith("0 of 1 decisions alike")


def test_pods_of_all_families_are_drawn_and_read() -> None:
    cluster = makers.Maker(random.Random(5), 1)
    drawn = drawn_pods.PodMaker(cluster)
    families = set()
    for _ in range(400):
        family, pod = drawn.draw()
        families.add(family)
        for manifest in (pod, *drawn.extra):
            convert.from_manifest(manifest)
    assert len(families) == 14
    for _ in range(40):
        group, members = drawn.group()
        names = {one["spec"]["schedulingGroup"]["podGroupName"] for one in members}
        assert names == {group["metadata"]["name"]}
        for manifest in (group, *members, *drawn.extra):
            convert.from_manifest(manifest)
    again = drawn_pods.PodMaker(makers.Maker(random.Random(5), 1))
    first = drawn_pods.PodMaker(makers.Maker(random.Random(5), 1))
    assert [again.draw() for _ in range(50)] == [first.draw() for _ in range(50)]


def test_a_missing_part_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KemuError, match=r"needs kube-scheduler v1\.36\.3: neither in .*kemu-tools nor on the PATH"):
        executables.find("kube-scheduler")


def test_the_real_scheduler_and_kemus_decide_alike(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        executables.find("etcd", "kube-apiserver", "kube-scheduler")
    except executables.ProgramMissing as missing:
        pytest.skip(f"not beside the project: {missing}")
    count = 100  # ten thousand in scripts/nightly
    code = main.main(["conformance", "live", "--pods", str(count), "--seed", "3", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [(one["pod"], one["differences"]) for one in told["differences"]] == []
    assert code == 0
    assert told["decisions"] == count
    assert told["alike"] + told["alikeByTie"] == count
    assert {"bound", "failed"} <= set(told["outcomes"])

"""``kemu run --runtime real --kubeconfig``: a run as the guest of a cluster that stands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu import errors
from kemu.doors.cli.main import main
from kemu.emulated.bridge import requested
from kemu.emulated.bridge.tenants import LABEL, LEASES, Tenant
from kemu.emulated.objects import resources
from kemu.emulated.objects.wire import wires
from kemu.emulated.real.scheduler_logs import SchedulerLog
from kemu.emulated.real.transactions import KnownPods
from kemu.errors import KemuError
from kemu.lab.real import calibrations
from kemu.lab.real.calibrations import Load
from kemu.lab.scenario import forms
from kemu.lab.scenario.playing import control_planes, runner
from kemu.messages.k8s import apps_v1_pb2, coordination_v1_pb2, core_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.runlog.events import ApiRequest, PodBound, RequestRefused
from tests.realkube import binaries, clusters

NODES = [{"namePrefix": "node-", "count": 3, "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}]
PODS = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]}}
SPEC: dict[str, Any] = {
    "duration": "8s",
    "nodes": NODES,
    "priorityClasses": {"vital": {"value": 1000}},
    "schedulers": [{"name": "default-scheduler", "replicas": 2}],
    "controllers": ["replicaset"],
    "workloads": [{"name": "w", "start": "1s", "arrivals": {"every": "30ms", "count": 60}, "pods": PODS}],
    "expect": [{"pods": {"workload": "w"}, "all": {"running": {}}}],
}
PODS_OF = resources.BY_PLURAL["pods"]


# Names


def test_a_pod_goes_out_under_the_names_of_the_cluster_and_comes_back() -> None:
    tenant = Tenant("ab12")
    pod = core_v1_pb2.Pod()
    pod.metadata.name, pod.metadata.namespace = "p", "default"
    term = pod.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.add(topologyKey="zone")
    term.namespaces.append("other")
    out = core_v1_pb2.Pod.FromString(tenant.outward(PODS_OF, pod.SerializeToString()))
    assert (out.metadata.namespace, out.spec.schedulerName) == ("kemu-ab12-default", "kemu-ab12-default-scheduler")
    sent = out.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]
    assert [*sent.namespaces] == ["kemu-ab12-other"]
    back = tenant.inward(PODS_OF, out.SerializeToString() + wires.version_suffix(7))
    assert back is not None
    assert back.endswith(wires.version_suffix(7))
    found = core_v1_pb2.Pod.FromString(back)
    pod.spec.schedulerName = "default-scheduler"
    pod.metadata.resourceVersion = "7"
    assert found == pod


def test_a_template_names_the_scheduler_too() -> None:
    deployment = apps_v1_pb2.Deployment()
    deployment.spec.template.spec.containers.add(name="main")
    out = Tenant("ab12").outward(resources.BY_PLURAL["deployments"], deployment.SerializeToString())
    made = apps_v1_pb2.Deployment.FromString(out)
    assert made.spec.template.spec.schedulerName == "kemu-ab12-default-scheduler"


@pytest.mark.parametrize(("plural", "namespace"), [("pods", "default"), ("pods", "kemu-ffff-default"), ("nodes", "")])
def test_what_is_of_others_is_not_seen(plural: str, namespace: str) -> None:
    resource = resources.BY_PLURAL[plural]
    obj: Any = resource.message()
    obj.metadata.name, obj.metadata.namespace = "theirs", namespace
    assert Tenant("ab12").inward(resource, obj.SerializeToString()) is None


def _delete(plural: str, name: str, namespace: str = "") -> api_pb2.DeleteRequest:
    return api_pb2.DeleteRequest(resource=api_pb2.Resource(resource=plural, namespace=namespace), name=name)


def test_what_the_run_has_not_created_cannot_be_changed() -> None:
    tenant = Tenant("ab12")
    for request in (_delete("nodes", "node-1"), _delete("leases", "node-1", LEASES), _delete("namespaces", "default")):
        with pytest.raises(errors.Forbidden, match="which this run has not created"):
            tenant.request("delete", request)
    everything = api_pb2.DeleteCollectionRequest(list=api_pb2.ListRequest(resource=api_pb2.Resource(resource="pods")))
    with pytest.raises(errors.Forbidden, match="delete all pods"):
        tenant.request("delete_collection", everything)
    node = core_v1_pb2.Node()
    node.metadata.name = "node-1"
    create = api_pb2.CreateRequest(resource=api_pb2.Resource(resource="nodes"), object=node.SerializeToString())
    made: Any = tenant.request("create", create)
    assert core_v1_pb2.Node.FromString(made.object).metadata.labels[LABEL] == "ab12"
    tenant.answer("create", made, api_pb2.ObjectResponse(object=made.object))
    assert tenant.request("delete", _delete("nodes", "node-1")) == _delete("nodes", "node-1")
    assert tenant.request("delete", _delete("leases", "node-1", LEASES)) == _delete("leases", "node-1", LEASES)
    lease = coordination_v1_pb2.Lease(metadata={"name": "node-1", "namespace": LEASES})
    where = api_pb2.Resource(resource="leases", namespace=LEASES)
    beat: Any = tenant.request("create", api_pb2.CreateRequest(resource=where, object=lease.SerializeToString()))
    sent = coordination_v1_pb2.Lease.FromString(beat.object)
    assert (sent.metadata.namespace, sent.metadata.labels[LABEL]) == (LEASES, "ab12")
    moved: Any = tenant.request("delete", _delete("pods", "p", "default"))
    assert moved.resource.namespace == "kemu-ab12-default"


def test_events_about_nodes_would_stand_in_a_namespace_of_others() -> None:
    event = core_v1_pb2.Event()
    event.metadata.namespace, event.involvedObject.kind = "default", "Node"
    where = api_pb2.Resource(resource="events", namespace="default")
    with pytest.raises(errors.Forbidden, match="events about objects without a namespace"):
        Tenant("ab12").request("create", api_pb2.CreateRequest(resource=where, object=event.SerializeToString()))


def test_requests_are_told_as_an_audit_log_would() -> None:
    pod = core_v1_pb2.Pod()
    pod.metadata.name, pod.metadata.namespace, pod.metadata.uid, pod.metadata.resourceVersion = "p", "default", "u", "9"
    where = api_pb2.Resource(resource="pods", namespace="default")
    create = api_pb2.CreateRequest(resource=where, object=pod.SerializeToString())
    answer = api_pb2.ObjectResponse(object=pod.SerializeToString())
    event = requested.event_of("create", create, "user", 5, answer)
    assert isinstance(event, ApiRequest)
    assert (event.name, event.uid, event.by, event.rev) == ("p", "u", "user", 9)
    assert requested.event_of("get", api_pb2.GetRequest(resource=where), "user", 5, answer) is None


def test_bindings_are_read_from_the_schedulers_log_where_there_is_no_audit_log() -> None:
    heard: list[Any] = []
    served: list[Any] = []
    known = KnownPods()
    known.changed("default/p", 12, core_v1_pb2.Pod(metadata={"uid": "u"}, spec={"nodeName": "n"}), 0)
    log = SchedulerLog(
        known,
        lambda _, event: heard.append(event),
        actor="scheduler/s/0",
        bindings=lambda _, event: served.append(event),
    )
    stamp = "1124 10:00:00.00000{} 1 schedule_one.go:1] "
    for line in (
        '"Attempting to schedule pod" pod="default/p"',
        '"Attempting to bind pod to node" pod="default/p" node="n"',
        '"Error scheduling pod; retrying" err="Operation cannot be fulfilled on pods" pod="default/p"',
        '"Attempting to schedule pod" pod="default/p"',
        '"Attempting to bind pod to node" pod="default/p" node="n"',
        '"Successfully bound pod to node" pod="default/p" node="n" evaluatedNodes=3 feasibleNodes=3',
    ):
        log.line(f"I{stamp.format(len(heard) % 10)}{line}")
    log.read(1 << 63)
    bound = [(one.ok, one.reason, one.node) for one in heard if isinstance(one, PodBound)]
    assert bound == [(False, "Conflict", "n"), (True, "", "n")]
    assert isinstance(served[0], RequestRefused)
    assert isinstance(served[1], ApiRequest)
    assert (served[1].rev, served[1].by) == (12, "scheduler/s/0")


# What is refused


def test_what_a_cluster_that_stands_cannot_be_asked_is_refused_by_name() -> None:
    spec = {
        **SPEC,
        "store": {"fsync": "none"},
        "apiServers": {"replicas": 2},
        "controllers": {"node-lifecycle": {"nodeMonitorPeriod": "1s"}},
        "chaos": [
            {"id": "down", "at": "1s", "crash": {"actor": "apiserver/0"}},
            {"id": "cut", "at": "1s", "partition": {"between": ["scheduler/default-scheduler/0", "apiserver/0"]}},
        ],
    }
    with pytest.raises(KemuError) as raised:
        control_planes.refuse(forms.load(spec, {}, name="guest"), 0.0, is_guest=True)
    text = str(raised.value)
    for part in ("store: ", "apiServers: ", "controllers.node-lifecycle: ", "apiserver/0 serves others", "no proxy"):
        assert part in text


def test_a_kubeconfig_needs_the_runtime_real(tmp_path: Path) -> None:
    scenario = forms.load(SPEC, {}, name="guest")
    options = runner.Options(out=tmp_path / "run", runtime="sim", kubeconfig=tmp_path / "kubeconfig")
    with pytest.raises(KemuError, match="needs --runtime real"):
        runner.run(scenario, options)


# On a real cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Cluster]:
    """With all admission plugins and the controllers of nodes and service accounts; without a scheduler."""
    binaries.require("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl")
    with clusters.Cluster.start(tmp_path_factory.mktemp("standing"), without_admission=()) as found:
        more = ("serviceaccount-controller", "node-lifecycle-controller", "pod-garbage-collector-controller")
        found.start_controller_manager((*clusters.CONTROLLERS, *more))
        yield found


def _run(cluster: clusters.Cluster, out: Path, kubeconfig: Path | None = None, **spec: Any) -> runner.RunResult:
    scenario = forms.load({**SPEC, **spec}, {}, name="guest")
    return runner.run(scenario, runner.Options(out=out, runtime="real", kubeconfig=kubeconfig or cluster.kubeconfig))


def _objects(cluster: clusters.Cluster) -> dict[str, str]:
    """Versions of all objects of the cluster but of what it writes itself all the time."""
    found = {}
    for kind in ("namespaces", "nodes", "pods", "priorityclasses", "configmaps", "serviceaccounts", "replicasets"):
        for item in json.loads(cluster.kubectl("get", kind, "-A", "-o", "json"))["items"]:
            metadata = item["metadata"]
            found[f"{kind} {metadata.get('namespace', '')}/{metadata['name']}"] = metadata["resourceVersion"]
    leases = json.loads(cluster.kubectl("get", "leases", "-n", LEASES, "-o", "json"))["items"]
    return {**found, **{f"leases {one['metadata']['name']}": "" for one in leases}}


def test_two_schedulers_race_as_guests_and_nothing_is_left(cluster: clusters.Cluster, tmp_path: Path) -> None:
    before = _objects(cluster)
    result = _run(cluster, tmp_path / "run")
    assert result.verdict["verdict"] == "holds", result.verdict
    held = {check["id"] for check in result.verdict["checks"] if check["holds"]}
    assert {"history-is-linearizable", "acknowledged-writes-survive"} <= held
    assert result.verdict["counts"]["pods_bound"] == 60
    assert result.verdict["counts"]["bind_conflicts"] > 0
    assert [*result.left] == []
    assert _objects(cluster) == before


def test_everything_that_speaks_against_a_run_is_said_before_it_begins(
    cluster: clusters.Cluster, tmp_path: Path
) -> None:
    cluster.kubectl("create", "priorityclass", "vital", "--value=7")
    node = "{apiVersion: v1, kind: Node, metadata: {name: node-1}}"
    cluster.kubectl("create", "-f", "-", stdin=node)
    cluster.kubectl("taint", "node", "node-1", "node.kubernetes.io/not-ready:NoSchedule-", check=False)
    before = _objects(cluster)
    try:
        with pytest.raises(KemuError) as raised:
            _run(cluster, tmp_path / "run")
        for part in ("it has nodes of these names: node-1", "it has priorityclasses vital already"):
            assert part in str(raised.value)
        assert not (tmp_path / "run").exists()
        assert _objects(cluster).keys() == before.keys()
    finally:
        cluster.kubectl("delete", "priorityclass", "vital")
        cluster.kubectl("delete", "node", "node-1")


def test_a_cluster_that_stands_is_calibrated(
    cluster: clusters.Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod tells of a watch only if the scheduler had nothing else to do when it came. On a busy machine many do not:
    of 80 that came 25 ms apart as few as 9, of these about half."""
    monkeypatch.setattr(calibrations, "LEAST_SAMPLES", 20)
    found = calibrations.play(Load(5, 100, 10), tmp_path, 1, control_planes.Cluster(cluster.kubeconfig))
    assert found.measured.pods == 100
    preset = calibrations.fit([found] * 3)
    assert preset.timing["apiLatency"] == 0
    assert "the audit log of the cluster was not there" in preset.sources["apiLatency"]
    assert "coreSecondsPerPod" not in preset.about
    assert all(one > 0 for one in found.measured.bindings)


def test_cells_of_a_sweep_are_guests(
    cluster: clusters.Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"question": "?", "scenario": {**SPEC, "duration": "5s"}, "seeds": 1, "metrics": ["pods_bound"]}
    spec["vary"] = {"schedulers[0].replicas": [2]}
    document = {"apiVersion": "kemu.dev/v1", "kind": "Experiment", "metadata": {"name": "race"}, "spec": spec}
    file = tmp_path / "race.yaml"
    file.write_text(yaml.safe_dump(document))
    options = ["--runtime", "real", "--kubeconfig", str(cluster.kubeconfig), "--out", str(tmp_path / "out"), "--json"]
    assert main(["sweep", str(file), *options, "--no-plots"]) in (0, 3)
    (variant,) = json.loads(capsys.readouterr().out)["variants"]
    assert variant["metrics"]["pods_bound"]["mean"] == 60


def test_rights_that_are_missing_are_said_by_verb_and_resource(cluster: clusters.Cluster, tmp_path: Path) -> None:
    with pytest.raises(KemuError) as raised:
        _run(cluster, tmp_path / "run", cluster.kubeconfig_of("viewer"))
    for part in ("create namespaces", "create nodes", "patch pods/status", "create pods/binding", "delete pods"):
        assert part in str(raised.value)


def test_a_run_that_is_killed_leaves_nothing(cluster: clusters.Cluster, tmp_path: Path) -> None:
    before = _objects(cluster)
    document = {"apiVersion": "kemu.dev/v1", "kind": "Scenario", "metadata": {"name": "guest"}, "spec": SPEC}
    file = tmp_path / "guest.yaml"
    file.write_text(yaml.safe_dump(document))
    command = [sys.executable, "-m", "kemu.doors.cli.main", "run", str(file), "--runtime", "real"]
    with subprocess.Popen(
        [*command, "--kubeconfig", str(cluster.kubeconfig), "--out", str(tmp_path / "run")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _wait(lambda: any(name.startswith("nodes") for name in _objects(cluster)))
        os.kill(process.pid, signal.SIGKILL)
    _wait(lambda: _objects(cluster) == before)


def _wait(is_true: Callable[[], bool], seconds: float = 90.0) -> None:
    until = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.5)

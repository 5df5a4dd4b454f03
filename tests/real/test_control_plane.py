"""``kemu run --runtime real``: what it refuses, and what a real control plane does with a race."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

import kemu
from kemu.emulated.real import executables
from kemu.emulated.real.control_planes import ControlPlane, Settings
from kemu.errors import KemuError
from kemu.lab.scenario import forms
from kemu.lab.scenario.playing import control_planes
from kemu.runtime.env import ActorSpec
from tests.realkube import binaries

NODES = [{"namePrefix": "node-", "count": 3, "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}]
PODS = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]}}


def refused(**spec: Any) -> str:
    with pytest.raises(KemuError) as raised:
        control_planes.refuse(forms.load({"nodes": NODES, **spec}, {}, name="real"), 0.0)
    return str(raised.value)


def test_what_real_components_cannot_do_is_refused_by_name_all_at_once() -> None:
    text = refused(
        store={"segmentBytes": 4096},
        apiServers={"cacheLag": "1s", "bindCheck": "capacity"},
        schedulers=[{"name": "default-scheduler", "policy": {"queue": "fifo"}}],
        controllers={"replicaset": {"lag": "1s"}},
        chaos=[{"id": "torn", "at": "1s", "slowDisk": {"actor": "store", "fsync": "1s"}}],
    )
    for part in (
        "store.segmentBytes: ", "apiServers.cacheLag: ", "apiServers.bindCheck: ", "default-scheduler: policy.queue: ",
        "controllers.replicaset.lag: ", "slowDisk: cannot be done to store",
    ):  # fmt: skip
        assert part in text


def test_steps_and_switches_are_refused() -> None:
    crash = {"actor": "scheduler/default-scheduler/0", "step": "after-bind"}
    assert "no such steps" in refused(chaos=[{"at": "1s", "crash": crash}])
    plugin = {"plugins": {"multiPoint": {"enabled": [{"name": "permits:Approval"}]}}}
    scheduler = {"name": "default-scheduler", "config": {"profiles": [plugin]}}
    folder = str(Path(__file__).parents[2] / "scenarios" / "museum")
    assert "permits:Approval" in refused(schedulers=[scheduler], modules=[folder])


def test_devices_are_refused_in_a_cluster_that_stands() -> None:
    nodes = [{"name": "node-1", "devices": [{"driver": "gpu.example.com", "count": 1}]}]
    scenario = forms.load({"nodes": nodes}, {}, name="real")
    control_planes.refuse(scenario, 0.0, find=False)
    with pytest.raises(KemuError, match="devices: their classes and slices"):
        control_planes.refuse(scenario, 0.0, find=False, is_guest=True)


def test_two_controllers_that_share_a_process_are_refused() -> None:
    assert "beside daemonset" in refused(controllers=["taint-eviction", "daemonset"])


def test_faults_of_kubelets_are_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are actors of kemu; then what is missing is named."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    text = refused(chaos=[{"at": "1s", "clockJump": {"actor": "kubelet/node-1", "by": "5s"}}], controllers=[])
    assert text.startswith("this needs etcd v3.6.12, kube-apiserver v1.36.3, kube-scheduler v1.36.3: neither in ")


def test_two_real_schedulers_of_one_name_race(tmp_path: Path) -> None:
    """Every pod is bound once, and what the second one wanted is refused; all default checks hold."""
    binaries.require("etcd", "kube-apiserver", "kube-scheduler")
    folder = tmp_path / "run"
    run = kemu.run(
        {
            "duration": "12s",
            "nodes": NODES,
            "schedulers": [{"name": "default-scheduler", "replicas": 2}],
            "workloads": [{"name": "w", "start": "1s", "arrivals": {"every": "30ms", "count": 60}, "pods": PODS}],
            "expect": [{"pods": {"workload": "w"}, "all": {"running": {}}}],
        },
        runtime="real",
        out=folder,
    )
    verdict = json.loads((folder / "verdict.json").read_text())
    counts = verdict["counts"]
    assert run.holds, verdict
    assert counts["pods_bound"] == 60
    assert counts["bind_conflicts"] > 10
    assert counts["scheduling_attempts"] >= 60 + counts["bind_conflicts"]
    held = {one["id"] for one in verdict["checks"] if one["holds"]}
    assert {"pod-bound-at-most-once", "history-is-linearizable", "acknowledged-writes-survive"} <= held
    assert not _processes_of(folder)


def test_devices_are_claimed_one_after_the_other(tmp_path: Path) -> None:
    """kube-controller-manager makes claims, kube-scheduler allocates what kemu's kubelets offer, and when
    the first pod is gone, the second gets its device."""
    binaries.require("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
    claim = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}
    asks = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
    template = {"kind": "ResourceClaimTemplate", "metadata": {"name": "gpu", "namespace": "default"}}
    pods = [
        {
            "at": at,
            "create": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {**claim, "containers": [{"name": "main", "resources": {"claims": [{"name": "gpu"}]}}]},
            },
        }
        for name, at in (("first", "1s"), ("second", "2s"))
    ]
    run = kemu.run(
        {
            "duration": "14s",
            "nodes": [{"name": "node-1", "devices": [{"driver": "gpu.example.com", "count": 1}]}],
            "manifests": [{"apiVersion": "resource.k8s.io/v1", **template, "spec": {"spec": asks}}],
            "events": [*pods, {"at": "6s", "delete": {"pod": "first"}}],
            "expect": [
                {"pod": "first", "running": {"before": "6s"}},
                {"pod": "second", "never": {"bound": {"before": "6s"}}},
                {"pod": "second", "running": {}},
                {"check": "device-has-one-claim"},
            ],
        },
        runtime="real",
        out=tmp_path / "run",
    )
    assert run.holds, run.verdict


def test_a_planted_overcommitment_is_caught(tmp_path: Path) -> None:
    """Two schedulers that wake up with the same view fill the same nodes, and the kubelets do not look."""
    binaries.require("etcd", "kube-apiserver", "kube-scheduler")
    large = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}
    workloads = [
        {
            "name": letter,
            "start": "1s",
            "arrivals": {"every": "1ms", "count": 15},
            "pods": {"spec": {"schedulerName": f"scheduler-{letter}", **large}},
        }
        for letter in "ab"
    ]
    run = kemu.run(
        {
            "duration": "8s",
            "nodes": [
                {"namePrefix": "node-", "count": 20, "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}
            ],
            "schedulers": [{"name": "scheduler-a"}, {"name": "scheduler-b"}],
            "ablate": ["kubelet-admission"],
            "workloads": workloads,
            "chaos": [{"at": "500ms", "for": "4s", "pause": {"actor": "scheduler/*", "all": True}}],
        },
        runtime="real",
        out=tmp_path / "run",
    )
    verdict = json.loads((tmp_path / "run" / "verdict.json").read_text())
    assert not run.holds
    assert "no-node-overcommitted" in {one["id"] for one in verdict["checks"] if one["holds"] is False}


def _processes_of(folder: Path) -> list[str]:
    """Command lines of processes that work in a folder."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in line and "pytest" not in line:
                found.append(line)
    return found


def test_versions_are_those_that_kemu_emulates() -> None:
    assert executables.VERSIONS["kube-apiserver"] == executables.VERSIONS["kube-scheduler"] == "v1.36.3"


GROUPS = {"GenericWorkload": True, "GangScheduling": True}


def options(programs: ControlPlane, actor: str, **config: Any) -> list[str]:
    program = asyncio.run(programs.program(ActorSpec(actor, "", {"apiserver": "apiserver/0", **config})))
    assert program is not None
    return [option for option in program.options if "feature-gates" in option or "runtime-config" in option]


def test_gates_of_groups_reach_schedulers_api_servers_and_the_controller_of_jobs(tmp_path: Path) -> None:
    binaries.require("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")
    server, scheduler, job = names = ["apiserver/0", "scheduler/s/0", "controller/job"]

    def plane(**spec: Any) -> ControlPlane:
        scenario = forms.load({"nodes": NODES, "schedulers": [{"name": "s"}], **spec}, {}, name="real")
        gates = control_planes.gates(scenario)
        return ControlPlane(Settings(tmp_path, names, scenario.store, scenario.api_servers, gates=gates))

    made = plane(schedulers=[{"name": "s", "config": {"featureGates": GROUPS}}])
    both = "--feature-gates=GenericWorkload=true,GangScheduling=true"
    served = "--runtime-config=scheduling.k8s.io/v1alpha2=true"
    assert options(made, server) == [both, served]
    assert options(made, scheduler, name="s", config={"featureGates": GROUPS}) == [both]
    assert "featureGates" not in json.loads((tmp_path / "scheduler-s-0.json").read_text())
    alone = plane(controllers={"job": {"featureGates": {"WorkloadWithJob": True}}})
    assert options(alone, server) == ["--feature-gates=GenericWorkload=true", served]
    gate = {"feature_gates": {"workload_with_job": True}}
    assert options(alone, job, settings=gate) == ["--feature-gates=WorkloadWithJob=true,GenericWorkload=true"]
    assert options(plane(), server) == []

"""Planted causes are named, with chains whose counts and times are those of the run; they vanish without them."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
import yaml

from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.kubelet.settings.references import References
from kemu.lab.scenario.format.clusters import Scheduler
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell import people
from kemu.lab.tell.causes import checking, gentler, tellings, wording
from kemu.lab.tell.causes.blame import Blame, Blamed, Step
from kemu.lab.tell.causes.roots import FAULT, ROLLOUT, Root
from tests.causes import incidents, scores

SMALL = (8, 10)


@pytest.mark.parametrize(
    "kind", ["bad_image", "scheduler_killed", "low_quota", "lost_zone", "budget_that_allows_nothing", "wrong_selector"]
)
def test_a_planted_cause_is_named(kind: str) -> None:
    made = incidents.incident(5, kind, SMALL)
    found = scores.causes_of(made)
    assert scores.is_named(made, found), [root.what for root in found.roots]
    assert len(found.roots) <= 5
    if kind == "scheduler_killed":
        assert (found.roots[0].kind, found.roots[0].fault, found.roots[0].events) == (FAULT, "kill", ())
    assert sum(root.share for root in found.roots) <= 1 + 1e-9


def test_nodes_whose_disks_fill_evict_whatever_else_their_kubelets_say() -> None:
    """Else nothing goes wrong there, and nothing has a cause: so it was in half of the drawn clusters."""
    kubelets = [
        kubelet_configurations.configuration(node.get("kubelet", {}))
        for seed in range(8)
        for node in incidents.incident(seed, "full_disk_of_nodes", SMALL).scenario["spec"]["nodes"]
    ]
    assert any(kubelet.eviction_hard for kubelet in kubelets)
    assert all("nodefs.available" in kubelet.hard for kubelet in kubelets)


AGENT = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: agent}
spec:
  duration: 400s
  nodes:
    - namePrefix: node-
      count: 3
      allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
      kubelet: {evictionHard: {memory.available: 2Gi}}
  manifests:
    - apiVersion: apps/v1
      kind: DaemonSet
      metadata: {name: log-agent}
      spec:
        selector: {matchLabels: {app: log-agent}}
        template:
          metadata: {labels: {app: log-agent}, annotations: {kemu.dev/usage: "memory: 50Mi"}}
          spec:
            priorityClassName: system-node-critical
            containers: [{name: agent, resources: {requests: {cpu: 100m, memory: 5Gi}}}]
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web}
      spec:
        replicas: 6
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}, annotations: {kemu.dev/usage: "memory: 1200Mi"}}
          spec: {containers: [{name: web, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
    - apiVersion: policy/v1
      kind: PodDisruptionBudget
      metadata: {name: web}
      spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
  events:
    - {at: 40s, patch: {kind: Deployment, name: web, merge: {spec: {replicas: 7}}}}
    - {at: 100s, patch: {kind: DaemonSet, name: log-agent, strategic: {spec: {template: {
        metadata: {annotations: {kemu.dev/usage: "memory: {ramp: {from: 50Mi, to: 6Gi, over: 100s}}"}},
        spec: {containers: [{name: agent, resources: {requests: {memory: 64Mi}}}]}}}}}}
  chaos:
    - {id: hiccup, at: 60s, for: 2s, crash: {actor: kubelet/node-2}}
"""


def test_the_chain_leads_from_the_rollout_to_the_waiting_pods() -> None:
    scenario = loader.loads(AGENT, "agent.yaml")
    found, _ = checking.run(scenario)
    root = found.roots[0]
    assert (root.kind, root.name, root.events) == (ROLLOUT, "DaemonSet log-agent", (1,))
    assert 100e9 <= root.at_ns < 100.1e9
    assert "uses up to 6 GiB of memory, requests 64 MiB" in root.detail
    links = {link.kind: link for link in root.chain}
    assert list(links)[:3] == ["memory", "pressure", "evicted"]
    assert (links["pressure"].count, links["pressure"].unit) == (3, "nodes")
    assert 100e9 < links["pressure"].first_ns <= links["evicted"].first_ns <= links["evicted"].last_ns <= 400e9
    assert links["waiting"].count > 0
    assert "budget" in links
    assert all(root.fault != "hiccup" for root in found.roots)
    json.dumps(found.to_json())

    checked = checking.check(scenario, found, limit_s=60, most=1)
    check = checked.roots[0].check
    assert check is not None
    assert check.holds
    evicted = next(one for one in check.effects if one.what == "evicted")
    assert (evicted.before, evicted.after) == (links["evicted"].count, 0)
    text = tellings.told(checked, 100)
    assert f"0 instead of {links['evicted'].count} pods evicted" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_run_without_the_root_that_takes_too_long_is_not_known() -> None:
    scenario = loader.loads(AGENT, "agent.yaml")
    found, _ = checking.run(dataclasses.replace(scenario, duration_ns=250_000_000_000))
    check = checking.check(scenario, found, limit_s=0, most=1).roots[0].check
    assert check is not None
    assert check.holds is None
    assert "takes longer than 0 s" in check.why


def test_a_run_in_which_nothing_goes_wrong_has_no_root() -> None:
    document = yaml.safe_load(AGENT)
    document["spec"]["events"] = document["spec"]["events"][:1]
    document["spec"]["duration"] = "120s"
    found, fails = checking.run(loader.loads(yaml.safe_dump(document), "agent.yaml"))
    assert not found.roots
    assert not fails
    assert tellings.told(found, 80) == ""


def test_a_planted_defect_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that blames what was done last for whatever a template brings about."""

    def last(self: Blame, uid: str, *steps: Step, part: object = None) -> list[Blamed]:
        acts = sorted((act for act in self.acts.all() if act.time_ns), key=lambda act: act.time_ns)
        return [Blamed(acts[-1], 1.0, steps)]

    monkeypatch.setattr(Blame, "template", last)
    made = incidents.incident(5, "bad_image", SMALL)
    last_event = max(range(len(made.scenario["spec"]["events"])))
    assert last_event not in made.planted[0].events, "a decoy has to come after the cause"
    assert not scores.is_named(made, scores.causes_of(made))


def web(**spec: object) -> dict[str, object]:
    pods = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", **spec.pop("container", {})}]},
    }  # type: ignore[dict-item]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": pods, **spec},
    }


SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}
RESTART = {"at": "60s", "rollout": {"restart": "deployment/web"}}
UNUSUAL: dict[str, tuple[dict[str, object], str, str]] = {
    "deleted reference": (
        {
            "references": {"contents": "strict"},
            "manifests": [SETTINGS, web(container={"envFrom": [{"configMapRef": {"name": "settings"}}]})],
            "events": [{"at": "30s", "delete": {"kind": "ConfigMap", "name": "settings"}}, RESTART],
        },
        "ConfigMap settings",
        "deletion of ConfigMap settings",
    ),
    "label of nodes": (
        {
            "manifests": [
                web() | {"spec": {**web()["spec"], "template": {  # type: ignore[dict-item]
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"nodeSelector": {"pool": "a"}, "containers": [{"name": "web"}]},
                }}}
            ],
            "events": [
                {"at": "30s", "patch": {"kind": "Node", "name": f"node-{number}", "merge": {
                    "metadata": {"labels": {"pool": "b"}}}}}
                for number in (1, 2, 3)
            ] + [RESTART],
        },
        "Node node-1",
        "change of 3 nodes",
    ),
    "registry": (
        {
            "references": {"missingImages": ["registry.corp/*"]},
            "manifests": [web(), {**web(), "metadata": {"name": "shop"}} | {"spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": "shop"}}, "template": {
                    "metadata": {"labels": {"app": "shop"}}, "spec": {"containers": [{"name": "web"}]}}}}],
            "events": [
                {"at": f"{30 + place}s", "patch": {"kind": "Deployment", "name": name, "strategic": {"spec": {
                    "template": {"spec": {"containers": [{"name": "web", "image": f"registry.corp/{name}:2"}]}}}}}}
                for place, name in enumerate(("web", "shop"))
            ],
        },
        "registry registry.corp",
        "registry registry.corp, which gives no images,",
    ),
    "autoscaler": (
        {
            "controllers": ["deployment", "replicaset", "horizontal-pod-autoscaler"],
            "manifests": [
                web(container={"resources": {"requests": {"cpu": "500m"}}}),
                {
                    "apiVersion": "autoscaling/v2",
                    "kind": "HorizontalPodAutoscaler",
                    "metadata": {"name": "web"},
                    "spec": {
                        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                        "minReplicas": 1,
                        "maxReplicas": 60,
                        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {
                            "type": "Utilization", "averageUtilization": 50}}}],
                    },
                },
            ],
            "lives": [{"owner": "ReplicaSet/web-*", "usage": {"cpu": "1"}}],
        },
        "HorizontalPodAutoscaler web",
        "HorizontalPodAutoscaler web as it stands",
    ),
    "scheduler": (
        {
            "manifests": [web()],
            "schedulers": [{"name": "default-scheduler", "config": {
                "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [{"name": "NodeAffinity", "args": {
                    "addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["x"]}]}]}}}}]}],
            }}],
        },
        "scheduler default-scheduler",
        "scheduler default-scheduler as it stands",
    ),
    "flapping": (
        {
            "manifests": [web()],
            "chaos": [{"id": "flap", "every": "90s", "from": "10s", "for": "60s", "crash": {"node": "node-2"}}],
        },
        "flap",
        "fault crash of node-2",
    ),
}  # fmt: skip


def _unusual(case: str) -> Scenario:
    spec, _, _ = UNUSUAL[case]
    nodes = [{"namePrefix": "node-", "count": 3, "labels": {"pool": "a"}, "allocatable": {"cpu": "4", "memory": "8Gi"}}]
    document = {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "unusual"},
        "spec": {"duration": "240s", "nodes": nodes, **spec},
    }
    return loader.loads(yaml.safe_dump(document), "unusual.yaml")


@pytest.mark.parametrize("case", UNUSUAL)
def test_roots_that_are_no_rollouts(case: str) -> None:
    _, name, what = UNUSUAL[case]
    found, _ = checking.run(_unusual(case))
    assert found.roots[0].name == name, [root.what for root in found.roots]
    assert found.roots[0].what.startswith(what)
    assert found.roots[0].share > 0.6


@pytest.mark.parametrize(
    ("case", "instead"),
    [
        ("registry", "the images of registry registry.corp available"),
        ("scheduler", "the default configuration of scheduler default-scheduler"),
    ],
)
def test_a_registry_and_a_configuration_have_a_gentler_form(case: str, instead: str) -> None:
    scenario = _unusual(case)
    found, _ = checking.run(scenario)
    check = checking.check(scenario, found, limit_s=60, most=1).roots[0].check
    assert check is not None
    assert (check.holds, check.instead) == (True, instead)
    assert check.effects
    assert all(one.after < one.before for one in check.effects)


def test_other_missing_images_and_the_names_of_profiles_stay() -> None:
    scenario = _unusual("registry")
    patterns = ["registry.corp/web:*", "*.corp/*", "*:2", "other.corp/*", "nginx:*"]
    scenario = dataclasses.replace(scenario, references=References(missing_images=patterns))
    root = Root("fault", "registry registry.corp", "", 0, (), 1.0)
    milder = gentler.gentler(scenario, root)
    assert milder is not None
    assert milder[0].references is not None
    assert milder[0].references.missing_images == ["other.corp/*", "nginx:*"]
    assert gentler.gentler(milder[0], root) is None
    one = scenario.schedulers[0] if scenario.schedulers else Scheduler(name="default-scheduler")
    config = {"profiles": [{"schedulerName": "a", "pluginConfig": [{"name": "NodeAffinity"}]}, {"schedulerName": "b"}]}
    several = dataclasses.replace(scenario, schedulers=(dataclasses.replace(one, config=config),))
    other = gentler.gentler(several, dataclasses.replace(root, name="scheduler b"))
    assert other is not None
    assert other[0].schedulers[0].config == {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]}


def test_a_bug_that_is_switched_on_is_a_root_and_the_run_without_it_says_so() -> None:
    scenario = loader.load(Path("scenarios/museum/106884-finished-pod-still-counts.yaml"))
    found, _ = checking.run(scenario)
    assert found.roots[0].name == "bug k8s-106884"
    check = checking.check(scenario, found, limit_s=60, most=1).roots[0].check
    assert check is not None
    assert check.holds
    assert "Without bug k8s-106884: 0 instead of 1 pod" in tellings.checked(check)


def test_machines_that_are_lost_at_once_are_one_root() -> None:
    zones = [
        {"namePrefix": f"{zone}-", "count": 2, "labels": {"topology.kubernetes.io/zone": f"zone-{zone}"}}
        for zone in "ab"
    ]
    document = {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "zone"},
        "spec": {
            "duration": "200s",
            "nodes": zones,
            "manifests": [web()],
            "chaos": [{"at": "0s", "crash": {"actor": f"kubelet/b-{number}", "restart": False}} for number in (1, 2)],
        },
    }
    scenario = loader.loads(yaml.safe_dump(document), "zone.yaml")
    found, _ = checking.run(scenario)
    root = found.roots[0]
    assert root.what == "fault crash of zone zone-b"
    assert len(root.also) == 1
    check = checking.check(scenario, found, limit_s=60, most=1).roots[0].check
    assert check is not None
    assert check.holds
    assert all(one.after == 0 for one in check.effects)


def test_numbers_and_priorities_have_one_form() -> None:
    """Shares, times, and a class that is named after its value."""
    assert [wording.lasting(seconds * 10**9) for seconds in (12.5, 117, 600, 6000)] == [
        "12.5 s", "1 min 57 s", "10 min", "1 h 40 min",
    ]  # fmt: skip
    pods = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    document = {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "classes"},
        "spec": {
            "duration": "180s",
            "nodes": [{"name": "node-1", "allocatable": {"cpu": "2"}}],
            "priorityClasses": {"priority-10": 10, "usual": 5},
            # Until then the run goes on.
            "events": [{"at": "170s", "delete": {"kind": "PriorityClass", "name": "usual"}}],
            "workloads": [
                {
                    "name": name,
                    "arrivals": {"every": "1s", "count": 4},
                    "pods": {"spec": {"priorityClassName": name} | pods},
                }
                for name in ("priority-10", "usual")
            ],
        },
    }
    found, _ = checking.run(loader.loads(yaml.safe_dump(document), "classes.yaml"))
    told = tellings.told(found, 200)
    assert "of priority 10)" in told, told
    assert "of priority priority" not in told
    assert f"{people.percentage(found.roots[0].share)} " in f"{told.splitlines()[1]} "
    assert re.search(r"\d%|up to \d{3} s|1 pods", told) is None, told

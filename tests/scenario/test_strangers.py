"""Files that are no scenario, kinds that are not simulated, and one mistake that is reported once."""
# ruff: noqa: E501 - one message a line reads best

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.emulated.objects import resources
from kemu.emulated.objects.fields import tables
from kemu.emulated.objects.fields.unsimulated import UNSIMULATED
from kemu.errors import ScenarioError
from kemu.lab.scenario.loading import loader

NAME_IT = "name the file in a scenario, beside its nodes: spec.manifests: [{file: it.yaml}]"

STRANGERS = {
    "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 3}": f"it.yaml:2:7: is a Deployment, not a scenario ({NAME_IT})",
    "kind: HorizontalPodAutoscaler\napiVersion: autoscaling/v2": "it.yaml:1:7: is a HorizontalPodAutoscaler, not a scenario, and "
    "not simulated: its controller, horizontal-pod-autoscaler, does not run (in a scenario, name it and the other controllers in "
    "spec.controllers, or change spec.replicas by events: {at: 1m, patch: {kind: Deployment, …}})",
    "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1": (
        f"it.yaml:1:7: is a CustomResourceDefinition, not a scenario ({NAME_IT})"
    ),
    "kind: IPAddress\napiVersion: networking.k8s.io/v1": "it.yaml:1:7: is an IPAddress, not a scenario, and not simulated: its controller, service-cidr, does not run (in a scenario, name it and the other controllers in spec.controllers)",
    "kind: ConfigMap\napiVersion: v1": f"it.yaml:1:7: is a ConfigMap, not a scenario ({NAME_IT})",
    "kind: Pod\napiVersion: v1": f"it.yaml:1:7: is a Pod, not a scenario ({NAME_IT})",
    "kind: List\napiVersion: v1\nitems: [{kind: Pod}, {kind: Service}, {kind: Pod}]": f"it.yaml:1:7: is a List (2 Pods, 1 Service), not a scenario ({NAME_IT})",
    "kind: Pod\n---\nkind: Service\n---\nkind: Pod": f"it.yaml:1:1: holds 3 documents (2 Pods, 1 Service); a scenario is one document ({NAME_IT})",
    "kind: Scenario\n---\nkind: Pod": "it.yaml:1:1: holds 2 documents (1 Scenario, 1 Pod); a scenario is one document (put the other objects into its spec.manifests)",
    "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1": "it.yaml:1:7: is a KubeSchedulerConfiguration, "
    "not a scenario (it belongs to a scheduler: spec.schedulers: [{name: default-scheduler, configFile: FILE}])",
    "kind: Scenaro\napiVersion: v1": "it.yaml:1:7: is a Scenaro (v1), not a scenario, and no kind that kemu knows (did you mean Scenario?)",
    "kind: Train\napiVersion: example.com/v1": "it.yaml:1:7: is a Train (example.com/v1), not a scenario, and no kind that kemu knows",
    "services: {web: {image: nginx}}": "it.yaml:1:1: is no scenario: it has no apiVersion: kemu.dev/v1, no kind: Scenario and no "
    "spec (kemu scenarios show two-schedulers-one-node prints an example)",
    "": "it.yaml:1:1: holds no document",
    "hello": "it.yaml:1:1: is no scenario: it is the text 'hello' (kemu scenarios show two-schedulers-one-node prints an example)",
}  # fmt: skip


@pytest.mark.parametrize("text", STRANGERS)
def test_a_file_that_is_no_scenario_is_told_in_one_sentence(text: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        loader.loads(text, "it.yaml")
    assert str(caught.value) == STRANGERS[text]


HEAD = "apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {name: it}\nspec:\n  nodes: [{name: n}]\n"


def complaints(spec: str, head: str = HEAD) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        loader.loads(head + spec, "it.yaml")
    return [str(problem).partition(": ")[2] for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        ("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}",
         "HorizontalPodAutoscaler is not simulated: its controller, horizontal-pod-autoscaler, does not run (name it and the other controllers in spec.controllers, or change spec.replicas by events: {at: 1m, patch: {kind: Deployment, …}}, or leave all such objects out: spec.unsimulated: ignore)"),
        ("{apiVersion: networking.k8s.io/v1, kind: IPAddress}",
         "IPAddress is not simulated: its controller, service-cidr, does not run (name it and the other controllers in spec.controllers, or leave all such objects out: spec.unsimulated: ignore)"),
        ("{apiVersion: example.com/v1, kind: Train, metadata: {name: a}}",
         "Train (example.com/v1) is a custom resource without a definition (add its definition, or leave all such objects out: spec.unsimulated: ignore)"),
        ("{apiVersion: v1, kind: Pood}", "unknown kind 'Pood' (did you mean \"Pod\"?)"),
        ("{apiVersion: v1, kind: Train}", "unknown kind 'Train'"),
    ],
)  # fmt: skip
def test_unknown_kinds_are_told_apart_from_those_that_are_not_simulated(manifest: str, text: str) -> None:
    assert complaints(f"  manifests: [{manifest}]") == [f"spec.manifests[0].kind: {text}"]


def test_no_kind_is_both_accepted_and_not_simulated() -> None:
    assert not set(tables.ACCEPTED) & set(UNSIMULATED)
    assert set(tables.REFUSED_KINDS) == set(UNSIMULATED) & set(resources.BY_KIND)


def test_a_list_stands_for_its_items(tmp_path: Path) -> None:
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: m}]}}"
    (tmp_path / "list.yaml").write_text(f"apiVersion: v1\nkind: List\nitems: [{pod % 'a'}, {pod % 'b'}]")
    scenario = tmp_path / "it.yaml"
    scenario.write_text(
        f"{HEAD}  manifests: [{{file: list.yaml}}, {{apiVersion: v1, kind: List, items: [{pod % 'c'}]}}]"
    )
    assert [each.message.metadata.name for each in loader.load(scenario).setup] == ["a", "b", "c"]
    (tmp_path / "list.yaml").write_text(
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}"
    )
    with pytest.raises(ScenarioError) as caught:
        loader.load(scenario)
    assert str(caught.value) == f"{tmp_path / 'list.yaml'}:4:58: items[0].spec: containers: Required value"


POD = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {SPEC, containers: [{name: m}]}}"
BARE = HEAD.partition("  nodes")[0]

ONE_MISTAKE = {
    "schedulers that are texts": (f"  schedulers: [batch]\n  manifests: [{POD.replace('SPEC', 'schedulerName: batch-scheduler')}]",
        ["spec.schedulers[0]: must be a mapping, not the text 'batch'"]),
    "a scheduler whose name has a typo": (f"  schedulers: [{{nam: batch}}]\n  manifests: [{POD.replace('SPEC', 'schedulerName: batch')}]",
        ["spec.schedulers[0].nam: is not a key that may stand here (did you mean name?)"]),
    "a section with a typo": (f"  scheduler: [{{name: batch}}]\n  manifests: [{POD.replace('SPEC', 'schedulerName: batch')}]",
        ["spec.scheduler: is not a key that may stand here (did you mean schedulers?)"]),
    "a crash of its scheduler": ("  schedulers: [batch]\n  chaos: [{at: 1s, crash: {actor: scheduler/batch/0}}]",
        ["spec.schedulers[0]: must be a mapping, not the text 'batch'"]),
    "a class with a wrong priority": (f"  priorityClasses: {{high: '10'}}\n  manifests: [{POD.replace('SPEC', 'priorityClassName: high')}]",
        ["spec.priorityClasses.high: must be a whole number, not the text '10'"]),
    "a file that is missing": ("  manifests: [{file: nothing.yaml}]\n  expect: [{pod: p, bound: {}}]\n  events: [{at: 1s, delete: {pod: p}}]",
        ["spec.manifests[0].file: nothing.yaml cannot be read: No such file or directory"]),
    "a namespace of an unknown kind": ("  manifests:\n  - {apiVersion: v1, kind: Namespac, metadata: {name: team}}\n  - " + POD.replace("name: p", "name: p, namespace: team").replace("SPEC, ", ""),
        ["spec.manifests[0].kind: unknown kind 'Namespac' (did you mean \"Namespace\"?)"]),
    "an action with a typo": ("  events: [{at: 1s, crate: " + POD.replace("SPEC, ", "") + "}]\n  expect: [{pod: p, bound: {}}]",
        ["spec.events[0].crate: is not a key that may stand here (did you mean create?)"]),
    "a workload without a name": ("  workloads: [{nam: w, arrivals: {count: 3}, pods: {spec: {containers: [{name: m}]}}}]\n  expect: [{pods: {workload: w}, all: {bound: {}}}, {pod: w-1, bound: {}}]",
        ["spec.workloads[0].nam: is not a key that may stand here (did you mean name?)"]),
    "a life that is a duration": ("  workloads: [{name: w, arrivals: {count: 3}, pods: {spec: {containers: [{name: m}]}}, life: {runSeconds: 10m}}]",
        ["spec.workloads[0].life.runSeconds: must be a number of seconds, not the text '10m' (write 600)"]),
    "a fault with a typo": ("  chaos: [{at: 1s, id: f, crsh: {actor: store}}]\n  expect: [{fault: f, hit: true}]",
        ["spec.chaos[0].crsh: is not a key that may stand here (did you mean crash?)"]),
}  # fmt: skip


@pytest.mark.parametrize("case", ONE_MISTAKE)
def test_what_follows_from_a_mistake_is_not_reported(case: str) -> None:
    spec, told = ONE_MISTAKE[case]
    assert complaints(spec) == told


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        (
            "{pdb: web, respected: true}",
            "spec.expect[0].respected: is not a key that may stand here (there are: id, when, healthy)",
        ),
        (
            "{pdb: web, never: {evicted: {}}}",
            "spec.expect[0].never: cannot stand beside pdb (it belongs to pod or node; beside pdb stands healthy)",
        ),
    ],
)
def test_beside_a_subject_only_its_statements_are_proposed(expectation: str, told: str) -> None:
    assert complaints(f"  expect: [{expectation}]") == [told]


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ("nodes: [n]", "spec.nodes[0]: must be a mapping, not the text 'n'"),
        ("nodez: [{name: n}]", "spec.nodez: is not a key that may stand here (did you mean nodes?)"),
    ],
)
def test_nodes_that_cannot_be_read_explain_names_of_nodes(nodes: str, told: str) -> None:
    rest = f"  manifests: [{POD.replace('SPEC', 'nodeName: n')}]\n  expect: [{{node: n, tainted: {{key: a}}}}]\n  chaos: [{{at: 1s, crash: {{actor: kubelet/n}}}}]\n"
    assert complaints(f"  {nodes}\n{rest}  events: [{{at: 1s, cordon: {{node: n}}}}]", BARE) == [told]


def test_other_names_are_still_reported() -> None:
    found = complaints(
        f"  schedulers: [{{name: a, polcy: {{}}}}]\n  manifests: [{POD.replace('SPEC', 'schedulerName: batch')}]"
    )
    assert found == [
        "spec.schedulers[0].polcy: is not a key that may stand here (did you mean policy?)",
        "spec.manifests[0].spec.schedulerName: no scheduler serves batch (there are: a)",
    ]


def test_a_mistake_in_an_override_has_its_place_there() -> None:
    text = f"{HEAD}  matrix: {{seed: [1, 2]}}\n"
    for overrides, told in (
        ({"duration": 5}, "--set duration:1:1: spec.duration: has no unit; did you mean 5s?"),
        ({"nodes": 3}, "--set nodes:1:1: spec.nodes: must be a list, not the number 3"),
        ({"nodes": ["n"]}, "--set nodes:1:1: spec.nodes[0]: must be a mapping, not the text 'n'"),
    ):
        with pytest.raises(ScenarioError) as caught:
            loader.loads(text, "it.yaml", overrides=overrides)
        assert str(caught.value) == told


def test_the_list_of_keys_is_told_once() -> None:
    found = complaints("  foo: 1\n  bar: 2\n  matrix: {seed: [1, 2]}")
    assert found[0].startswith("spec.foo: is not a key that may stand here (there are: seed, duration, ")
    assert found[1:] == ["spec.bar: is not a key that may stand here"]

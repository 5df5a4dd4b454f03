"""``ablate``: which names there are, what a mistake is told, and that every component gets to know what it lacks."""

from __future__ import annotations

import pytest

from kemu import errors
from kemu.emulated import variants
from kemu.lab.scenario.format import schema
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plans
from kemu.lab.scenario.playing.heartbeats import Heartbeats

HEAD = """\
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  nodes: [{name: node-1, allocatable: {cpu: "1", memory: 1Gi, pods: "10"}}]
"""


def test_an_unknown_name_is_refused_and_a_similar_one_is_offered() -> None:
    with pytest.raises(errors.ScenarioError) as caught:
        loader.loads(HEAD + "  ablate: [bind-twice, bind-one]\n")
    first, second = caught.value.problems
    assert (first.path, second.path) == ("spec.ablate[0]", "spec.ablate[1]")
    assert "must be resource-version-precondition, " in first.message
    assert "not 'bind-twice'" in first.message
    assert second.suggestion == "did you mean bind-once?"


def test_the_schema_lists_the_names() -> None:
    spec = schema.json_schema()["properties"]["spec"]["properties"]
    assert spec["ablate"]["items"]["enum"] == list(variants.names(variants.ABLATION))


def test_every_component_is_told_what_it_lacks_and_nobody_without_need() -> None:
    for wanted in ([], ["watch-resume", "bind-once"]):
        scenario = loader.loads(f"{HEAD}  ablate: {wanted}\n  controllers: [pod-gc]\n".replace("'", ""))
        beats = Heartbeats(scenario, "sim")
        stages = (plans.store(scenario), plans.apiservers(scenario), plans.schedulers(scenario))
        specs = [*(spec for stage in stages for spec in stage), *plans.kubelets(scenario, beats)]
        specs += plans.controllers(scenario, beats)
        assert len(specs) == 5
        for spec in specs:
            assert spec.config.get("ablate", []) == (["bind-once", "watch-resume"] if wanted else []), spec.name


def test_what_an_etcd_cannot_lack_is_refused() -> None:
    with pytest.raises(errors.ScenarioError) as caught:
        loader.loads(HEAD + '  store: {etcd: "localhost:2379"}\n  ablate: [fsync-before-acknowledgement]\n')
    (problem,) = caught.value.problems
    assert problem.path == "spec.ablate[0]"
    assert problem.message == "fsync-before-acknowledgement is a safeguard of kemu's own store, not of an etcd"

"""Every recorded ablation that is small can be explained."""

from __future__ import annotations

import pytest

from kemu.emulated.settings import documents
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.tell.explaining import chains, explanations
from kemu.lab.tell.explaining.drawings import texts
from tests.ablations import search

SMALL = (
    "uid-precondition",
    "nomination",
    "two-pass-filtering",
    "clear-lower-nominations",
    "in-flight-events",
    "kubelet-admission",
    "controller-expectations",
)
MUST_SAY = {
    "uid-precondition": "The scheduler chose node-1 for the first db-0.",
    "nomination": "The scheduler chose node-1 for d.",
    "two-pass-filtering": "The scheduler nominated node-1 for c.",
    "clear-lower-nominations": "The scheduler chose node-1 for server, to preempt slow there.",
    "in-flight-events": "the scheduler requeued second (AssignedPod/Delete)",
    "kubelet-admission": "Scheduler blue still counted 4 CPUs free on node-1 at 5.004 s and chose it for blue-pod",
    "controller-expectations": "it did not know yet that web-",
}
"""Part of a sentence without which nobody would understand what happened."""


@pytest.mark.parametrize("name", SMALL)
def test_a_chain_from_the_safeguard_to_the_check(name: str) -> None:
    found = search.load()[name]
    overrides = {"seed": found["seed"], "ablate": [name]}
    for setting in found["settings"]:
        path, _, value = setting.partition("=")
        overrides[path] = documents.parse(value, path)[0].data
    scenario = loader.variants(loader.load(catalog.find(found["scenario"]), None, overrides))[0][1]
    explanation = explanations.explain(scenario, found["breaks"])
    sentences = explanation.chain.sentences
    assert len(sentences) <= chains.MOST
    assert sentences[0].text.startswith(f"The safeguard {name} is taken away")
    assert any(MUST_SAY[name] in one.text for one in sentences), [one.text for one in sentences]
    assert " fails: " in sentences[-1].text
    assert explanation.sibling is not None
    assert explanation.sibling.kind == "ablation"
    assert explanation.difference is not None
    for one in sentences:
        telling = explanation.other if one.is_of_passing else explanation.telling
        assert telling is not None
        assert one.event < 0 or telling.events[one.event].time_ns == one.time_ns
    assert max(map(len, texts.told(explanation).splitlines())) <= texts.WIDTH

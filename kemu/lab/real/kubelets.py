"""The kubelets of ``kemu nodes``: those of a scenario's nodes, or of so many equal ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kemu.emulated.bridge import nodes
from kemu.emulated.objects import meta
from kemu.lab.scenario import forms
from kemu.lab.scenario.format.clusters import Node
from kemu.lab.scenario.playing import plans
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.up import clusters
from kemu.runtime.env import ActorSpec

RUNTIME = "real"


def of_count(count: int, prefix: str, node: Mapping[str, Any], settings: Mapping[str, Any]) -> Scenario:
    """So many nodes PREFIX1, PREFIX2, … . ``node``: further keys of an entry of a scenario's ``nodes``; ``settings``:
    values by paths below spec. Raises ScenarioError."""
    spec = {"nodes": [{"namePrefix": prefix, "count": count, **node}]}
    return forms.load(spec, settings, name="nodes")


def of_scenario(scenario: Scenario, address: str, port: int) -> list[ActorSpec]:
    """In the order of its nodes. ``address`` and ``port``: where an API server asks for logs; "": nowhere."""
    made = clusters.completed(scenario)
    told = dataclasses.replace(made, nodes=tuple(_labelled(node, address, port) for node in made.nodes))
    return plans.kubelets(told, Heartbeats(told, RUNTIME))


def _labelled(node: Node, address: str, port: int) -> Node:
    message = meta.copied(node.message)
    message.metadata.labels[nodes.LABEL] = "true"
    if address:
        # The host name comes first where an API server looks for a node, and is not known there.
        del message.status.addresses[:]
        message.status.addresses.add(type="InternalIP", address=address)
        message.status.daemonEndpoints.kubeletEndpoint.Port = port
    return dataclasses.replace(node, data=message.SerializeToString(deterministic=True))

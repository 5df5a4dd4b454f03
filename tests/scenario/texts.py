"""Scenarios for the tests: a small one that is right, and how to put mistakes into it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu import errors
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"

HEAD = "apiVersion: kemu.dev/v1\nkind: Scenario\nspec:\n"
NODES = "  nodes: [{name: node-1}]\n"
FIRST_LINE = 5
"""Line of the first line of the text given to :func:`load`."""


def load(spec: str, overrides: Mapping[str, Any] | None = None, *, nodes: str = NODES) -> Scenario:
    """The scenario with these lines in its spec, besides one node."""
    return loader.loads(HEAD + nodes + textwrap.indent(textwrap.dedent(spec), "  "), overrides=overrides)


def problems(spec: str, *, nodes: str = NODES) -> list[errors.Problem]:
    """What is wrong with it."""
    try:
        load(spec, nodes=nodes)
    except errors.ScenarioError as error:
        return list(error.problems)
    return []


def pod(name: str, more: str = "") -> str:
    """A pod as a flow mapping."""
    spec = f"containers: [{{name: main}}]{', ' + more if more else ''}"
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{{spec}}}}}"

"""A scenario from whatever a program has: a file, the name of a shipped one, YAML text or a dictionary.

Role: in front of :mod:`kemu.lab.scenario.loading.loader`, for :mod:`runs` and :mod:`live_clusters`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.objects.plain import Json
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import holds as hold_documents
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.holds import Hold

Source = str | os.PathLike[str] | Mapping[str, Any] | Scenario
"""A path, the name of a shipped scenario (``races/two-schedulers-one-node``, or its last part), YAML text (with a line
break), a document as a dictionary or only what stands in its ``spec``, or a scenario that is loaded already."""

HEAD = {"apiVersion": "kemu.dev/v1", "kind": "Scenario"}


def load(
    source: Source,
    settings: Mapping[str, Any] | None = None,
    *,
    data: str | os.PathLike[str] | None = None,
    name: str = "scenario",
    any_pod: bool = False,
) -> Scenario:
    """``settings``: values by paths below spec, as ``--set`` takes them. ``data``: the folder of a trace's files.

    Files and modules that a text or a dictionary names are looked for in the current folder; ``name`` is what it is
    called if it does not say. Of a scenario that is loaded already, ``any_pod`` lets the settings speak of pods that it
    does not create. Raises ScenarioError with every mistake, and KemuError for an unknown name.
    """
    folder = None if data is None else Path(data)
    overrides = dict(settings or {})
    if isinstance(source, Scenario):
        if not overrides and data is None:
            return source
        return loader.loads(source.to_yaml(), source.file, folder, overrides, any_pod=any_pod)
    if isinstance(source, Mapping):
        document = dict(source) if "spec" in source else {**HEAD, "metadata": {"name": name}, "spec": dict(source)}
        text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
        return loader.loads(text, f"{name}.yaml", folder, overrides)
    if isinstance(source, str) and "\n" in source:
        return loader.loads(source, f"{name}.yaml", folder, overrides)
    return loader.load(catalog.find(os.fspath(source)), folder, overrides)


def with_holds(scenario: Scenario, holds: Sequence[Hold]) -> Scenario:
    """The same scenario with these holds, which stand in its document, too; as its present seed does."""
    spec = {**scenario.resolved["spec"], "seed": scenario.seed}
    spec.pop("holds", None)
    if holds:
        spec["holds"] = [hold_documents.as_data(hold) for hold in holds]
    return dataclasses.replace(scenario, holds=tuple(holds), resolved={**scenario.resolved, "spec": spec})


class _Dumper(yaml.SafeDumper):
    """Takes tuples and mappings as a program has them; writes no anchors."""

    def ignore_aliases(self, data: Json) -> bool:
        return True


_Dumper.add_multi_representer(tuple, lambda dumper, value: dumper.represent_list(value))
_Dumper.add_multi_representer(Mapping, lambda dumper, value: dumper.represent_dict(value))  # type: ignore[type-abstract]

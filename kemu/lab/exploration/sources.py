"""The scenario of a campaign, and the variants of it that runs need, without reading YAML for each of them."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.exploration.plans import Plan
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario

KEPT = 64
"""Documents that were read last are kept as scenarios."""


class Source:
    """A scenario without a matrix, or one variant of it."""

    def __init__(self, text: str, name: str = "scenario.yaml", data_dir: str = "") -> None:
        """``text``: a whole document, as :meth:`Scenario.to_yaml` writes it."""
        self.text = text
        self.name = name
        self.data_dir = data_dir
        self._loaded: OrderedDict[str, Scenario] = OrderedDict()

    @classmethod
    def of(cls, scenario: Scenario, data_dir: str | Path | None = None) -> Source:
        if scenario.variants:
            raise KemuError(f"{scenario.name} has a matrix; explore one of its variants: pin its paths with --set")
        return cls(scenario.to_yaml(), scenario.file, "" if data_dir is None else str(data_dir))

    def __reduce__(self) -> tuple[Any, ...]:
        return Source, (self.text, self.name, self.data_dir)

    def scenario(self, plan: Plan) -> Scenario:
        """What the plan runs. The document of the result is that of its overrides; seed and holds are set beside it.

        Raises ScenarioError where an override does not fit.
        """
        loaded = self._load(plan.overrides)
        changes: dict[str, Any] = {}
        if plan.seed is not None and plan.seed != loaded.seed:
            changes["seed"] = plan.seed
        if plan.holds is not None and plan.holds != loaded.holds:
            changes["holds"] = plan.holds
        return dataclasses.replace(loaded, **changes) if changes else loaded

    def _load(self, overrides: Mapping[str, Any]) -> Scenario:
        key = json.dumps(overrides, sort_keys=False, default=str) if overrides else ""
        found = self._loaded.get(key)
        if found is None:
            found = loader.loads(self.text, self.name, self.data_dir or None, overrides)
            self._loaded[key] = found
            if len(self._loaded) > KEPT:
                # The first one, without overrides, is what most runs need.
                self._loaded.popitem(last=False)
        else:
            self._loaded.move_to_end(key)
        return found

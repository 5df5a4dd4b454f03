"""Module paths of earlier versions: ``kemu.store.server`` is ``kemu.emulated.store.server``.

Recorded runs, tapes and users' programs name actors and helpers by the module that they were in. Such a name imports
the module under its present name: the same module object, never a copy.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_ROOMS = {
    "messages": "k8s v1 etcd",
    "runtime": "faults runlog",
    "emulated": "objects store apiserver client scheduler kubelet controllers autoscaler gateway bridge",
    "lab": "scenario checks exploration sweep telemetry up conformance bench fuzz",
    "doors": "cli api testing",
}
"""Packages and modules that stood at the first level, by the room that they are in now."""

_FOLDERS = {
    "emulated.objects.pods": "bind_generations gpu_cards host_ports planned_fields pod_phases",
    "emulated.objects.wire": "envelopes fingerprints key_ranges shared_objects wires",
    "emulated.objects.validation.pod_specs": "pods probes resizes templates",
    "emulated.autoscaler.simulator": "drainability placements snapshots",
    "emulated.controllers.workloads.daemon": "daemon_histories daemon_pods daemon_sets",
    "emulated.controllers.workloads.stateful": "stateful_claims stateful_pods stateful_sets",
    "lab.tell.explaining.drawings": "charts svgs texts",
    "lab.scenario.playing.checkpoints": "log_differences",
    "lab.scenario.playing.replaying": "recoveries replays",
}
"""Modules that stood in the parent of the folder that they are in now."""

MOVED = {
    **{f"kemu.{name}": f"kemu.{room}.{name}" for room, names in _ROOMS.items() for name in names.split()},
    "kemu.report": "kemu.lab.tell",
    "kemu.exploration.explaining": "kemu.lab.tell.explaining",
    "kemu.exploration.probabilities": "kemu.lab.tell.explaining.probabilities",
    "kemu.user_files": "kemu.emulated.objects.conversion.user_files",
    "kemu.api.scenario_forms": "kemu.lab.scenario.forms",
    "kemu.testing.actor_tests": "kemu.runtime.sim.actor_tests",
    "kemu.testing.up_clusters": "kemu.lab.up.embedded",
    "kemu.runtime.ray.cell": "kemu.runtime.host",
    **{
        f"kemu.{folder.rpartition('.')[0]}.{name}": f"kemu.{folder}.{name}"
        for folder, names in _FOLDERS.items()
        for name in names.split()
    },
}
"""Present names by earlier ones. What is below a package moved with it, unless it has an entry of its own."""


def present_name(name: str) -> str:
    """The name that a module has now. A module that did not move keeps its name."""
    parts = name.split(".")
    for count in range(len(parts), 1, -1):
        moved = MOVED.get(".".join(parts[:count]))
        if moved is not None:
            return present_name(".".join([moved, *parts[count:]]))
    return name


class _Alias:
    """A loader that gives out a module which exists under another name. Without ``importlib.abc``, whose import takes
    longer than all else that ``import kemu`` does."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(present_name(spec.name))
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # importlib has just replaced it by the alias's


_PUBLIC = frozenset({"kemu.scheduler", "kemu.scheduler.framework", "kemu.scheduler.extenders", "kemu.testing"})
"""Packages that stand under their earlier names, for plugins and tests."""


class _Finder:
    """Asked first: an earlier checkout leaves folders with nothing but caches, which would be found as packages."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("kemu.") or fullname in _PUBLIC:
            return None
        present = present_name(fullname)
        if present == fullname:
            return None
        from importlib.util import find_spec

        try:
            found = find_spec(present)
        except ModuleNotFoundError:
            return None
        if found is None:
            return None
        loader: Any = _Alias()
        return ModuleSpec(fullname, loader, is_package=bool(found.submodule_search_locations))


def install() -> None:
    """Let earlier names be imported, from now on."""
    sys.meta_path.insert(0, _Finder())

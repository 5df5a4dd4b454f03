"""Module paths of earlier versions, which recorded runs, tapes and users' programs name."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from kemu import _moved
from kemu.runtime import runtimes


@pytest.mark.parametrize(
    ("earlier", "present"),
    [
        ("kemu.store.server", "kemu.emulated.store.server"),
        ("kemu.controllers.workloads.daemon_sets", "kemu.emulated.controllers.workloads.daemon.daemon_sets"),
        ("kemu.runtime.ray.cell.control", "kemu.runtime.host.control"),
        ("kemu.report.stories", "kemu.lab.tell.stories"),
        ("kemu.scheduler.framework.interfaces", "kemu.emulated.scheduler.framework.interfaces"),
        ("kemu.runtime.env", "kemu.runtime.env"),
    ],
)
def test_an_earlier_name_is_the_module_under_its_present_name(earlier: str, present: str) -> None:
    module = importlib.import_module(earlier)
    assert module is importlib.import_module(present)
    assert module.__name__ == present
    assert module.__spec__ is not None
    assert module.__spec__.name == present


def test_every_entry_leads_to_a_module() -> None:
    for earlier in _moved.MOVED:
        assert importlib.util.find_spec(_moved.present_name(earlier)) is not None, earlier


def test_a_module_that_moved_within_its_package_is_found_there_by_from() -> None:
    script = "from kemu.objects import gpu_cards; print(gpu_cards.__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "kemu.emulated.objects.pods.gpu_cards"


def test_factories_in_recorded_runs_still_load() -> None:
    from kemu.emulated.store.server import Store

    assert runtimes.resolve("kemu.store.server:Store") is Store


def test_the_public_packages_are_the_same_objects() -> None:
    from kemu.emulated.scheduler import framework
    from kemu.runtime.sim import actor_tests

    public = importlib.import_module("kemu.scheduler.framework")
    assert public.Handle is framework.Handle
    assert set(public.__all__) == set(framework.__all__)
    assert importlib.import_module("kemu.testing").sim is actor_tests.sim


def test_a_folder_of_caches_hides_nothing(tmp_path: Path) -> None:
    """What git leaves of the earlier folders."""
    (tmp_path / "kemu" / "store" / "__pycache__").mkdir(parents=True)
    script = f"import kemu; kemu.__path__.append({str(tmp_path / 'kemu')!r}); import kemu.store.server"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", ["kemu.nothing", "kemu.store.nothing", "kemu.emulated.nothing"])
def test_a_name_that_never_was_is_not_found(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=name.rpartition(".")[2]):
        importlib.import_module(name)

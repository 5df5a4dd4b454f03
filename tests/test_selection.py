"""``scripts/test --changed`` runs the tests that a change concerns, and leaves out others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import selection


@pytest.fixture(scope="module")
def tree() -> selection.Tree:
    return selection.Tree()


@pytest.mark.parametrize(
    ("path", "concerned", "others"),
    [
        ("tests/objects/test_quantities.py", ["objects/test_quantities.py"], ["objects/test_facts.py"]),
        (
            "kemu/emulated/objects/amounts/quantities.py",
            ["objects/test_quantities.py", "scenarios/test_shipped.py", "e2e/test_kubernetes_e2e.py"],
            ["sweep/statistics/test_intervals.py"],
        ),
        (
            "kemu/emulated/scheduler/queue/queues.py",
            ["scheduler/test_queue.py", "scenarios/test_shipped.py", "mutants/test_mutants.py"],
            ["objects/test_facts.py", "store/test_keys.py"],
        ),
        # By its name: actors are; and commands, by what starts processes.
        ("kemu/emulated/store/server.py", ["scenarios/test_shipped.py", "up/test_up.py"], ["objects/test_facts.py"]),
        ("kemu/doors/cli/commands/runs/story.py", ["screens/test_screens.py"], ["scheduler/test_queue.py"]),
        ("kemu/emulated/store/variants.py", ["mutants/test_mutants.py"], ["objects/test_facts.py"]),
        # By asking ``kemu`` for its name.
        ("kemu/doors/api/sweeps.py", ["sweep/test_api.py"], ["store/test_keys.py"]),
        # By a fixture of all tests, and by one that few ask for.
        ("kemu/emulated/objects/wire/shared_objects.py", ["objects/test_quantities.py", "docs/test_site.py"], []),
        ("kemu/runtime/ray/driver/clusters.py", ["ray/test_losses.py"], ["objects/test_quantities.py"]),
        ("tests/ray/conftest.py", ["ray/test_cell_hosts.py"], ["objects/test_facts.py"]),
        ("tests/soak/__main__.py", ["ray/test_soak.py"], ["objects/test_facts.py"]),
        # One that is gone, as it has another name now.
        ("tests/museum/test_gone.py", ["museum/test_untuned.py"], ["store/test_keys.py"]),
        ("kemu/emulated/store/gone.py", ["store/test_keys.py", "mutants/test_mutants.py"], ["objects/test_facts.py"]),
        # What is no module.
        ("docs/decisions.md", ["docs/test_claims.py"], ["store/test_keys.py"]),
        ("scenarios/races/recreated-pod.yaml", ["scenarios/test_shipped.py"], ["store/test_keys.py"]),
        ("tests/conformance/data/kubelet/x.jsonl.gz", ["conformance/test_kubelet.py"], ["store/test_keys.py"]),
        ("hunts/workers/careful.yaml", ["hunt/test_workers.py"], ["store/test_keys.py", "scheduler/test_queue.py"]),
        ("experiments/ping-pong.yaml", ["docs/test_findings.py"], ["store/test_keys.py", "scheduler/test_queue.py"]),
        ("proto/kemu/v1/cell.proto", ["upgrades/test_upgrades.py"], ["store/test_keys.py"]),
        ("mkdocs.yml", ["docs/test_site.py"], ["store/test_keys.py"]),
        (".ci/run", [], ["store/test_keys.py"]),
    ],
)
def test_a_change_concerns_those_that_depend_on_it(
    tree: selection.Tree, path: str, concerned: list[str], others: list[str]
) -> None:
    found = tree.concerned([path])
    assert [each for each in concerned if f"tests/{each}" not in found] == []
    assert [each for each in others if f"tests/{each}" in found] == []


@pytest.mark.parametrize("path", ["pyproject.toml", "tests/conftest.py", selection.PLUGIN[0], "kemu/that_is_gone.py"])
def test_what_all_stand_on_concerns_all(tree: selection.Tree, path: str) -> None:
    assert tree.concerned([path]) == tree.tests()


def test_nothing_concerns_nobody(tree: selection.Tree) -> None:
    assert tree.concerned([]) == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A branch that has left main: a commit, a deletion, and what is not committed yet."""

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True)

    git("init")
    for name in ("kept", "changed", "deleted"):
        (tmp_path / name).write_text(name)
    (tmp_path / ".gitignore").write_text("ignored\n")
    git("add", ".")
    git("commit", "-m", "main")
    git("checkout", "-b", "branch")
    (tmp_path / "committed").write_text("")
    git("add", ".")
    git("commit", "-m", "branch")
    (tmp_path / "changed").write_text("otherwise")
    (tmp_path / "deleted").unlink()
    (tmp_path / "with a blank").write_text("")
    (tmp_path / "ignored").write_text("")
    return tmp_path


def test_a_change_is_what_a_branch_and_its_tree_add(checkout: Path) -> None:
    assert selection.changed(checkout) == ["changed", "committed", "deleted", "with a blank"]
    assert selection.changed(checkout, "HEAD") == ["changed", "deleted", "with a blank"]


def test_a_commit_that_is_not_there_is_an_error(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="there is no such commit"):
        selection.changed(checkout, "nowhere")
    assert selection.main(["no-such-commit"]) == 2
    assert "no-such-commit" in capsys.readouterr().err

"""``kemu.hunt`` and the fixture ``kemu_hunt``; ``kemu hunt`` says how far it is, and keeps what it has found."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import kemu
from kemu.doors.cli.main import main
from kemu.lab.hunt import findings

COPIER = Path(__file__).with_name("copier.py")


def project(folder: Path, *options: str) -> Path:
    file = folder / "hunt.yaml"
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"work": "yes"}}}
    spec = {
        "cluster": {"nodes": 1},
        "controllers": [{"name": "copier", "command": ["{python}", str(COPIER), "{kubeconfig}", *options]}],
        "steps": [{"apply": config_map}, {"until": "configmap/a-copy exists", "within": "20s"}],
        "rest": "1s",
    }
    file.write_text(
        yaml.safe_dump({"apiVersion": "kemu.dev/v1", "kind": "Hunt", "metadata": {"name": "c"}, "spec": spec})
    )
    return file


@pytest.mark.slow
def test_a_controller_that_gives_up(tmp_path: Path, kemu_hunt: Callable[..., Any]) -> None:
    told: list[tuple[int, int]] = []
    out = tmp_path / "out"
    found = kemu.hunt(
        project(tmp_path), jobs=2, repeat=2, out=out, progress=lambda done, plans: told.append((done, plans))
    )
    assert not found.holds
    assert found.done == found.plans == told[-1][0] == told[-1][1]
    finding = next(one for one in found.findings if one.plan["kind"] == "refuse")
    assert finding.symptom == "step 2 waits in vain: until configmap/a-copy exists"
    assert finding.shown == (2, 2)
    assert finding.text == (out / finding.id / "finding.md").read_text()
    assert finding.text.startswith(f"# {finding.symptom}")
    assert (out / finding.id / "run" / "inputs.kemu").exists()
    assert finding.again in (out / finding.id / "finding.md").read_text()
    cells = {(cell["perturbation"], cell["kind"]): cell for cell in found.coverage["cells"]}
    refused = cells["refuse", "ConfigMap"]
    assert (refused["tried"], refused["worth"], refused["missed"]) == (1, 1, 0)
    assert all(cell["tried"] == cell["worth"] <= cell["all"] for cell in cells.values())
    summary = (out / "hunt.md").read_text()
    assert f"{len(found.findings)} finding" in summary
    assert f"({finding.id}/finding.md)" in summary
    with pytest.raises(kemu.RunFailed, match="kemu hunt --again"):
        found.check()

    plan = tmp_path / "plan.yaml"
    plan.write_text(yaml.safe_dump({"perturb": finding.plan}))
    assert said("hunt", project(tmp_path), "--plan", plan, "--repeat", 3)[1]["shown"] == "3/3"
    plan.write_text(yaml.safe_dump({"perturb": {**finding.plan, "nth": 7}}))
    code, answer = said("hunt", project(tmp_path), "--plan", plan)
    assert (code, answer["missed"]) == (3, 1)
    # It is repaired.
    project(tmp_path, "--careful")
    code, answer = said("hunt", "--again", out / finding.id)
    assert (code, answer["shown"], answer["missed"]) == (0, "0/3", 0)
    kemu_hunt(project(tmp_path, "--careful"), time=0.001)  # of which not one plan begins


def said(*words: object) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "kemu.doors.cli.main", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_what_is_interrupted_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the first finding is made smaller."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(findings, "examine", interrupt)
    assert main(["hunt", str(project(tmp_path)), "--jobs", "2", "--out", str(tmp_path / "out")]) == 130
    told = capsys.readouterr().out
    assert "1 finding in" in told
    assert "(interrupted)" in told
    assert (tmp_path / "out" / "finding-1" / "plan.yaml").exists()
    left = subprocess.run(["pgrep", "-f", f"{COPIER} {tmp_path}"], capture_output=True, text=True, check=False).stdout
    assert not left

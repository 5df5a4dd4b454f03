"""Kubeconfig files."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

import pytest
import yaml

from kemu.errors import KemuError
from kemu.lab.up import kubeconfigs

MADE = kubeconfigs.document("https://127.0.0.1:1", authority=b"PEM", token="secret")


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config"
    kubeconfigs.write(file, MADE)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = yaml.safe_load(file.read_text())
    assert found["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": base64.b64encode(b"PEM").decode(),
    }
    assert found["users"][0]["user"] == {"token": "secret"}
    assert [one.name for one in file.parent.iterdir()] == ["config"]


def test_others_stay_and_an_older_one_of_ours_goes(tmp_path: Path) -> None:
    file = tmp_path / "config"
    mine = {
        "clusters": [{"name": "prod", "cluster": {"server": "https://prod"}}],
        "users": None,
        "preferences": {"x": 1},
    }
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "prod", **mine}))
    file.chmod(0o644)
    kubeconfigs.write(file, MADE)
    kubeconfigs.write(file, kubeconfigs.document("https://127.0.0.1:2"))
    found = yaml.safe_load(file.read_text())
    assert [one["name"] for one in found["clusters"]] == ["prod", "kemu"]
    assert found["clusters"][1]["cluster"] == {"server": "https://127.0.0.1:2"}
    assert found["current-context"] == "kemu"
    assert found["preferences"] == {"x": 1}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_cluster_that_has_ended_leaves_no_word_in_a_file_that_was_there(tmp_path: Path) -> None:
    file = tmp_path / "config"
    before = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "prod", "cluster": {"server": "https://prod"}}],
        "users": [],
        "contexts": [],
        "current-context": "prod",
    }
    file.write_text(yaml.safe_dump(before))
    forget = kubeconfigs.write(file, MADE)
    forget()
    assert yaml.safe_load(file.read_text()) == before
    forget()
    assert yaml.safe_load(file.read_text()) == before
    forget_first = kubeconfigs.write(file, MADE)
    forget_second = kubeconfigs.write(file, kubeconfigs.document("https://127.0.0.1:2"))
    forget_first()
    assert len(yaml.safe_load(file.read_text())["clusters"]) == 2, "the second one is up"
    forget_second()
    found = yaml.safe_load(file.read_text())
    assert (found["clusters"], found["current-context"]) == (before["clusters"], "")
    new = tmp_path / "new"
    kubeconfigs.write(new, MADE)()
    assert yaml.safe_load(new.read_text())["clusters"], "nobody else's: it stays"


@pytest.mark.parametrize("text", ["- a list", "kind: Pod", "clusters: 5", "users: [x]"])
def test_another_file_is_not_touched(tmp_path: Path, text: str) -> None:
    file = tmp_path / "notes"
    file.write_text(text)
    with pytest.raises(KemuError, match="is no kubeconfig"):
        kubeconfigs.write(file, MADE)
    assert file.read_text() == text


def test_what_cannot_be_read_at_once_is_not_touched(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for file, why in ((pipe, "it is a pipe"), (Path("/dev/zero"), "it is a device")):
        with pytest.raises(KemuError, match=why):
            kubeconfigs.write(file, MADE)
    broken = tmp_path / "broken"
    broken.write_text("{")
    with pytest.raises(KemuError, match="is not YAML"):
        kubeconfigs.write(broken, MADE)
    assert broken.read_text() == "{"


def test_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    kubeconfigs.write(link, MADE)
    assert link.is_symlink()
    assert yaml.safe_load(real.read_text())["kind"] == "Config"

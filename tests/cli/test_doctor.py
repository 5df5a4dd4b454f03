"""``kemu demo`` and ``kemu doctor``, for those who have just installed kemu."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest

from kemu.doors.cli.commands import doctor
from kemu.doors.cli.main import main


def test_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--json"])
    found = {each["what"]: each for each in json.loads(capsys.readouterr().out)}
    assert found["Python"]["state"] == "ok"
    assert all(found[extra]["state"] == "ok" for extra in ("ray", "up", "sweep"))  # as scripts/setup installs them


def test_every_extra_is_told() -> None:
    extras = set(importlib.metadata.metadata("kemu").get_all("Provides-Extra") or ()) - {"dev", "release"}
    assert extras == set(doctor._NEEDS)


def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "_is_installed", lambda package: package != "jh2")
    main(["doctor"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "kemu[up]" in line]
    assert line.startswith("- up")
    assert "(jh2)" in line


def test_a_full_disk_is_bad(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "_LEAST_DISK", 1 << 60)
    assert main(["doctor"]) == 1
    assert "✗ disk here" in capsys.readouterr().out


def test_the_demo_shows_a_race(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--out", "race"]) == 0
    assert "two-schedulers-one-node holds" in capsys.readouterr().out

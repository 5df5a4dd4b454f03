"""The recording of the README (scripts/recordings.py): what is typed and shown when, and that a browser can read it."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recordings() -> ModuleType:
    spec = importlib.util.spec_from_file_location("recordings", ROOT / "scripts" / "recordings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_command_is_typed_before_its_answer_comes_line_by_line(recordings: ModuleType) -> None:
    recording = recordings.Recording(10)
    recording.add(recordings.Scene("kemu demo --seed 1", 2.0), ["one", "two"])
    assert recording.lines == ["$ kemu dem", "o --seed 1", "one", "two", ""]
    made = recording.code_format("#000000")
    steps = [float(share) for share in re.findall(r"^([\d.]+)% \{\{ transform: translateY", made, re.MULTILINE)]
    assert steps == sorted(steps)
    assert len(steps) == 1 + len(recording.lines)
    assert made.count('class="untyped"') == 2
    assert made.count("@keyframes typed-") == 2


def test_the_picture_of_the_readme_is_well_formed_and_asks_for_nothing() -> None:
    text = (ROOT / "docs" / "pictures" / "first-minute.svg").read_text()
    ET.fromstring(text)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-reduced-motion" in text
    assert "first-minute.svg" in (ROOT / "README.md").read_text()

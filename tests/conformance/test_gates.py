"""Feature gates: each one that Kubernetes has is known, and something true is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.doors.cli import main
from kemu.emulated.scheduler.configuration import configurations
from kemu.errors import KemuError
from kemu.lab.conformance import gates

LISTED = "test/compatibility_lifecycle/reference/versioned_feature_list.yaml"
MODULE = Path.home() / "go/pkg/mod/k8s.io" / f"kubernetes@{gates.known().version}"

SOME = """
- name: OpportunisticBatching
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.34"}
  - {default: false, lockToDefault: false, preRelease: Deprecated, version: "1.37"}
- name: BrandNew
  versionedSpecs:
  - {default: true, lockToDefault: false, preRelease: Beta, version: "1.37"}
"""


def test_something_is_said_of_each_gate() -> None:
    known = gates.known()
    assert list(known.by_name) == sorted(known.by_name, key=str.lower)
    for one in known:
        assert one.word in gates.WORDS, one.name
        assert (one.word != gates.LACKS) or (one.is_on and one.note), f"{one.name}: what is lacking, and is it on?"
        assert one.word != gates.OFF or not one.is_on, f"{one.name} is on by default"
        assert one.word != gates.NOTHING or one.note, f"{one.name}: why would nothing differ?"
        assert one.word != gates.SWITCH or one.note, f"{one.name}: where is it switched?"


def test_what_schedulers_take_agrees() -> None:
    known = gates.known()
    for name, default in configurations.FEATURE_GATES.items():
        assert (known.by_name[name].word, known.by_name[name].is_on) == (gates.SWITCH, default)
    for name, value in configurations.FIXED_GATES.items():
        if name in known.by_name:  # Kubernetes forgets gates some versions after they are locked
            assert (known.by_name[name].word, known.by_name[name].is_on) == (gates.DOES, value)


def test_the_list_is_kubernetes_own() -> None:
    if not (MODULE / LISTED).exists():
        pytest.skip(f"k8s.io/kubernetes {gates.known().version} is not in the cache of Go's modules")
    assert gates.differences(gates.known(), gates.read(MODULE / LISTED, "")) == []


def test_another_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "list.yaml"
    file.write_text(SOME)
    assert main.main(["conformance", "gates", str(file)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert "+ BrandNew: Beta, on" in told
    assert "  OpportunisticBatching: Beta, on -> Deprecated, off; kemu: switch" in told
    assert "- WinDSR: was GA, on, locked; kemu: nothing" in told
    after = gates.updated(gates.known(), gates.read(file, "v1.37.0"))
    assert {one.name: one.word for one in after} == {"BrandNew": "?", "OpportunisticBatching": "?"}
    gates.write(after, tmp_path / "gates.tsv")
    assert (tmp_path / "gates.tsv").read_text().startswith("# v1.37.0\nBrandNew\tBeta\ton\t\t1.37\t?\t\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [("{}", "is no list of feature gates"), ("- {name: X}", r"\[0\] is no feature gate"), ("- [", "expected")],
)
def test_what_is_no_list(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "list.yaml"
    file.write_text(text)
    with pytest.raises(KemuError, match=told):
        gates.read(file, "")

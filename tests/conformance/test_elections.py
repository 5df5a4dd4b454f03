"""Every recorded election of client-go comes out as recorded: who asks what when, who leads, what the Lease says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.client import elections
from kemu.lab.conformance import agreements, case_files, registry

CASES = list(case_files.read(Path(__file__).parent / "data" / "elections" / "elections.jsonl.gz"))


def agreement() -> agreements.Report:
    return agreements.judge(registry.kind("elections"), CASES)


def test_every_case_agrees() -> None:
    report = agreement()
    assert report.total == 100
    assert {one.id: one.differences for one in report.disagreements} == {}


# Plausible mistakes are noticed ---------------------------------------------------------------------------------------


def _by_the_times_in_the_record(patch: pytest.MonkeyPatch) -> None:
    def is_valid(self: Any, now_ns: int) -> bool:
        renewed_ns = self._observed.renewed_unix_ns - self._env.clock.unix_offset_ns
        return bool(renewed_ns + self._observed.duration_s * 1_000_000_000 > now_ns)

    patch.setattr(elections.Elector, "_is_valid", is_valid)


def _without_jitter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(elections, "JITTER_FACTOR", 0.0)


def _a_release_without_a_read(patch: pytest.MonkeyPatch) -> None:
    init = elections.Elector.__init__
    patch.setattr(elections.Elector, "__init__", lambda self, *args: init(self, *args, bugs=(elections.STALE_RELEASE,)))


def _a_request_without_a_timeout(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(elections.Settings, "request_timeout_ns", 1 << 60)


def _a_takeover_counts_no_transition(patch: pytest.MonkeyPatch) -> None:
    write = elections._write
    patch.setattr(elections, "_write", lambda lease, record: write(lease, record._replace(transitions=0)))


@pytest.mark.parametrize(
    "plant",
    [
        _by_the_times_in_the_record,
        _without_jitter,
        _a_release_without_a_read,
        _a_request_without_a_timeout,
        _a_takeover_counts_no_transition,
    ],
)
def test_a_mistake_is_noticed(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert agreement().disagreements

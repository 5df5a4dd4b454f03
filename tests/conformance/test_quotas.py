"""Every recorded admission by quotas and limit ranges, and every count of the quota controller, is kemu's too."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.emulated.apiserver.admission.quotas.accounts import Accounts
from kemu.emulated.objects.quotas import pods, scopes
from kemu.emulated.objects.quotas.quotas import Quota
from kemu.lab.conformance import agreements, case_files, registry
from tests.conformance.generators import quotas as generated

DATA = Path(__file__).parent / "data" / "quota" / "quota.jsonl.gz"


def _report(count: int | None = None) -> agreements.Report:
    return agreements.judge(registry.kind("quota"), list(case_files.read(DATA))[:count])


def test_every_case_agrees() -> None:
    report = _report()
    assert report.total >= 100
    assert {one.id: one.differences for one in report.disagreements} == {}


def test_the_cases_are_those_of_the_generator() -> None:
    shipped = [case.question for case in case_files.read(DATA)]
    assert [generated.case("quota", 1, number) for number in range(3)] == shipped[:3]


def test_a_charge_without_precondition_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_any_version(accounts: Accounts, quota: Quota) -> str:
        return str(accounts._known._stored[quota.name].metadata.resourceVersion)  # type: ignore[attr-defined]

    monkeypatch.setattr(Accounts, "_precondition", of_any_version)
    assert _report().disagreements


def test_a_charge_that_is_not_remembered_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Accounts, "of", lambda accounts, namespace: list(accounts._known.of(namespace)))
    assert _report().disagreements


def test_an_ended_pod_that_counts_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "is_charged", lambda pod, now_unix_ns: True)
    assert _report().disagreements


def test_a_scope_that_selects_all_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "_selects", lambda selector, names: True)
    assert _report().disagreements


def test_claims_of_devices_count_as_recorded() -> None:
    report = agreements.judge(registry.kind("quota"), list(case_files.read(DATA.parent / "device-quota.jsonl.gz")))
    assert report.total == 30
    assert {one.id: one.differences for one in report.disagreements} == {}

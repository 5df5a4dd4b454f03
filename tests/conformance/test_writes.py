"""Every recorded write is answered by kemu's API server as by the real one, and every patch is applied as there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.apiserver.admission.changes_of_pods import resizes
from kemu.emulated.apiserver.admission.pod_security import evaluations, plugin, policies, restricted
from kemu.emulated.apiserver.registry import deletions, entries, strategies
from kemu.emulated.apiserver.registry.patching import strategic_merges
from kemu.emulated.objects import plain
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.conversion import yaml_texts
from kemu.emulated.objects.defaulting import storage
from kemu.emulated.objects.managed_fields import fieldsets, go_decoding, managers, resets, schemas, updaters
from kemu.emulated.objects.validation import checks, finalizers, kinds, volume_sources
from kemu.emulated.objects.validation.pod_specs import app_armor
from kemu.emulated.objects.validation.pod_specs import statuses as pod_statuses
from kemu.emulated.objects.validation.workloads import indexes
from kemu.emulated.objects.warnings import addresses, labels, overlaps
from kemu.lab.conformance import agreements, case_files, registry
from tests.conformance.generators import admitted as generated_admissions
from tests.conformance.generators import fields as generated_fields
from tests.conformance.generators import malformed, warned
from tests.conformance.generators import metadata as generated_metadata
from tests.conformance.generators import patches as generated_patches
from tests.conformance.generators import statuses as generated_statuses
from tests.conformance.generators import writes as generated_writes

DATA = Path(__file__).parent / "data" / "writes"


@pytest.mark.parametrize(
    ("family", "least"),
    [
        ("admitted", 240),
        ("apply", 120),
        ("bodies", 210),
        ("fields", 300),
        ("metadata", 150),
        ("patches", 280),
        ("statuses", 300),
        ("warnings", 120),
    ],
)
def test_every_case_agrees(family: str, least: int) -> None:
    found = agreements.judge(registry.kind(family), case_files.read(DATA / f"{family}.jsonl.gz"))
    assert found.total >= least
    assert {one.id: one.differences for one in found.disagreements} == {}


def test_the_cases_are_those_of_the_generators() -> None:
    made = {
        "admitted": generated_admissions.case,
        "apply": generated_writes.case,
        "bodies": malformed.case,
        "fields": generated_fields.case,
        "metadata": generated_metadata.case,
        "patches": generated_patches.case,
        "statuses": generated_statuses.case,
        "warnings": warned.case,
    }
    for family, make in made.items():
        for case in list(case_files.read(DATA / f"{family}.jsonl.gz"))[:3]:
            _, seed, number = case.id.split("-")
            assert make(family, int(seed[1:]), int(number)) == case.question


def _keep_all(fields: Any, other: Any) -> Any:
    return fields


BUGS: list[tuple[Any, str, Any, str]] = [
    (policies, "is_stricter", lambda one, other: False, "admitted"),
    (restricted, "has_own_users", lambda spec: False, "admitted"),
    (restricted, "seccomp_set", lambda spec: None, "admitted"),
    (plugin, "_changes_containers", lambda after, before: True, "admitted"),
    (plugin, "_counted", lambda names: names[0], "admitted"),
    (evaluations, "reason", evaluations.detail, "admitted"),
    (resizes, "_lacking", lambda pod, node: [], "admitted"),
    (app_armor, "set_fields", lambda pod: iter(()), "admitted"),
    (deletions, "check_name", lambda resource, name: None, "admitted"),
    (fieldsets, "difference", _keep_all, "apply"),
    (updaters, "_pruned", lambda kind, merged, found, last: merged, "apply"),
    (managers, "_stripped", lambda managed, by: managed, "apply"),
    (managers, "_capped", lambda managed, when: (managed, when), "apply"),
    (resets, "of", lambda kind, subresource: lambda fields: fields, "apply"),
    (quantities, "held", lambda text: text, "bodies"),
    (go_decoding, "_pairs", lambda value: value.items(), "bodies"),
    (plain, "in_order", lambda value: value, "bodies"),
    (schemas, "names_in_order", lambda expression: schemas.resolve(expression).fields, "bodies"),
    (kinds, "_METADATA", {}, "metadata"),
    (entries, "drop_double_owners", lambda metadata, is_patch=False: None, "metadata"),
    (finalizers, "check_names", lambda names, found: None, "metadata"),
    (volume_sources, "check_no_backsteps", lambda *given: None, "fields"),
    (checks, "not_negative", lambda *given: None, "fields"),
    (storage, "default_source", lambda kind, source: None, "fields"),
    (strategies, "_keep_observed", lambda conditions, before: None, "statuses"),
    (checks, "conditions", lambda *given: None, "statuses"),
    (pod_statuses, "_may_restart", lambda container, spec, code: True, "statuses"),
    (indexes, "overlap", lambda completed, failed, completions: None, "statuses"),
    (overlaps, "_overlapping", lambda files: (), "warnings"),
    (labels, "DEPRECATED", {}, "warnings"),
    (addresses, "odd", lambda text: "", "warnings"),
    (yaml_texts, "_repeated", lambda node: (), "bodies"),
    (strategic_merges, "_retain_keys", lambda original, patch: patch.pop("$retainKeys", None), "patches"),
    (strategic_merges, "_check_order", lambda patch, order, merge_key: None, "patches"),
    (strategic_merges, "_discard_nulls", lambda value: None, "patches"),
]


@pytest.mark.parametrize(("module", "name", "bug", "family"), BUGS, ids=[bug[1] for bug in BUGS])
def test_a_bug_is_noticed(module: Any, name: str, bug: Any, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, bug)
    kind = registry.kind(family)
    assert any(kind.judged(case.question, case.expect)[1] for case in case_files.read(DATA / f"{family}.jsonl.gz"))

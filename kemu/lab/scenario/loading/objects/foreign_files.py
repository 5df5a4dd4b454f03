"""Files that are no scenario, such as a Deployment: what they are, and where they belong, in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kemu.emulated.objects import resources
from kemu.emulated.objects.fields import tables
from kemu.emulated.objects.fields.unsimulated import LEAVE_OUT, UNSIMULATED
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.documents import Document
from kemu.emulated.settings.shapes import kind_of
from kemu.errors import Problem
from kemu.runtime.words import did_you_mean

SCENARIO, EXPERIMENT, GROUP = "Scenario", "Experiment", "kemu.dev"
_EXAMPLE = "kemu scenarios show two-schedulers-one-node prints an example"
_CONFIGURATIONS = {
    "KubeSchedulerConfiguration": "it belongs to a scheduler: spec.schedulers: [{name: default-scheduler, "
    "configFile: FILE}]",
    "KubeletConfiguration": "its fields belong to the nodes of a scenario: spec.nodes: [{name: node-1, "
    "kubeletFile: FILE}]",
}
"""Files that a scenario names outside of its manifests."""


def is_experiment(found: Sequence[Document]) -> bool:
    """Whether these documents are an experiment, for ``kemu sweep``."""
    return len(found) == 1 and _kind(found[0].data) == EXPERIMENT


def complaint(found: Sequence[Document]) -> Problem | None:
    """None: it may be a scenario, and whatever is wrong with it is told key by key."""
    if len(found) == 1:
        return _of_one(found[0])
    if not found:
        return None
    first = found[0]
    kinds = [_kind(document.data) for document in found]
    listed = _counted([kind or "document without a kind" for kind in kinds])
    text = f"holds {len(found)} documents ({listed}); a scenario is one document"
    if SCENARIO in kinds:
        hint = "put the other objects into its spec.manifests" if kinds.count(SCENARIO) == 1 else "one file for each"
    else:
        hint = _belongs(first.file)
    return Problem(first.file, 1, 1, "", text, hint)


def _of_one(document: Document) -> Problem | None:
    data = document.data
    kind = _kind(data)
    if kind == SCENARIO:
        return None
    if not isinstance(data, dict):
        return document.problem((), f"is no scenario: it is {kind_of(data)}", _EXAMPLE)
    group = str(data.get("apiVersion", "")).partition("/")[0]
    if not kind:
        if "spec" in data or "apiVersion" in data:
            return None
        text = "is no scenario: it has no apiVersion: kemu.dev/v1, no kind: Scenario and no spec"
        return document.problem((), text, _EXAMPLE)
    if group == GROUP and kind == EXPERIMENT:
        return _told(document, "is an experiment, not a scenario", f"kemu sweep {document.file} runs it")
    if group == GROUP:
        return None
    if kind in _CONFIGURATIONS:
        return _told(document, f"is a {kind}, not a scenario", _CONFIGURATIONS[kind])
    if kind == "List":
        items = data.get("items")
        inside = _counted([_kind(item) or "item without a kind" for item in items]) if isinstance(items, list) else ""
        return _told(document, f"is a List ({inside or 'empty'}), not a scenario", _belongs(document.file))
    if kind in UNSIMULATED:
        one = UNSIMULATED[kind]
        text = f"is {_a(kind)}, not a scenario, and not simulated: {one.why}"
        return _told(document, text, "" if one.instead == LEAVE_OUT else f"in a scenario, {one.instead}")
    if kind in tables.ACCEPTED:
        return _told(document, f"is {_a(kind)}, not a scenario", _belongs(document.file))
    text = f"is {_a(kind)} ({data.get('apiVersion', 'no apiVersion')}), not a scenario, and no kind that kemu knows"
    return _told(document, text, did_you_mean(kind, [SCENARIO, *resources.BY_KIND, *UNSIMULATED]))


def _told(document: Document, text: str, hint: str) -> Problem:
    place = document.place(("kind",))
    return Problem(document.file, place.line, place.column, "", text, hint)


def _belongs(file: str) -> str:
    return f"name the file in a scenario, beside its nodes: spec.manifests: [{{file: {file}}}]"


def _kind(data: Json) -> str:
    kind = data.get("kind") if isinstance(data, dict) else None
    return kind if isinstance(kind, str) else ""


def _a(kind: str) -> str:
    return f"{'an' if kind[:1] in 'AEIO' else 'a'} {kind}"


def _counted(kinds: Sequence[str]) -> str:
    """``2 Pods, 1 Service``."""
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in Counter(kinds).items())

"""Scenarios in which a bug does nothing until something comes late, or somebody fails: what strategies search.

None is tuned: times are the defaults, or those of a real cluster, and things happen seconds apart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from tests.museum import explorations
from tests.museum.pieces import PIECES, Piece
from tests.mutants import all_parts


@dataclass(frozen=True)
class Bed:
    """A scenario with a bug that its ordinary run does not show."""

    name: str
    """That of the ablation that is the bug, of the mutant, or of the scenario of the museum."""
    check: str
    """The check or expectation that finds it."""
    says: str
    """What has to happen."""
    spec: str = ""
    is_mutant: bool = False
    """The bug is one of ``tests/mutants``."""
    piece: Piece | None = None
    """Of the museum: its cluster and claim, with the times of a real cluster."""

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        """In this process, if it is a mutant."""
        with pytest.MonkeyPatch.context() as patch:
            if self.is_mutant:
                all_parts.MUTANTS[self.name].plant(patch)
            yield


def pod(name: str, cpu: str, extra: str = "", metadata: str = "") -> str:
    containers = f"containers: [{{name: main, resources: {{requests: {{cpu: {cpu!r}}}}}}}]"
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}{metadata}}}, spec: {{{extra}{containers}}}}}"


NODE = "nodes: [{name: node-1, allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}]"
NODES = "nodes: [{namePrefix: node-, count: 3, allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}]"
LABELLED = """nodes:
  - {name: node-1, labels: {disk: ssd}, allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}
  - {name: node-2, labels: {disk: hdd}, allocatable: {cpu: '4', memory: 16Gi, pods: '110'}}"""
WEB = "labels: {app: web}"


def museum_piece(number: int) -> Bed:
    piece = next(piece for piece in PIECES.values() if piece.number == number)
    expectation = scenario_of(piece).expectations[0]
    return Bed(piece.scenario.removeprefix("museum/"), expectation.id, piece.says, piece=piece)


def scenario_of(piece: Piece, *, cured: bool = False) -> Scenario:
    subject = explorations.SUBJECTS[piece.number]
    return loader.load(catalog.find(subject.scenario), overrides=subject.cure if cured else subject.bug)


BEDS: dict[str, Bed] = {
    bed.name: bed
    for bed in (
        Bed(
            "kubelet-admission",
            "no-node-overcommitted",
            "a scheduler hears too late that another one has taken the node",
            f"""
duration: 60s
{NODE}
schedulers: [{{name: red}}, {{name: blue}}]
events:
  - {{at: 5s, create: {pod("red-pod", "3", "schedulerName: red, ")}}}
  - {{at: 7s, create: {pod("blue-pod", "3", "schedulerName: blue, ")}}}
expect: [{{check: no-node-overcommitted, holds: true}}]
""",
        ),
        Bed(
            "assume-cache",
            "no-kubelet-rejects-a-pod",
            "a scheduler hears too late of its own binding",
            f"""
duration: 60s
{NODE}
events:
  - {{at: 5s, create: {pod("one", "3")}}}
  - {{at: 7s, create: {pod("two", "3")}}}
expect: [{{id: no-kubelet-rejects-a-pod, counter: admissions_rejected, equals: 0}}]
""",
        ),
        Bed(
            "uid-precondition",
            "db-0.never.rejected",
            "a binding is so late that another pod has the name",
            f"""
duration: 60s
{LABELLED}
events:
  - {{at: 5s, create: {pod("db-0", "1", "nodeSelector: {disk: ssd}, ")}}}
  - {{at: 6s, delete: {{pod: db-0}}}}
  - {{at: 8s, create: {pod("db-0", "1", "nodeSelector: {disk: hdd}, ")}}}
expect: [{{id: db-0.never.rejected, pod: db-0, never: {{rejected: {{}}}}}}]
""",
        ),
        Bed(
            "controller-expectations",
            "three-pods-are-created",
            "a controller hears too late of the pods that it has created",
            f"""
duration: 60s
{NODES}
events:
  - at: 5s
    create:
      apiVersion: apps/v1
      kind: ReplicaSet
      metadata: {{name: web}}
      spec:
        replicas: 3
        selector: {{matchLabels: {{app: web}}}}
        template:
          metadata: {{{WEB}}}
          spec: {{containers: [{{name: main, resources: {{requests: {{cpu: '1'}}}}}}]}}
expect: [{{id: three-pods-are-created, counter: pods_created, equals: 3}}]
""",
        ),
        Bed(
            "journal-before-acknowledgement",
            "acknowledged-writes-survive",
            "the store dies between an answer and its journal",
            f"""
duration: 30s
{NODE}
workloads: [{{name: web, arrivals: {{every: 1s, count: 4}}, pods: {{spec: {{containers: [{{name: main}}]}}}}}}]
expect: [{{check: acknowledged-writes-survive, holds: true}}]
""",
        ),
        Bed(
            "watch-resume",
            "watch-has-no-gaps",
            "a connection breaks, and something changes until there is another one",
            f"""
duration: 30s
{NODE}
workloads: [{{name: web, arrivals: {{every: 4s, count: 5}}, pods: {{spec: {{containers: [{{name: main}}]}}}}}}]
expect: [{{check: watch-has-no-gaps, holds: true}}]
""",
        ),
        Bed(
            "in-flight-events",
            "second.bound",
            "room becomes free during the 300 us in which a scheduler finds none",
            f"""
duration: 60s
{NODE}
manifests:
  - apiVersion: v1
    kind: Pod
    metadata: {{name: first, annotations: {{kemu.dev/run-seconds: '10'}}}}
    spec: {{nodeName: node-1, containers: [{{name: main, resources: {{requests: {{cpu: '3'}}}}}}]}}
events:
  - {{at: 9s, create: {pod("second", "3")}}}
expect: [{{id: second.bound, pod: second, bound: {{}}}}]
""",
        ),
        Bed(
            "a-failed-binding-is-never-given-back",
            "cache-agrees-with-store",
            "a binding is so late that the pod is gone; the mutant then keeps its room",
            f"""
duration: 90s
{NODE}
events:
  - {{at: 5s, create: {pod("brief", "3")}}}
  - {{at: 6s, delete: {{pod: brief}}}}
  - {{at: 30s, create: {pod("next", "1")}}}
expect: [{{check: cache-agrees-with-store, holds: true}}]
""",
            is_mutant=True,
        ),
        museum_piece(65257),
        museum_piece(134249),
    )
}


def scenario(bed: Bed, *, is_ablated: bool = True) -> Scenario:
    """With its bug, or without."""
    if bed.piece is not None:
        return scenario_of(bed.piece, cured=not is_ablated)
    lines = "".join(f"  {line}\n" for line in bed.spec.strip().splitlines())
    ablate = f"  ablate: [{bed.name}]\n" if is_ablated and not bed.is_mutant else ""
    text = f"apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {{name: {bed.name}}}\nspec:\n{ablate}{lines}"
    return loader.loads(text, f"{bed.name}.yaml")

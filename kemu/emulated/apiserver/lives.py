"""How pods live whose objects do not say: what ``lives`` of a scenario states becomes annotations of new pods.

Kubernetes has nothing like it, as its containers are real. The annotations are those that a pod may state itself
(:mod:`kemu.emulated.kubelet.pods.lives`); what it states counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects import selectors, times
from kemu.emulated.objects.pods.container_patterns import Patterns
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.runtime import distributions
from kemu.runtime.env import Env

EXIT_CODE = "kemu.dev/exit-code"
"""The one annotation that is drawn and no number of seconds."""
LOGS = "kemu.dev/logs"
PROBES = "kemu.dev/probes"
USAGE = "kemu.dev/usage"
EACH = "*"
"""In place of the name of a container."""


@dataclass(frozen=True, slots=True)
class _Entry:
    namespace: str
    selector: selectors.LabelSelector
    patterns: Patterns
    drawn: tuple[tuple[str, distributions.Distribution], ...]
    annotations: Mapping[str, str]

    def matches(self, pod: core_v1_pb2.Pod) -> bool:
        metadata = pod.metadata
        return (
            self.namespace in ("", metadata.namespace)
            and self.selector.matches(metadata.labels)
            and self.patterns.match_pod(pod)
        )


def entry_of(entry: Mapping[str, Any]) -> _Entry:
    return _Entry(
        entry["namespace"],
        selectors.compile_labels(meta_v1_pb2.LabelSelector.FromString(entry["selector"])),
        Patterns(entry.get("owner"), entry.get("image"), entry.get("command"), entry.get("args")),
        tuple((name, distributions.parse(value)) for name, value in entry["drawn"].items()),
        entry["annotations"],
    )


class Lives:
    """``entries`` (plain data): ``namespace`` (empty: all), ``selector`` (a serialised LabelSelector), ``owner``,
    ``image``, ``command``, ``args`` (patterns; missing: anything), ``drawn`` (annotation → number or distribution),
    ``annotations`` (fixed texts)."""

    def __init__(self, env: Env, entries: Sequence[Mapping[str, Any]]) -> None:
        self._env = env
        self._entries = [entry_of(entry) for entry in entries]

    def give(self, pod: core_v1_pb2.Pod) -> None:
        """Give each annotation what the first matching entry says that says anything. Draws depend on the pod's UID
        only: not on the API server, nor on other pods."""
        annotations = pod.metadata.annotations
        draws = _Draws(self._env, pod)
        merged = _Merged(pod)
        for entry in self._entries:
            if not entry.matches(pod):
                continue
            if entry.patterns.is_of_containers:
                for container, is_main in _containers(pod):
                    if entry.patterns.match_container(container):
                        self._give_container(entry, annotations, container.name, draws, merged, is_main=is_main)
                continue
            for name, text in entry.annotations.items():
                if name not in annotations and not merged.take_pod(name, text):
                    annotations[name] = text
            for name, distribution in entry.drawn:
                if name not in annotations:
                    annotations[name] = draws.text(name, distribution)
        merged.write()

    @staticmethod
    def _give_container(
        entry: _Entry,
        annotations: MutableMapping[str, str],
        container: str,
        draws: _Draws,
        merged: _Merged,
        *,
        is_main: bool,
    ) -> None:
        for name, text in entry.annotations.items():
            if name in (USAGE, PROBES):
                merged.take(name, container, json.loads(text))
            elif f"{name}.{container}" not in annotations and not (is_main and name in annotations):
                annotations[f"{name}.{container}"] = text
        for name, distribution in entry.drawn:
            if f"{name}.{container}" not in annotations and not (is_main and name in annotations):
                annotations[f"{name}.{container}"] = draws.text(name, distribution)


class _Draws:
    def __init__(self, env: Env, pod: core_v1_pb2.Pod) -> None:
        self._env = env
        self._uid: str = pod.metadata.uid
        self._random: Any = None

    def text(self, name: str, distribution: distributions.Distribution) -> str:
        if self._random is None:
            self._random = self._env.stream("life", self._uid)
        return drawn_text(name, distribution.draw(self._random))


class _Merged:
    """What is one annotation for all containers of a pod, put together of what entries say of single ones."""

    def __init__(self, pod: core_v1_pb2.Pod) -> None:
        self._pod = pod
        self._found: dict[str, dict[str, Any]] = {}
        self._rest: dict[str, Mapping[str, Any]] = {}
        """What an entry says of the whole pod, once others have spoken of its containers."""

    def take(self, name: str, container: str, stated: Mapping[str, Any]) -> None:
        if name in self._pod.metadata.annotations or name in self._rest:
            return
        of_containers = self._found.setdefault(name, {})
        if name == USAGE:
            of_containers.setdefault(container, stated)
        elif container in stated or EACH in stated:
            of_containers.setdefault(container, stated.get(container, stated.get(EACH)))

    def take_pod(self, name: str, text: str) -> bool:
        """False: nobody has spoken of a single container yet, and it can be taken as it is."""
        if name == PROBES and (name in self._found or f'"{EACH}"' in text):
            stated = json.loads(text)
            for container, _ in _containers(self._pod):
                if container.name in stated or EACH in stated:
                    self._found.setdefault(name, {}).setdefault(
                        container.name, stated.get(container.name, stated.get(EACH))
                    )
            self._rest.setdefault(name, {})
            return True
        if name == USAGE and name in self._found:
            self._rest.setdefault(name, json.loads(text))
            return True
        return False

    def write(self) -> None:
        for name, of_containers in self._found.items():
            if name == USAGE:
                rest = dict(self._rest.get(name, {}))
                rest["containers"] = {**rest.get("containers", {}), **of_containers}
                self._pod.metadata.annotations[name] = json.dumps(rest)
            elif of_containers:
                self._pod.metadata.annotations[name] = json.dumps(of_containers)


def _containers(pod: core_v1_pb2.Pod) -> Iterator[tuple[core_v1_pb2.Container, bool]]:
    for one in pod.spec.initContainers:
        yield one, False
    for one in pod.spec.containers:
        yield one, True


def drawn_text(annotation: str, drawn: float) -> str:
    """What an annotation says of a drawn number: an exit code, or seconds to the millisecond."""
    return str(round(drawn)) if annotation == EXIT_CODE else times.seconds_text(drawn)

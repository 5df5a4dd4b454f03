"""The folder of an incident: a scenario that a person can read and edit, and the objects beside it.

incident/
├── scenario.yaml          what to run: nodes and objects by file, lives, the length; comments say what was left out
├── manifests/cluster/     nodes.yaml, namespaces.yaml, … : what belongs to no namespace
├── manifests/NAMESPACE/   deployments.yaml, pods.yaml, … : one file for each kind
├── webhooks_of_….py   stands for webhooks that refused pods, if there were any
├── timeline.txt           the Events of the cluster before the dump, in a line for what is alike
└── timeline.yaml          the same by seconds of the run, which reports and stories show beside it
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.objects import resources
from kemu.errors import KemuError, Problem
from kemu.lab.incidents import fates, lives, rehearsals, timelines
from kemu.lab.incidents.dumps import Dump
from kemu.lab.incidents.fates import Kept
from kemu.lab.scenario.format.keys import controller_keys
from kemu.lab.tell.happenings import some
from kemu.runtime.words import counted, harmless

SCENARIO, MANIFESTS, TIMELINE, OBSERVED = "scenario.yaml", "manifests", "timeline.txt", "timeline.yaml"
HOOKS = "webhooks_of_{}.py"
"""A module of this name is loaded once in a process: it bears that of the incident."""
MARK = "# made by kemu import"
"""The first words of a scenario that may be made anew."""
_CLUSTER = "cluster"
_LEAST_S, _MOST_S = 600, 3600
_HPA_NEEDS = (
    controller_keys.NODE_LIFECYCLE, controller_keys.TAINT_EVICTION, controller_keys.POD_GC,
    controller_keys.DISRUPTION, controller_keys.RESOURCE_QUOTA, controller_keys.DAEMON_SET,
    controller_keys.STATEFUL_SET, controller_keys.REPLICA_SET, controller_keys.DEPLOYMENT, controller_keys.JOB,
    controller_keys.CRON_JOB, controller_keys.GARBAGE_COLLECTOR, controller_keys.HORIZONTAL_POD_AUTOSCALER,
)  # fmt: skip
"""A scenario that names one controller names all."""
_FEW_LINES, _MOST_LINES = 40, 200
"""Of the time line: with fewer, what a cluster says on an ordinary day is told, too; the newest are shown."""
_VOLUMES = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass")
_USAGE = "kemu.dev/usage"
_NO_NAME = re.compile(r"[^A-Za-z0-9.-]")


@dataclass
class Written:
    """What was made, for the terminal."""

    folder: Path
    nodes: int = 0
    pods: int = 0
    objects: int = 0
    files: int = 0
    with_usage: int = 0
    kept: Kept = field(default_factory=Kept)
    repeated: int = 0
    other_files: Sequence[str] = ()
    lines: Sequence[timelines.Line] = ()
    unknown_usage: Sequence[str] = ()
    """Pods that have usage and are not in the dump."""


def write(dump: Dump, folder: Path, *, force: bool = False, duration: str = "", name: str = "") -> Written:
    """``duration``: of the run; by default what was measured, from 10 minutes to an hour. Raises KemuError."""
    if not any(key.kind == "Node" for key in dump.objects):
        raise KemuError("the dump has no Nodes: add kubectl get nodes -o yaml; kemu would not know what pods run on")
    _clear(folder, force=force)
    usage = lives.of_usage(dump.usage)
    kept = fates.sort(dump, keeps_autoscalers=bool(usage))
    raw = {(key.namespace, key.name): data for key, data in dump.objects.items() if key.kind == "Pod"}
    pods = list(kept.of("Pod"))
    entries = lives.entries(pods, usage, raw)
    running = _annotate(pods, usage)
    ailing = lives.ailments(pods, raw, dump.objects.values(), kept.events)
    entries = [*ailing.entries, *entries]
    files = _files(kept.objects)
    for path, objects in files.items():
        _write(folder / MANIFESTS / path, objects)
    zero = timelines.last(kept.events)
    lines = timelines.lines(kept.events)
    if kept.events:
        (folder / TIMELINE).write_text(timelines.text(lines, zero))
        seen = timelines.lines(kept.events, ordinary=len(lines) < _FEW_LINES)[-_MOST_LINES:]
        observed = timelines.data(seen, lives.begin(dump.usage) or zero)
        (folder / OBSERVED).write_text("".join(f"- {_flow(one)}\n" for one in observed))
    written = Written(
        folder,
        nodes=sum(1 for _ in kept.of("Node")),
        pods=len(pods),
        objects=len(kept.objects),
        files=len(files),
        with_usage=running,
        kept=kept,
        repeated=dump.repeated,
        other_files=dump.other_files,
        lines=lines,
        unknown_usage=sorted(f"{ns}/{pod}" for ns, pod in usage if (ns, pod) not in raw),
    )
    measured_s = lives.length_s(dump.usage)
    length = duration or f"{max(_LEAST_S, min(_MOST_S, round(measured_s) or 1800)) // 60}m"
    called = name or folder.resolve().name
    if kept.refusing:
        (folder / _module(called)).write_text(_hooks(kept.refusing))
    (folder / SCENARIO).write_text(_scenario(written, entries, sorted(ailing.images), length, called))
    before = kept.left.total()
    rehearsals.rehearse(folder / SCENARIO, lambda problem: _leave_out(problem, folder, files, kept))
    if kept.left.total() > before:
        written.objects -= kept.left.total() - before
        (folder / SCENARIO).write_text(_scenario(written, entries, sorted(ailing.images), length, called))
    return written


def _write(file: Path, objects: Sequence[Mapping[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_documents(objects))


def _leave_out(problem: Problem, folder: Path, files: Mapping[str, list[dict[str, Any]]], kept: Kept) -> bool:
    """Take the object at the place of a problem out of its file; whether there is one."""
    file = Path(problem.file)
    path = next((each for each in files if (folder / MANIFESTS / each).resolve() == file.resolve()), None)
    if path is None:
        return False
    lines = file.read_text().splitlines()[: problem.line]
    index = sum(line == "---" for line in lines) - 1
    gone = files[path].pop(index)
    kept.left[gone["kind"], problem.message, ""] += 1
    if files[path]:
        _write(file, files[path])
    else:
        file.unlink()
    return True


def _clear(folder: Path, *, force: bool) -> None:
    """Make room for what is written. Raises KemuError where the folder holds something else."""
    if folder.exists() and not folder.is_dir():
        raise KemuError(f"{folder}: is a file; --out names a folder")
    if folder.is_dir() and any(folder.iterdir()):
        scenario = folder / SCENARIO
        is_own = scenario.is_file() and scenario.read_text().startswith(MARK)
        if not (force and is_own):
            hint = "--force makes it anew" if is_own else "name another folder with --out"
            raise KemuError(f"{folder}: is not empty; {hint}")
        shutil.rmtree(folder / MANIFESTS, ignore_errors=True)
        for file in (folder / TIMELINE, folder / OBSERVED, *folder.glob(HOOKS.format("*"))):
            file.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)


def _annotate(pods: Sequence[dict[str, Any]], usage: lives.Usage) -> int:
    """Write its usage into each pod that has some; how many have."""
    count = 0
    for pod in pods:
        metadata = pod["metadata"]
        of_pod = usage.get((str(metadata.get("namespace") or "default"), metadata["name"]))
        if of_pod is None:
            continue
        names = {one["name"] for one in pod["spec"].get("containers") or ()}
        known = {container: used for container, used in of_pod.items() if not container or container in names}
        if known:
            text = json.dumps(lives.as_annotation(known))
            metadata["annotations"] = {**metadata.get("annotations", {}), _USAGE: text}
            count += 1
    return count


def _files(objects: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """File → its objects, in the order of their names."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in objects:
        known = resources.BY_KIND.get(each["kind"])
        plural = known.plural.partition(".")[0] if known is not None else f"{each['kind'].lower()}s"
        is_namespaced = known.namespaced if known is not None else "namespace" in each["metadata"]
        place = str(each["metadata"].get("namespace") or "default") if is_namespaced else _CLUSTER
        found.setdefault(f"{_in_path(place)}/{_in_path(plural)}.yaml", []).append(each)
    for listed in found.values():
        listed.sort(key=lambda one: _natural(one["metadata"]["name"]))
    return dict(sorted(found.items()))


def _in_path(name: str) -> str:
    """One step of a path, below the folder."""
    return _NO_NAME.sub("-", name).strip(".") or "-"


def _natural(name: str) -> list[tuple[int, str]]:
    """node-2 before node-10."""
    parts, digits = [], ""
    for mark in f"{name}\0":
        if mark.isdecimal():
            digits += mark
        else:
            if digits:
                parts.append((int(digits), ""))
                digits = ""
            parts.append((-1, mark))
    return parts


class _Dumper(yaml.CSafeDumper if hasattr(yaml, "CSafeDumper") else yaml.SafeDumper):  # type: ignore[misc]
    """Without anchors: two objects may share a part."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _documents(objects: Sequence[Mapping[str, Any]]) -> str:
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=120, allow_unicode=True)


# The scenario --------------------------------------------------------------------------------------------------------


def _scenario(
    written: Written, entries: Sequence[Mapping[str, Any]], images: Sequence[str], length: str, name: str
) -> str:
    kept = written.kept
    parts = [
        f"{MARK}: {counted(written.nodes, 'node')}, {counted(written.pods, 'pod')}. Edit it as you like.\n",
        *_comments(written),
        "apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata:\n",
        f"  name: {_name(name)}\n",
        "spec:\n  seed: 1\n",
        f"  duration: {length}\n",
        f"  manifests: [{{file: {MANIFESTS}/**/*.yaml}}]\n",
    ]
    schedulers = _schedulers(kept)
    if schedulers != ["default-scheduler"]:
        parts.append("  schedulers:                  # all that a pod of the dump names\n")
        parts += [f"    - {_flow({'name': each})}\n" for each in schedulers]
    if any(True for _ in kept.of(fates.HPA)):
        names = _HPA_NEEDS + (controller_keys.OF_VOLUMES if any(True for _ in kept.of(*_VOLUMES)) else ())
        listed = textwrap.fill(
            ", ".join(names), 108, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
        )
        parts.append(f"  controllers: [                # one that is named means that all are\n{listed}]\n")
    if kept.sick_nodes:
        parts.append("  chaos:                       # nodes that were not ready when the dump was taken\n")
        for node, why in kept.sick_nodes.items():
            crash = _flow({"at": "0s", "crash": {"actor": f"kubelet/{node}", "restart": False}})
            parts.append(f"    - {crash}  # {harmless(' '.join(why.split()))}\n")
    if kept.refusing:
        parts.append("  apiServers:                  # webhooks that refused pods when the dump was taken\n")
        parts.append("    admissionHooks:\n")
        for number, (hook, one) in enumerate(kept.refusing.items()):
            entry = {"name": hook, "hook": f"{_module(name).removesuffix('.py')}:refuse_{number}"}
            parts.append(f"      - {_flow(entry if one.has_configuration else {**entry, 'rules': [_OF_PODS]})}\n")
    if images or kept.absent:
        strict = {"contents": "strict"} if kept.absent else {}
        stated = {**strict, **({"missingImages": list(images)} if images else {})}
        parts.append(f"  references: {_flow(stated)}   # what could not be had when the dump was taken\n")
    if entries:
        parts.append(
            "  lives:                       # pods that controllers make anew; those of the dump state their own\n"
        )
        parts += [f"    - {_flow(entry)}\n" for entry in entries]
    if kept.events:
        parts.append(f"  observed: {{file: {OBSERVED}}}   # what the cluster said, shown beside the run\n")
    parts += [f"  # {line}\n" for line in _examples(kept)]
    return "".join(parts)


_OF_PODS = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def _module(name: str) -> str:
    return HOOKS.format(_name(name).replace("-", "_"))


def _hooks(refusing: Mapping[str, fates.Refusing]) -> str:
    """A module whose functions refuse what controllers create, as the webhooks did."""
    parts = ['"""Stands for webhooks that refused pods, or could not be asked."""\n']
    for number, (name, one) in enumerate(refusing.items()):
        parts.append(
            f"\n\ndef refuse_{number}(review):\n    {name!r}\n"
            f'    by_controller = review.user["username"].startswith("system:serviceaccount:kube-system:")\n'
            f"    if by_controller and review.namespace in {sorted(one.namespaces)!r}:\n"
            f"        review.deny({one.message!r})\n"
        )
    return "".join(parts)


def _examples(kept: Kept) -> Iterator[str]:
    """Lines that a person can take the comment mark from."""
    yield "What happened, or what you want to try, goes here:"
    yield "events:"
    for each in itertools.islice(kept.of("Deployment"), 1):
        metadata = each["metadata"]
        target = {key: metadata[key] for key in ("namespace", "name") if key in metadata}
        patch = {"kind": "Deployment", **target, "merge": {"spec": {"replicas": 20}}}
        yield f"  - {_flow({'at': '5m', 'patch': patch})}"
    for each in itertools.islice(kept.of("Node"), 1):
        yield f"  - {_flow({'at': '6m', 'drain': {'node': each['metadata']['name']}})}"
    yield "expect:"
    yield "  - {counter: evictions, atMost: 0}"


def _comments(written: Written) -> Iterator[str]:
    kept = written.kept
    if kept.dropped.counts:
        yield from _wrapped(f"What servers had written is dropped: {dropped(kept)}.")
    if kept.remade:
        yield from _wrapped(f"Every cluster has these, or makes them anew: {listed(kept.remade)}.")
    if kept.made:
        yield from _wrapped(f"Made, as others refer to it and the dump lacks it: {listed(kept.made)}.")
    if kept.full_nodes:
        yield from _wrapped(f"Assumed: {assumed(kept)}.")
    if kept.left:
        yield "#\n# Left out, with what to write in its place:\n"
        for text in left_out(kept):
            yield from _wrapped(text, "  - ")
    if kept.events:
        yield from _wrapped(f"The cluster's own Events stand in {TIMELINE}.")


def dropped(kept: Kept) -> str:
    """``uid, resourceVersion (471 objects), status (310)``: fields that went from as many objects stand together."""
    fields: Counter[str] = Counter()
    for (name, _), count in kept.dropped.counts.items():
        fields[name] += count
    alike: dict[int, list[str]] = {}
    for name, count in fields.items():
        alike.setdefault(count, []).append(name)
    return ", ".join(f"{', '.join(names)} ({counted(count, 'object')})" for count, names in alike.items())


def left_out(kept: Kept) -> list[str]:
    """A sentence for each thing that kemu cannot do."""
    return [
        f"{what}{f' ({count} times)' if count > 1 else ''}: {why}{f'. Instead: {instead}' if instead else ''}"
        for (what, why, instead), count in kept.left.items()
    ]


def assumed(kept: Kept) -> str:
    """The nodes' own usage, by what runs short."""
    parts = []
    for key in ("memory", "disk"):
        nodes = [name for name, usage in kept.full_nodes.items() if key in usage]
        if nodes:
            parts.append(f"{key} of {some(nodes)}")
    return (
        f"the nodes themselves use the {' and the '.join(parts)}, as the dump says only that it runs short; "
        f"the annotation {_USAGE} of a node changes that"
    )


def listed(counts: Counter[str]) -> str:
    """``2 Lease, 1 Namespace``."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def _wrapped(text: str, mark: str = "") -> Iterator[str]:
    for number, line in enumerate(textwrap.wrap(text, 116 - len(mark), break_on_hyphens=False)):
        yield f"# {mark if not number else ' ' * len(mark)}{harmless(line)}\n"


def _schedulers(kept: Kept) -> list[str]:
    names = {
        str(spec.get("schedulerName") or "default-scheduler") for each in kept.objects for spec in fates.pod_specs(each)
    }
    return sorted(names or {"default-scheduler"})


def _flow(entry: Mapping[str, Any]) -> str:
    text: str = yaml.dump(
        dict(entry), Dumper=_Dumper, default_flow_style=True, sort_keys=False, width=100_000, allow_unicode=True
    )
    return text.strip()


def _name(text: str) -> str:
    found = "".join(mark if mark.isalnum() and mark.isascii() else "-" for mark in text.lower()).strip("-")
    return found[:63] or "incident"

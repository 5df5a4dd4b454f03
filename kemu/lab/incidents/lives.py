"""What the pods of a dump did and used, as entries of ``lives``: for pods that controllers make anew.

An entry speaks of the pods of one controller: how long they took to become ready, how long tasks ran and with what
exit code, and what was used. Where a range of time was measured, usage is a curve of a few points; pods that stand in
the dump get their own by annotation.
"""

from __future__ import annotations

import itertools
import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.plain import Json
from kemu.lab.incidents.measured import CPU, Series

_MOST_POINTS = 12
_TOLERANCE = 0.02
"""A point that lies so close to the line between its neighbours, as a share of the greatest amount, says nothing."""
_STEADY = 0.1
"""A series that varies by no more than this share of its mean is one amount."""
_HASH = re.compile(r"-[bcdf-hj-np-tv-z2456789]{5,10}$")
_NUMBER = re.compile(r"-\d{6,}$")

Usage = dict[tuple[str, str], dict[str, dict[str, Any]]]
"""By namespace and pod: container ("" for all) → resource → curve."""


def owner_of(pod: Mapping[str, Any]) -> str:
    """A pattern for the controller of a pod, which fits what its Deployment or CronJob makes next; "": it has none."""
    for reference in pod["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            kind, name = reference["kind"], reference["name"]
            if kind == "ReplicaSet":
                name = _HASH.sub("-*", name)
            elif kind == "Job":
                name = _NUMBER.sub("-*", name)
            return f"{kind}/{name}"
    return ""


def of_usage(series: Iterable[Series]) -> Usage:
    """Curves by pod; the first sample of all is second 0 of the run."""
    found: Usage = {}
    listed = list(series)
    since = begin(listed)
    for one in listed:
        of_pod = found.setdefault((one.namespace, one.pod), {})
        of_pod.setdefault(one.container, {})[one.resource] = curve(one, since)
    return found


def begin(series: Iterable[Series]) -> float:
    """Unix time of the first sample, which is second 0 of the run; 0: there is none with a time."""
    return min((one.samples[0][0] for one in series if one.samples[0][0]), default=0.0)


def length_s(series: Iterable[Series]) -> float:
    """From the first sample to the last; 0 without a range."""
    times = [time for one in series for time, _ in (one.samples[0], one.samples[-1]) if time]
    return max(times, default=0.0) - min(times, default=0.0)


def curve(one: Series, since: float) -> Json:
    """A constant, or a trace of at most a dozen points."""
    values = [value for _, value in one.samples]
    mean = sum(values) / len(values)
    if max(values) - min(values) <= _STEADY * mean or len(values) < 3:
        return _text(one.resource, statistics.median(values) if len(values) > 2 else values[-1])
    points = _thinned([(max(0.0, time - since), value) for time, value in one.samples])
    steps: dict[int, str] = {round(second): _text(one.resource, value) for second, value in points}
    return {"trace": [{"at": f"{second}s", "value": value} for second, value in steps.items()]}


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that matter most, by their distance from the lines between those that are kept already (Visvalingam
    keeps areas; here peaks count, so it is the distance, as Ramer, Douglas and Peucker take it)."""
    kept = [0, len(points) - 1]
    least = _TOLERANCE * max(value for _, value in points)
    while len(kept) < _MOST_POINTS:
        worst, place = 0.0, -1
        for left, right in itertools.pairwise(kept):
            (begin, first), (end, last) = points[left], points[right]
            for index in range(left + 1, right):
                time, value = points[index]
                line = first + (last - first) * (time - begin) / (end - begin) if end > begin else first
                if abs(value - line) > worst:
                    worst, place = abs(value - line), index
        if worst <= least:
            break
        kept = sorted([*kept, place])
    return [points[index] for index in kept]


def _text(resource: str, amount: float) -> str:
    if resource == CPU:
        return quantities.format_milli(max(0, round(amount * 1000)))
    # People read the file: to a MiB, or a KiB where that would be coarse.
    unit, name = (2**20, "Mi") if amount >= 32 * 2**20 else (2**10, "Ki")
    return f"{max(1, round(amount / unit))}{name}" if amount > 0 else "0"


def as_annotation(of_pod: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The value of ``kemu.dev/usage``."""
    whole = dict(of_pod.get("", {}))
    containers = {name: dict(usage) for name, usage in sorted(of_pod.items()) if name}
    return {**whole, **({"containers": containers} if containers else {})}


def entries(
    pods: Sequence[Mapping[str, Any]], usage: Usage, raw: Mapping[tuple[str, str], Mapping[str, Any]]
) -> list[Any]:
    """``raw``: the pods as the dump shows them, with their status."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for pod in pods:
        if owner := owner_of(pod):
            groups[str(pod["metadata"].get("namespace") or "default"), owner].append(pod)
    found = []
    for (namespace, owner), members in sorted(groups.items()):
        entry: dict[str, Any] = {"namespace": namespace, "owner": owner}
        names = [(namespace, str(pod["metadata"]["name"])) for pod in members]
        statuses = [raw[name].get("status") or {} for name in names if name in raw]
        starts = [seconds for status in statuses if (seconds := _until_ready_s(status)) is not None]
        if starts and (start := round(statistics.median(starts))) > 1:
            entry["startSeconds"] = start
        runs, codes = _endings(statuses)
        if runs and owner.startswith("Job/"):
            entry["runSeconds"] = _spread(runs)
            if set(codes) != {0}:
                entry["exitCode"] = _drawn(codes)
        if used := _typical([usage[name] for name in names if name in usage]):
            entry["usage"] = used
        if len(entry) > 2:
            found.append(entry)
    return found


def _typical(found: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Of the pod with the most to tell: most points, then the median of what is constant."""
    if not found:
        return {}
    most = max(
        found, key=lambda one: sum(len(c["trace"]) for of in one.values() for c in of.values() if isinstance(c, dict))
    )
    merged = {container: dict(of) for container, of in most.items()}
    for container, of in merged.items():
        for resource, value in of.items():
            alike = [one[container][resource] for one in found if resource in one.get(container, {})]
            constants = sorted((text for text in alike if isinstance(text, str)), key=quantities.approximate)
            if isinstance(value, str) and constants:
                of[resource] = constants[len(constants) // 2]
    return as_annotation(_begun(merged))


def _begun(of_pod: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Curves from second 0 of a new container on."""
    firsts = [_seconds(c["trace"][0]["at"]) for of in of_pod.values() for c in of.values() if isinstance(c, dict)]
    begin = min(firsts, default=0)

    def moved(value: Json) -> Json:
        if not isinstance(value, dict):
            return value
        return {"trace": [{**point, "at": f"{_seconds(point['at']) - begin}s"} for point in value["trace"]]}

    return {container: {name: moved(value) for name, value in of.items()} for container, of in of_pod.items()}


def _seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def _until_ready_s(status: Mapping[str, Any]) -> float | None:
    started = _time(status.get("startTime"))
    ready = [
        one for one in status.get("conditions") or () if one.get("type") == "Ready" and one.get("status") == "True"
    ]
    restarts = [one.get("restartCount", 0) for one in status.get("containerStatuses") or ()]
    if started is None or not ready or any(restarts):
        return None
    since = _time(ready[0].get("lastTransitionTime"))
    return None if since is None else (since - started).total_seconds()


def _endings(statuses: Iterable[Mapping[str, Any]]) -> tuple[list[float], Counter[int]]:
    """How long containers ran that have ended, and their exit codes."""
    runs: list[float] = []
    codes: Counter[int] = Counter()
    for status in statuses:
        for one in status.get("containerStatuses") or ():
            ended = (one.get("state") or {}).get("terminated")
            if not ended:
                continue
            codes[int(ended.get("exitCode") or 0)] += 1
            begin, end = _time(ended.get("startedAt")), _time(ended.get("finishedAt"))
            if begin is not None and end is not None:
                runs.append((end - begin).total_seconds())
    return runs, codes


def _spread(runs: Sequence[float]) -> Json:
    least, most = round(min(runs)), round(max(runs))
    return max(least, 1) if most - least < 2 else {"uniform": {"min": max(least, 1), "max": most}}


def _drawn(codes: Counter[int]) -> Json:
    if len(codes) == 1:
        return next(iter(codes))
    return {"choice": [{"value": code, "weight": count} for code, count in sorted(codes.items())]}


def _time(text: object) -> datetime | None:
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if isinstance(text, str) and text else None


# What ailed them -----------------------------------------------------------------------------------------------------

_PULLS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_REVISION = "controller-revision-hash"
_GRACE_S = 90
"""A container that is not ready for so long after its start will not become ready."""


@dataclass
class Ailments:
    """What kept pods from running in the cluster, as a scenario says it."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    """Of ``lives``: for pods that the same template makes anew."""
    images: set[str] = field(default_factory=set)
    """That no container of the dump runs and some could not pull."""


def ailments(
    pods: Sequence[dict[str, Any]],
    raw: Mapping[tuple[str, str], Mapping[str, Any]],
    objects: Iterable[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]],
) -> Ailments:
    """Crash loops, OOM kills, probes that fail and images that cannot be had, by the statuses that the dump shows.
    Writes the annotations of the pods that stand in it."""
    found = Ailments()
    now = _newest(objects)
    failing = _probes_that_fail(events)
    running = {
        str(one.get("image"))
        for pod in raw.values()
        for one in (pod.get("status") or {}).get("containerStatuses") or ()
        if "running" in (one.get("state") or {})
    }
    known: set[str] = set()
    disks = _filling(pods, raw)
    for pod in pods:
        name = str(pod["metadata"].get("namespace") or "default"), str(pod["metadata"]["name"])
        status = raw.get(name, {}).get("status") or {}
        specs = {str(one["name"]): one for one in pod["spec"].get("containers") or ()}
        for container, most in disks.get(_exact_owner(pod), {}).items():
            curve_ = {"from": "1Mi", "to": _text("memory", most), "over": f"{_FILLS_S}s"}
            life: dict[str, Any] = {"usage": {"containers": {container: {"rootfs": {"ramp": curve_}}}}}
            if status.get("phase") not in ("Failed", "Succeeded"):
                _annotate(pod, {"kemu.dev/usage": json.dumps(life["usage"])})
            entry = {key: value for key, value in _entry(pod, specs, container, {}).items() if key != "image"}
            text = json.dumps(entry)
            if text not in known:
                known.add(text)
                found.entries.append({**entry, **life})
        for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            waiting = (one.get("state") or {}).get("waiting") or {}
            container = str(one.get("name"))
            image = str(specs.get(container, {}).get("image") or one.get("image"))
            if waiting.get("reason") in _PULLS:
                reason = str(waiting.get("message") or waiting["reason"])
                _annotate(pod, {f"kemu.dev/image-pull-error.{container}": " ".join(reason.split())[:200]})
                found.images |= {image} - running
                continue
            if container not in specs:
                continue
            life = _life_of(
                specs[container], one, failing.get((*name, container), failing.get((*name, ""), set())), now
            )
            if not life:
                continue
            pod["spec"].setdefault("restartPolicy", "Always")
            _annotate(pod, _as_annotations(container, life))
            entry = _entry(pod, specs, container, life)
            text = json.dumps(entry, sort_keys=True)
            place = json.dumps({key: entry.get(key) for key in ("namespace", "owner", "selector", "image")})
            if "owner" in entry and place not in known and text not in known:
                known |= {place, text}
                found.entries.append(entry)
    return found


def _life_of(spec: Mapping[str, Any], status: Mapping[str, Any], failing: set[str], now: float) -> dict[str, Any]:
    """Of one container: ``runSeconds`` and ``exitCode``, ``usage`` or ``probes``; empty: nothing ails it."""
    state = status.get("state") or {}
    ended = (status.get("lastState") or {}).get("terminated") or state.get("terminated")
    loops = (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff" or (
        "terminated" in state and status.get("restartCount")
    )
    if ended and (loops or (status.get("restartCount") and not status.get("ready"))):
        begin, end = _time(ended.get("startedAt")), _time(ended.get("finishedAt"))
        seconds = max(1, round((end - begin).total_seconds())) if begin is not None and end is not None else 5
        limit = ((spec.get("resources") or {}).get("limits") or {}).get("memory")
        if ended.get("reason") == "OOMKilled" and limit is not None:
            most = quantities.approximate(str(limit))
            curve_ = {"from": _text("memory", most / 8), "to": _text("memory", most * 1.2), "over": f"{seconds}s"}
            return {"usage": {"memory": {"ramp": curve_}}}
        if "livenessProbe" in spec and ("liveness" in failing or ended.get("exitCode") in (137, 143)):
            probe = spec["livenessProbe"]
            lasts = int(probe.get("periodSeconds") or 10) * int(probe.get("failureThreshold") or 3)
            return {"probes": {"liveness": {"failsFrom": f"{max(0, seconds - lasts)}s"}}}
        return {"runSeconds": seconds, "exitCode": int(ended.get("exitCode") or 0)}
    started = _time((state.get("running") or {}).get("startedAt"))
    waits = "readinessProbe" in spec and started is not None and status.get("ready") is False
    if waits and ("readiness" in failing or (started is not None and now - started.timestamp() > _GRACE_S)):
        return {"probes": {"readiness": {"failsFrom": "0s"}}}
    return {}


def _entry(pod: Mapping[str, Any], specs: Mapping[str, Any], container: str, life: Mapping[str, Any]) -> dict[str, Any]:
    """For pods of the same template: of the same ReplicaSet, or of the same revision of a StatefulSet or DaemonSet."""
    metadata = pod["metadata"]
    entry: dict[str, Any] = {"namespace": str(metadata.get("namespace") or "default")}
    labels = metadata.get("labels") or {}
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            entry["owner"] = f"{reference['kind']}/{reference['name']}"
            if _REVISION in labels:
                entry["selector"] = {_REVISION: labels[_REVISION]}
    if len(specs) > 1 and "image" in specs[container]:
        entry["image"] = specs[container]["image"]
    body = {
        **life,
        **({"probes": {"*" if "image" in entry else container: life["probes"]}} if "probes" in life else {}),
    }
    return {**entry, **body}


def _as_annotations(container: str, life: Mapping[str, Any]) -> dict[str, str]:
    if "usage" in life:
        return {"kemu.dev/usage": json.dumps({"containers": {container: life["usage"]}})}
    if "probes" in life:
        return {"kemu.dev/probes": json.dumps({container: life["probes"]})}
    return {
        f"kemu.dev/run-seconds.{container}": str(life["runSeconds"]),
        f"kemu.dev/exit-code.{container}": str(life["exitCode"]),
    }


def _annotate(pod: dict[str, Any], notes: Mapping[str, str]) -> None:
    """What is said already of its other containers stays."""
    metadata = pod["metadata"]
    known = dict(metadata.get("annotations") or {})
    for key, value in notes.items():
        if key in known and key in ("kemu.dev/usage", "kemu.dev/probes"):
            value = json.dumps(_merged(json.loads(known[key]), json.loads(value)))
        known[key] = value
    metadata["annotations"] = known


_CURVES = ("ramp", "trace")


def _merged(old: Json, new: Json) -> Json:
    if not isinstance(old, dict) or not isinstance(new, dict) or any(key in new for key in _CURVES):
        return new
    return {**old, **{key: _merged(old[key], value) if key in old else value for key, value in new.items()}}


_FILLS_S = 300
"""Within this time pods use what they were evicted for."""
_LOW_ON_DISK = re.compile(r"low on resource: ephemeral-storage")
_WAS_USING = re.compile(r"[Cc]ontainer (\S+) was using (\d+\w*)")


def _filling(
    pods: Iterable[Mapping[str, Any]], raw: Mapping[tuple[str, str], Mapping[str, Any]]
) -> dict[tuple[str, str], dict[str, float]]:
    """By owner and container: bytes of disk that pods used which kubelets evicted, as their statuses say. Of several
    owners that with the most: others were evicted for it."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for pod in pods:
        name = str(pod["metadata"].get("namespace") or "default"), str(pod["metadata"]["name"])
        status = raw.get(name, {}).get("status") or {}
        for container, used in filled_disk(status):
            own = found.setdefault(_exact_owner(pod), {})
            own[container] = max(own.get(container, 0.0), float(quantities.approximate(used)))
    found.pop(("", ""), None)
    most = max((sum(own.values()) for own in found.values()), default=0.0)
    return {owner: own for owner, own in found.items() if sum(own.values()) >= most / 2}


def filled_disk(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Containers of an evicted pod, and how much of the disk each used; empty: it was not evicted for its disk."""
    text = str(status.get("message") or "")
    is_own = status.get("reason") == "Evicted" and _LOW_ON_DISK.search(text)
    return _WAS_USING.findall(text) if is_own else []


def _exact_owner(pod: Mapping[str, Any]) -> tuple[str, str]:
    """Namespace, and kind and name of the controller; empty: it has none."""
    for reference in pod["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return str(pod["metadata"].get("namespace") or "default"), f"{reference['kind']}/{reference['name']}"
    return "", ""


def _newest(objects: Iterable[Mapping[str, Any]]) -> float:
    """Unix time of the newest heartbeat of nodes and transition of pods: not much before the dump."""
    times = [
        at.timestamp()
        for each in objects
        if each.get("kind") in ("Node", "Pod")
        for one in (each.get("status") or {}).get("conditions") or ()
        for name in ("lastHeartbeatTime", "lastTransitionTime")
        if (at := _time(one.get(name))) is not None
    ]
    return max(times, default=0.0)


_PROBE = re.compile(r"(Liveness|Readiness|Startup) probe (?:failed|errored)")
_CONTAINER = re.compile(r"spec\.(?:containers|initContainers)\{([^}]+)\}")


def _probes_that_fail(events: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], set[str]]:
    """By namespace, pod and container: kinds of probes that the cluster's Events say have failed."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for event in events:
        said = _PROBE.search(str(event.get("message") or event.get("note") or ""))
        if event.get("reason") != "Unhealthy" or said is None:
            continue
        subject = event.get("involvedObject") or event.get("regarding") or {}
        place = _CONTAINER.search(str(subject.get("fieldPath") or ""))
        key = str(subject.get("namespace") or "default"), str(subject.get("name")), place[1] if place else ""
        found.setdefault(key, set()).add(said[1].lower())
    return found

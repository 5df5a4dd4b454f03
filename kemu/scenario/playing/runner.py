"""Runs a scenario: builds the cluster, lets time pass, judges, and leaves a run folder.

    result = run(scenario, Options(out=Path("runs/race")))
    print(result.verdict["verdict"], result.verdict["digest"])

The order of a run: store, API servers; the user's set-up (namespaces, priority classes, manifests); kubelets, which
register their nodes and take over the pods that run there already; schedulers. Then the clock starts at 0, and events,
workloads and faults come in their time. The run ends at its duration, when ``until`` holds, or when nothing can happen
any more.

Neighbours: :mod:`plans` (which actors), :mod:`faults` (chaos), :mod:`verdicts` (judging), :mod:`kemu.runlog`.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import hashlib
import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kemu
from kemu.checks import costs, registry
from kemu.checks.counters import COUNTERS, counts
from kemu.checks.history import History
from kemu.checks.limits import Limits
from kemu.checks.results import Result
from kemu.checks.scheduling import waiting
from kemu.errors import ActorFailed, KemuError, ScenarioError, SimulationError
from kemu.faults.hits import CHAOS
from kemu.faults.kinds import KINDS
from kemu.runlog.frames import FILE_NAME, MAGIC, Reader, Writer
from kemu.runtime.env import EPOCH_UNIX_S, SECOND_NS
from kemu.runtime.runtimes import Runtime
from kemu.scenario import evidence, verdicts
from kemu.scenario.expectations import Comparison, Expectation
from kemu.scenario.loading import clusters, controllers, loader, references
from kemu.scenario.playing import plans, workloads
from kemu.scenario.playing.faults import Chaos
from kemu.scenario.playing.heartbeats import Heartbeats
from kemu.scenario.playing.operators import OPERATOR, Operator
from kemu.scenario.scenarios import OF_MACHINES, Scenario

SCENARIO_FILE = "scenario.yaml"
VERDICT_FILE = "verdict.json"
CELLS = "cells"
_MADE = (SCENARIO_FILE, FILE_NAME, VERDICT_FILE, CELLS)
"""What stands in a run folder."""

Progress = Callable[[int, int, Mapping[str, int]], None]
"""Called now and then with the virtual time in ns, the duration in ns, and the events of the run log by kind."""

BUSY_S = 10.0
"""Of real time, in which a machine that is busy with a run on Ray may deliver nothing."""
PROGRESS_EVERY_EVENTS = 500


@dataclass(frozen=True)
class Options:
    """How to run, beside what the scenario says itself."""

    out: Path
    """The run folder; an older run in it is replaced."""
    runtime: str = ""
    """``sim`` or ``ray``; empty: as the scenario says."""
    speed: float = 0.0
    """Virtual seconds for each real one (``ray``); 0: as the scenario says."""
    progress: Progress | None = None
    ray: Mapping[str, Any] = field(default_factory=dict)
    """More arguments for :class:`kemu.runtime.ray.driver.runtime.RayRuntime`."""
    most_events: int = 0
    """Stop soon after the run log has more events than this; 0: no limit. A replay need not outlive its record."""
    otlp: str = ""
    """Where to send traces, ``host:port``: live from the cells of Ray, after the run in sim."""


@dataclass
class RunResult:
    """One variant, run and judged."""

    scenario: Scenario
    variant: Mapping[str, Any]
    folder: Path
    verdict: dict[str, Any]
    """What verdict.json holds."""
    history: History
    traces: str = ""
    """What became of the traces that were sent while it ran."""


@dataclass
class End:
    reason: str
    """``idle deadline stopped interrupted``."""
    now_ns: int


class Recorder:
    """The sink of a run: writes the log, counts, and watches for ``until``."""

    def __init__(self, writer: Writer, scenario: Scenario, progress: Progress | None, most_events: int = 0) -> None:
        self._append = writer.append
        self._most_events = most_events
        self._progress = progress
        self._duration_ns = scenario.duration_ns
        self._until = scenario.until
        self._meant = {} if scenario.until is None else meant(scenario, scenario.duration_ns)
        # Faults can undo changes, so they are kept where there are any.
        self._history = History(keep_changes=bool(scenario.chaos)) if scenario.until is not None else None
        self.kinds: dict[str, int] = {}
        self.stop: asyncio.Event | None = None
        """Set when ``until`` holds."""
        self._events = 0

    def __call__(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._append(time_ns, actor, kind, data)
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self._events += 1
        if self._events > self._most_events > 0 and self.stop is not None:
            self.stop.set()
        if self._history is not None:
            self._history.feed(time_ns, actor, kind, data)
            if kind in _MAY_DECIDE and verdicts.happened(self._until, self._history, self._meant):  # type: ignore[arg-type]
                self._history = None
                if self.stop is not None:
                    self.stop.set()
        if self._progress is not None and self._events % PROGRESS_EVERY_EVENTS == 0:
            self._progress(time_ns, self._duration_ns, self.kinds)


_MAY_DECIDE = frozenset(
    (
        "store.txn", "sched.attempt", "sched.victim", "sched.bind", "rescheduler.victim",
        "kubelet.admit", "kubelet.oom_killed", "kubelet.preempting", "kubelet.terminated", "kubelet.finished",
        "machine.off", "actor.stopped",
    )
)  # fmt: skip


def run(scenario: Scenario, options: Options) -> RunResult:
    """Run a scenario without a matrix (or one variant of it) and judge it.

    Raises SimulationError when the run itself broke; the run folder then holds the log as far as it went.
    """
    runtime_name = options.runtime or scenario.runtime
    if scenario.store_etcd and runtime_name == "sim":
        raise KemuError("a real etcd is outside of virtual time: store.etcd needs --runtime ray")
    outside = clusters.outside_extenders(scenario)
    if outside and runtime_name == "sim":
        raise KemuError(f"{outside[0]} is outside of virtual time: an extender of that address needs --runtime ray")
    for fault in scenario.chaos if runtime_name == "ray" else ():
        reason = KINDS[fault.what].not_on_ray
        if reason:
            raise KemuError(f"{fault.id}: {fault.what} needs --runtime sim: {reason}")
    folder = _prepare(options.out, scenario)
    # Runs in real time have real dates.
    epoch_unix_s = EPOCH_UNIX_S if runtime_name == "sim" else int(time.time())
    header = {
        "kemu": kemu.__version__,
        "scenario": scenario.name,
        "seed": scenario.seed,
        "runtime": runtime_name,
        "epoch_unix_s": epoch_unix_s,
    }
    if runtime_name == "ray":
        header["speed"] = options.speed or scenario.speed
    begun = time.perf_counter()
    writer = Writer(folder / FILE_NAME, header)
    recorder = Recorder(writer, scenario, options.progress, options.most_events)
    runtime: Runtime | None = None
    try:
        runtime = _runtime(runtime_name, scenario, options, folder, recorder, epoch_unix_s)
        end = runtime.run(drive(runtime, scenario, recorder, Heartbeats(scenario, runtime_name)))
    except ActorFailed as error:
        # A manifest that the API server refuses is a mistake in the scenario, whichever actor reports it.
        if isinstance(error.__cause__, ScenarioError):
            raise error.__cause__ from None
        raise
    finally:
        gc.unfreeze()
        digest = writer.close()
    wall_s = time.perf_counter() - begun
    verdict, history = judge(scenario, folder, end)
    verdict = {
        "scenario": scenario.name,
        "runtime": runtime_name,
        "seed": scenario.seed,
        "digest": digest,
        **verdict,
        "virtual_s": round(end.now_ns / SECOND_NS, 6),
        "wall_s": round(wall_s, 3),
        "ended": end.reason,
        "run": str(options.out),
    }
    (folder / VERDICT_FILE).write_text(json.dumps(verdict, indent=2) + "\n")
    return RunResult(scenario, {}, folder, verdict, history, str(getattr(runtime, "trace_report", None) or ""))


def _prepare(out: Path, scenario: Scenario) -> Path:
    """Make the run folder; of an older run in it only our own files go.

    Raises KemuError where that would take a file that no run has made: the scenario itself, say.
    """
    out.mkdir(parents=True, exist_ok=True)
    older = variant_folders(out)
    is_run = bool(older) or _is_log(out / FILE_NAME)
    if (out / SCENARIO_FILE).exists() and Path(scenario.file).resolve() == (out / SCENARIO_FILE).resolve():
        raise KemuError(f"{out / SCENARIO_FILE}: the run would replace its own scenario: choose another folder (--out)")
    for name in () if is_run else _MADE:
        if (out / name).exists():
            raise KemuError(f"{out} is no run folder, but has a {name}, which a run would replace: choose another")
    for folder in (*older, out):
        for name in (SCENARIO_FILE, FILE_NAME, VERDICT_FILE):
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(folder / CELLS, ignore_errors=True)
        if folder in older:
            with contextlib.suppress(OSError):  # it holds a file of somebody else
                folder.rmdir()
    (out / SCENARIO_FILE).write_text(scenario.to_yaml())
    return out


def _is_log(file: Path) -> bool:
    """Whether it begins as a run log does, of whatever version."""
    try:
        with file.open("rb") as opened:
            return opened.read(len(MAGIC)).startswith(MAGIC.partition(b"/")[0])
    except OSError:
        return False


def variant_folders(folder: Path) -> list[Path]:
    """Those of the variants of a matrix that was run in this folder, in their order."""
    numbered = [(_VARIANT.fullmatch(path.name), path) for path in folder.glob("variant-*")]
    found = sorted((int(match[1]), path) for match, path in numbered if match and (path / FILE_NAME).is_file())
    return [path for _, path in found]


_VARIANT = re.compile(r"variant-([0-9]+)", re.ASCII)


def _runtime(
    name: str, scenario: Scenario, options: Options, folder: Path, recorder: Recorder, epoch_unix_s: int
) -> Runtime:
    # Imported on use: the sim starts without Ray, and Ray's cells without the sim.
    if name == "sim":
        from kemu.runtime.sim.simulation import SimRuntime

        return SimRuntime(scenario.seed, recorder, scenario.timing)
    from kemu.runtime.ray.driver.runtime import RayRuntime

    speed = options.speed or scenario.speed
    ray = dict(options.ray)
    paused = tuple(pattern for fault in scenario.chaos if fault.what == "pause" for pattern in fault.patterns())
    if paused and "cells" not in ray:
        # What is to be stopped needs a process of its own.
        from kemu.runtime.ray.driver import plans as cell_plans

        ray["cells"] = (cell_plans.CellPlan("paused", paused, size=1, eager=False), *cell_plans.DEFAULT_PLAN)
    return RayRuntime(
        scenario.seed,
        recorder,
        directory=folder / CELLS,
        speed=speed,
        epoch_unix_s=epoch_unix_s,
        otlp=options.otlp,
        timing=scenario.timing,
        expected=plans.names(scenario, Heartbeats(scenario, name)),
        **ray,
    )


async def launch(runtime: Runtime, scenario: Scenario, beats: Heartbeats) -> list[str]:
    """Set up: start all actors, stage by stage. Returns their names."""
    roster: list[str] = []
    for stage in (
        plans.store(scenario),
        plans.apiservers(scenario),
        plans.user(scenario),
        plans.kubelets(scenario, beats),
        plans.extenders(scenario),
        plans.schedulers(scenario),
        plans.controllers(scenario, beats),
    ):
        await runtime.launch(stage)
        roster.extend(spec.name for spec in stage)
    # These objects live as long as the run: the garbage collector need not check them again and again.
    gc.collect()
    gc.freeze()
    return roster


async def drive(runtime: Runtime, scenario: Scenario, recorder: Recorder, beats: Heartbeats) -> End:
    roster = await launch(runtime, scenario, beats)
    await runtime.begin()
    recorder.stop = asyncio.Event()
    operator = Operator(runtime, scenario, roster, beats)
    chaos = Chaos(runtime, scenario.seed, roster, operator.machines)
    tasks = [runtime.env(CHAOS).spawn(chaos.carry_out(fault), fault.id) for fault in scenario.chaos]
    tasks += [
        runtime.env(OPERATOR).spawn(operator.carry_out(event), f"event {event.index}")
        for event in scenario.events
        if event.what in OF_MACHINES
    ]
    try:
        reason = await runtime.run_until(scenario.duration_ns, stop=recorder.stop, until_idle=True)
    finally:
        for task in tasks:
            task.cancel()
    now_ns = runtime.clock.now_ns()
    runtime.env(OPERATOR).log("run.ended", {"reason": reason, **({} if runtime.idle_is_still else {"still": False})})
    await runtime.shutdown()
    return End(reason, now_ns)


def judge(scenario: Scenario, folder: Path, end: End) -> tuple[dict[str, Any], History]:
    """Checks, expectations, counters and waiting times of a recorded run."""
    with Reader(folder / FILE_NAME) as reader:
        history, checks = registry.judge(
            reader,
            disabled=scenario.checks.disabled,
            within=_limits(scenario, reader.header),
        )
    history.now_ns = max(history.now_ns, end.now_ns)
    outcome = verdicts.Outcome(
        history,
        checks,
        end.now_ns,
        finished=end.reason != "interrupted",
        idle=end.reason == "idle",
        meant=meant(scenario, end.now_ns),
    )
    judgements = [verdicts.judge(expectation, outcome) for expectation in scenario.expectations]
    verdict = verdicts.overall(verdicts.countable(checks, scenario.expectations), judgements)
    if (end.reason == "interrupted" and verdict == "holds") or history.gaps:
        # What is missing from the log may be what a check misses, or what would have shown a fault.
        verdict = "unknown"
    data = {
        "verdict": verdict,
        **({"incomplete": history.gaps} if history.gaps else {}),
        "expectations": [verdicts.as_data(judgement) for judgement in judgements],
        "checks": [_check_data(check) for check in checks],
        "counts": counts(history),
        "faults": _faults(history),
        "refused": dict(history.refused.most_common()),
        "waiting": waiting.summary(waiting.waits(history)),
        "costs": costs.summary(history),
    }
    return data, history


def _limits(scenario: Scenario, header: Mapping[str, Any]) -> Limits:
    """What the scenario asks of the checks, and what they have to know of it."""
    schedulers = scenario.schedulers
    return dataclasses.replace(
        scenario.checks.limits,
        node_eviction_rate=controllers.node_eviction_rate(scenario),
        max_watch_delay_ns=_max_watch_delay_ns(scenario, header),
        rank_by_qos=tuple(
            name
            for scheduler in schedulers
            if scheduler.policy.get("victimOrder") == "qos"
            for name in references.profile_names(scheduler)
        ),
        own_queues=any(clusters.has_its_own_queue(scheduler) for scheduler in schedulers),
    )


def meant(scenario: Scenario, end_ns: int) -> dict[str, int]:
    """How many pods each workload means to create before that time, replacements apart."""
    return {each.name: workloads.due_before(each, scenario.seed, end_ns) for each in scenario.workloads}


def _faults(history: History) -> dict[str, dict[str, Any]]:
    """By kind: how often it happened, when first, and how many actors and links it hit."""
    found: dict[str, dict[str, Any]] = {}
    for fault in history.faults:
        one = found.setdefault(fault.what, {"count": 0, "first_s": round(fault.begin_ns / SECOND_NS, 6), "hit": 0})
        one["count"] += 1
        one["hit"] += len(fault.hits)
    return found


def _all_faults(results: Sequence[RunResult]) -> dict[str, dict[str, Any]]:
    """The same over all variants."""
    found: dict[str, dict[str, Any]] = {}
    for result in results:
        for what, one in result.verdict["faults"].items():
            before = found.setdefault(what, {"count": 0, "first_s": one["first_s"], "hit": 0})
            before["count"] += one["count"]
            before["first_s"] = min(before["first_s"], one["first_s"])
            before["hit"] += one["hit"]
    return found


def _max_watch_delay_ns(scenario: Scenario, header: Mapping[str, Any]) -> int:
    """Beyond what the scenario itself makes late: caches that lag, and keepalive that takes its time to notice a dead
    connection. On Ray the machine may be busy for a few seconds of real time."""
    timing = scenario.timing
    keepalive_s = timing.get("keepaliveTime", 0.0) + timing.get("keepaliveTimeout", 0.0)
    lag_ns = int((scenario.cache_lag_s + keepalive_s) * SECOND_NS)
    busy_ns = int(BUSY_S * header.get("speed", 0) * SECOND_NS)
    return lag_ns + max(scenario.checks.limits.max_watch_delay_ns, busy_ns)


def _check_data(check: Result) -> dict[str, Any]:
    return {
        "id": check.id,
        "holds": check.holds,
        "detail": check.detail,
        "detector": check.detector,
        "asked": check.asked,
    }


# A matrix -----------------------------------------------------------------------------------------------------------


def variant_name(variant: Mapping[str, Any]) -> str:
    """``queue=fifo nomination=off``: the last step of each path and its value; of a mapping, its own keys."""
    words = []
    for path, value in variant.items():
        if isinstance(value, Mapping):
            words += [f"{key}={_plain(each)}" for key, each in value.items()]
        else:
            words.append(f"{path.rpartition('.')[2]}={_plain(value)}")
    return " ".join(words)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_plain(each)}" for key, each in value.items()) + "}"
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def run_all(
    scenario: Scenario, options: Options, *, on_result: Callable[[RunResult], None] | None = None
) -> tuple[dict[str, Any], list[RunResult]]:
    """Run every variant of the matrix, compare them, and put one verdict over all."""
    made = loader.variants(scenario)
    if len(made) == 1 and not made[0][0]:
        result = run(scenario, options)
        if on_result is not None:
            on_result(result)
        return result.verdict, [result]
    _prepare(options.out, scenario)
    results: list[RunResult] = []
    for number, (variant, each) in enumerate(made):
        folder = options.out / f"variant-{number}"
        result = run(each, Options(**{**options.__dict__, "out": folder}))
        result.variant = variant
        result.verdict = {"variant": dict(variant), **result.verdict}
        (folder / VERDICT_FILE).write_text(json.dumps(result.verdict, indent=2) + "\n")
        results.append(result)
        if on_result is not None:
            on_result(result)
    verdict = combine(scenario, results, options.out)
    (options.out / VERDICT_FILE).write_text(json.dumps(verdict, indent=2) + "\n")
    return verdict, results


def combine(scenario: Scenario, results: Sequence[RunResult], out: Path) -> dict[str, Any]:
    """One verdict over all variants: counts added up, waits pooled, comparisons judged."""
    comparisons = [_compare(scenario, expectation, results) for expectation in scenario.comparisons]
    order = ("fails", "unknown", "holds")
    worst = min((result.verdict["verdict"] for result in results), key=order.index)
    overall = min((worst, verdicts.overall((), comparisons) if comparisons else worst), key=order.index)
    digest = hashlib.sha256("\n".join(result.verdict["digest"] for result in results).encode()).hexdigest()
    pooled = [wait for result in results for wait in waiting.waits(result.history)]
    first = results[0].verdict
    return {
        "scenario": scenario.name,
        "runtime": first["runtime"],
        "seed": scenario.seed,
        "digest": digest,
        "verdict": overall,
        "expectations": [
            {**found, "variant": dict(result.variant)} for result in results for found in result.verdict["expectations"]
        ]
        + [verdicts.as_data(found) for found in comparisons],
        "checks": [
            {**found, "variant": dict(result.variant)} for result in results for found in result.verdict["checks"]
        ],
        "counts": {name: sum(result.verdict["counts"][name] for result in results) for name in COUNTERS},
        "faults": _all_faults(results),
        "refused": dict(sum((result.history.refused for result in results), Counter()).most_common()),
        "waiting": waiting.summary(pooled),
        "virtual_s": round(sum(result.verdict["virtual_s"] for result in results), 6),
        "wall_s": round(sum(result.verdict["wall_s"] for result in results), 3),
        "run": str(out),
        "variants": [result.verdict for result in results],
    }


def _compare(scenario: Scenario, expectation: Expectation, results: Sequence[RunResult]) -> verdicts.Judgement:
    subject = expectation.subject
    assert isinstance(subject, Comparison)

    def side(condition: Mapping[str, Any]) -> tuple[str, float | None, bool]:
        (index,) = loader.select(scenario, condition)
        result = results[index]
        value = evidence.metric(result.history, subject.metric, subject.priority)
        return variant_name(condition), value, result.verdict["ended"] != "interrupted"

    return verdicts.compare(expectation, side(subject.of), side(subject.times_that_of))


__all__ = ["Options", "RunResult", "SimulationError", "combine", "judge", "launch", "run", "run_all", "variant_name"]

"""Runs a scenario, judges it, and leaves a run folder.

    result = run(scenario, Options(out=Path("runs/race")))
    print(result.verdict["verdict"], result.verdict["digest"])

Neighbours: :mod:`plays` (the run itself), :mod:`judging` (its verdict), :mod:`kemu.runtime.runlog`;
:mod:`kemu.lab.exploration.executions` runs scenarios in memory.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kemu
from kemu.errors import Divergence, InfrastructureError, KemuError, SimulationError
from kemu.lab.checks.counters import COUNTERS
from kemu.lab.checks.history import History, windows
from kemu.lab.checks.scheduling import waiting
from kemu.lab.scenario import evidence, headlines, verdicts
from kemu.lab.scenario.expectations import Comparison, Expectation
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import judging, paces, plans, plays
from kemu.lab.scenario.playing.checkpoints import log_differences, waking
from kemu.lab.scenario.playing.checkpoints.keeping import Checkpoints
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.playing.progress import Progress
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.telemetry import exports, indexes, runs
from kemu.runtime import garbage, runtimes
from kemu.runtime.env import EPOCH_UNIX_S, SECOND_NS, LogSink
from kemu.runtime.faults.kinds import KINDS
from kemu.runtime.loads import Loads
from kemu.runtime.ray.driver import plans as cell_plans
from kemu.runtime.runlog import bounds, crash_reports, folders
from kemu.runtime.runlog.frames import FILE_NAME, Reader, Verifier, Writer
from kemu.runtime.runtimes import Runtime

if TYPE_CHECKING:
    from kemu.emulated.real.guests import Guest

LARGE_BYTES = 8 << 20
"""Of events: the memory of a cluster that has made so many is got back before the run is judged. That takes no longer
than to have the garbage collector look through it again and again meanwhile."""
FOLLOWED_S = 0.05
"""Real time for which events stay in memory where the log is followed."""
_MADE = (*folders.RESULTS, folders.CELLS)
"""What stands in a run folder."""


@dataclass(frozen=True)
class Options:
    """How to run, beside what the scenario says itself."""

    out: Path
    """The run folder; an older result of the same kind in it is replaced."""
    runtime: str = ""
    """``sim``, ``wall``, ``ray`` or ``real``; empty: as the scenario says."""
    speed: float = 0.0
    """Virtual seconds for each real one (``wall``, ``ray``); 0: as the scenario says."""
    progress: Progress | None = None
    ray: Mapping[str, Any] = field(default_factory=dict)
    """More arguments for :class:`kemu.runtime.ray.driver.runtime.RayRuntime`."""
    kubeconfig: Path | None = None
    """A cluster that stands, in which the run is a guest (``real``); None: a control plane is started."""
    context: str = ""
    """Of the kubeconfig; "": its current one."""
    most_events: int = 0
    """Stop soon after the run log has more events than this; 0: no limit. A replay need not outlive its record."""
    otlp: str = ""
    """Where to send traces while it runs, ``host:port``; only in real time, as a run in sim is over sooner."""
    api_calls: bool = False
    """Those traces have spans of clients and servers for each call of the API."""
    run_id: str = ""
    """Tells its traces from those of other runs; empty: in real time one is drawn, in sim scenario and seed do."""
    variant: str = ""
    """Variant of a matrix: which one, as ``variant_name`` says it."""
    log_bytes: int = 0
    """The most bytes of the run log: what happens after that is not judged; 0: no limit."""
    force: bool = False
    """A result of another kind in the folder is replaced, too."""
    pace: float = 0.0
    """Virtual seconds for each real one at most (``sim``); 0: as fast as it goes."""
    on_begin: Callable[[Path, str, int], None] | None = None
    """The log is followed while it is written: told the folder when it has one, the variant, and the virtual time
    that the run may take. What is logged is in the file within :data:`FOLLOWED_S`."""
    on_writer: Callable[[Writer], None] | None = None
    """Told what writes the log, which may be flushed at any time."""
    listener: LogSink | None = None
    """Told of every event, beside the log."""
    drive: plays.Drive = plays.drive
    """What happens from the start of the actors to the end of the run."""
    loop: Any = None
    """A ``VirtualLoop`` for a run in sim that is stepped; None: one that runs as fast as it goes."""
    epoch_unix_s: int = EPOCH_UNIX_S
    """Unix time of virtual time 0 (``sim``)."""
    checkpoints: Checkpoints | None = None
    """From which a run in sim goes on when its process was killed."""
    again: bool = False
    """The folder holds what is left of this run (``sim``): it is made again, and has to be the same as far as that
    goes."""


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
    left: Sequence[str] = ()
    """Processes and folders that could not be removed."""


def run(scenario: Scenario, options: Options) -> RunResult:
    """Run a scenario without a matrix (or one variant of it) and judge it.

    Raises SimulationError when the run itself broke; the run folder then holds the log as far as it went, and a crash
    report where it broke by a bug of kemu's.
    """
    try:
        return _run(scenario, options)
    except Exception as error:
        if crash_reports.is_bug(error) and (document := options.out / folders.SCENARIO_FILE).is_file():
            runtime = options.runtime or scenario.runtime
            about = {"scenario": scenario.name, "seed": scenario.seed, "runtime": runtime}
            about |= {"variant": options.variant} if options.variant else {}
            file = options.out / folders.CRASH_FILE
            crash_reports.write(file, error, about, document.read_text(), crash_reports.last_events(options.out))
        raise


def _run(scenario: Scenario, options: Options) -> RunResult:
    runtime_name = options.runtime or scenario.runtime
    guest = None
    if options.kubeconfig is not None and runtime_name != "real":
        raise KemuError(f"a kubeconfig needs --runtime real: {runtime_name} has a control plane of kemu's")
    if runtime_name == "sim":
        plays.refuse_what_sim_cannot(scenario)
    elif runtime_name == "wall":
        plays.refuse_what_wall_cannot(scenario)
    elif runtime_name == "real":
        from kemu.lab.scenario.playing import control_planes

        is_guest = options.kubeconfig is not None
        control_planes.refuse(scenario, options.speed or scenario.speed, is_guest=is_guest)
        if options.kubeconfig is not None:
            cluster = control_planes.Cluster(options.kubeconfig, options.context)
            guest = control_planes.guest_of(scenario, cluster)
    is_real = runtime_name in runtimes.REAL
    for fault in scenario.chaos if is_real else ():
        reason = KINDS[fault.what].not_on_ray
        if reason:
            raise KemuError(f"{fault.id}: {fault.what} needs --runtime sim: {reason}")
    if scenario.holds and is_real:
        raise KemuError("holds need --runtime sim: in real time nobody decides when a message arrives")
    if runtime_name in ("wall", "ray"):
        plays.refuse_what_needs_virtual_time(scenario)
    _check_collector(options)
    folder = options.out if options.again else _prepare(options, scenario, folders.Held("run", scenario.name))
    document = scenario.to_yaml()
    # Runs in real time have real dates.
    epoch_unix_s = options.epoch_unix_s if runtime_name == "sim" else int(time.time())
    header: dict[str, Any] = {
        "kemu": kemu.__version__,
        "scenario": scenario.name,
        "seed": scenario.seed,
        "runtime": runtime_name,
        "epoch_unix_s": epoch_unix_s,
        **runs.header(document=document, variant=options.variant, runtime=runtime_name, run_id=options.run_id),
    }
    if is_real:
        header["speed"] = options.speed or scenario.speed
    played = _play(scenario, options, folder, header, guest)
    if played.events_bytes >= LARGE_BYTES:
        garbage.collect_leavings()
        garbage.give_back()
        if options.checkpoints is not None:
            options.checkpoints.before_judging()
    else:  # the collector need not look at what is left of the cluster while the log is judged
        garbage.freeze()
    try:
        # Checks keep what they have seen, and leave no cycles behind: the collector would look at it again and again.
        with garbage.uncollected():
            judged = judge(scenario, folder, played.end, options.progress)
    finally:
        # A large history stays frozen until the next run begins: a look at it takes half a minute.
        if played.events_bytes < LARGE_BYTES:
            garbage.unfreeze()
    verdict = {**judged.data(runtime_name, played.digest), "wall_s": round(played.wall_s, 3), "run": str(options.out)}
    verdict |= played.loads
    verdict |= _warnings(scenario)
    folders.write_verdict(folder, verdict)
    folders.drop_segments(folder)
    return RunResult(scenario, {}, folder, verdict, judged.history, played.traces, played.left)


@dataclass(frozen=True)
class _Played:
    """What a run leaves for its verdict: nothing of its actors, whose memory the judgement can use."""

    end: judging.End
    digest: str
    events_bytes: int
    traces: str
    wall_s: float
    loads: Mapping[str, Any]
    left: Sequence[str]


def _play(
    scenario: Scenario, options: Options, folder: Path, header: Mapping[str, Any], guest: Guest | None
) -> _Played:
    """Run it, and write the log."""
    runtime_name: str = header["runtime"]
    is_real = runtime_name in runtimes.REAL
    garbage.collect_leavings()
    begun, checkpoints = time.perf_counter(), options.checkpoints
    asleep_s = 0.0 if checkpoints is None else checkpoints.asleep_s
    # Who kills the process finds what happened until then; in virtual time a run without clients can be made again.
    flush_every_s = 1.0 if is_real or options.loop is not None else 0.0
    if options.on_begin is not None:
        flush_every_s = FOLLOWED_S
    writer: Writer
    if options.again:
        writer = _verifier(folder, header, lambda: recorder.stop.set())
    else:
        writer = Writer(folder / FILE_NAME, header, flush_every_s=flush_every_s)
    if options.on_writer is not None:
        options.on_writer(writer)
    exporter = _exporter(options, header)
    bounded = bounds.Bounded(writer, options.log_bytes)
    log = bounded.append if options.log_bytes else writer.append
    append = log if exporter is None else _to_both(log, exporter.feed)
    if options.listener is not None:
        append = _to_both(append, options.listener)
    if options.pace and runtime_name == "sim":
        append = paces.Paced(append, options.pace, writer.flush)
    progress = options.progress
    if progress is not None:
        meant = judging.meant(scenario, scenario.duration_ns)
        progress.begin(scenario.duration_ns, sum(meant.values()), writer)
    recorder = plays.Recorder(append, scenario, progress, options.most_events)
    if options.on_begin is not None:
        options.on_begin(folder, options.variant, scenario.duration_ns)
    runtime: Runtime | None = None
    try:
        epoch_unix_s: int = header["epoch_unix_s"]
        runtime = _runtime(runtime_name, scenario, options, folder, recorder, epoch_unix_s, writer.date, guest)
        if progress is not None and isinstance(measured := getattr(runtime, "loads", None), Loads):
            progress.loads = measured.by_cell
        playing = options.drive(runtime, scenario, recorder, Heartbeats(scenario, runtime_name))
        if options.on_begin is not None and is_real:
            playing = paces.flushing(playing, writer.flush, FOLLOWED_S)
        if checkpoints is not None:
            checkpoints.writer = writer
            runtime.loop.at_rest = checkpoints.rest  # type: ignore[attr-defined]  # only runs in sim have them
        end = plays.run(runtime, playing)
    except InfrastructureError as error:
        if error.lost_at_ns is None:
            raise
        end = judging.End(judging.LOST, error.lost_at_ns)
    finally:
        garbage.unfreeze()
        digest = writer.close()
        traces = None if exporter is None else exporter.close()
        if checkpoints is not None:
            checkpoints.writer = None
        if isinstance(writer, Verifier) and writer.differs:
            _refuse_difference(folder)
    wall_s = time.perf_counter() - begun - (0.0 if checkpoints is None else checkpoints.asleep_s - asleep_s)
    if bounded.full_at_ns is not None:
        end = judging.End(judging.FULL, bounded.full_at_ns, _full_note(bounded.full_at_ns, end.now_ns))
    left = getattr(runtime, "left", ())
    return _Played(end, digest, writer.written_bytes, str(traces or ""), wall_s, _loads(runtime), left)


def _verifier(folder: Path, header: Mapping[str, Any], on_difference: Callable[[], object]) -> Writer:
    """For a run that is made again. Raises KemuError where it cannot be the one that is in the folder."""
    log, before = folder / FILE_NAME, folder / folders.BEFORE_FILE
    if not before.exists():  # else it is longer: it goes as soon as all of it has come again
        if not log.exists():
            return Writer(log, header)
        before = log
    with Reader(before) as reader:
        found = reader.header
    for key, what in (("kemu", "another version of kemu"), ("document", "another scenario"), ("seed", "another seed")):
        if found.get(key) != header[key]:
            raise KemuError(f"{folder}: its run is of {what}, so it cannot go on: run it anew, with kemu run")
    if before == log:
        before = log.replace(folder / folders.BEFORE_FILE)
    return Verifier(log, header, before, on_difference)


def _refuse_difference(folder: Path) -> None:
    """What was left of the run stands as it was. Raises Divergence."""
    log, before = folder / FILE_NAME, folder / folders.BEFORE_FILE
    difference, _ = log_differences.first(before, log)
    before.replace(log)
    text = "the run was made again and is another one than what is left of it, perhaps as its code has changed"
    raise Divergence(f"{text}: {difference}\n{folder} holds what was left")


def _full_note(full_at_ns: int, end_ns: int) -> str:
    judged_s, all_s = full_at_ns / SECOND_NS, end_ns / SECOND_NS
    return f"judged: the first {judged_s:.0f} s of {all_s:.0f} s, as the run log was full then (--log-limit)"


def _loads(runtime: Runtime | None) -> dict[str, Any]:
    """How busy the cells were, where there were any."""
    measured = getattr(runtime, "loads", None)
    return measured.data() if isinstance(measured, Loads) else {}


def _warnings(scenario: Scenario) -> dict[str, Any]:
    return {"warnings": [dataclasses.asdict(one) for one in scenario.warnings]} if scenario.warnings else {}


def _prepare(options: Options, scenario: Scenario, result: folders.Held) -> Path:
    """Make the run folder for this result; of an older one in it only our own files go.

    Raises KemuError where that would take a file that no run has made (the scenario itself, say), or, unless
    ``options.force``, a result of another kind.
    """
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    folders.check_replaced(out, result, force=options.force)
    its_own = out / folders.SCENARIO_FILE
    if its_own.exists() and Path(scenario.file).resolve() == its_own.resolve():
        raise KemuError(f"{its_own}: the run would replace its own scenario: choose another folder (--out)")
    for name in () if folders.held_in(out) is not None else _MADE:
        if (out / name).exists():
            raise KemuError(f"{out} is no run folder, but has a {name}, which a run would replace: choose another")
    waking.end(out)
    folders.clear(out)
    (out / folders.SCENARIO_FILE).write_text(scenario.to_yaml())
    return out


def _check_collector(options: Options) -> None:
    """Raises KemuError when the endpoint does not answer: before the run begins, not after it."""
    if options.otlp:
        # Imported on use: most runs do not need OpenTelemetry, which takes long to import.
        from kemu.lab.telemetry import otlp

        otlp.check(options.otlp)


def _exporter(options: Options, header: Mapping[str, Any]) -> exports.Exporter | None:
    if not options.otlp:
        return None
    from kemu.lab.telemetry import otlp

    run, epoch_unix_s = runs.of_header(header), header["epoch_unix_s"]
    return otlp.LiveExporter(options.otlp, run, epoch_unix_s, api_calls=options.api_calls)


def _to_both(first: LogSink, second: LogSink) -> LogSink:
    def append(time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        first(time_ns, actor, kind, data)
        second(time_ns, actor, kind, data)

    return append


def _runtime(
    name: str,
    scenario: Scenario,
    options: Options,
    folder: Path,
    recorder: plays.Recorder,
    epoch_unix_s: int,
    on_date: Callable[[int], None],
    guest: Guest | None,
) -> Runtime:
    """``on_date``: told when the run really began, where that is not known before. ``guest``: the run, in a cluster
    that stands."""
    # Imported on use: the sim starts without Ray, and Ray's cells without the sim.
    if name == "sim":
        from kemu.emulated.client.message_labels import Reader
        from kemu.runtime.sim.simulation import SimRuntime
        from kemu.runtime.sim.steering.steering import Steering

        steering = Steering(Reader, holds=scenario.holds) if scenario.holds else None
        return SimRuntime(scenario.seed, recorder, scenario.timing, steering, options.loop, epoch_unix_s=epoch_unix_s)
    speed = options.speed or scenario.speed
    if name == "wall":
        from kemu.runtime.wall.runtime import WallRuntime

        return WallRuntime(
            scenario.seed,
            recorder,
            directory=folder / folders.CELLS,
            speed=speed,
            epoch_unix_s=epoch_unix_s,
            timing=scenario.timing,
            on_date=on_date,
        )
    if name == "real":
        from kemu.lab.scenario.playing import control_planes

        return control_planes.make(scenario, folder / folders.CELLS, recorder, on_date, guest)
    from kemu.runtime.ray.driver.runtime import RayRuntime

    ray = dict(options.ray)
    paused = tuple(pattern for fault in scenario.chaos if fault.what == "pause" for pattern in fault.patterns())
    if "cells" not in ray:
        # What is to be stopped needs a process of its own.
        alone = (cell_plans.CellPlan("paused", paused, size=1, eager=False),) if paused else ()
        ray["cells"] = (*alone, *cell_plans.of(scenario.cells))
    return RayRuntime(
        scenario.seed,
        recorder,
        directory=folder / folders.CELLS,
        speed=speed,
        epoch_unix_s=epoch_unix_s,
        timing=scenario.timing,
        etcd=scenario.store.etcd_address,
        below_grpc=any(fault.parameters.get("belowGrpc") for fault in scenario.chaos),
        expected=plans.names(scenario, Heartbeats(scenario, name)),
        code=plans.code(scenario),
        **ray,
    )


def judge(scenario: Scenario, folder: Path, end: judging.End, progress: Progress | None = None) -> judging.Judged:
    """Judge a recorded run from its log, and leave the index of the log."""
    if progress is not None:
        progress.judge((folder / FILE_NAME).stat().st_size)
    with Reader(folder / FILE_NAME) as reader:
        judge = judging.Judge(scenario, reader.header.get("speed", 0.0))
        feed = judge.feed
        index = indexes.Index()
        for time_ns, actor, kind, data in reader:
            feed(time_ns, actor, kind, data)
            index.add(reader.offset, time_ns, actor, data)
            if progress is not None:
                progress.read_bytes = reader.read_bytes
    indexes.write(folder, index)
    return judge.conclude(end)


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


# A matrix -----------------------------------------------------------------------------------------------------------


def variant_name(variant: Mapping[str, Any]) -> str:
    """``queue=fifo nomination=off``: as much of the end of each path as tells it from the others, and its value; of a
    mapping, its own keys."""
    return " ".join(f"{name}={value}" for name, value in variant_settings(variant))


def variant_settings(variant: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The words of its name: what is set, and to what."""
    settings: list[tuple[str, str]] = []
    for path, value in variant.items():
        if isinstance(value, Mapping):
            settings += [(key, plain(each)) for key, each in value.items()]
        else:
            settings.append((_short(path, variant), plain(value)))
    return settings


def _short(path: str, paths: Iterable[str]) -> str:
    others = [each for each in paths if each != path]
    steps = _STEPS.findall(path)
    for count in range(1, len(steps)):
        tail = "".join(steps[-count:])
        if not tail.startswith("[") and not any(each.endswith(tail) for each in others):
            return tail.removeprefix(".")
    return path


_STEPS = re.compile(r"\.?[^.\[\]]+|\[[^\]]*\]")


def plain(value: object) -> str:
    """As in YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {plain(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(plain(each) for each in value) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


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
    if not options.again:
        _prepare(options, scenario, folders.Held("variants", scenario.name, len(made)))
    results: list[RunResult] = []
    for number, (variant, each) in enumerate(made):
        if options.progress is not None:
            options.progress.variant, options.progress.variants = number + 1, len(made)
        folder = options.out / f"variant-{number}"
        its_own = dataclasses.replace(options, out=folder, variant=variant_name(variant))
        if options.again and (folder / folders.VERDICT_FILE).is_file():
            result = _judged_again(each, folder, options.progress)
        else:
            result = run(each, dataclasses.replace(its_own, again=options.again and (folder / FILE_NAME).is_file()))
            result.verdict = {"variant": dict(variant), **result.verdict}
            folders.write_verdict(folder, result.verdict)
        result.variant = variant
        results.append(result)
        if on_result is not None:
            on_result(result)
    verdict = combine(scenario, results, options.out)
    folders.write_verdict(options.out, verdict)
    return verdict, results


def _judged_again(scenario: Scenario, folder: Path, progress: Progress | None) -> RunResult:
    """A variant whose run was over, with its verdict. Raises KemuError where it is of another scenario."""
    verdict = folders.verdict_of(folder)
    document = runs.header(document=scenario.to_yaml(), variant="", runtime="sim", run_id="")["document"]
    with Reader(folder / FILE_NAME) as reader:
        if reader.header.get("document") != document:
            raise KemuError(f"{folder}: its run is of another scenario, so it cannot go on: run it anew, with kemu run")
    end = judging.End(verdict["ended"], round(verdict["virtual_s"] * SECOND_NS))
    return RunResult(scenario, {}, folder, verdict, judge(scenario, folder, end, progress).history)


def variants(scenario: Scenario) -> int:
    """How many runs it makes."""
    return len(loader.variants(scenario))


def combine(scenario: Scenario, results: Sequence[RunResult], out: Path) -> dict[str, Any]:
    """One verdict over all variants: counts added up, waits pooled, comparisons judged."""
    comparisons = [_compare(scenario, expectation, results) for expectation in scenario.comparisons]
    order = ("fails", "unknown", "holds")
    worst = min((result.verdict["verdict"] for result in results), key=order.index)
    overall = min((worst, verdicts.overall((), comparisons) if comparisons else worst), key=order.index)
    digest = hashlib.sha256("\n".join(result.verdict["digest"] for result in results).encode()).hexdigest()
    pooled = [wait for result in results for wait in result.history.derived(waiting.measured)]
    errors = sum((result.history.errors for result in results), Counter[str]())
    first = results[0].verdict
    return {
        "scenario": scenario.name,
        "runtime": first["runtime"],
        "seed": scenario.seed,
        "digest": digest,
        "verdict": overall,
        "headline": headlines.of_matrix(overall, [result.verdict for result in results], comparisons),
        "expectations": [
            {**found, "variant": dict(result.variant)} for result in results for found in result.verdict["expectations"]
        ]
        + [
            verdicts.as_data(found, expectation)
            for found, expectation in zip(comparisons, scenario.comparisons, strict=True)
        ],
        "checks": [
            {**found, "variant": dict(result.variant)} for result in results for found in result.verdict["checks"]
        ],
        **_measured([result.verdict for result in results]),
        "counts": {name: sum(result.verdict["counts"][name] for result in results) for name in COUNTERS},
        "faults": _all_faults(results),
        "refused": dict(sum((result.history.refused for result in results), Counter()).most_common()),
        **({"errors": dict(errors.most_common())} if errors else {}),
        "waiting": waiting.summary(pooled),
        "unbound": {key: sum(result.verdict["unbound"][key] for result in results) for key in ("pods", "hopeless")},
        "virtual_s": round(sum(result.verdict["virtual_s"] for result in results), 6),
        "wall_s": round(sum(result.verdict["wall_s"] for result in results), 3),
        "run": str(out),
        **_warnings(scenario),
        "variants": [result.verdict for result in results],
    }


def _measured(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The window of all variants, if it is one."""
    windows_of = [one.get(windows.KEY) for one in found]
    return {windows.KEY: windows_of[0]} if windows_of[0] and windows_of.count(windows_of[0]) == len(found) else {}


def _compare(scenario: Scenario, expectation: Expectation, results: Sequence[RunResult]) -> verdicts.Judgement:
    subject = expectation.subject
    assert isinstance(subject, Comparison)

    def side(condition: Mapping[str, Any]) -> tuple[str, float | None, bool]:
        (index,) = loader.select(scenario, condition)
        result = results[index]
        value = evidence.metric(result.history, subject.metric, subject.priority)
        return variant_name(condition), value, result.verdict["ended"] not in ("interrupted", judging.LOST)

    return verdicts.compare(expectation, side(subject.of), side(subject.times_that_of))


__all__ = [
    "Options",
    "RunResult",
    "SimulationError",
    "combine",
    "judge",
    "run",
    "run_all",
    "variant_name",
    "variant_settings",
]

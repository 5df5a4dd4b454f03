"""``kemu run``: run a scenario and print the result."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kemu.doors.cli import collectors, exits, failures, live_pages, parsers, programs
from kemu.errors import KemuError
from kemu.runtime.faults.kinds import KINDS
from kemu.runtime.words import counted

if TYPE_CHECKING:
    from kemu.lab.checks.scheduling.waiting import Wait


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "run",
        help="run a scenario and judge it",
        description="Run a scenario in virtual time (sim), in real time (wall) or on Ray, judge it, and write a run "
        "folder.",
    )
    parser.add_argument("scenario", nargs="?", help=parsers.SCENARIO)
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """All options except the scenario."""
    parser.add_argument(
        "--resume", type=Path, metavar="DIR", help="resume the run in this folder, whose process was killed (sim)"
    )
    parser.add_argument(
        "--runtime", choices=("sim", "wall", "ray", "real"), default="", help="default: as the scenario says, or sim"
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="run on this Ray cluster: its address, or local for a temporary one; with --runtime ray the default is "
        "RAY_ADDRESS, or the cluster of kemu ray up, or a temporary one",
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="real: use an existing cluster, in namespaces that are removed afterwards; default: start one",
    )
    parser.add_argument("--context", default="", help="the context in the kubeconfig; default: its current one")
    parser.add_argument(
        "--seed", type=parsers.whole_number, help="the seed of all randomness; overrides the scenario's"
    )
    parser.add_argument("--out", type=Path, help="the run folder; default: runs/NAME-RUNTIME-SEED")
    parser.add_argument("--force", action="store_true", help="replace a result of another kind in that folder")
    parser.add_argument(
        "--speed", type=parsers.positive_number, default=0.0, help="virtual seconds for each real one (ray)"
    )
    parser.add_argument(
        "--cells",
        type=parsers.cells,
        default={},
        metavar="KIND=SHARE,…",
        help="which actors share a process on Ray, overrides the scenario's runtime.ray.cells: "
        "kubelets=100,schedulers=own",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder with the files of a trace")
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help="override a value below spec, as YAML"
    )
    parser.add_argument(
        "--manifests",
        action="append",
        default=[],
        metavar="PATH",
        help="a file or folder of Kubernetes objects, created after those of the scenario",
    )
    parser.add_argument("--store", metavar="URL", help="etcd://HOST:PORT: a real etcd instead of kemu's store")
    parser.add_argument(
        "--no-checkpoints", action="store_true", help="make no checkpoints: a killed run starts again (sim)"
    )
    parser.add_argument(
        "--checkpoint-every",
        type=parsers.seconds,
        default=0.0,
        metavar="TIME",
        help="CPU time between two checkpoints (sim); default: 60s, or more where the run needs over 1 GiB",
    )
    parser.add_argument("--metrics", action="store_true", help="also log requests and work queues, for kemu metrics")
    live_pages.add_pace_to(parser)
    live_pages.add_to(parser)
    collectors.add_to(parser)
    parser.add_argument(
        "--report", action="store_true", help="write report.html to the run folder, as kemu report does"
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as one JSON object")
    parser.set_defaults(command=command, usage_error=parser.error)


def overrides(options: argparse.Namespace) -> dict[str, Any]:
    """The values that the command line sets, by path below spec."""
    found: dict[str, Any] = {}
    if options.seed is not None:
        found["seed"] = options.seed
    if options.store:
        match = re.fullmatch(r"(?:etcd|http)://([^/\s]+:\d+)/?", options.store)
        if match is None:
            raise KemuError(f"--store {options.store}: write it as etcd://HOST:PORT")
        found["store.etcd"] = match[1]
    if getattr(options, "metrics", False):
        found["metrics"] = True
    for kind, share in getattr(options, "cells", {}).items():
        found[f"runtime.ray.cells.{kind}"] = share
    return found | settings(options.set)


def settings(items: Sequence[str]) -> dict[str, Any]:
    """``--set``: the values of PATH=VALUE, by path below spec. Raises KemuError."""
    from kemu.emulated.settings import documents

    found: dict[str, Any] = {}
    for item in items:
        path, equals, value = item.partition("=")
        if not equals or not path:
            raise KemuError(f"--set {item}: write it as PATH=VALUE")
        values = documents.parse(value, f"--set {path}")
        if len(values) > 1:
            raise KemuError(f"--set {path}: the value holds {len(values)} documents; it is one")
        found[path] = values[0].data if values else None
    return found


def command(options: argparse.Namespace) -> int:
    from kemu.doors.cli import interrupts, resuming
    from kemu.doors.cli.progress import Bar, Line
    from kemu.lab.scenario.playing.checkpoints.keeping import Checkpoints
    from kemu.lab.scenario.playing.progress import Progress

    collectors.check(options)
    checkpoints: Checkpoints | None = None
    is_again = options.resume is not None
    if is_again:
        code = resuming.resume(options, overrides)
        if code is not None:
            return code
    elif options.scenario is None:
        options.usage_error(f"scenario is missing: {parsers.SCENARIO}")
    progress = Progress()
    line = Line(Path(options.scenario).stem)
    bar = Bar(sys.stderr, functools.partial(line.text, progress))
    out = options.out or Path("runs")
    live = live_pages.Live(options)

    def interrupted() -> failures.Failure:
        return interrupts.failure(progress, out, None if checkpoints is None else checkpoints.made_s)

    def tidy() -> None:
        bar.close()
        live.interrupted(interrupted().message)

    def on_wake(wants: Mapping[str, Any]) -> None:
        options.json, options.report = wants["json"], wants["report"]
        line.restart()
        if options.json:
            bar.close()
        else:
            bar.start()

    try:
        with contextlib.ExitStack() as stack:
            if options.is_program:
                tell = lambda: failures.tell(interrupted(), as_json=options.json)  # noqa: E731
                answering = interrupts.answered(progress, tell, tidy)
                leave = stack.enter_context(answering)
            if not options.json and options.scenario != "-":
                bar.start()
            from kemu.doors.cli import inputs
            from kemu.lab.scenario.playing import runner

            scenario = inputs.load(
                options.scenario, options.data, overrides(options), more_manifests=options.manifests, quiet=True
            )
            if not options.json:
                bar.aside(lambda: inputs.warn(scenario.warnings))
                bar.start()
            live.announce(bar.aside)
            if options.ray and options.runtime not in ("", "ray"):
                raise KemuError(f"--ray names a Ray cluster: it cannot stand beside --runtime {options.runtime}")
            runtime = options.runtime or ("ray" if options.ray else scenario.runtime)
            is_real = runtime != "sim"
            if options.pace and is_real:
                raise KemuError("--pace holds virtual time back: in real time --speed says how fast it goes")
            if options.cells and runtime != "ray":
                raise KemuError(f"--cells places the processes of Ray: it cannot stand beside --runtime {runtime}")
            if options.at and is_real:
                raise KemuError("--at: in real time traces are sent while the run lasts, at its own times")
            if options.is_program and is_real:
                leave()  # its actors have to be stopped
            out = options.out or Path("runs") / folder_name(scenario.name, runtime, scenario.seed)
            options.out = out
            if options.is_program and not is_real and not is_again:
                code = resuming.same(scenario, options, bar)
                if code is not None:
                    return code
            if options.is_program and not (is_real or options.no_checkpoints or options.live or options.pace):
                checkpoints = Checkpoints(
                    out,
                    scenario.to_yaml(),
                    progress,
                    every_s=options.checkpoint_every,
                    still=bar.still,
                    on_wake=on_wake,
                    note=lambda text: bar.aside(lambda: print(f"kemu: {text}", file=sys.stderr)),
                )
                exits.hearers.append(checkpoints.tell_exit)
            run_options = runner.Options(
                out=out,
                runtime=runtime,
                speed=options.speed,
                progress=progress,
                ray={"ray_address": options.ray} if options.ray else {},
                otlp=options.otlp if is_real else "",
                api_calls=options.api_calls,
                run_id=options.run_id,
                force=options.force,
                kubeconfig=options.kubeconfig,
                context=options.context,
                pace=options.pace,
                on_begin=live.on_begin,
                checkpoints=checkpoints,
                again=is_again,
            )
            live.scenario(scenario.name, scenario.description, runner.variants(scenario))
            with resuming.kept(checkpoints, options):
                verdict, results = runner.run_all(scenario, run_options, on_result=live.judged)
            live.over(verdict["headline"], verdict)
    except KeyboardInterrupt:
        told = interrupted()
        live.interrupted(told.message)
        return failures.tell(told, as_json=options.json)
    except BaseException:
        live.close()
        raise
    finally:
        bar.close()
    if options.otlp and runtime == "sim":
        for _, report in collectors.send(
            [result.folder for result in results], options.otlp, collectors.manner(options)
        ):
            print(f"traces to {options.otlp}: {report}", file=sys.stderr)
    if options.report:
        _report(options)
    for result in results:
        if result.traces:
            print(f"traces to {options.otlp}: {result.traces}", file=sys.stderr)
        for left in result.left:
            print(f"left behind: {left}", file=sys.stderr)
        for doubt in result.history.doubts:
            print(f"warning: {doubt}", file=sys.stderr)
    if options.json:
        print(json.dumps(verdict))
    else:
        _show(scenario.description, verdict, results, options)
    live.stay(functools.partial(_explained, options), live_pages.too_fast(verdict))
    return exits.BY_VERDICT[verdict["verdict"]]


def _explained(options: argparse.Namespace) -> list[Any]:
    from kemu.doors.cli import reports

    return [*reports.parts(options.out, options.data)]


def _report(options: argparse.Namespace) -> None:
    from kemu.doors.cli import progress, reports

    with progress.waiting(sys.stderr, f"{options.out}: making the report"):
        file, size = reports.write(options.out, None, options.data)
    print(f"{file}: {size // 1000} kB", file=sys.stderr)


def folder_name(name: str, runtime: str, seed: int) -> str:
    return f"{name}-{runtime}-{seed}"


def _show(description: str, verdict: Mapping[str, Any], results: list[Any], options: argparse.Namespace) -> None:
    from rich.console import Console

    from kemu.lab.tell import matrices, terminal

    console = Console(soft_wrap=False)
    commands = _next_commands(verdict, results, options)
    if "variants" in verdict:
        matrices.show(console, verdict, [result.history for result in results], description, commands)
    else:
        terminal.show_run(console, verdict, results[0].history, description, commands)


_ORDER = ("fails", "unknown", "holds")


def _next_commands(
    verdict: Mapping[str, Any], results: list[Any], options: argparse.Namespace
) -> list[tuple[str, str]]:
    from kemu.lab.tell import telling_pods

    kemu = programs.name()
    # Of a matrix, a variant that fails; of several, and where none does, the one whose pod starved most.
    waits = [telling_pods.starved(result.verdict, result.history) for result in results]
    miseries = [telling_pods.misery(wait) if wait else (0, 0.0) for wait in waits]
    order = [_ORDER.index(result.verdict["verdict"]) for result in results]
    unbound = [result.verdict["unbound"]["pods"] for result in results]
    place = max(range(len(results)), key=lambda one: (-order[one], miseries[one], unbound[one]))
    worst, wait = results[place], waits[place]
    folder = shlex.quote(str(worst.folder))
    commands = []
    fails = verdict["verdict"] == "fails"
    if fails and worst.verdict["verdict"] == "fails" and verdict["runtime"] == "sim":
        commands.append((f"{kemu} explain {folder}", "why it fails, beside a run that passes"))
    pod = telling_pods.of_run(worst.verdict, worst.history)
    if pod:
        why = f"what {pod} went through, span by span"
        if wait is not None and telling_pods.name(wait) == pod:
            why = f"why {pod} {_waited(wait)}, span by span"
        commands.append((f"{kemu} trace {folder} {shlex.quote(pod)}", why))
    if not options.report:
        what = "the variants side by side" if "variants" in verdict else "the whole run"
        commands.append((f"{kemu} report {shlex.quote(verdict['run'])}", f"{what}, on one page for a browser"))
    if verdict["runtime"] == "sim":
        commands.append((f"{kemu} replay {shlex.quote(verdict['run'])}", "run it again, and compare every event"))
        # Standard input has been read; the run folder has the scenario.
        given = options.scenario if options.scenario != "-" else str(Path(verdict["run"]) / "scenario.yaml")
        name = shlex.quote(given)
        data = f" --data {shlex.quote(str(options.data))}" if options.data else ""
        data += "".join(f" --set {shlex.quote(item)}" for item in options.set)
        if not any("seed" in each["variant"] for each in verdict.get("variants", [])):
            commands.append((f"{kemu} run {name}{data} --seed {verdict['seed'] + 1}", "the same with another seed"))
        if not fails and not options.data and all(not KINDS[what].not_on_ray for what in verdict.get("faults", {})):
            commands.append((f"{kemu} run {name}{data} --runtime ray --speed 20", "the same for real, on Ray"))
    return commands


def _waited(wait: Wait) -> str:
    overtaken = f" while {counted(wait.overtaken, 'later one')} went first" if wait.overtaken else ""
    return f"waited {wait.seconds:.0f} s{'' if wait.bound else ' in vain'}{overtaken}"

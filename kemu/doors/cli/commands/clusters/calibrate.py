"""``kemu calibrate``: measure a real control plane, and write what it took as a timing preset."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from kemu.doors.cli import exits, parsers
from kemu.errors import KemuError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "calibrate",
        help="measure a real control plane, and write a timing preset",
        description="Start etcd, kube-apiserver and kube-scheduler on this machine, or use an existing cluster, create "
        "pods, and write the measured times of requests, watches and cycles as a preset for scenarios: "
        "timing: {preset: FILE}.",
    )
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="use an existing cluster; default: start a control plane"
    )
    parser.add_argument("--context", default="", help="the context in the kubeconfig; default: its current one")
    parser.add_argument("--out", type=Path, default=Path("measured.yaml"), metavar="FILE", help="default: %(default)s")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw what was measured: FILE.svg or FILE.png")
    parser.add_argument("--seed", type=parsers.whole_number, default=1, help="of the arrivals; default: %(default)s")
    parser.add_argument("--runs", type=Path, metavar="FOLDER", help="keep the runs in this folder")
    parser.add_argument("--again", action="store_true", help="measure the existing runs in --runs, without new ones")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from rich.console import Console

    from kemu.lab.real import calibrations
    from kemu.lab.scenario.playing.control_planes import Cluster
    from kemu.lab.tell import layouts

    if options.again and options.runs is None:
        raise KemuError("--again needs the runs: --runs FOLDER")
    cluster = None if options.kubeconfig is None else Cluster(options.kubeconfig, options.context)
    if options.plot is not None:
        from kemu.lab.real import calibration_pictures

        calibration_pictures.format_of(options.plot)  # refused before two minutes of measurements
    with tempfile.TemporaryDirectory(prefix="kemu-calibrate-") as scratch:
        folder = options.runs or Path(scratch)
        loads = calibrations.loads(is_guest=cluster is not None)
        if options.again:
            found = [calibrations.measure(load, folder / load.name) for load in loads]
        else:
            found = []
            for load in loads:
                print(load, flush=True)
                found.append(calibrations.play(load, folder, options.seed, cluster))
        preset = calibrations.fit(found)
    if options.plot is not None:
        calibration_pictures.draw(found, preset, options.plot)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(preset.text())
    titles = ("load", "what", "times", *(f"p{share * 100:g} (ms)" for share in calibrations.QUANTILES))
    console = Console()
    layouts.show(console, layouts.table(titles, calibrations.rows(found), console.width, keys=2))
    print(f"\nwritten: {options.out}\nuse it in a scenario: timing: {{preset: {options.out}}}")
    return exits.HOLDS

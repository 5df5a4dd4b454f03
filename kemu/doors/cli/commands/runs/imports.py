"""``kemu import``: a scenario from the dump of a cluster."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kemu.doors.cli import exits, programs

if TYPE_CHECKING:
    from kemu.lab.incidents.folders import Written

_MOST_LINES = 12


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "import",
        help="make a scenario from dumps of a cluster, or from a running cluster",
        description="Make a folder with a scenario from a dump of a cluster: output of kubectl get -A -o yaml (or "
        "json), kubectl cluster-info dump and kubectl top, and exports of Prometheus. kemu run, up and "
        "explain accept the folder.",
        epilog="A cluster is only read: the kubeconfig needs the verb list, which the ClusterRole view and "
        "permission to list nodes, persistentvolumes, storageclasses, priorityclasses and "
        "customresourcedefinitions give. Secrets are not read. Kinds that may not be listed are reported "
        "and left out.",
    )
    parser.add_argument("dump", nargs="*", type=Path, help="files or folders with objects or usage")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="read this cluster")
    parser.add_argument("--context", default="", help="the context in the kubeconfig; default: its current one")
    parser.add_argument(
        "--usage",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="the output of kubectl top pods -A, or an export of Prometheus (JSON or CSV)",
    )
    parser.add_argument("--out", type=Path, default=Path("incident"), help="the folder to make; default: incident")
    parser.add_argument(
        "--duration", default="", metavar="TIME", help="the duration of the run; default: the measured time, or 30m"
    )
    parser.add_argument("--force", action="store_true", help="replace a folder that kemu import made")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command, usage_error=parser.error)


def command(options: argparse.Namespace) -> int:
    from kemu.doors.cli.progress import waiting
    from kemu.lab.incidents import clusters, dumps, folders

    if not options.dump and options.kubeconfig is None:
        options.usage_error("name a file or folder with a dump, or --kubeconfig FILE")
    told: list[str] = []
    with waiting(sys.stderr, "reading"):
        dump = dumps.read(options.dump, options.usage)
        if options.kubeconfig is not None:
            told = clusters.read(options.kubeconfig, options.context, dump)
    with waiting(sys.stderr, f"{options.out}: writing"):
        written = folders.write(dump, options.out, force=options.force, duration=options.duration)
    if options.json:
        print(json.dumps(_as_data(written, told)))
    else:
        _show(written, told)
    return exits.HOLDS


def _as_data(written: Written, told: list[str]) -> dict[str, object]:
    from kemu.lab.incidents import folders

    kept = written.kept
    return {
        "folder": str(written.folder), "nodes": written.nodes, "pods": written.pods, "objects": written.objects,
        "files": written.files, "pods_with_usage": written.with_usage, "events": len(kept.events),
        "dropped": folders.dropped(kept), "remade": dict(kept.remade), "made": dict(kept.made),
        "left_out": folders.left_out(kept), "not_ready": dict(kept.sick_nodes), "notes": told,
        "assumed_usage_of_nodes": dict(kept.full_nodes),
        "other_files": list(written.other_files), "usage_of_unknown_pods": list(written.unknown_usage),
    }  # fmt: skip


def _show(written: Written, told: list[str]) -> None:
    from kemu.lab.incidents import folders, timelines
    from kemu.runtime.words import counted

    kept, folder = written.kept, written.folder
    sizes = f"{counted(written.nodes, 'node')}, {counted(written.pods, 'pod')}, {counted(written.objects, 'object')}"
    print(f"{folder}: {sizes} in {counted(written.files, 'file')}")
    rows = [
        (
            "usage",
            f"of {counted(written.with_usage, 'pod')}"
            if written.with_usage
            else "none: give --usage, or pods use nothing",
        ),
        ("dropped", f"what servers wrote: {folders.dropped(kept)}" if kept.dropped.counts else ""),
        ("remade", f"every cluster has them: {folders.listed(kept.remade)}" if kept.remade else ""),
        ("made", f"missing in the dump: {folders.listed(kept.made)}" if kept.made else ""),
        ("twice", f"{counted(written.repeated, 'object')}; the newest counts" if written.repeated else ""),
        ("not ready", ", ".join(f"{node} ({why})" for node, why in kept.sick_nodes.items())),
        ("assumed", folders.assumed(kept) if kept.full_nodes else ""),
        ("ignored", f"{counted(len(written.other_files), 'file')} without objects" if written.other_files else ""),
        (
            "no pod",
            f"usage of {counted(len(written.unknown_usage), 'pod')} that the dump lacks"
            if written.unknown_usage
            else "",
        ),
    ]
    for name, text in rows:
        if text:
            print(f"  {name:<10}{text}")
    for note in told:
        print(f"  {note}")
    if kept.left:
        print("left out:")
        for text in folders.left_out(kept):
            print(f"  {text}")
    warnings = [line for line in written.lines if line.is_warning]
    if warnings:
        print(f"what the cluster said ({folder / folders.TIMELINE}):")
        zero = timelines.last(kept.events)
        for line in warnings[-_MOST_LINES:]:
            print(f"  {line.text(zero)[:150]}")
    print(f"next: {programs.name()} run {shlex.quote(str(folder))}")

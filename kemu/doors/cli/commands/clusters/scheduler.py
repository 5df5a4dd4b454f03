"""``kemu scheduler``: kemu's scheduler, with plugins in Python, against a real cluster."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu.doors.cli import exits
from kemu.errors import KemuError

QPS, BURST = 50.0, 100
"""As kube-scheduler has them (``clientConnection``)."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "scheduler",
        help="run kemu's scheduler against a real cluster, with plugins in Python",
        description="Schedule the pods of a real cluster, as kube-scheduler does, until Ctrl-C or SIGTERM.",
    )
    parser.add_argument(
        "--kubeconfig", type=Path, help="the cluster; by default kubectl's, or, in a pod, its service account"
    )
    parser.add_argument("--context", default="", help="the context in the kubeconfig; default: its current one")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="a KubeSchedulerConfiguration, in YAML or JSON (docs/scenarios.md)"
    )
    parser.add_argument(
        "--scheduler-name",
        default="default-scheduler",
        metavar="NAME",
        help="whose pods it schedules, unless profiles say otherwise (spec.schedulerName; default: %(default)s)",
    )
    parser.add_argument(
        "--leader-elect", action="store_true", help="work only while holding the lease, as kube-scheduler does"
    )
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE:CLASS[=WEIGHT]",
        help="your own plugin, at all its extension points; found in the current folder or beside --config",
    )
    parser.add_argument(
        "--qps",
        type=float,
        metavar="N",
        help=f"requests a second, 0: no limit (default: clientConnection.qps, or {QPS:g}, with bursts of {BURST})",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="write a run log to this folder, for kemu trace and others"
    )
    parser.add_argument("--quiet", action="store_true", help="do not print decisions")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.emulated.bridge import schedulers
    from kemu.runtime import user_code

    document = _document(options.config) if options.config is not None else {}
    for folder in (Path.cwd(), options.config.parent if options.config is not None else None):
        if folder is not None:
            user_code.look_in(folder)
    connection = document.get("clientConnection") or {}
    qps = options.qps if options.qps is not None else float(connection.get("qps") or QPS)
    cluster = {
        "kubeconfig": str(options.kubeconfig or connection.get("kubeconfig") or ""),
        "context": options.context,
        "qps": qps,
        "burst": max(int(connection.get("burst") or BURST), int(qps)),
        "user_agent": "kemu-scheduler",
    }
    config = {
        "name": options.scheduler_name,
        "config": _configured(document, options.scheduler_name, options.plugin, leader_elect=options.leader_elect),
        "events": "all",
        "storage": True,
    }
    code = schedulers.run(cluster, config, out=options.out, quiet=options.quiet)
    return code if code else exits.HOLDS


def _document(path: Path) -> dict[str, Any]:
    from kemu.emulated.objects.conversion import user_files

    try:
        data = user_files.read_yaml(path)
    except user_files.FileProblem as error:
        raise KemuError(f"--config {path}: {error}") from None
    if not isinstance(data, dict):
        raise KemuError(f"--config {path}: not a KubeSchedulerConfiguration")
    return data


def _configured(document: Mapping[str, Any], name: str, plugins: list[str], *, leader_elect: bool) -> dict[str, Any]:
    """The configuration document with the options of the command line."""
    from kemu.runtime import user_code

    config: dict[str, Any] = dict(document)
    # Of a document that kube-scheduler reads, the lease is meant unless it says no.
    election = dict(config.get("leaderElection") or {})
    if leader_elect:
        config["leaderElection"] = {**election, "leaderElect": True}
    elif "leaderElect" not in election:
        config["leaderElection"] = {**election, "leaderElect": False}
    if not plugins:
        return config
    enabled = []
    for text in plugins:
        plugin, _, weight = text.partition("=")
        if not user_code.NAME.fullmatch(plugin) or not (weight or "1").isdigit():
            raise KemuError(f"--plugin {text}: not MODULE:CLASS or MODULE:CLASS=WEIGHT")
        enabled.append({"name": plugin, **({"weight": int(weight)} if weight else {})})
    profiles = [dict(profile) for profile in config.get("profiles") or [{"schedulerName": name}]]
    for profile in profiles:
        points = dict(profile.get("plugins") or {})
        everywhere = dict(points.get("multiPoint") or {})
        everywhere["enabled"] = [*(everywhere.get("enabled") or ()), *enabled]
        profile["plugins"] = {**points, "multiPoint": everywhere}
    config["profiles"] = profiles
    return config

"""``kemu nodes``: kemu's kubelets as nodes of a real cluster."""

from __future__ import annotations

import argparse
import contextlib
import functools
from pathlib import Path
from typing import Any

from kemu.doors.cli import exits, parsers
from kemu.errors import KemuError

PREFIX = "kemu-"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "nodes",
        help="add kemu's kubelets as nodes to a real cluster",
        description="Register nodes in a real cluster, and act as their kubelets until Ctrl-C: admit pods, simulate "
        "their containers, evict them under pressure, report their status. At the end the nodes are "
        "removed.",
    )
    parser.add_argument("scenario", nargs="?", default="", help=f"whose nodes: {parsers.SCENARIO}; default: --count")
    parser.add_argument(
        "--kubeconfig", type=Path, help="the cluster; by default kubectl's, or, in a pod, its service account"
    )
    parser.add_argument("--context", default="", help="the context in the kubeconfig; default: its current one")
    parser.add_argument("--count", type=parsers.count, default=0, metavar="N", help="the number of equal nodes")
    parser.add_argument(
        "--name-prefix", default=PREFIX, metavar="TEXT", help="of equal nodes: %(default)s1, %(default)s2, …"
    )
    parser.add_argument(
        "--node",
        default="{}",
        metavar="YAML",
        help="of equal nodes: keys as an entry of a scenario's nodes has them, such as "
        "'{allocatable: {cpu: 32}, labels: {disk: ssd}, taints: […], kubelet: {maxPods: 50}}'",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help="override a value below spec, as YAML"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder with the files of a trace")
    parser.add_argument(
        "--seed", type=parsers.whole_number, help="the seed of all randomness; default: a different one each time"
    )
    parser.add_argument(
        "--qps",
        type=float,
        default=0.0,
        metavar="N",
        help="maximum requests per second of all nodes; default: no limit",
    )
    parser.add_argument(
        "--logs",
        default="",
        metavar="ADDRESS",
        help="this machine's address, to which the API server sends requests for logs (kubectl logs); default: "
        "loopback, if the API server is there",
    )
    parser.add_argument("--keep", action="store_true", help="do not remove the nodes at the end")
    parser.add_argument("--remove", action="store_true", help="remove the nodes that a killed process left, and exit")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="write a run log to this folder, for kemu trace and others"
    )
    parser.add_argument("--quiet", action="store_true", help="do not print rejections and evictions")
    parser.set_defaults(command=command, store=None)


def command(options: argparse.Namespace) -> int:
    from kemu.emulated.bridge import hosting, nodes
    from kemu.lab.real import kubelets

    cluster = {
        "kubeconfig": str(options.kubeconfig or ""),
        "context": options.context,
        "qps": options.qps,
        "burst": int(options.qps * 2),
        "user_agent": "kemu-nodes",
    }
    if options.remove:
        print(f"{nodes.remove(cluster)} nodes removed")
        return exits.HOLDS
    scenario = _scenario(options)
    if not scenario.nodes:
        raise KemuError(f"{options.scenario} has no nodes")
    with contextlib.ExitStack() as stack:
        writer = None
        if options.out is not None:
            writer = hosting.writer(options.out)
            stack.callback(writer.close)
        settings = nodes.Settings(
            writer=writer, quiet=options.quiet, keep=options.keep, seed=options.seed, address=options.logs
        )
        nodes.run(cluster, functools.partial(kubelets.of_scenario, scenario), settings)
    return exits.HOLDS


def _scenario(options: argparse.Namespace) -> Any:
    from kemu.doors.cli import inputs
    from kemu.doors.cli.commands.runs import run
    from kemu.lab.real import kubelets

    settings = run.overrides(options)
    if options.scenario and options.count:
        raise KemuError("--count is for equal nodes, without a scenario")
    if options.scenario:
        return inputs.load(options.scenario, options.data, settings)
    if not options.count:
        raise KemuError("--count N or a scenario is needed")
    import yaml

    try:
        node = yaml.safe_load(options.node)
    except yaml.YAMLError as error:
        raise KemuError(f"--node: {error}") from None
    if not isinstance(node, dict):
        raise KemuError("--node: not a mapping, such as {allocatable: {cpu: 32}}")
    return kubelets.of_count(options.count, options.name_prefix, node, settings)

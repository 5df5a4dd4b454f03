"""``kemu up``: a cluster for kubectl and all other Kubernetes clients."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kemu.doors.cli import exits, failures, live_pages, parsers
from kemu.emulated.objects import identities
from kemu.errors import KemuError

_PARTS = ("schedulers", "controllers", "kubelets")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


LOG_MIB = 512
"""Log of the run log of a cluster that runs until it is stopped."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "up",
        help="serve a cluster to kubectl and other Kubernetes clients",
        description="Serve a cluster over the Kubernetes API until Ctrl-C: that of a scenario, or --nodes nodes with "
        "the default scheduler and all controllers. Write a kubeconfig for it, and judge the run at the "
        "end.",
    )
    parser.add_argument("scenario", nargs="?", default="", help=f"{parsers.SCENARIO}; default: --nodes")
    parser.add_argument(
        "--nodes",
        type=parsers.count,
        default=0,
        metavar="N",
        help="how many nodes; default: 3, or those of --manifests",
    )
    parser.add_argument(
        "--without",
        type=_parts,
        default=(),
        metavar="PARTS",
        help="leave out schedulers, controllers, kubelets, or several with commas, to be replaced by real ones or KWOK",
    )
    parser.add_argument(
        "--runtime",
        choices=("wall", "ray"),
        default="wall",
        help="all in this process (wall), or on Ray; default: wall",
    )
    parser.add_argument(
        "--speed", type=parsers.positive_number, default=1.0, help="seconds of the cluster for each real one"
    )
    parser.add_argument(
        "--for", dest="for_", default="", metavar="TIME", help="end after this time of the cluster, such as 10m"
    )
    parser.add_argument(
        "--virtual", action="store_true", help="use virtual time, which stands still until kemu step advances it"
    )
    parser.add_argument(
        "--date",
        type=_date,
        metavar="DATE",
        help="with --virtual: the initial time, such as 2026-11-28T09:00:00Z; default: now",
    )
    parser.add_argument(
        "--settle",
        type=parsers.positive_number,
        default=0.02,
        metavar="SECONDS",
        help="with --virtual: real time without requests after which clients are assumed to have reacted; "
        "default: 0.02",
    )
    parser.add_argument(
        "--chaos", type=Path, metavar="FILE", help="inject the faults of this script instead of the scenario's"
    )
    parser.add_argument(
        "--service",
        type=_service,
        action="append",
        default=[],
        metavar="[NAMESPACE/]NAME=PORT",
        help="the local port of a process that serves this Service's webhooks or API; may be repeated. The default "
        "namespace is default",
    )
    parser.add_argument(
        "--lives",
        type=Path,
        metavar="FILE",
        help="rules for the behaviour of containers, as in lives of a scenario; they take precedence over it",
    )
    parser.add_argument(
        "--handlers",
        type=Path,
        metavar="FILE.py",
        help="functions exec, attach and port_forward, which answer kubectl for all containers without handlers "
        "in lives",
    )
    parser.add_argument(
        "--removed-betas",
        action="store_true",
        help="also serve policy/v1beta1 and batch/v1beta1, for old operators, and accept v1beta1 "
        "CustomResourceDefinitions in --manifests",
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on; default: 127.0.0.1")
    parser.add_argument("--port", type=parsers.whole_number, default=0, metavar="N", help="default: any that is free")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="add the cluster to this kubeconfig; default: a new one in the run folder",
    )
    parser.add_argument(
        "--user",
        action="append",
        default=[],
        metavar="NAME[=GROUP,…]",
        help="an additional user with a token and a context (NAME@kemu) in the kubeconfig; system:node:NAME is a"
        " kubelet. May be repeated",
    )
    parser.add_argument(
        "--insecure-http",
        action="store_true",
        help="plain HTTP without tokens, on loopback only: every client is an administrator",
    )
    parser.add_argument("--ui", action="store_true", help="serve the page of kemu report while the cluster is up")
    parser.add_argument(
        "--metrics", action="store_true", help="serve the metrics of all components, with the real components' names"
    )
    parser.add_argument("--out", type=Path, help="the run folder; default: runs/up-DATE-TIME")
    parser.add_argument(
        "--log-limit",
        type=parsers.whole_number,
        default=LOG_MIB,
        metavar="MIB",
        help="in real time: the maximum size of the run log's events; later events are shown, but not judged; 0: no "
        f"limit; default: {LOG_MIB}",
    )
    parser.add_argument("--force", action="store_true", help="replace a result of another kind in that folder")
    parser.add_argument(
        "--seed", type=parsers.whole_number, help="the seed of all randomness; overrides the scenario's"
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
    parser.add_argument(
        "--load-balancers",
        action="store_true",
        help="give Services of type LoadBalancer addresses from 203.0.113.0/24",
    )
    parser.add_argument(
        "--missing-images",
        action="append",
        default=[],
        metavar="PATTERN",
        help="images that no registry has, such as 'example.com/*'; may be repeated. Without a scenario, this "
        "includes hosts such as registry.invalid and tags such as non-existent",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="assume that ConfigMaps, Secrets and images that pods name exist, as in scenarios by default",
    )
    parser.add_argument("--store", metavar="URL", help="etcd://HOST:PORT: a real etcd instead of kemu's store")
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line: up, events, the verdict")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    begun = time.monotonic()
    _check(options)
    # Imported on use: it takes half of the time until a client can call.
    from kemu.lab.up import live_lines, sessions, terminals
    from kemu.lab.up.prints import Printer

    options.live, options.live_port = options.ui, None
    live = live_pages.Live(options)
    scenario = _scenario(options)
    out = options.out or Path("runs") / time.strftime("up-%Y%m%d-%H%M%S")
    options.out = out
    settings = sessions.Settings(
        out=out,
        runtime=options.runtime,
        speed=options.speed,
        host=options.host,
        port=options.port,
        kubeconfig=options.kubeconfig,
        insecure_http=options.insecure_http,
        handlers=options.handlers,
        users=tuple(_user(text) for text in options.user),
        epoch_unix_s=options.date or int(time.time()),
        log_bytes=0 if options.virtual else options.log_limit << 20,
        force=options.force,
        on_begin=_without_end(live.on_begin) if not options.for_ else live.on_begin,
        give_up=lambda: _give_up(out, as_json=options.json),
    )
    printer = Printer()
    terminal = terminals.Json(printer) if options.json else terminals.Text(printer)

    afterwards: list[Callable[[], None]] = []

    def on_up(up: sessions.Up) -> None:
        afterwards.append(up.forget)
        terminal.up(up, time.monotonic() - begun)
        live.announce(lambda say: say())

    def tell(lines: Sequence[live_lines.Line]) -> None:
        for line in lines:
            terminal.line(line)

    try:
        live.scenario(scenario.name, scenario.description, 1)
        if options.virtual:
            from kemu.lab.up.virtual import sessions as virtual

            result = virtual.run(scenario, settings, on_up, tell, options.settle)
        else:
            result = sessions.run(scenario, settings, on_up, tell)
        live.judged(result)
        live.over(result.verdict["headline"], result.verdict)
        terminal.verdict(result.verdict, out)
    finally:
        live.close()
        printer.close()
        for forget in afterwards:
            forget()
    for left in result.left:
        print(f"left behind: {left}", file=sys.stderr)
    return exits.BY_VERDICT[result.verdict["verdict"]]


def _without_end(begin: Callable[[Path, str, int], None] | None) -> Callable[[Path, str, int], None] | None:
    """A cluster that lasts until it is ended has no duration for the page."""
    return None if begin is None else lambda folder, name, _duration_ns: begin(folder, name, 0)


def _give_up(out: Path, *, as_json: bool) -> None:
    text = (
        f"ended at once, as it did not answer to the first signal: without a verdict, and what was logged last is"
        f" missing in {out}"
    )
    failures.tell(failures.Failure("interrupted", text, exits.INTERRUPTED, more={"run": str(out)}), as_json=as_json)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exits.INTERRUPTED)


def _user(text: str) -> identities.User:
    name, _, groups = text.partition("=")
    if not name.isprintable() or not name.isascii() or not name.strip():
        raise KemuError(f"--user {text}: a name consists of printable ASCII characters")
    return identities.of_name(name, [group for group in groups.split(",") if group])


def _check(options: argparse.Namespace) -> None:
    if options.scenario and options.nodes:
        raise KemuError("--nodes is for a cluster without a scenario, whose nodes stand in its file")
    if options.insecure_http and options.host not in _LOOPBACK:
        raise KemuError(f"--insecure-http is for loopback only: at {options.host} everybody could do everything")
    if options.virtual and (options.runtime != "wall" or options.speed != 1.0):
        raise KemuError("--virtual steps its own clock: it cannot stand beside --runtime and --speed")
    if options.date is not None and not options.virtual:
        raise KemuError("--date needs --virtual: in real time it is now")
    if not 0 <= options.port <= 65535:
        raise KemuError(f"--port {options.port}: ports end at 65535")


def _script(file: Path) -> list[dict[str, Any]]:
    from kemu.lab.up.chaos import scripts

    return scripts.load(file)


def _scenario(options: argparse.Namespace) -> Any:
    from kemu.doors.cli import inputs
    from kemu.doors.cli.commands.runs import run
    from kemu.lab.scenario.format.keys import controller_keys
    from kemu.lab.up import clusters

    settings = {**run.overrides(options), "duration": options.for_ or f"{clusters.FOREVER_S}s"}
    for part in ("schedulers", "controllers"):
        if part in options.without:
            settings[part] = []
    if options.lenient:
        settings["references"] = {}
    elif options.missing_images:
        missing = [*(() if options.scenario else clusters.MISSING_IMAGES), *options.missing_images]
        settings["references.missingImages"] = missing
    if options.load_balancers:
        settings = clusters.with_controller(settings, controller_keys.SERVICE_LB)
    if options.virtual:
        # It is not known beforehand what clients do, so that heartbeats must be messages.
        settings.setdefault("heartbeats", "exact")
    settings["apiServers.webhooks"] = "call"
    if options.removed_betas:
        settings["apiServers.removedBetas"] = True
    if options.service:
        settings["apiServers.services"] = dict(options.service)
    if options.chaos is not None:
        settings["chaos"] = _script(options.chaos)
    if not options.scenario:
        made = clusters.of_nodes(options.nodes or None, settings, options.manifests)
        inputs.warn(made.warnings)
    else:
        made = inputs.load(options.scenario, options.data, settings, more_manifests=options.manifests)
        if made.variants:
            raise KemuError(f"{options.scenario} is a matrix: choose values for its paths (--set)")
        made = clusters.equipped(made, options.data)
    if options.lives is not None:
        from kemu.lab.up import lives_files

        made = lives_files.with_lives(made, options.lives)
    made = clusters.completed(made)
    return clusters.without_kubelets(made) if "kubelets" in options.without else made


def _date(text: str) -> int:
    """Unix time."""
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date such as 2026-11-28T09:00:00Z") from None
    return int((found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)).timestamp())


def _parts(text: str) -> tuple[str, ...]:
    found = tuple(text.split(","))
    unknown = [name for name in found if name not in _PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no {unknown[0]!r} to leave out, but {', '.join(_PARTS)}")
    return found


def _service(text: str) -> tuple[str, int]:
    """``NAMESPACE/NAME`` and the port."""
    name, _, port = text.rpartition("=")
    namespace, _, name = name.rpartition("/")
    if not name or "/" in namespace or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not [NAMESPACE/]NAME=PORT")
    return f"{namespace or 'default'}/{name}", int(port)

"""``kemu chaos``: faults in a cluster that ``kemu up`` serves, while clients work with it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu.doors.cli import exits
from kemu.doors.cli.commands.clusters import step
from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError
from kemu.runtime.faults.kinds import KINDS, Form, Kind, Parameter

_CHOOSING = (Form.ACTORS, Form.NODES, Form.API_SERVERS)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "chaos",
        help="inject faults into a cluster of kemu up",
        description="Inject faults into a cluster of kemu up, list and end them, and record them as a script for kemu "
        "up --chaos. Kinds and keys are those of chaos in scenarios.",
    )
    below = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = below.add_parser("list", help="the faults so far", description="The faults that have begun so far.")
    step.add_remote(listing)
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    listing.set_defaults(command=_list)
    heal = below.add_parser("heal", help="end a fault", description="End a fault before its time.")
    heal.add_argument("id", help="as kemu chaos list shows it")
    step.add_remote(heal)
    heal.set_defaults(command=_heal)
    record = below.add_parser(
        "record",
        help="print the injected faults as a script",
        description="Print the script of what has struck: kemu up --chaos FILE strikes the same at the same moments.",
    )
    record.add_argument("run", nargs="?", type=Path, help="of this run folder; default: of the cluster that is up")
    step.add_remote(record)
    record.set_defaults(command=_record)
    replay = below.add_parser(
        "replay",
        help="inject the faults of a script",
        description="Strike a cluster that is up with the faults of a script or scenario, at their times from now on.",
    )
    replay.add_argument("file", type=Path, help="a script, or a scenario")
    step.add_remote(replay)
    replay.set_defaults(command=_replay)
    for kind in KINDS.values():
        _add_kind(below, kind)


def _add_kind(below: argparse._SubParsersAction[Any], kind: Kind) -> None:
    parser = below.add_parser(kind.name, help=kind.doc, description=kind.doc)
    for one in kind.parameters:
        _add_parameter(parser, one)
    if any(one.form in _CHOOSING for one in kind.parameters):
        parser.add_argument("--all", action="store_true", help="all that match a pattern")
        parser.add_argument("--count", metavar="N", help="so many of those that match")
        parser.add_argument("--share", metavar="SHARE", help="such a part of those that match: 10%%")
    if kind.lasts:
        parser.add_argument("--for", dest="for_", metavar="TIME", help="until it ends by itself; default: until healed")
    parser.add_argument("--id", default="", help="its name; default: one is made")
    step.add_remote(parser)
    parser.set_defaults(command=_strike, kind=kind.name)


def _add_parameter(parser: argparse.ArgumentParser, one: Parameter) -> None:
    doc = one.doc.replace("%", "%%")
    if one.form is Form.SIDES:
        parser.add_argument(f"--{one.name}", nargs=2, metavar=("A", "B"), dest=f"of_{one.name}", help=doc)
    elif one.form is Form.SWITCH:
        parser.add_argument(
            f"--{_dashed(one.name)}",
            action=argparse.BooleanOptionalAction,
            default=None,
            dest=f"of_{one.name}",
            help=doc,
        )
    else:
        choices = one.choices or None
        metavar = None if choices else _dashed(one.name).upper()
        parser.add_argument(f"--{_dashed(one.name)}", metavar=metavar, choices=choices, dest=f"of_{one.name}", help=doc)


def _dashed(name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)


def _remote(options: argparse.Namespace) -> Any:
    from kemu.lab.up import remotes

    return remotes.Remote(options.kubeconfig or remotes.default_file())


def _strike(options: argparse.Namespace) -> int:
    kind = KINDS[options.kind]
    detail: dict[str, Any] = {}
    for one in kind.parameters:
        value = getattr(options, f"of_{one.name}")
        if value is not None:
            detail[one.name] = _value(one, value)
    for name in ("all", "count", "share"):
        value = getattr(options, name, None)
        if value:
            detail[name] = int(value) if name == "count" and value.isdecimal() else value
    fault: dict[str, Any] = {kind.name: detail}
    if getattr(options, "for_", None):
        fault["for"] = options.for_
    if options.id:
        fault["id"] = options.id
    print(_remote(options).call("POST", "chaos", fault)["id"])
    return exits.HOLDS


def _value(one: Parameter, value: Any) -> Any:
    """The text, parsed as YAML."""
    import yaml

    if one.form is Form.SIDES:
        return [each.split(",") for each in value]
    if one.form in (*_CHOOSING, Form.TEXTS):
        return value.split(",")
    if isinstance(value, str) and one.form in (Form.COUNT, Form.CODE, Form.NUMBER, Form.TIME):
        return yaml.safe_load(value)
    return value


def _list(options: argparse.Namespace) -> int:
    found = _remote(options).call("GET", "chaos")
    if options.json:
        print(json.dumps(found))
        return exits.HOLDS
    if not found["faults"]:
        print("no fault has begun")
    for fault in found["faults"]:
        print(_told(fault))
    return exits.HOLDS


def _told(fault: Mapping[str, Any]) -> str:
    since = f"since {fault['begun_s']:.3f} s"
    if fault["ended_s"] is not None:
        since = f"{fault['begun_s']:.3f} s to {fault['ended_s']:.3f} s"
    of = " ".join(f"{key}={_short(value)}" for key, value in fault["of"].items())
    return f"{fault['id']}: {fault['what']} {of}, {since}, struck {fault['hits']}"


def _short(value: Json) -> str:
    return ",".join(_short(each) for each in value) if isinstance(value, list) else str(value)


def _heal(options: argparse.Namespace) -> int:
    from urllib import parse

    _remote(options).call("DELETE", f"chaos/{parse.quote(options.id, safe='')}")
    return exits.HOLDS


def _record(options: argparse.Namespace) -> int:
    if options.run is None:
        text = _remote(options).text("GET", "chaos.yaml")
    else:
        from kemu.lab.up.chaos import scripts
        from kemu.runtime.runlog.frames import FILE_NAME, Reader

        with Reader(options.run / FILE_NAME) as reader:
            text = scripts.of(reader, _for_good(options.run)).text()
    if not text:
        print("nothing has struck", file=sys.stderr)
    print(text, end="")
    return exits.HOLDS


def _for_good(run: Path) -> list[str]:
    """The crashes of the run's scenario without a restart."""
    from kemu.lab.scenario.loading import loader
    from kemu.runtime.runlog import folders

    file = run / folders.SCENARIO_FILE
    try:
        faults = loader.load(file).chaos if file.is_file() else ()
    except KemuError:
        return []  # of another version, or of a trace that is not here
    return [fault.id for fault in faults if fault.what == "crash" and not fault.parameters["restart"]]


def _replay(options: argparse.Namespace) -> int:
    from kemu.lab.up.chaos import scripts

    faults = scripts.load(options.file)
    remote = _remote(options)
    now_s = remote.call("GET", "clock")["now_s"]
    for fault in faults:
        print(remote.call("POST", "chaos", _from_now(fault, now_s))["id"])
    return exits.HOLDS


def _from_now(fault: Mapping[str, Any], now_s: float) -> dict[str, Any]:
    from kemu.emulated.settings import values

    found = {key: value for key, value in fault.items() if key != "id"}
    for key in ("at", "from", "until"):
        if key in found:
            found[key] = f"{values.duration_ns(found[key]) + round(now_s * 1e9)}ns"
    return found

"""``kemu envtest-assets``: programs for envtest of controller-runtime, with kemu behind them."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from kemu.doors.cli import exits


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "envtest-assets",
        help="write stand-ins for etcd, kube-apiserver and kubectl, for envtest of controller-runtime",
        description="Write the programs that envtest of controller-runtime starts into a folder: "
        "KUBEBUILDER_ASSETS=DIR go test ./... then runs on kemu's API server, alone as a bare kube-apiserver. They "
        "belong to this installation of kemu. KEMU_ENVTEST_OUT=DIR keeps a run folder of each API server below "
        "DIR, for kemu story.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="where to write them")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from kemu.lab.up.envtest import assets

    assets.write(options.folder)
    print(f"written: {', '.join(assets.PROGRAMS)}")
    print(f"use them: KUBEBUILDER_ASSETS={shlex.quote(str(options.folder.absolute()))} go test ./...")
    return exits.HOLDS

"""``python -m kemu.lab.up.envtest PROGRAM ARGUMENTS``: what the scripts of a folder of assets begin."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from kemu.errors import KemuError


def main(arguments: Sequence[str]) -> int:
    program, *rest = arguments
    try:
        if program == "etcd":
            from kemu.lab.up.envtest import etcd

            return etcd.main(rest)
        if program == "kube-apiserver":
            # What takes long to import comes after --help has been answered.
            from kemu.lab.up.envtest import flags

            read = flags.parse(rest)
            from kemu.lab.up.envtest import servers

            return servers.serve(read)
        return _kubectl(Path(rest[0]), rest[1:])
    except KemuError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1


def _kubectl(folder: Path, arguments: Sequence[str]) -> int:
    """``folder``: that of the script, which is not what is looked for."""
    places = [one for one in os.environ.get("PATH", "").split(os.pathsep) if one and Path(one).resolve() != folder]
    found = shutil.which("kubectl", path=os.pathsep.join(places))
    if found is None:
        raise KemuError("there is no kubectl on the PATH: kemu has none of its own, install Kubernetes'")
    os.execv(found, [found, *arguments])


sys.exit(main(sys.argv[1:]))

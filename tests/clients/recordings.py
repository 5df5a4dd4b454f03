"""What the programs see on a real kube-apiserver v1.36.3: ``python -m tests.clients.recordings`` records it anew."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tests import json_files
from tests.clients import go_programs, java_programs, python_programs
from tests.realkube import clusters

FOLDER = Path(__file__).parent / "recorded"


def of(name: str) -> Any:
    return json_files.load(FOLDER / f"{name}.json")


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, clusters.Cluster.start(Path(folder)) as cluster:
        config = cluster.kubeconfig
        for program in go_programs.PROGRAMS:
            plain, _ = go_programs.run(config, program, "-content=json", f"-namespace={program}-json")
            binary, _ = go_programs.run(config, program, "-content=protobuf", f"-namespace={program}-protobuf")
            if plain != binary:
                print(f"{program}: JSON and protobuf differ:\n{plain}\n{binary}", file=sys.stderr)
                return 1
            _write(program, plain)
        for program in python_programs.PROGRAMS:
            _write(program, python_programs.run(config, program))
        for program in java_programs.PROGRAMS:
            _write(program.lower(), java_programs.run(config, program))
    return 0


def _write(name: str, value: Any) -> None:
    json_files.write(FOLDER / f"{name}.json", value, sort_keys=True)


if __name__ == "__main__":
    sys.exit(main())

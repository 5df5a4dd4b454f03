"""Kueue's manager and its manifests, from its Go module: in the cache of the real parts."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.realkube import binaries

MODULE, VERSION = "sigs.k8s.io/kueue", "v0.17.0"
BUILD_S = 3600.0
_PATH = f"{os.environ.get('PATH', '')}:/usr/local/go/bin"


def manager() -> Path:
    """The executable. Built where it is not there yet, which takes many minutes; raises RuntimeError."""
    return _built()[0]


def manifests() -> Path:
    """What ``config/default`` of the module makes, as one file of YAML."""
    return _built()[1]


def _built() -> tuple[Path, Path]:
    built = binaries.cache() / f"kueue-{VERSION}"
    rendered = built.with_suffix(f"{built.suffix}.yaml")
    if not (built.exists() and rendered.exists()):
        if shutil.which("go", path=_PATH) is None:
            raise RuntimeError(f"neither {built} nor go is there")
        build(built, rendered)
    return built, rendered


def build(built: Path, rendered: Path) -> None:
    """Both files, with the versions that Kueue's own module asks for."""
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:

        def run(*words: str | Path) -> str:
            environment = {**os.environ, "PATH": _PATH, "GOFLAGS": "-mod=mod -buildvcs=false"}
            done = subprocess.run(
                [str(word) for word in words],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=BUILD_S,
            )
            if done.returncode:
                raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr[-3000:]}")
            return done.stdout

        run("go", "mod", "init", "example.com/kueue")
        run("go", "get", f"{MODULE}@{VERSION}")
        passing = built.with_name(f"{built.name}.{os.getpid()}")
        run("go", "build", "-p", "1", "-o", passing, f"{MODULE}/cmd/kueue")
        source = Path(run("go", "list", "-m", "-f", "{{.Dir}}", MODULE).strip())
        rendered.write_text(run(binaries.find("kubectl"), "kustomize", source / "config" / "default"))
        passing.rename(built)

"""The Java programs of ``tests/clients/java``: compiled into the cache of the real parts, run against any server."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.realkube import binaries

SOURCES = Path(__file__).parent / "java"
PROGRAMS = ("Fabric8", "Official")
BUILD_S = 600.0
_CLASSES, _PATH = "classes", "classpath"


def built() -> Path:
    """The folder of the compiled programs. Skips the calling test where they are not and cannot be compiled; nightly
    may download what they need."""
    files = sorted(path for path in SOURCES.iterdir() if path.suffix in (".java", ".xml"))
    digest = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()[:12]
    found = binaries.cache() / f"java-{digest}"
    if found.exists() and all(Path(one).exists() for one in (found / _PATH).read_text().split(":")):
        return found
    lacking = [name for name in ("javac", "java", "mvn") if shutil.which(name) is None]
    if lacking:
        pytest.skip(f"not beside the project: {', '.join(lacking)}")
    made = found.with_name(f"{found.name}.{os.getpid()}")
    (made / _CLASSES).mkdir(parents=True)
    try:
        path = _class_path(made / _PATH)
        sources = [one for one in files if one.suffix == ".java"]
        done = _run("javac", "-nowarn", "-d", made / _CLASSES, "-cp", path, *sources)
        assert done.returncode == 0, done.stderr[-3000:]
        shutil.rmtree(found, ignore_errors=True)
        made.rename(found)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return found


def _class_path(file: Path) -> str:
    """Asks Maven for it, which downloads at night only."""
    quiet = ("-q", "-B") if os.environ.get("KEMU_NIGHTLY") == "1" else ("-q", "-B", "-o")
    done = _run("mvn", *quiet, "-f", SOURCES / "pom.xml", "dependency:build-classpath", f"-Dmdep.outputFile={file}")
    if done.returncode:
        wanted = [
            element.text for element in ET.parse(SOURCES / "pom.xml").iter() if element.tag.endswith("artifactId")
        ]
        pytest.skip(f"not beside the project: Maven's packages {', '.join(filter(None, wanted[1:]))}")
    return file.read_text().strip()


def _run(*command: object) -> subprocess.CompletedProcess[str]:
    words = [str(one) for one in command]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=BUILD_S)


def run(kubeconfig: Path, program: str, *arguments: str, timeout_s: float = 120.0) -> dict[str, Any]:
    """What a program printed. Raises AssertionError with its output when it fails."""
    folder = built()
    path = f"{folder / _CLASSES}:{(folder / _PATH).read_text().strip()}"
    namespace = arguments or (program.lower(),)
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", path, program, str(kubeconfig), *namespace],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    assert done.returncode == 0, f"{program}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result

"""Runs the script against one API server."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.kubectl import normalisers, proxies, scripts
from tests.realkube import binaries

MANIFESTS = Path(__file__).parent / "manifests"
COMMAND_S = 60.0
_UID = re.compile(r"\{uid:([^}]+)\}")


@dataclass(frozen=True)
class Result:
    """What one command of kubectl printed, as it came."""

    name: str
    code: int
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """Comparable: code, then both outputs, normalised."""
        parts = [f"exit {self.code}\n"]
        parts.append(normalisers.normalise(self.stdout))
        if self.stderr:
            parts.append("\n--- stderr\n" + normalisers.normalise(self.stderr))
        return "".join(parts).rstrip() + "\n"


class Session:
    """kubectl and the components' writes go through one recorder (so the exchanges can be kept)."""

    def __init__(self, recorder: proxies.Recorder, folder: Path, tell: Callable[[Result], None] | None = None) -> None:
        self._recorder = recorder
        self._folder = folder
        self._tell = tell
        self._kubectl = binaries.find("kubectl")
        self._kubeconfig = folder / "kubectl.kubeconfig"
        name = "test"
        self._kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": name, "cluster": {"server": recorder.url}}],
                    "users": [{"name": name, "user": {}}],
                    "contexts": [
                        {"name": name, "context": {"cluster": name, "user": name, "namespace": scripts.NAMESPACE}}
                    ],
                    "current-context": name,
                }
            )
        )

    def run(self, steps: Iterable[scripts.Step]) -> list[Result]:
        results = []
        for step in steps:
            if isinstance(step, scripts.Write):
                self._write(step)
                continue
            self._recorder.step = step.name
            result = self._watch(step) if isinstance(step, scripts.Watch) else self._command(step)
            results.append(result)
            if self._tell is not None:
                self._tell(result)
        return results

    def _command(self, step: scripts.Command) -> Result:
        time.sleep(step.pause_s)
        environment = {}
        if step.editor:
            editor = self._folder / "editor"
            editor.write_text(f"#!/bin/sh\nexec sed -i -e '{step.editor}' \"$1\"\n")
            editor.chmod(0o755)
            environment["EDITOR"] = str(editor)
        done = subprocess.run(
            self._line(step.arguments),
            input=step.stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S,
            cwd=MANIFESTS,
            env=self._environment(**environment),
        )
        return Result(step.name, done.returncode, done.stdout, done.stderr)

    def _watch(self, step: scripts.Watch) -> Result:
        process = subprocess.Popen(
            self._line(step.arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=MANIFESTS,
            env=self._environment(),
        )
        # A watch that prints too little is ended, and differs.
        timer = threading.Timer(10.0, process.kill)
        timer.start()
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(step.before)]
        # The list is there; the watch opens within a moment.
        time.sleep(0.3)
        for write in step.writes:
            self._write(write)
            time.sleep(0.05)
        lines += [process.stdout.readline() for _ in range(step.lines - step.before)]
        timer.cancel()
        process.kill()
        process.communicate()
        return Result(step.name, 0, "".join(lines), "")

    def _write(self, write: scripts.Write) -> None:
        body = _UID.sub(lambda match: self._uid(match[1]), json.dumps(write.body))
        status, answer = self._recorder.request(write.method, write.path, body.encode(), write.content_type)
        if status >= 300 and not (write.may_exist and status == 409):
            raise RuntimeError(f"{write.method} {write.path}: {status} {answer.decode()[:1000]}")

    def _uid(self, path: str) -> str:
        status, answer = self._recorder.request("GET", path, None, "")
        if status != 200:
            raise RuntimeError(f"GET {path}: {status} {answer.decode()[:300]}")
        return str(json.loads(answer)["metadata"]["uid"])

    def _line(self, arguments: list[str]) -> list[str]:
        return [
            str(self._kubectl),
            f"--kubeconfig={self._kubeconfig}",
            f"--cache-dir={self._folder / 'cache'}",
            *arguments,
        ]

    def _environment(self, **more: str) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "HOME": str(self._folder), "TMPDIR": str(self._folder), "TZ": "UTC", **more}

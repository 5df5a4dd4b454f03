"""Which alerts of a file of rules would have fired in a run: judged by Prometheus itself, over virtual time.

promtool's unit tests of rules evaluate rules with the engine of Prometheus over series that are stated. The series are
those of the run; what the tests ask is when ``ALERTS`` was firing. promtool tells what it found by saying that it is
not what was expected.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kemu.emulated.real import executables
from kemu.errors import InfrastructureError, KemuError

_PATIENCE_S = 300.0
_FIRING = 'ALERTS{alertstate="firing"}'
_GOT = re.compile(r"^\s*got:\s?(.*)$", re.MULTILINE)
_SAMPLE = re.compile(r"\{([^{}]*(?:\"(?:[^\"\\]|\\.)*\"[^{}]*)*)\} ([-+.\dE]+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Fired(NamedTuple):
    alert: str
    labels: dict[str, str]
    first_s: float
    """Virtual seconds."""
    last_s: float


def promtool() -> str:
    """Raises ProgramMissing."""
    cache = executables.cache()
    found = shutil.which("promtool", path=f"{cache}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        text = f"this needs promtool of Prometheus (Debian: prometheus): neither in {cache} nor on the PATH"
        raise executables.ProgramMissing(text)
    return found


def fired(series: Iterator[tuple[str, list[tuple[str, int]]]], rules: Path, every_s: float) -> list[Fired]:
    """``series``: names with labels, and values with times in multiples of ``every_s``, in ns. Raises KemuError for
    rules that promtool refuses."""
    if not rules.is_file():
        raise KemuError(f"{rules}: there is no such file")
    tool = promtool()
    step_ns = round(every_s * 1e9)
    inputs, last = [], 0
    for name, samples in series:
        values, at = [], 0
        for value, time_ns in samples:
            place = time_ns // step_ns
            values += ["_"] * (place - at) + [value]
            at = place + 1
        last = max(last, at)
        inputs.append({"series": name, "values": " ".join(values)})
    end_s = math.ceil(last * every_s)
    over = f"[{end_s + 1}s:{every_s:g}s]"
    asked = [f"{which}_over_time(timestamp({_FIRING}){over})" for which in ("min", "max")]
    test = {
        "rule_files": [str(rules.resolve())],
        "evaluation_interval": f"{every_s:g}s",
        "tests": [
            {
                "interval": f"{every_s:g}s",
                "input_series": inputs,
                # A sample that cannot be found, so that promtool tells what there is.
                "promql_expr_test": [
                    {"expr": expr, "eval_time": f"{end_s}s", "exp_samples": [{"labels": "nothing", "value": 1}]}
                    for expr in asked
                ],
            }
        ],
    }
    first, latest = _ask(tool, test, rules)
    return sorted(
        (Fired(dict(labels)["alertname"], _own(dict(labels)), first[labels], latest[labels]) for labels in first),
        key=lambda one: (one.first_s, one.alert, sorted(one.labels.items())),
    )


def _ask(tool: str, test: object, rules: Path) -> list[dict[tuple[tuple[str, str], ...], float]]:
    with tempfile.TemporaryDirectory(prefix="kemu-rules-") as folder:
        file = Path(folder) / "test.yaml"
        # JSON is YAML.
        file.write_text(json.dumps(test), "utf-8")
        try:
            done = subprocess.run(
                [tool, "test", "rules", str(file)], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InfrastructureError(f"{tool}: {error}") from None
    told = _GOT.findall(done.stdout + done.stderr)
    if len(told) != len(test["tests"][0]["promql_expr_test"]):  # type: ignore[index]
        raise KemuError(f"{rules}: {(done.stderr or done.stdout).strip().replace(str(file), 'promtool')}")
    return [{tuple(_LABEL.findall(labels)): float(value) for labels, value in _SAMPLE.findall(text)} for text in told]


def _own(labels: dict[str, str]) -> dict[str, str]:
    """Without those that every alert has."""
    return {name: value for name, value in labels.items() if name not in ("alertname", "alertstate")}

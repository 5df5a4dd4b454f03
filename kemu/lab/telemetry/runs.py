"""What tells the traces of one run from those of others.

UIDs follow from a scenario's seed, so pods of different runs share them. Trace ids are therefore hashes of a UID *and*
of the run: its scenario, seed, variant and runtime, the digest of the scenario with its overrides, and an id of the
run, which on Ray is drawn for each run and in virtual time is empty unless the user chooses one. A run in virtual time
thus has the same ids wherever and however often it is made.

Role: the runner writes what is needed into the header of the run log (:func:`header`); exports read it from there.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kemu.errors import KemuError

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class Run:
    """A run, as its traces know it."""

    key: str
    """All that its trace ids depend on, apart from UIDs."""
    chosen: str = ""
    """The id that the user chose, or that was drawn on Ray."""
    scenario: str = ""
    seed: int = 0
    variant: str = ""
    """As in ``queue=fifo nomination=off``; empty where there is no matrix."""
    runtime: str = ""

    @property
    def name(self) -> str:
        """``kemu.run``, by which a collector finds its spans."""
        return self.chosen or self.key[:16]

    def trace_id(self, uid: str) -> int:
        """128 bits, never 0."""
        return int.from_bytes(hashlib.sha256(f"{self.key}\0{uid}".encode()).digest()[:16], "big") or 1

    def renamed(self, run_id: str) -> Run:
        """The same run under an id of its own: its traces are others."""
        return replace(self, key=_digest(self.key, run_id), chosen=checked(run_id))

    def moved(self, epoch_unix_ns: int) -> Run:
        """The same run at another time: exports at different times do not mix."""
        return replace(self, key=_digest(self.key, epoch_unix_ns))


def header(*, document: str, variant: str, runtime: str, run_id: str) -> dict[str, str]:
    """What the header of a run log has to say for its traces. ``document``: the scenario as it is run. ``run_id``: as
    the user chose it, or empty. Raises KemuError for an id that is none."""
    if run_id:
        checked(run_id)
    elif runtime not in ("", "sim"):
        run_id = secrets.token_hex(8)
    return {"variant": variant, "document": hashlib.sha256(document.encode()).hexdigest(), "run": run_id}


def of_header(found: Mapping[str, Any]) -> Run:
    """The run of a log. Headers of older logs tell less."""
    scenario, seed = str(found.get("scenario", "")), int(found.get("seed", 0))
    variant, runtime = str(found.get("variant", "")), str(found.get("runtime", ""))
    chosen = str(found.get("run", ""))
    key = _digest(scenario, seed, variant, runtime, str(found.get("document", "")), chosen)
    return Run(key, chosen, scenario, seed, variant, runtime)


def checked(run_id: str) -> str:
    """Raises KemuError unless it can be typed, searched for and stand in a URL."""
    if not _RUN_ID.fullmatch(run_id):
        raise KemuError(f"--run-id {run_id!r}: up to 63 letters, digits, dots, dashes and underscores")
    return run_id


def _digest(*values: str | int) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()

"""A cluster of ``kemu up`` for the tests of programs that speak with one: controllers, operators, kubectl scripts.

    with embedded.up(nodes=3) as cluster:
        client = kubernetes.config.new_client_from_config(str(cluster.kubeconfig))
        ...
        cluster.step(until="deployment/web rolledOut")

Its clock stands still until the test lets time pass, so a test of what takes minutes takes as long as its requests. The
cluster lives in a thread of this process. The pytest plugin offers it as the fixture ``kemu_up``.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from kemu.errors import KemuError
from kemu.lab.scenario import forms
from kemu.lab.scenario.playing.runner import RunResult
from kemu.lab.up import clusters, remotes, sessions
from kemu.lab.up.virtual import drivers
from kemu.lab.up.virtual import sessions as virtual
from kemu.runtime import garbage

START_S = 60.0
"""Real time within which a cluster is up."""
REAL_S = 300.0
"""Real time that a step may take."""

SessionT = TypeVar("SessionT", bound=virtual.Session)


class Cluster:
    """One that is up. Times are virtual."""

    def __init__(self, up: sessions.Up, flush: Callable[[], None] = lambda: None) -> None:
        """``flush``: brings the run log up to date."""
        self.kubeconfig = up.kubeconfig
        self.url = up.url
        self.token = up.token
        self.folder = up.folder
        """The run folder; ``kemu replay`` repeats it."""
        self.result: RunResult | None = None
        """After its end: the run, judged."""
        self.flush = flush
        """The run log in :attr:`folder` tells all that has happened so far."""
        self._remote = remotes.Remote(up.kubeconfig)

    @property
    def now_s(self) -> float:
        return float(self._remote.call("GET", "clock")["now_s"])

    def step(
        self,
        seconds: float | None = None,
        *,
        until: str = "",
        idle: bool = False,
        namespace: str = "default",
        seen_by: str = "",
        real_s: float = REAL_S,
    ) -> bool:
        """Let time pass: so many seconds, or until a condition holds (docs/up.md has them), or until nothing is left to
        do. ``seconds``: the limit of those, an hour if nothing says so. Returns whether it came to that: a condition
        that does not hold within the limit raises AssertionError.

        ``seen_by``: the condition holds only when watches of this client, a pattern of its User-Agent up to the first
        space, have delivered the objects. ``real_s``: the limit in real time; KemuError says who kept the clock from
        passing."""
        if seconds is None:
            if not until and not idle:
                raise ValueError("how long? step(10), step(until='pod/a running'), step(idle=True)")
            seconds = 3600.0
        asked = {
            "seconds": seconds,
            "until": until,
            "idle": idle,
            "namespace": namespace,
            "seen_by": seen_by,
            "real_s": real_s,
        }
        found = self._remote.step(asked)
        if found["ended"] == "late":
            raise KemuError(remotes.late(found, real_s))
        if until and found["ended"] != "reached":
            seen = f" as {seen_by} has seen it" if seen_by else ""
            raise AssertionError(f"at {found['now_s']:.3f} s: {until}{seen} does not hold after {seconds:g} s")
        return bool(found["ended"] != "deadline") or not (until or idle)

    def chaos(self, fault: Mapping[str, Any]) -> str:
        """A fault as in a scenario, which begins now: ``{"refuse": {"code": 409, "verb": "patch", "nth": 3}}``. Returns
        its id."""
        return str(self._remote.call("POST", "chaos", dict(fault))["id"])

    def heal(self, fault: str) -> None:
        """End a fault. Raises KemuError for one that is not in force."""
        self._remote.call("DELETE", f"chaos/{fault}")

    def faults(self) -> Sequence[Mapping[str, Any]]:
        """Those that have begun, with ``hits``."""
        found: list[Mapping[str, Any]] = self._remote.call("GET", "chaos")["faults"]
        return found

    def script(self) -> str:
        """What has struck so far, for ``kemu up --chaos``."""
        return self._remote.text("GET", "chaos.yaml")


@contextlib.contextmanager
def up(
    scenario: forms.Source | None = None,
    *,
    nodes: int = 3,
    settings: Mapping[str, Any] | None = None,
    chaos: Sequence[Mapping[str, Any]] = (),
    folder: Path | None = None,
    settle_s: float = drivers.SETTLE_S,
    date: dt.datetime | None = None,
) -> Iterator[Cluster]:
    """``scenario``: as in :func:`kemu.run`; None: so many ``nodes`` with everything a cluster has. ``settings``: values
    by paths below spec. ``chaos``: faults in place of the scenario's. ``settle_s``: real time without a word from
    clients after which they are taken to have reacted. ``date``: when the virtual time begins; None: now.

    Raises ScenarioError and KemuError; at the end AssertionError where a check or an expectation does not hold.
    """
    settle()
    given = {"duration": f"{clusters.FOREVER_S}s", "heartbeats": "exact", **(settings or {})}
    if chaos:
        given["chaos"] = list(chaos)
    made = clusters.of_nodes(nodes, given) if scenario is None else forms.load(scenario, given)
    with tempfile.TemporaryDirectory(prefix="kemu-up-") as own:
        epoch_unix_s = int(time.time() if date is None else date.timestamp())
        place = sessions.Settings(out=folder or Path(own), epoch_unix_s=epoch_unix_s)
        running = Running(lambda on_up: virtual.Session(clusters.completed(made), place, on_up, None, settle_s))
        cluster = running.start()
        try:
            yield cluster
        finally:
            cluster.result = running.end()
        verdict = cluster.result.verdict
        if verdict["verdict"] == "fails":
            raise AssertionError(verdict["headline"])


@functools.cache
def settle() -> None:
    """Collections between clusters look at what the last one has left, not at all the modules of the process: half of
    the time until a cluster is up."""
    garbage.settle()


class Running(Generic[SessionT]):
    """The thread in which a cluster lives."""

    def __init__(self, make: Callable[[Callable[[sessions.Up], None]], SessionT]) -> None:
        """``make``: makes its session, of what is to be told when clients can call."""
        self._up: sessions.Up | None = None
        self._ready = threading.Event()
        self._result: RunResult | None = None
        self._error: BaseException | None = None
        self.session = make(self._on_up)
        self._over = threading.Event()

    def _on_up(self, found: sessions.Up) -> None:
        self._up = found
        self._ready.set()

    def run(self) -> None:
        """All of it, in this thread."""
        try:
            self._result = self.session.run()
        except BaseException as error:
            self._error = error
        finally:
            self._over.set()
            self._ready.set()

    def start(self) -> Cluster:
        threading.Thread(target=self.run, name="kemu up", daemon=True).start()
        return self.up()

    def up(self) -> Cluster:
        """As soon as it is. Raises what its start raised."""
        if not self._ready.wait(START_S):
            raise KemuError(f"no cluster after {START_S:g} s")
        if self._up is None:
            assert self._error is not None
            raise self._error
        return Cluster(self._up, self.session.flush)

    def end(self) -> RunResult:
        self.session.stop()
        self._over.wait()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

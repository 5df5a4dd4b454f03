"""One trial: a cluster in virtual time, the controllers as children of this process, the steps, and perturbations."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import json
import math
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.gateway.asgi import Application
from kemu.emulated.objects import identities
from kemu.errors import KemuError
from kemu.lab.hunt import projects
from kemu.lab.hunt.courses import Course, Start
from kemu.lab.hunt.perturbations import Kind, Perturbation
from kemu.lab.hunt.projects import READY_S, Named, Project, Step
from kemu.lab.hunt.running.alarms import Alarms
from kemu.lab.hunt.running.interceptors import Interceptor
from kemu.lab.hunt.running.processes import Process
from kemu.lab.hunt.running.strikes import Strikes
from kemu.lab.hunt.running.users import User
from kemu.lab.hunt.running.watches import LEASES
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.up import clusters, embedded, kubeconfigs, remotes, sessions
from kemu.lab.up.virtual import drivers
from kemu.lab.up.virtual import sessions as virtual
from kemu.runtime import user_code
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import Transaction

EPOCH_UNIX_S = 1_767_225_600
"""2026-01-01: all trials begin at the same time."""
_GONE_S = 120.0
"""For the end of what a step makes anew."""
RESTLESS_S = 20.0
"""Real time that controllers may take for what they do in a second of virtual time."""
_BACKOFF_S = (1.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
"""Virtual time after which a controller that has ended by itself is started again."""
_LOOK_S = 0.1
"""Real time between two looks whether a controller that is late is at work."""
_USER = "hunt-"
"""Names of the users as which controllers come, without those of the controllers."""


@dataclass
class Outcome:
    """What a trial came to."""

    folder: Path
    course: Course
    stuck: list[int] = field(default_factory=list)
    """Places of the steps that waited in vain."""
    refused: dict[int, str] = field(default_factory=dict)
    """What the API server said to steps that it refused, by their places."""
    crashes: dict[str, list[str]] = field(default_factory=dict)
    """Of controllers that panicked, or ended by themselves and never were there again."""
    exits: dict[str, list[str]] = field(default_factory=dict)
    """Of others that ended by themselves, and were started again as a kubelet does it."""
    failed: list[str] = field(default_factory=list)
    """Properties that do not hold."""
    is_stale: bool = False
    is_mutated: bool = False
    """For a while the controller saw what was old."""
    absent: dict[str, str] = field(default_factory=dict)
    """Second replicas that were started for a handover, and were not there: why."""
    struck: bool = True
    """All perturbations came about."""
    real_s: float = 0.0
    now_s: float = 0.0
    deeds: list[tuple[int, int]] = field(default_factory=list)
    """When each step began, in ns, with its place."""
    begun_ns: int = 0
    """When the first step began: what came before is set-up."""

    def objects(self) -> Mapping[str, Mapping[str, Any]]:
        return self.course.objects()

    def counted(self) -> dict[str, Counter[str]]:
        """Objects that were ``created`` and ``deleted`` after set-up, by kind; without those that were created when
        their owners were gone already."""
        course = self.course
        belated = course.belated(self.begun_ns)
        found: dict[str, Counter[str]] = {"created": Counter(), "deleted": Counter()}
        for one in course.changes:
            what = "created" if one.is_new else "deleted" if one.value is None else ""
            if what and one.time_ns >= self.begun_ns and (one.key, one.revision) not in belated:
                found[what][course.named(one.key).kind] += 1
        return found


class Session(virtual.Session):
    """A cluster whose controllers are perturbed."""

    def __init__(self, project: Project, folder: Path, on_up: Callable[[sessions.Up], None], port: int = 0) -> None:
        controllers = project.with_seconds({one.name for one in project.controllers}).controllers
        users = tuple(identities.of_name(f"{_USER}{one.name}", (identities.MASTERS,)) for one in controllers)
        place = sessions.Settings(out=folder, epoch_unix_s=EPOCH_UNIX_S, users=users, force=True, port=port)
        super().__init__(scenario(project), place, on_up, None, project.settle_s)
        self.trial: Trial | None = None
        self._early: list[tuple[int, Transaction]] = []
        """What has happened before there was a trial."""

    def before(self, app: Application) -> Application:
        assert self.trial is not None
        app = self.trial.intercept(app)
        early, self._early = self._early, []
        for time_ns, data in early:
            self.trial.strikes.changed(time_ns, data)
        return app

    def listen(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        super().listen(time_ns, actor, kind, data)
        if not isinstance(data, Transaction):
            return
        if self.trial is None:
            self._early.append((time_ns, data))
        else:
            self.trial.strikes.changed(time_ns, data)


def scenario(project: Project) -> Scenario:
    """The cluster of all trials. Large definitions take longer to read than a trial does for the rest."""
    settings = {
        "duration": f"{clusters.FOREVER_S}s",
        "heartbeats": "exact",
        "apiServers.webhooks": "call",
        **project.settings,
    }
    if project.properties:
        settings["expect"] = list(project.properties)
    files = [file for one in project.manifests for file in (sorted(one.rglob("*")) if one.is_dir() else [one])]
    stamps = tuple((str(file), file.stat().st_mtime_ns) for file in files)
    return _made(project.here, project.nodes, json.dumps(settings), project.manifests, stamps)


def prepare(project: Project) -> None:
    """This process is to have trials of it."""
    embedded.settle()
    user_code.look_in(project.here)  # for functions that answer for containers


@functools.lru_cache(maxsize=1)
def _made(here: Path, nodes: int, settings: str, manifests: Sequence[Path], stamps: object) -> Scenario:
    """``here`` and ``stamps``: what it would be read anew for."""
    return clusters.completed(clusters.of_nodes(nodes, json.loads(settings), manifests))


class Trial:
    """See the module. Methods but :meth:`run` are called in the thread of the cluster."""

    def __init__(
        self, project: Project, folder: Path, steps: Sequence[Step], perturbations: Sequence[Perturbation] = ()
    ) -> None:
        self._stated = {one.name for one in project.controllers}
        self._project = project.with_seconds({one.controller for one in perturbations if one.what == Kind.DEPOSE})
        self._folder = folder
        self._steps = steps
        self._course = Course()
        self._outcome = Outcome(folder, self._course, is_stale=any(one.makes_old for one in perturbations))
        self._outcome.is_mutated = any(one.field for one in perturbations)
        self.strikes = Strikes(perturbations, self._course, self)
        self._processes: dict[str, Process] = {}
        self._ready: dict[str, threading.Event] = {}
        self._alarms: dict[str, Alarms] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._over = False
        self._owed_s = 0.0
        """How long the user waits after his next change, as he has not done so before."""

    # The thread of the hunt

    def run(self) -> Outcome:
        """Raises KemuError where the cluster or a controller cannot be started, or a step cannot be read."""
        prepare(self._project)
        running = embedded.Running(functools.partial(Session, self._project, self._folder))
        return self.run_in(running, running.start)

    def run_in(self, running: embedded.Running[Session], start: Callable[[], embedded.Cluster]) -> Outcome:
        """In a cluster that is begun by ``start``, or elsewhere."""
        begun = time.monotonic()
        project, outcome = self._project, self._outcome
        self._session = running.session
        self._session.trial = self
        cluster = start()
        try:
            self._start(cluster)
            outcome.begun_ns = round(cluster.now_s * SECOND_NS)
            user = self._user = User(cluster, self._course)
            for index, step in enumerate(self._steps):
                self._do(cluster, user, index, step)
            cluster.step(project.rest_s)
            outcome.now_s = cluster.now_s
        finally:
            for alarms in self._alarms.values():
                self._in_cluster(alarms.close)
            self._over = True
            down = {name for name, process in self._processes.items() if not process.runs and not process.is_spare}
            for process in self._processes.values():
                process.stop()
            result = running.end()
        for name, process in self._processes.items():
            if process.panics or name in down:
                outcome.crashes[name] = list(dict.fromkeys([*process.panics, *process.crashes]))
            elif process.crashes:
                outcome.exits[name] = process.crashes
        outcome.failed = [one["id"] for one in result.verdict["expectations"] if one["holds"] is False]
        outcome.struck = self.strikes.all_came and not outcome.absent
        outcome.real_s = time.monotonic() - begun
        return outcome

    def _start(self, cluster: embedded.Cluster) -> None:
        document = kubeconfigs.read(cluster.kubeconfig) or {}
        tokens: dict[bytes, str] = {}
        port, other_port = _free_port(), _free_port()
        for controller in self._project.controllers:
            user = f"{_USER}{controller.name}"
            own = next(one["user"] for one in document["users"] if one["name"] == f"{user}@{kubeconfigs.NAME}")
            tokens[own["token"].encode()] = controller.name
            file = self._folder / f"kubeconfig.{controller.name}"
            users = [{"name": user, "user": own}]
            contexts = [{"name": user, "context": {"cluster": kubeconfigs.NAME, "user": user}}]
            file.write_text(yaml.safe_dump({**document, "users": users, "contexts": contexts, "current-context": user}))
            file.chmod(0o600)
            words = {
                "kubeconfig": str(file.absolute()),
                "folder": str(self._folder.absolute()),
                "here": str(self._project.here),
                "operators": str(projects.operators()),
                "port": str(other_port if controller.stands_by else port),
                "python": sys.executable,
                "clock": str((self._folder / "clock").absolute()),
            }
            name = controller.name
            self._ready[name] = threading.Event()
            self._processes[name] = Process(
                controller,
                words,
                self._project.here,
                self._folder / f"{name}.log",
                lambda name=name: self._in_cluster(lambda: self._is_ready(name)),  # type: ignore[misc]
                lambda name=name: self._in_cluster(lambda: self._has_ended(name)),  # type: ignore[misc]
            )
        self._interceptor.tokens = tokens
        standing_by = [one.name for one in self._project.controllers if one.stands_by]
        self._launch_all(cluster, [name for name in self._processes if name not in standing_by])
        if standing_by:  # the others lead already
            self._launch_all(cluster, standing_by)

    def _launch_all(self, cluster: embedded.Cluster, names: Sequence[str]) -> None:
        """Raises KemuError where one cannot be started."""
        for name in names:
            self._in_cluster(lambda name=name: self._launch(name))  # type: ignore[misc]
        for name in names:
            process, ready = self._processes[name], self._ready[name]
            begun = time.monotonic()
            while not ready.wait(0.02) and not process.crashes and not _is_too_late(process, READY_S, begun):
                pass
            if process.crashes or not ready.is_set():
                why = (
                    process.crashes[0]
                    if process.crashes
                    else f"it was not ready within {time.monotonic() - begun:.0f} s"
                )
                if name not in self._stated:
                    self._outcome.absent[name] = why
                    process.may_end()
                    self._in_cluster(lambda name=name: self._is_ready(name))  # type: ignore[misc]
                    continue
                raise KemuError(f"controller {name}: {why}; its output is in {self._folder / f'{name}.log'}")
        cluster.step(1)

    def _in_cluster(self, call: Callable[[], None]) -> None:
        """From another thread."""
        loop = self._session.loop_outside
        if loop is not None and not self._over:
            with contextlib.suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(call)

    def _do(self, cluster: embedded.Cluster, user: User, index: int, step: Step) -> None:
        self._outcome.deeds.append((round(cluster.now_s * SECOND_NS), index))
        try:
            if step.what in ("wait", "until") and self._is_hasty(user, index):
                return
            if step.what == "wait":
                cluster.step(step.seconds)
            elif step.what == "until":
                cluster.step(step.seconds, until=user.condition(step), namespace=_namespace(step))
            else:
                for condition, namespace in user.ends(step):
                    cluster.step(_GONE_S, until=condition, namespace=namespace)
                user.do(step)
                cluster.step(0.1 + self._owed_s)
                self._owed_s = 0.0
        except AssertionError:
            self._outcome.stuck.append(index)
        except remotes.NoAnswer:
            raise
        except KemuError as error:
            self._outcome.refused[index] = str(error)

    def _is_hasty(self, user: User, index: int) -> bool:
        """Whether the user does not wait: a controller does not see what he wants before he wants something else. He
        waits thereafter, so that what follows has as much time as without."""
        hidden = self.strikes.hidden_wishes()
        meant = {key for one in self._steps[index + 1 :] for key in user.keys(one)}
        lasts_s = [lasts_s for key, lasts_s in hidden.items() if key in meant]
        if lasts_s:
            self._owed_s = max(lasts_s)
        return bool(lasts_s)

    # The thread of the cluster

    def intercept(self, app: Application) -> Application:
        session = self._session

        def told() -> None:
            if session.driver is not None:
                session.driver.told()

        def now_ns() -> int:
            return 0 if session.driver is None else session.driver.now_ns()

        async def sleep(seconds: float) -> None:
            if session.driver is not None:
                await session.driver.sleep(seconds)

        self._sleep = sleep
        self._interceptor = Interceptor(app, self._course, now_ns, sleep, told, self.strikes, self._begins_watch)
        self._interceptor.hold = lambda what: session.driver.hold(what) if session.driver is not None else None
        self._interceptor.release = lambda what: session.driver.release(what) if session.driver is not None else None
        self._interceptor.is_busy = lambda name: self._processes[name].is_busy()
        self.strikes.interceptor = self._interceptor
        return self._interceptor

    def _launch(self, name: str) -> None:
        """Time stands until it is ready."""
        assert self._session.driver is not None
        self._session.driver.hold(_starting(name))
        self._session.driver.is_busy = lambda: any(one.is_busy() for one in self._processes.values())
        self._session.driver.rest_s = self._rest_s
        self._session.driver.computed_s = lambda: sum(one.computed_s() for one in self._processes.values())
        self._session.driver.naps = lambda: any(one.naps() for one in self._processes.values())
        self._session.driver.restless_s = RESTLESS_S
        self._interceptor.deaf.discard(name)
        self._course.starts.append(Start(self._session.driver.now_ns(), name))
        alarms = Alarms(self._session.driver, EPOCH_UNIX_S)
        try:
            self._processes[name].start(alarms.there)
        except KemuError as error:
            self._processes[name].crashes.append(str(error))
            self._is_ready(name)
            return
        finally:
            alarms.there.close()
            if name in self._alarms:
                self._alarms[name].close()
            self._alarms[name] = alarms
        loop = self._session.loop_outside
        assert loop is not None
        loop.call_later(READY_S, self._is_late, name, self._processes[name].starts, time.monotonic())

    def _rest_s(self) -> float | None:
        """Real time for which no controller does anything by itself; None: that is not known."""
        least_s = math.inf
        for process in self._processes.values():
            rest_s = process.rest_s()
            if rest_s is None:
                return None
            least_s = min(least_s, rest_s)
        return least_s

    def _is_late(self, name: str, starts: int, begun: float) -> None:
        process, loop = self._processes[name], self._session.loop_outside
        if self._over or process.starts != starts or self._ready[name].is_set():
            return
        if _is_too_late(process, READY_S, begun) or loop is None:
            self._is_ready(name)  # if it never is, the end shows it
        else:
            loop.call_later(_LOOK_S, self._is_late, name, starts, begun)

    def _has_ended(self, name: str) -> None:
        """By itself. It is started again, as a kubelet does it: at once, and then after a while."""
        process, starts = self._processes[name], self._processes[name].starts
        if not self._outcome.begun_ns:
            return
        self._is_ready(name)
        after_s = _BACKOFF_S[min(len(process.crashes), len(_BACKOFF_S)) - 1]

        def start() -> None:
            if not self._over and process.starts == starts and not process.runs:
                self._launch(name)

        self.later(after_s, start)

    def _is_ready(self, name: str) -> None:
        self._ready[name].set()
        if name in self._alarms:
            self._alarms[name].begin()
        if self._session.driver is not None:
            self._session.driver.release(_starting(name))

    def _begins_watch(self, name: str, resource: str) -> None:
        controller = self._processes[name].controller
        if controller.stands_by if resource == LEASES else not controller.ready:
            self._is_ready(name)

    def restart(self, name: str) -> None:
        assert self._session.driver is not None
        self._session.driver.hold(_starting(name))
        self._interceptor.deaf.add(name)
        self._ready[name].clear()

        def restart() -> None:
            self._processes[name].kill()
            self._soon(lambda: self._launch(name))  # what is still under way of the dead one ends first

        self._soon(restart)

    def later(self, seconds: float, call: Callable[[], object]) -> None:
        """After so much virtual time."""

        async def wait() -> None:
            with contextlib.suppress(drivers.Ended):
                await self._sleep(seconds)
                call()

        loop = self._session.loop_outside
        assert loop is not None
        self._soon(lambda: self._tasks.append(loop.create_task(wait())))

    def patch(self, subject: Named, change: Mapping[str, Any], refused: Callable[[], object]) -> None:
        """By the user, at once. ``refused``: told if it cannot be."""
        driver, what = self._session.driver, f"a change of {subject}"
        assert driver is not None
        driver.hold(what)

        def ask() -> None:
            try:
                self._user.do(Step("patch", subject, change=change))
            except KemuError:
                refused()
            finally:
                self._in_cluster(lambda: driver.release(what))

        self._soon(threading.Thread(target=ask, name=what, daemon=True).start)

    def let_end(self, name: str) -> None:
        """If it ends from now on, that is no crash."""
        self._processes[name].may_end()

    def hold(self, name: str, what: str, real_s: float) -> None:
        """Time waits for something that a controller is to do, in words, until it is released, or so much real time
        has passed; longer while the controller is at work."""
        loop, driver = self._session.loop_outside, self._session.driver
        assert loop is not None
        assert driver is not None
        if name in self._alarms and self._alarms[name].is_used:
            return  # its backoff takes virtual time
        driver.hold(what)
        begun = time.monotonic()

        def end() -> None:
            if self._over or _is_too_late(self._processes[name], real_s, begun):
                driver.release(what)
            else:
                loop.call_later(_LOOK_S, end)

        loop.call_later(real_s, end)

    def release(self, what: str) -> None:
        if self._session.driver is not None:
            self._session.driver.release(what)

    def _soon(self, call: Callable[[], None]) -> None:
        """Outside of the emulated world, in which an actor may be at work now."""
        loop = self._session.loop_outside
        assert loop is not None
        loop.call_soon(call, context=contextvars.Context())


def _is_too_late(process: Process, most_s: float, begun: float) -> bool:
    """Whether nobody waits any more for what a controller is to do since then. One that is at work may wait for a core
    all the time."""
    passed_s = time.monotonic() - begun
    return passed_s > (drivers.BUSY_TIMES * most_s if process.is_busy() else most_s)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _namespace(step: Step) -> str:
    return step.namespace if step.subject is None else step.subject.namespace


def _starting(name: str) -> str:
    return f"controller {name} to be ready"

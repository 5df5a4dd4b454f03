"""A cluster to program against: a test creates pods, waits for what should happen, breaks things, and looks.

    async with kemu.cluster(nodes=3, schedulers=[MyScheduler]) as cluster:
        await cluster.create(kemu.pod("a", cpu="1"))
        await cluster.eventually(lambda: cluster.pod("a").running, within=30)

In virtual time it runs inside :func:`kemu.simulate`, or in a test of the pytest plugin; with ``runtime="wall"`` or
``"ray"`` on any asyncio loop. At the end of the block all checks judge the run, and :class:`kemu.RunFailed` says which
do not hold.

Role: :mod:`kemu.lab.scenario.playing.plays` with the program in place of a scenario's events.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import tempfile
import time
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from google.protobuf.message import Message

from kemu.doors.api import reports, views
from kemu.doors.api.runs import Run
from kemu.doors.api.simulations import current
from kemu.emulated.client import clients, retries
from kemu.emulated.objects import resources
from kemu.emulated.settings import documents
from kemu.emulated.settings.shapes import Report
from kemu.errors import KemuError, ScenarioError
from kemu.lab.checks.counters import counts
from kemu.lab.exploration import executions
from kemu.lab.scenario import forms
from kemu.lab.scenario.loading.objects import manifests
from kemu.lab.scenario.playing import judging, plans, plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import DEFAULT_SCHEDULER, Scenario
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime import tasks, user_code
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.events import FaultEnded
from kemu.runtime.runtimes import Runtime
from kemu.runtime.sim.simulation import SimRuntime

T = TypeVar("T")

TESTER = "user/test"
"""The program, in the run log."""
LIMIT = "24h"
"""How long a cluster lives at most, in the eyes of expectations."""
LOOK_EVERY_S = 0.1
"""How often an awaitable predicate is asked again."""
_SEEN_WITHIN_S = 10.0
"""On Ray the log comes a little later than the answers of the API server."""


class NoSuchPod(KeyError):
    """There has been no pod of that name so far."""


SchedulerLike = str | Mapping[str, Any] | Callable[..., Any]
"""A name, an entry as in a scenario (whose ``factory`` may be a class), or a class: a scheduler of one's own."""


def pod(
    name: str,
    *,
    cpu: str | int | float | None = None,
    memory: str | int | None = None,
    priority: int | str | None = None,
    scheduler: str = "",
    node: str = "",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    run_s: float | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """The manifest of a pod with one container.

    ``cpu`` (cores, or a quantity such as ``"500m"``) and ``memory`` (bytes, or a quantity) are requests. ``priority``:
    the name of a PriorityClass. ``scheduler``: its ``schedulerName``. ``node``: bound there from the start. ``run_s``:
    how many seconds it runs before it ends by itself; None: for ever. ``spec``: further fields of its spec, as in YAML.
    """
    requests = {name: str(amount) for name, amount in (("cpu", cpu), ("memory", memory)) if amount is not None}
    container: dict[str, Any] = {"name": "main", **({"resources": {"requests": requests}} if requests else {})}
    stated = {**(annotations or {}), **({} if run_s is None else {manifests.RUN_SECONDS: f"{run_s:g}"})}
    body = {"containers": [container], **spec}
    named = {"priorityClassName": priority, "schedulerName": scheduler, "nodeName": node}
    body |= {field: value for field, value in named.items() if value}
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    metadata |= {"labels": dict(labels)} if labels else {}
    metadata |= {"annotations": stated} if stated else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def cluster(
    scenario: forms.Source | None = None,
    *,
    nodes: int | Sequence[str | Mapping[str, Any]] | None = None,
    schedulers: Sequence[SchedulerLike] | None = None,
    seed: int | None = None,
    runtime: str = "sim",
    speed: float = 1.0,
    settings: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Cluster:
    """A cluster, to be used in ``async with``.

    ``scenario``: begin with this one (as in :func:`kemu.run`), whose events, workloads, faults and expectations count.
    ``nodes``: how many (``node-1`` …, 8 CPUs and 32 GiB each), or their names, or entries as in a scenario; 1 if
    nothing says so. ``schedulers``: kemu's by name, entries as in a scenario, or classes of one's own
    (docs/own-schedulers.md); a single class serves ``default-scheduler``, several their class names in lower case.
    ``seed``: None: that of the simulation. ``runtime``: ``sim``, or ``wall`` or ``ray`` with ``speed`` virtual
    seconds for each real one. ``settings``: values by paths below spec. ``spec``: anything else that a scenario's spec
    may hold: ``priorityClasses={"high": 1000}``, ``controllers=["replicaset"]``, ``expect=[…]``.

    Raises ScenarioError with all mistakes.
    """
    if runtime not in ("sim", "wall", "ray"):
        raise ValueError(f"runtime must be sim, wall or ray, not {runtime!r}")
    given = dict(spec)
    if nodes is not None or scenario is None:
        given["nodes"] = _nodes(1 if nodes is None else nodes)
    if schedulers is not None:
        given["schedulers"] = _schedulers(schedulers, runtime)
    # It is not known beforehand when faults come, so that heartbeats must be messages.
    given.setdefault("heartbeats", "exact")
    if scenario is None:
        loaded = forms.load({"duration": LIMIT, **given}, settings, name="cluster")
    else:
        loaded = forms.load(scenario, {**given, **(settings or {})})
    if loaded.variants:
        raise ValueError("a cluster cannot be a matrix: settings may pin its paths")
    return Cluster(loaded, seed, runtime, speed)


class Cluster:
    """A cluster that runs. Times are virtual seconds since its start.

    Made by :func:`kemu.cluster`. Names of pods are ``web-0``, or ``namespace/web-0`` outside of namespace ``default``;
    actors are named as in scenarios: ``store``, ``apiserver/0``, ``scheduler/default-scheduler/0``, ``kubelet/node-1``.
    """

    def __init__(self, scenario: Scenario, seed: int | None, runtime: str, speed: float) -> None:
        self.scenario = scenario
        self.run: Run | None = None
        """After the block: the run, judged."""
        self._seed = seed
        self._runtime_name = runtime
        self._speed = speed
        self._faults = 0
        self._changed: list[asyncio.Future[None]] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    # The block

    async def __aenter__(self) -> Self:
        seed = self._seed
        if self._runtime_name == "sim":
            simulation = current()
            if simulation is None:
                raise KemuError(
                    "a cluster in virtual time needs virtual time around it: kemu.simulate(main), or a test with"
                    " @pytest.mark.kemu; or runtime='ray'"
                )
            seed = simulation.seed if seed is None else seed
        if seed is not None and seed != self.scenario.seed:
            self.scenario = forms.load(self.scenario, {"seed": seed})
        scenario, name = self.scenario, self._runtime_name
        self._judge = judging.Judge(scenario, 0.0 if name == "sim" else self._speed)
        self._log = executions.Log(self._judge, keep=True)
        recorder = plays.Recorder(self._take, scenario, history=self._judge.history)
        self._beats = Heartbeats(scenario, name)
        self._runtime = self._sim(recorder) if name == "sim" else self._real(recorder)
        try:
            self.roster = await plays.start(self._runtime, scenario, self._beats)
            await self._runtime.begin()
            self._course = plays.Course(self._runtime, scenario, self._beats, self.roster, recorder.triggers)
            self._env = self._runtime.env(TESTER)
            self.client = clients.Client(self._env, plans.apiservers_of(scenario, 0))
            """For requests that the methods below do not make."""
            if name != "sim":
                await self._runtime.clock.started()
        except BaseException as error:
            await self._leave(error)
            raise
        return self

    def _sim(self, recorder: plays.Recorder) -> Runtime:
        plays.refuse_what_sim_cannot(self.scenario)
        simulation = current()
        assert simulation is not None
        scenario = self.scenario
        return SimRuntime(scenario.seed, recorder, scenario.timing, simulation.steer(), simulation.loop)

    def _real(self, recorder: plays.Recorder) -> Runtime:
        self._folder = tempfile.TemporaryDirectory(prefix="kemu-cluster-")
        plays.refuse_what_needs_virtual_time(self.scenario)
        make = self._wall if self._runtime_name == "wall" else self._ray
        runtime: Any = make(recorder, Path(self._folder.name))
        task = asyncio.current_task()
        assert task is not None
        runtime.attach(task)
        made: Runtime = runtime
        return made

    def _wall(self, recorder: plays.Recorder, directory: Path) -> Any:
        from kemu.runtime.wall.runtime import WallRuntime

        scenario = self.scenario
        plays.refuse_what_wall_cannot(scenario)
        return WallRuntime(
            scenario.seed,
            recorder,
            directory=directory,
            speed=self._speed,
            timing=scenario.timing,
            loop=asyncio.get_running_loop(),
        )

    def _ray(self, recorder: plays.Recorder, directory: Path) -> Any:
        from kemu.runtime.ray.driver.runtime import RayRuntime

        scenario = self.scenario
        return RayRuntime(
            scenario.seed,
            recorder,
            directory=directory,
            speed=self._speed,
            epoch_unix_s=int(time.time()),
            timing=scenario.timing,
            expected=plans.names(scenario, self._beats),
            code=plans.code(scenario),
            loop=asyncio.get_running_loop(),
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, GeneratorExit) or (isinstance(error, asyncio.CancelledError) and self._is_sim):
            return  # the simulation has ended, and drops its program
        self._course.cancel()
        end = None
        try:
            if not isinstance(error, asyncio.CancelledError):
                simulation = current()
                is_over = self._is_sim and simulation is not None and simulation.loop.is_idle()
                end = await self._course.end("idle" if is_over else "stopped")
        finally:
            await self._leave(error)
        if end is None:
            return
        judged = self._judge.conclude(end)
        data = judged.data(self._runtime_name, self._log.digester.digest())
        self.run = Run(self.scenario, data, _history=judged.history, _events=self._log.events)
        if error is None:
            self.run.check()
        elif isinstance(error, Exception):
            error.add_note(self._note())

    @property
    def _is_sim(self) -> bool:
        return self._runtime_name == "sim"

    async def _leave(self, error: BaseException | None) -> None:
        """Give the runtime back. On Ray raises what an actor raised, in place of the cancellation that it caused."""
        if self._is_sim:
            return
        runtime: Any = self._runtime
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None:
            task.uncancel()
        try:
            await runtime.detach()
        finally:
            assert self._folder is not None
            self._folder.cleanup()

    def _note(self) -> str:
        assert self.run is not None
        return reports.told(f"of {self!r}:", self.run.failures, self.run.history)

    def __repr__(self) -> str:
        return f"<kemu.Cluster {self._runtime_name}, seed {self.scenario.seed}, {len(self.scenario.nodes)} nodes>"

    def _take(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._log.take(time_ns, actor, kind, data)
        if self._changed:
            changed, self._changed = self._changed, []
            for waiter in changed:
                tasks.wake(waiter)

    # Looking: at once, at what has happened so far

    @property
    def now_s(self) -> float:
        return self._runtime.clock.now_ns() / SECOND_NS

    @property
    def pods(self) -> Mapping[str, views.Pod]:
        """All pods so far, deleted ones too, by name; of several that had one name, the last."""
        return views.all_of(self._judge.history)

    def pod(self, name: str) -> views.Pod:
        """Raises NoSuchPod, a KeyError, where there never was one of that name; to a predicate that means *not yet*."""
        found = self._judge.history.pod(name)
        if found is None:
            raise NoSuchPod(f"no pod {name}; there are: {', '.join(self.pods) or 'none'}")
        return views.of(self._judge.history, found)

    @property
    def waits(self) -> list[views.Wait]:
        return views.waits(self._judge.history)

    @property
    def counts(self) -> Mapping[str, int]:
        """The counters of expectations so far: ``pods_bound``, ``bind_conflicts``, … (docs/verdict.md)."""
        return counts(self._judge.history)

    def story(self, limit: int = reports.MOST_LINES) -> str:
        """What happened so far, as :meth:`kemu.Run.story`."""
        return "\n".join(reports.story(self._judge.history, limit))

    # Letting time pass

    async def advance(self, seconds: float) -> None:
        """Let so much virtual time pass."""
        await self._runtime.clock.sleep(seconds)

    async def eventually(self, predicate: Callable[..., Any], within: float = 30.0) -> Any:
        """Wait until ``predicate()`` (or ``predicate(cluster)``) is true, and return what it gave.

        A plain function is asked whenever anything has happened; one that returns an awaitable, every 0.1 s. Raises
        AssertionError when it is not true within so many virtual seconds.
        """
        found = await self._watch(predicate, within, bool)
        if not found:
            self._complain(f"not true within {within:g} s: {_source(predicate)}")
        return found

    async def always(self, predicate: Callable[..., Any], during: float) -> None:
        """Raises AssertionError as soon as ``predicate()`` is not true, within so many virtual seconds from now."""
        if not await self._watch(predicate, during, lambda answer: not answer, otherwise=True):
            self._complain(f"no longer true: {_source(predicate)}")

    async def settle(self, within: float = 600.0) -> None:
        """Wait until nothing is going on: no message is on its way, and only periodic work is left. Raises
        AssertionError if that takes longer than so many virtual seconds."""
        deadline_ns = self._runtime.clock.now_ns() + round(within * SECOND_NS)
        if await self._runtime.run_until(deadline_ns, until_idle=True) != "idle":
            self._complain(f"still busy after {within:g} s")

    async def _watch(
        self, predicate: Callable[..., Any], seconds: float, decides: Callable[[Any], bool], otherwise: Any = None
    ) -> Any:
        """The first answer that decides, or the last one (``otherwise``, if given) when the time is over."""
        wanted = [each for each in inspect.signature(predicate).parameters.values() if each.default is each.empty]
        ask: Callable[[], Any] = functools.partial(predicate, self) if wanted else predicate
        clock = self._runtime.clock
        until_ns = clock.now_ns() + round(seconds * SECOND_NS)
        while True:
            try:
                answer = ask()
            except NoSuchPod:
                answer = False
            is_awaited = inspect.isawaitable(answer)
            if is_awaited:
                answer = await answer
            if decides(answer):
                return answer
            if clock.now_ns() >= until_ns:
                return answer if otherwise is None else otherwise
            if is_awaited:
                await clock.sleep_until_ns(min(until_ns, clock.now_ns() + round(LOOK_EVERY_S * SECOND_NS)))
            else:
                await self._next_change(until_ns)

    async def _next_change(self, until_ns: int) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._changed.append(waiter)
        timer = self._runtime.clock.call_at_ns(until_ns, tasks.wake, waiter)
        try:
            await waiter
        finally:
            timer.cancel()

    def _complain(self, what: str) -> None:
        raise AssertionError(f"at {self.now_s:.3f} s: {what}")

    # Doing

    async def create(self, *objects: Mapping[str, Any] | Message | str) -> Any:
        """Create objects: manifests as dictionaries (:func:`kemu.pod`), as YAML text, or messages (kemu.messages.k8s).

        Returns the object as it is now; of several, a list. Raises ScenarioError for what is no object, and ApiError
        where the API server refuses.
        """
        created = []
        acting = (*self.scenario.controllers, *plans.gates(self.scenario))
        for each in objects:
            for message in [each] if isinstance(each, Message) else _read(each, acting):
                obj = cast(KubernetesObject, message)
                made = await self._insist(functools.partial(self.client.create, obj))
                if isinstance(made, core_v1_pb2.Pod):
                    await self._watch(functools.partial(self._has, made.metadata.uid), _SEEN_WITHIN_S, bool)
                created.append(made)
        return created[0] if len(created) == 1 else created

    def _has(self, uid: str) -> bool:
        return uid in self._judge.history.pods

    async def get(self, name: str, kind: str = "Pod", namespace: str = "default") -> KubernetesObject:
        """As the API server has it. Raises NotFound."""
        resource = _resource(kind)
        return await self._insist(lambda: self.client.get(resource.plural, name, _scope(resource, namespace)))

    async def list(self, kind: str = "Pod", namespace: str = "", label_selector: str = "") -> list[Any]:
        """``namespace`` empty: all of them."""
        plural = _resource(kind).plural
        found = await self._insist(lambda: self.client.list(plural, namespace, label_selector))
        return list(found.items)

    async def patch(
        self, name: str, patch: Mapping[str, Any], kind: str = "Pod", namespace: str = "default"
    ) -> KubernetesObject:
        """A strategic merge patch."""
        resource = _resource(kind)
        scope = _scope(resource, namespace)
        return await self._insist(lambda: self.client.patch(resource.plural, name, scope, patch, type="strategic"))

    async def delete(
        self, name: str, kind: str = "Pod", namespace: str = "default", grace_period_s: int | None = None
    ) -> KubernetesObject:
        """Returns the object as it is now, or as it was when it is gone."""
        resource = _resource(kind)
        scope = _scope(resource, namespace)
        return await self._insist(lambda: self.client.delete(resource.plural, name, scope, grace_period_s))

    async def evict(self, name: str, namespace: str = "default") -> KubernetesObject:
        """As ``kubectl drain``. Raises TooManyRequests where a disruption budget does not allow it."""
        return await self.client.evict(namespace, name)

    async def finish(self, name: str, exit_code: int = 0, namespace: str = "default") -> None:
        """A running pod ends by itself."""
        await self.patch(name, {"metadata": {"annotations": {manifests.FINISH: str(exit_code)}}}, namespace=namespace)

    async def cordon(self, node: str) -> None:
        await self.patch(node, {"spec": {"unschedulable": True}}, kind="Node")

    async def uncordon(self, node: str) -> None:
        await self.patch(node, {"spec": {"unschedulable": None}}, kind="Node")

    async def _insist(self, request: Callable[[], Awaitable[T]]) -> T:
        return await retries.patiently(self._env, request)

    # Breaking

    async def chaos(self, fault: Mapping[str, Any]) -> str:
        """A fault as in a scenario, without ``at``: ``{"delay": {"from": "apiserver/*", …}, "for": "20s"}``.

        Returns its id when it has begun; it ends by itself after ``for``, or with :meth:`heal`. With ``when`` it
        returns at once, and the fault comes when that comes true. docs/chaos.md has all kinds.
        """
        self._faults += 1
        number = self._faults
        time = {} if "when" in fault else {"at": f"{self._runtime.clock.now_ns()}ns"}
        settings = {"chaos": [{"id": f"test-{number}", **fault, **time}]}
        loaded = forms.load(self.scenario, settings, any_pod=True)
        (made,) = loaded.chaos
        task = self._course.strike(made)
        task.add_done_callback(lambda _: self._wake())
        if made.when is not None:
            return made.id
        history = self._judge.history
        await self._watch(
            lambda: task.done() or any(each.id == made.id for each in history.faults), _SEEN_WITHIN_S, bool
        )
        if task.done() and not task.cancelled():
            task.result()
        return made.id

    def _wake(self) -> None:
        changed, self._changed = self._changed, []
        for waiter in changed:
            tasks.wake(waiter)

    async def crash(self, actor: str, *, restart_after: float | None = 1.0, step: str = "") -> str:
        """As by SIGKILL. ``restart_after``: virtual seconds until it starts again; None: never. ``step``: when it comes
        to that step next (``after-bind``, …)."""
        detail: dict[str, Any] = {"actor": actor, "restart": restart_after is not None}
        detail |= {"step": step} if step else {}
        return await self.chaos({"crash": detail, **_for(restart_after)})

    async def pause(self, actor: str, seconds: float | None = None) -> str:
        """As by SIGSTOP; None: until :meth:`heal`."""
        return await self.chaos({"pause": {"actor": actor}, **_for(seconds)})

    async def partition(
        self, a: str | Sequence[str], b: str | Sequence[str], *, seconds: float | None = None, one_way: bool = False
    ) -> str:
        """Cut the traffic between two actors or groups of actors (patterns), or only from ``a`` to ``b``; None: until
        :meth:`heal`."""
        sides = [side if isinstance(side, str) else list(side) for side in (a, b)]
        return await self.chaos({"partition": {"between": sides, "oneWay": one_way}, **_for(seconds)})

    async def heal(self, fault: str) -> None:
        """End a fault before its time. Raises ValueError for one that is not in force."""
        hits = await self._runtime.heal(fault)
        event = FaultEnded(id=fault) if hits is None else FaultEnded(id=fault, hits=hits)
        self._runtime.env("chaos").log(event)


def _nodes(nodes: int | Sequence[str | Mapping[str, Any]]) -> list[dict[str, Any]]:
    if isinstance(nodes, int):
        return [{"namePrefix": "node-", "count": nodes}]
    return [{"name": node} if isinstance(node, str) else dict(node) for node in nodes]


def _schedulers(schedulers: Sequence[SchedulerLike], runtime: str) -> list[dict[str, Any]]:
    found = []
    for each in schedulers:
        if isinstance(each, str):
            entry: dict[str, Any] = {"name": each}
        elif isinstance(each, Mapping):
            entry = dict(each)
        else:
            alone = len(schedulers) == 1
            entry = {"name": DEFAULT_SCHEDULER if alone else each.__name__.lower(), "factory": each}
        factory = entry.get("factory")
        if callable(factory):
            entry["factory"] = user_code.name_of(factory)
            if runtime == "ray" and not user_code.is_importable(entry["factory"]):
                raise ValueError(
                    f"{factory!r} cannot be imported by the processes of a run on Ray: put it into a module"
                )
        found.append(entry)
    return found


def _read(manifest: Mapping[str, Any] | str, acting: Container[str]) -> list[Message]:
    """The objects of a manifest. Raises ScenarioError."""
    import yaml

    text = manifest if isinstance(manifest, str) else yaml.safe_dump(dict(manifest), sort_keys=False)
    found: list[Message] = []
    for document in documents.parse(text, "manifest.yaml"):
        report = Report(document, [])
        message = manifests.read(document.data, (), report, acting)
        if report.problems:
            raise ScenarioError(report.problems)
        assert message is not None
        found.append(message)
    return found


def _resource(kind: str) -> resources.Resource:
    found = resources.find(kind) or resources.find(kind.lower()) or resources.BY_KIND.get(kind)
    if found is None:
        raise ValueError(f"there is no kind {kind!r}; there are {', '.join(resources.BY_KIND)}")
    return found


def _scope(resource: resources.Resource, namespace: str) -> str:
    return namespace if resource.namespaced else ""


def _for(seconds: float | None) -> dict[str, str]:
    return {} if seconds is None else {"for": f"{round(seconds * SECOND_NS)}ns"}


def _source(predicate: Callable[..., Any]) -> str:
    """The line that it stands in, as far as that can be found."""
    try:
        lines = inspect.getsource(predicate).strip().splitlines()
    except (OSError, TypeError):
        return getattr(predicate, "__qualname__", repr(type(predicate)))
    return lines[0] if len(lines) == 1 else f"{lines[0]} …"

"""One cluster with its gateway, from its start to its verdict.

    result = sessions.run(scenario, sessions.Settings(out=Path("runs/up")), on_up=print)

Role: :mod:`kemu.lab.scenario.playing.runner` makes the run folder and judges; :class:`Session` stands in the place of
:func:`kemu.lab.scenario.playing.plays.drive`: it starts the actors, opens the gateway, and waits until a client ends
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.objects.identities import User
from kemu.lab.scenario.playing import judging, plans, plays, runner
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.up import (
    bootstrap_objects,
    clusters,
    container_handlers,
    credentials,
    endpoints,
    kubeconfigs,
    live_lines,
)
from kemu.lab.up.chaos import annotated_faults, injectors
from kemu.lab.up.chaos import clients as faults
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime import garbage
from kemu.runtime.env import EPOCH_UNIX_S
from kemu.runtime.faults.hits import CHAOS
from kemu.runtime.runlog.events import FaultEnded
from kemu.runtime.runtimes import Runtime

GATEWAY = "gateway"
"""Who asks the API servers on behalf of clients."""
CARRIERS = "user/chaos"
"""Who looks for faults that objects carry."""
HOUSEKEEPER = "user/up"
"""Who makes what is in every cluster."""

KUBECONFIG = "kubeconfig"
"""In the run folder."""

TELL_EVERY_S = 0.25
PATIENCE_S = 3.0
"""From the second signal until the process is ended that has not ended by itself."""


@dataclass(frozen=True)
class Settings:
    out: Path
    """The run folder."""
    runtime: str = "wall"
    """``wall`` or ``ray``."""
    speed: float = 1.0
    host: str = "127.0.0.1"
    port: int = 0
    """0: any that is free."""
    kubeconfig: Path | None = None
    """None: in the run folder."""
    insecure_http: bool = False
    """Plain HTTP, and everybody is the administrator."""
    handlers: Path | None = None
    """A module with functions that answer for containers."""
    users: tuple[User, ...] = ()
    """Who gets a token, beside the administrator and the users of the scenario."""
    for_s: float = 0.0
    """Virtual seconds after which it ends; 0: it has to be ended."""
    ray: dict[str, Any] = field(default_factory=dict)
    """See ``runner.Options``."""
    epoch_unix_s: int = EPOCH_UNIX_S
    """Unix time at which virtual time begins that is stepped; in real time it is now."""
    log_bytes: int = 0
    """See ``runner.Options``."""
    force: bool = False
    """See ``runner.Options``."""
    on_begin: Callable[[Path, str, int], None] | None = None
    """See ``runner.Options``."""
    give_up: Callable[[], None] = lambda: None
    """Says that nothing more is judged, and ends the process; called from a thread when it was asked for twice for
    the end, and it does not come."""


@dataclass(frozen=True)
class Up:
    """A cluster that can be called."""

    url: str
    kubeconfig: Path
    folder: Path
    nodes: int
    actors: Sequence[str]
    token: str = field(repr=False)
    forget: Callable[[], None] = field(repr=False)
    """Takes the cluster out of a kubeconfig that was there before it; to be called when it has ended."""
    steps: bool = False
    """Time stands still until it is stepped."""


class Session:
    """The course of one cluster. Other parts of ``kemu up`` reach what it holds while it is up."""

    alone = False
    """The API server has nothing beside it: nobody does the work of kube-controller-manager."""

    def __init__(
        self,
        settings: Settings,
        on_up: Callable[[Up], None],
        tell: Callable[[Sequence[live_lines.Line]], None] | None = None,
    ) -> None:
        """``on_up``: told when clients can call. ``tell``: of what happens from then on."""
        self.settings = settings
        self.live_lines = live_lines.LiveLines()
        self.listener = endpoints.Listener()
        self.stop = asyncio.Event()
        """Set when it is to end."""
        self.runtime: Runtime | None = None
        self.course: plays.Course | None = None
        """Carries out faults, once time passes."""
        self.roster: list[str] = []
        self._on_up = on_up
        self._tell = tell

    def listen(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Takes the run log."""
        self.live_lines(time_ns, actor, kind, data)
        self.listener(time_ns, actor, kind, data)

    def make_credentials(self, scenario: Scenario) -> credentials.Credentials:
        """In a thread."""
        users = credentials.users_of(scenario.users, self.settings.users)
        return credentials.make(self.settings.host, users)

    async def drive(
        self, runtime: Runtime, scenario: Scenario, recorder: plays.Recorder, beats: Heartbeats
    ) -> judging.End:
        """In the place of ``plays.drive``."""
        self.runtime = runtime
        self.listener.measure(scenario)
        with answering(self.stop, self.settings.give_up):
            making = asyncio.create_task(asyncio.to_thread(self.make_credentials, scenario))
            bootstrap: bootstrap_objects.Bootstrap | None = None

            async def furnish() -> None:
                nonlocal bootstrap
                env = runtime.env(HOUSEKEEPER)
                client = clients.Client(env, plans.apiservers_of(scenario, 0))
                authority = "" if self.settings.insecure_http else (await making).authority.certificate.decode()
                more = clusters.furnishings(scenario)
                ranges, processes = plans.service_ranges_of(scenario), scenario.api_servers.services
                bootstrap = bootstrap_objects.Bootstrap(
                    env, client, authority, more, ranges=ranges, alone=self.alone, processes=processes
                )
                await bootstrap.furnish()

            # Over plain HTTP nobody has tokens, nor is there an authority that pods could mount.
            without = self.alone or self.settings.insecure_http
            made_of = scenario if without else clusters.with_accounts(scenario)
            self.roster = await plays.launch(runtime, made_of, beats, recorder.progress, furnish)
            assert bootstrap is not None
            garbage.look_rarely()
            made = await making
            endpoint = self._endpoint(runtime, scenario, made)
            await endpoint.start()
            try:
                return await self._serve(runtime, scenario, recorder, beats, endpoint, made, bootstrap)
            finally:
                await endpoint.stop()
                if self.listener.injector is not None:
                    self.listener.injector.script.write(self.settings.out)

    async def _serve(
        self,
        runtime: Runtime,
        scenario: Scenario,
        recorder: plays.Recorder,
        beats: Heartbeats,
        endpoint: endpoints.Endpoint,
        made: credentials.Credentials,
        bootstrap: bootstrap_objects.Bootstrap,
    ) -> judging.End:
        await bootstrap.begin(*endpoint.address)
        await runtime.begin()
        self.course = plays.Course(runtime, scenario, beats, self.roster, recorder.triggers, tells_restart=True)
        env = runtime.env(CARRIERS)
        annotated_faults.AnnotatedFaults(
            env,
            clients.Client(env, plans.apiservers_of(scenario, 0)),
            functools.partial(self._strike, runtime, scenario),
            functools.partial(self._heal, runtime),
        )
        telling = asyncio.create_task(self._tell_on(), name="tell what happens")
        try:
            self._on_up(announced(self.settings, endpoint.server.url, made, len(scenario.nodes), self.roster))
            self.live_lines.quiet = False
            reason = await runtime.run_until(scenario.duration_ns, stop=self.stop)
        finally:
            self.course.cancel()
            telling.cancel()
            self._take()
        await endpoint.stop()
        self.live_lines.quiet = True
        return await self.course.end(reason)

    def _endpoint(self, runtime: Runtime, scenario: Scenario, made: credentials.Credentials) -> endpoints.Endpoint:
        env = runtime.env(GATEWAY)
        client = clients.Client(env, plans.apiservers_of(scenario, 0))
        endpoint: endpoints.Endpoint
        endpoint = endpoints.Endpoint(
            endpoints.Place(self.settings.host, self.settings.port, self.settings.insecure_http),
            made,
            scenario,
            env.dial,
            env.clock,
            lambda plural, namespace, name: _look(client, plural, namespace, name),
            env.clock,
            self.listener,
            injectors.Injector(
                scenario, functools.partial(self._strike, runtime, scenario), functools.partial(self._heal, runtime)
            ),
            faults.carried_out(env, lambda: endpoint.layer),
            handlers=container_handlers.load(scenario, self.settings.handlers),
        )
        return endpoint

    def _strike(self, runtime: Runtime, scenario: Scenario, fault: Mapping[str, Any], fault_id: str) -> None:
        assert self.course is not None
        self.course.strike(injectors.read_fault(scenario, fault, fault_id, runtime.clock.now_ns()))

    def _heal(self, runtime: Runtime, fault: str) -> None:
        async def heal() -> None:
            with contextlib.suppress(ValueError):  # it has ended meanwhile
                hits = await runtime.heal(fault)
                event = FaultEnded(id=fault) if hits is None else FaultEnded(id=fault, hits=hits)
                runtime.env(CHAOS).log(event)

        runtime.env(CHAOS).spawn(heal(), f"heal {fault}")

    async def _tell_on(self) -> None:
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            self._take()

    def _take(self) -> None:
        lines = self.live_lines.take()
        if lines and self._tell is not None:
            self._tell(lines)


def announced(settings: Settings, url: str, made: credentials.Credentials, nodes: int, actors: Sequence[str]) -> Up:
    """Writes the kubeconfig."""
    scheme, _, place = url.partition("://")
    host, _, port = place.rpartition(":")
    reached = credentials.reached_at(host.strip("[]"))
    called = f"{scheme}://{f'[{reached}]' if ':' in reached else reached}:{port}"
    file = (settings.kubeconfig or settings.out / KUBECONFIG).absolute()
    is_open = settings.insecure_http
    document = kubeconfigs.document(
        called,
        authority=b"" if is_open else made.trusted,
        token="" if is_open else made.token,
        others={} if is_open else {user.name: token for token, user in made.others.items()},
    )
    take_back = kubeconfigs.write(file, document)
    return Up(called, file, settings.out, nodes, tuple(actors), made.token, take_back)


async def _look(client: clients.Client, plural: str, namespace: str, name: str) -> KubernetesObject | None:
    try:
        return await client.get(plural, name, namespace)
    except errors.NotFound:
        return None


@contextlib.contextmanager
def answering(stop: asyncio.Event, give_up: Callable[[], None]) -> Iterator[None]:
    """Within this, SIGINT and SIGTERM end the cluster in order; a second one at once, whatever the event loop is busy
    with: where it does not get to it within :data:`PATIENCE_S`, or a third signal comes, ``give_up`` is called. It ends
    the process; from another thread, so that nothing in this one has to end before."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    count = 0
    timers: list[threading.Timer] = []

    def answer(*_: object) -> None:
        nonlocal count
        count += 1
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(stop.set if count == 1 else task.cancel)
        if count > 1:
            timer = threading.Timer(PATIENCE_S if count == 2 else 0.0, give_up)
            timer.daemon = True
            timer.start()
            timers.append(timer)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            # Not by the event loop, which may be busy with something that does not end.
            before[number] = signal.signal(number, answer)
        except ValueError:  # not in the main thread
            continue
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for timer in timers:
            timer.cancel()


def _make_private(folder: Path) -> None:
    """For this user alone, unless it is there already: its log and its store have what clients put into Secrets."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700)


def run(
    scenario: Scenario,
    settings: Settings,
    on_up: Callable[[Up], None],
    tell: Callable[[Sequence[live_lines.Line]], None] | None = None,
    make: Callable[..., Session] = Session,
) -> runner.RunResult:
    """Blocks until the cluster has ended, and judges it as any other run.

    Raises KemuError for a scenario that the runtime cannot play and for a port that is taken, and SimulationError where
    the run itself broke.
    """
    _make_private(settings.out)
    session = make(settings, on_up, tell)
    options = runner.Options(
        out=settings.out,
        runtime=settings.runtime,
        speed=settings.speed,
        ray=settings.ray,
        log_bytes=settings.log_bytes,
        force=settings.force,
        on_begin=settings.on_begin,
        listener=session.listen,
        drive=session.drive,
    )
    try:
        return runner.run(scenario, options)
    except asyncio.CancelledError:  # it was asked for twice
        raise KeyboardInterrupt from None

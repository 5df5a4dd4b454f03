"""One cluster with its gateway, from its start to its verdict.

    result = sessions.run(scenario, sessions.Settings(out=Path("runs/up")), on_up=print)

Role: :mod:`kemu.scenario.playing.runner` makes the run folder and judges; :class:`Session` stands in the place of
:func:`kemu.scenario.playing.plays.drive`: it starts the actors, opens the gateway, and waits until somebody ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kemu import errors
from kemu.client import clients
from kemu.gateway.app import Gateway
from kemu.gateway.authentication import authenticators, service_accounts
from kemu.gateway.limits import files
from kemu.gateway.servers import Server
from kemu.gateway.settings import Authenticator, Everybody
from kemu.gateway.settings import Settings as GatewaySettings
from kemu.kubelet.usage import usages
from kemu.objects import identities
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runtimes import Runtime
from kemu.scenario.playing import judging, plans, plays, runner
from kemu.scenario.playing.heartbeats import Heartbeats
from kemu.scenario.scenarios import Scenario
from kemu.up import credentials, furnishings, kubeconfigs, tellers

GATEWAY = "gateway"
"""Who asks the API servers on behalf of clients."""
HOUSEKEEPER = "user/up"
"""Who makes what is in every cluster."""

KUBECONFIG = "kubeconfig"
"""In the run folder."""

TELL_EVERY_S = 0.25
_CONNECTIONS = 10_000


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
    for_s: float = 0.0
    """Virtual seconds after which it ends; 0: somebody has to end it."""
    ray: dict[str, Any] = field(default_factory=dict)
    """See ``runner.Options``."""
    force: bool = False
    """See ``runner.Options``."""
    on_begin: Callable[[Path, str, int], None] | None = None
    """See ``runner.Options``."""


@dataclass(frozen=True)
class Up:
    """A cluster that can be called."""

    url: str
    kubeconfig: Path
    folder: Path
    nodes: int
    actors: Sequence[str]
    token: str = field(repr=False)


class Session:
    """The course of one cluster. Other parts of ``kemu up`` reach what it holds while it is up."""

    def __init__(
        self,
        settings: Settings,
        on_up: Callable[[Up], None],
        tell: Callable[[Sequence[tellers.Line]], None] | None = None,
    ) -> None:
        """``on_up``: told when clients can call. ``tell``: of what happens from then on."""
        self.settings = settings
        self.teller = tellers.Teller()
        self.stop = asyncio.Event()
        """Set when it is to end."""
        self.runtime: Runtime | None = None
        self.course: plays.Course | None = None
        """Carries out faults, once time passes."""
        self.roster: list[str] = []
        self._on_up = on_up
        self._tell = tell

    async def drive(
        self, runtime: Runtime, scenario: Scenario, recorder: plays.Recorder, beats: Heartbeats
    ) -> judging.End:
        """In the place of ``plays.drive``."""
        self.runtime = runtime
        with _answering(self.stop):
            making = asyncio.create_task(asyncio.to_thread(credentials.make, self.settings.host))
            self.roster = await plays.launch(runtime, scenario, beats, recorder.progress)
            made = await making
            server, gateway = self._gateway(runtime, scenario, made)
            try:
                await server.start()
            except OSError as error:
                where = f"{self.settings.host}:{self.settings.port}"
                raise errors.KemuError(f"{where}: {error.strerror or error}: choose another port (--port)") from None
            try:
                return await self._serve(runtime, scenario, recorder, beats, server, made)
            finally:
                gateway.close()
                await server.stop()

    async def _serve(
        self,
        runtime: Runtime,
        scenario: Scenario,
        recorder: plays.Recorder,
        beats: Heartbeats,
        server: Server,
        made: credentials.Credentials,
    ) -> judging.End:
        client = clients.Client(runtime.env(HOUSEKEEPER), plans.apiservers_of(scenario, 0))
        host, _, port = server.url.partition("://")[2].rpartition(":")
        authority = "" if self.settings.insecure_http else made.authority.certificate.decode()
        await furnishings.make(client, credentials.reached_at(host.strip("[]")), int(port), authority)
        await runtime.begin()
        self.course = plays.Course(runtime, scenario, beats, self.roster, recorder.triggers)
        telling = asyncio.create_task(self._tell_on(), name="tell what happens")
        try:
            self._on_up(self._up(server.url, made, len(scenario.nodes)))
            self.teller.quiet = False
            reason = await runtime.run_until(scenario.duration_ns, stop=self.stop)
        finally:
            self.course.cancel()
            telling.cancel()
            self._take()
        await server.stop()
        self.teller.quiet = True
        return await self.course.end(reason)

    def _up(self, url: str, made: credentials.Credentials, nodes: int) -> Up:
        settings = self.settings
        scheme, _, place = url.partition("://")
        host, _, port = place.rpartition(":")
        reached = credentials.reached_at(host.strip("[]"))
        called = f"{scheme}://{f'[{reached}]' if ':' in reached else reached}:{port}"
        file = (settings.kubeconfig or settings.out / KUBECONFIG).absolute()
        is_open = settings.insecure_http
        document = kubeconfigs.document(
            called,
            authority=b"" if is_open else made.authority.certificate,
            token="" if is_open else made.token,
        )
        kubeconfigs.write(file, document)
        return Up(called, file, settings.out, nodes, tuple(self.roster), made.token)

    def _gateway(self, runtime: Runtime, scenario: Scenario, made: credentials.Credentials) -> tuple[Server, Gateway]:
        settings = self.settings
        env = runtime.env(GATEWAY)
        clock = env.clock
        client = clients.Client(env, plans.apiservers_of(scenario, 0))
        authenticator: Authenticator = Everybody()
        if not settings.insecure_http:
            authenticator = authenticators.Authenticator(
                {made.token: identities.ADMINISTRATOR},
                accounts=service_accounts.Tokens(),
                account_uid=lambda namespace, name: _uid_of(client, namespace, name),
                now_s=lambda: clock.unix_ns() / SECOND_NS,
            )
        names = tuple(f"apiserver/{number}" for number in range(scenario.apiserver_replicas))
        gateway_settings = GatewaySettings(
            apiservers=names, authenticator=authenticator, node_usage=_usage_of_nodes(scenario)
        )
        gateway = Gateway(env.dial, clock, gateway_settings)
        files.raise_limit(_CONNECTIONS)
        certificates = None if settings.insecure_http else made.certificates
        return Server(gateway, settings.host, settings.port, certificates), gateway

    async def _tell_on(self) -> None:
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            self._take()

    def _take(self) -> None:
        lines = self.teller.take()
        if lines and self._tell is not None:
            self._tell(lines)


def _usage_of_nodes(scenario: Scenario) -> Callable[[str, int], Mapping[str, int]]:
    """What the scenario says that nodes use besides their pods."""
    curves = {node.name: usages.parse_node(node.usage, node.name) for node in scenario.nodes if node.usage}

    def usage(node: str, second: int) -> Mapping[str, int]:
        return {resource: curve.at(second) for resource, curve in curves.get(node, {}).items()}

    return usage


async def _uid_of(client: clients.Client, namespace: str, name: str) -> str:
    try:
        return str((await client.get("serviceaccounts", name, namespace)).metadata.uid)
    except errors.NotFound:
        return ""


@contextlib.contextmanager
def _answering(stop: asyncio.Event) -> Iterator[None]:
    """Within this, SIGINT and SIGTERM end the cluster in order; a second one at once."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    def answer() -> None:
        if stop.is_set():
            task.cancel()
        stop.set()

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        try:
            loop.add_signal_handler(number, answer)
        except (ValueError, RuntimeError):  # not in the main thread
            continue
        before[number] = handler
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def run(
    scenario: Scenario,
    settings: Settings,
    on_up: Callable[[Up], None],
    tell: Callable[[Sequence[tellers.Line]], None] | None = None,
    make: Callable[..., Session] = Session,
) -> runner.RunResult:
    """Blocks until the cluster has ended, and judges it as any other run.

    Raises KemuError for a scenario that the runtime cannot play and for a port that is taken, and SimulationError where
    the run itself broke.
    """
    session = make(settings, on_up, tell)
    options = runner.Options(
        out=settings.out,
        runtime=settings.runtime,
        speed=settings.speed,
        ray=settings.ray,
        force=settings.force,
        on_begin=settings.on_begin,
        listener=session.teller,
        drive=session.drive,
    )
    return runner.run(scenario, options)

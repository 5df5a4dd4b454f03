"""One cluster in virtual time with its gateway, from its start to its verdict: ``kemu up --virtual``.

Role: as :mod:`kemu.lab.up.sessions`, which is for real time. Here two event loops take turns: that of the world, in
which the actors live, and the one outside, with the server and the driver.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import grpc

from kemu.emulated.gateway.asgi import Application
from kemu.emulated.gateway.deliveries import Deliveries
from kemu.emulated.objects import resources
from kemu.lab.scenario.playing import runner
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.up import container_handlers, credentials, endpoints, live_lines, sessions
from kemu.lab.up.chaos import injectors
from kemu.lab.up.virtual import channels, clock_files, drivers, inputs, strikes, worlds
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import SECOND_NS, Timer
from kemu.runtime.runlog.frames import Writer

FLUSH_S = 10.0
"""Real time within which the log is flushed."""


class Clock:
    """The world's time, for what is outside: ``env.Clock``."""

    def __init__(self, driver: drivers.Driver, epoch_unix_s: int) -> None:
        self._driver = driver
        self.epoch_unix_s = epoch_unix_s
        self.unix_offset_ns = epoch_unix_s * SECOND_NS

    def now_ns(self) -> int:
        return self._driver.now_ns()

    def unix_ns(self) -> int:
        return self.unix_offset_ns + self._driver.now_ns()

    async def started(self) -> None:
        await self._driver.begun()

    async def sleep(self, seconds: float, *, background: bool = False) -> None:
        await self._driver.sleep(seconds)

    async def sleep_until_ns(self, when_ns: int, *, background: bool = False) -> None:
        await self._driver.sleep(max(0, when_ns - self.now_ns()) / SECOND_NS)

    async def pause(self, seconds: float) -> None:
        await self._driver.sleep(seconds)

    def call_at_ns(
        self, when_ns: int, callback: Callable[..., object], *args: object, background: bool = False
    ) -> Timer:
        async def call() -> None:
            await self.sleep_until_ns(when_ns)
            callback(*args)

        return _Timer(asyncio.get_running_loop().create_task(call()))


class _Timer:
    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self) -> None:
        self._task.cancel()


class Session:
    """The course of one cluster."""

    def __init__(
        self,
        scenario: Scenario,
        settings: sessions.Settings,
        on_up: Callable[[sessions.Up], None],
        tell: Callable[[Sequence[live_lines.Line]], None] | None = None,
        settle_s: float = drivers.SETTLE_S,
    ) -> None:
        """``on_up``: told when clients can call. ``tell``: of what happens from then on. ``settle_s``: see
        :mod:`drivers`."""
        self.scenario = scenario
        self.settings = settings
        self.live_lines = live_lines.LiveLines()
        self.listener = endpoints.Listener()
        self.listener.measure(scenario)
        self._strikes = strikes.Strikes()
        self.world = worlds.World(self._strikes)
        self.world.loop.outside = self.drive
        self._on_up = on_up
        self._tell = tell
        self._settle_s = settle_s
        self._stop = asyncio.Event()
        self.writer: Writer | None = None
        """Of the run log, once there is one."""
        self.credentials: credentials.Credentials | None = None
        """None: they are made when it begins."""
        self.driver: drivers.Driver | None = None
        """While it is up."""
        self.loop_outside: asyncio.AbstractEventLoop | None = None

    def before(self, app: Application) -> Application:
        """What requests of clients meet first; ``app``: the gateway with its faults."""
        return app

    def drive(self) -> None:
        """All that happens from the start of the actors to the end."""
        asyncio.run(self._outside())

    def set_up(self) -> bool:
        """In :meth:`drive`, before that of this class: the cluster is set up as it would be there, while nobody can
        reach it. The port has to be known. False: it waits for something outside, and is of no use."""
        made = self.credentials = self._make_credentials()
        where = credentials.reached_at(self.settings.host), self.settings.port
        self.world.served_at = worlds.ServedAt(*where, made.authority.certificate.decode())
        asked: list[int] = []
        self.world.asked = lambda number, question: asked.append(number)
        is_over = self.world.loop.go(lambda next_ns: next_ns is not None and not self.world.stands)
        return self.world.stands and not is_over and not asked

    def run(self) -> runner.RunResult:
        """See :func:`run`."""
        settings = self.settings
        options = runner.Options(
            out=settings.out,
            runtime="sim",
            force=settings.force,
            on_begin=settings.on_begin,
            listener=self.listen,
            drive=self.world.main,
            loop=self.world.loop,
            epoch_unix_s=settings.epoch_unix_s,
            on_writer=self._take_writer,
        )
        return runner.run(self.scenario, options)

    def stop(self) -> None:
        """End it; from any thread."""
        with contextlib.suppress(RuntimeError):  # it has ended already
            if self.loop_outside is not None:
                self.loop_outside.call_soon_threadsafe(self._stop.set)

    def _make_credentials(self) -> credentials.Credentials:
        users = credentials.users_of(self.scenario.users, self.settings.users)
        return credentials.make(self.settings.host, users)

    def _take_writer(self, writer: Writer) -> None:
        self.writer = writer

    def flush(self) -> None:
        """All that has happened is in the run log; from any other thread, while it is up."""
        flushed = threading.Event()

        def flush() -> None:
            if self.writer is not None:
                self.writer.flush()
            flushed.set()

        if self.loop_outside is not None:
            self.loop_outside.call_soon_threadsafe(flush)
            flushed.wait(FLUSH_S)

    def listen(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Takes the run log."""
        self.live_lines(time_ns, actor, kind, data)
        self.listener(time_ns, actor, kind, data)

    async def _outside(self) -> None:
        settings, scenario = self.settings, self.scenario
        self.loop_outside, stop = asyncio.get_running_loop(), self._stop
        with sessions.answering(stop, settings.give_up):
            if self.credentials is None:
                self.credentials = await asyncio.to_thread(self._make_credentials)
            made = self.credentials
            deliveries = Deliveries()
            shown = clock_files.ClockFile(settings.out / clock_files.NAME, settings.epoch_unix_s)
            driver = drivers.Driver(self.world, settle_s=self._settle_s, deliveries=deliveries, on_time=shown.show)
            self.driver = driver
            clock = Clock(driver, settings.epoch_unix_s)
            api: Any = api_pb2_grpc.ApiStub(channels.channel(driver, "apiserver/0"))  # type: ignore[no-untyped-call]
            injector = injectors.Injector(
                scenario,
                lambda fault, fault_id: driver.put(["strike", dict(fault), fault_id]),
                lambda fault_id: driver.put(["heal", fault_id]),
            )
            endpoint = endpoints.Endpoint(
                endpoints.Place(settings.host, settings.port, settings.insecure_http),
                made,
                scenario,
                lambda name: channels.channel(driver, name),
                clock,
                lambda plural, namespace, name: _look(api, plural, namespace, name),
                clock,
                self.listener,
                injector,
                self._strikes.struck,
                driver,
                deliveries,
                container_handlers.load(scenario, settings.handlers),
                self.before,
            )
            self._strikes.layer, self._strikes.driver = endpoint.layer, driver
            await endpoint.start()
            authority = "" if settings.insecure_http else made.authority.certificate.decode()
            self.world.served_at = worlds.ServedAt(*endpoint.address, authority)
            driver.record = inputs.Record(settings.out, self.world.served_at)
            running = asyncio.create_task(driver.run())
            try:
                await driver.begun()
                self._on_up(
                    dataclasses.replace(
                        sessions.announced(settings, endpoint.server.url, made, len(scenario.nodes), self.world.roster),
                        steps=True,
                    )
                )
                self.live_lines.quiet = False
                await self._until(stop, running, driver)
                self.live_lines.quiet = True
            finally:
                await endpoint.stop()
                with contextlib.suppress(drivers.Ended):
                    driver.put(["end", "stopped"])
                await running
                driver.record.close()
                shown.close()
                injector.script.write(settings.out)

    async def _until(self, stop: asyncio.Event, running: asyncio.Task[None], driver: drivers.Driver) -> None:
        """It is ended, or its duration is over; meanwhile tell what happens."""
        stopping = asyncio.create_task(stop.wait())
        try:
            while not stopping.done() and not running.done():
                await asyncio.wait(
                    [stopping, running], timeout=sessions.TELL_EVERY_S, return_when=asyncio.FIRST_COMPLETED
                )
                lines = self.live_lines.take()
                if lines and self._tell is not None:
                    self._tell(lines)
                if driver.now_ns() >= self.scenario.duration_ns:
                    return
        finally:
            stopping.cancel()


async def _look(api: Any, plural: str, namespace: str, name: str) -> KubernetesObject | None:
    resource = api_pb2.Resource(resource=plural, namespace=namespace)
    try:
        found = await api.Get(api_pb2.GetRequest(resource=resource, name=name))
    except grpc.aio.AioRpcError:
        return None
    return resources.BY_PLURAL[plural].message.FromString(found.object)


def run(
    scenario: Scenario,
    settings: sessions.Settings,
    on_up: Callable[[sessions.Up], None],
    tell: Callable[[Sequence[live_lines.Line]], None] | None = None,
    settle_s: float = drivers.SETTLE_S,
) -> runner.RunResult:
    """Blocks until the cluster has ended, and judges it as any other run. Raises as
    :func:`kemu.lab.up.sessions.run`."""
    return Session(scenario, settings, on_up, tell, settle_s).run()

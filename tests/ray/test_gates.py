"""Who gets into a cell: callers with a token of the run, and of them only the driver may tell the cell what to do."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2_grpc

from kemu.messages.v1 import api_pb2, api_pb2_grpc, cell_pb2, cell_pb2_grpc
from kemu.runtime import user_code
from kemu.runtime.host import certificates, control, hosts, tokens
from kemu.runtime.host.calls import channels
from tests.ray.pairs import Cells, code_of, get
from tests.ray.world import spec

UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED


@contextlib.asynccontextmanager
async def plain(cells: Cells) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(cells.cells[0].host.target) as channel:
        yield channel


def calls(channel: Any) -> dict[str, Any]:
    """One of each kind and of each service of a cell."""
    session = api_pb2_grpc.ApiStub(channel).Session()
    info = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter(()))
    return {
        "an actor": api_pb2_grpc.ApiStub(channel).Get(get()),
        "a stream of an actor": session.read(),
        "the cell": cell_pb2_grpc.CellStub(channel).Statistics(cell_pb2.Empty()),
        "its log": cell_pb2_grpc.CellStub(channel).Log(cell_pb2.LogRequest()).read(),
        "its health": health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest()),
        "its services": info.read(),
        "nothing": channel.unary_unary("/no.such/Method")(b""),
    }


async def test_strangers_are_refused_at_once_and_nobody_hears_of_them(cells: Cells) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    others = tokens.Issuer()
    async with plain(cells) as channel:
        strangers = {
            "without anything": channel,
            "a token of another run": tokens.Signed(channel, "echo/0", others.token("echo/0")),
            "the token of another actor": tokens.Signed(channel, "user", cells.issuer.token("echo/0")),
            "an actor's token as the driver": tokens.Signed(channel, tokens.DRIVER, cells.issuer.token("echo/0")),
            "no token": tokens.Signed(channel, "echo/0", ""),
            "no base64": tokens.Signed(channel, "echo/0", "!" * 88),
            "a changed token": tokens.Signed(channel, "echo/0", "AA" + cells.issuer.token("echo/0")[2:]),
            "a long one": tokens.Signed(channel, "echo/0", "A" * 4000),
        }
        # Also when the cell has met the real one.
        for known in (False, True):
            if known:
                await api_pb2_grpc.ApiStub(cells.signed(channel, "echo/0")).Get(get())
            heard = len(cells.log(0).of("echo.get"))
            for who, stranger in strangers.items():
                for what, call in calls(stranger).items():
                    assert await code_of(call) is UNAUTHENTICATED, f"{who} calls {what}"
            assert len(cells.log(0).of("echo.get")) == heard
    assert not cells.failures


async def test_only_the_driver_tells_a_cell_what_to_do(cells: Cells) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    async with plain(cells) as channel:
        stub = cell_pb2_grpc.CellStub(cells.signed(channel, "echo/0"))
        stop = cell_pb2.StopRequest(actors=["echo/0"])
        assert await code_of(stub.Stop(stop)) is grpc.StatusCode.PERMISSION_DENIED
        assert await code_of(stub.Statistics(cell_pb2.Empty())) is grpc.StatusCode.PERMISSION_DENIED
        assert (await api_pb2_grpc.ApiStub(cells.signed(channel, "echo/0")).Get(get())).object


async def test_a_cell_starts_what_the_scenario_names_and_nothing_else(
    cells: Cells, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(user_code, "_admitted", None)
    user_code.admit_only(["tests.ray.world:Echo"])
    await cells.start(0, spec("echo/0", "Echo"))
    for factory in ("os:system", "tests.ray.world:Keeper", "kemu.doors.cli.main:main", "", "os"):
        start = cell_pb2.StartRequest(actors=[cell_pb2.ActorSpec(name="evil", factory=factory, config=b"\x80")])
        assert await code_of(cells.controls[0].Start(start)) is grpc.StatusCode.PERMISSION_DENIED
    assert list(cells.cells[0].host.residents) == ["echo/0"]
    # What a configuration names, such as a plugin, is loaded by the same function.
    with pytest.raises(ImportError, match="os:system is not named by the scenario"):
        user_code.load("os:system")


def test_a_scenario_names_what_its_cells_may_load() -> None:
    from kemu.lab.scenario.loading import loader
    from kemu.lab.scenario.playing import plans

    examples = Path(__file__).parents[2] / "examples"
    scenario = loader.load(next((examples / "plugins").glob("*.yaml")))
    named = plans.code(scenario)
    assert {one for one in named if not one.startswith("kemu.")}, named
    assert {spec.factory for spec in plans.schedulers(scenario)} <= set(named)
    assert "os:system" not in named


def test_a_cell_cannot_make_tokens() -> None:
    issuer = tokens.Issuer()
    verifier = tokens.Verifier(issuer.public_key)
    assert not hasattr(verifier, "token")
    assert len(base64.b64decode(issuer.token("a"))) == 64
    assert issuer.token("a") == issuer.token("a") != issuer.token("b")
    assert tokens.Issuer().token("a") != issuer.token("a")
    for _ in range(2):
        assert verifier.admits("a", issuer.token("a"))
        assert not verifier.admits("a", issuer.token("b"))
        assert not verifier.admits("b", issuer.token("a"))


def test_a_verifier_remembers_nobody_but_those_with_a_token() -> None:
    issuer = tokens.Issuer()
    verifier = tokens.Verifier(issuer.public_key)
    for number in range(100):
        assert not verifier.admits(f"kubelet/{number}", issuer.token("other"))
    assert verifier.admits("a", issuer.token("a"))
    assert list(verifier._digests) == ["a"]


async def test_a_process_outside_sees_no_token(cells: Cells) -> None:
    await cells.start(0, spec("echo/0", "Echo"))
    env = cells.cells[0].host.env("echo/0")
    assert tokens.TOKEN in dict(env.dial("echo/1").metadata)
    for prefix in hosts.OUTSIDE:
        assert tokens.TOKEN not in dict(env.dial(f"{prefix}127.0.0.1:1").metadata)


async def test_a_stranger_costs_no_more_than_a_call_that_does_nothing(cells: Cells) -> None:
    await cells.start(0, spec("echo/0", "Echo"))

    async def seconds(stub: Any, count: int = 300) -> float:
        begin = time.process_time()
        for _ in range(count):
            with contextlib.suppress(grpc.aio.AioRpcError):
                await stub.Get(get())
        return time.process_time() - begin

    async with plain(cells) as channel:
        known = api_pb2_grpc.ApiStub(cells.signed(channel, "echo/0"))
        stranger = api_pb2_grpc.ApiStub(tokens.Signed(channel, "echo/0", "A" * 88))
        nobody = api_pb2_grpc.ApiStub(channel)
        await seconds(known, 10)
        # Least of several in turns, as other threads of this process have their share; the client's side is in it, too.
        rounds = [[await seconds(stub, 100) for stub in (known, nobody, stranger)] for _ in range(5)]
        allowed, *refused = (min(times) for times in zip(*rounds, strict=True))
        assert max(refused) < 2 * allowed


@pytest.fixture
async def far(cells: Cells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[control.Cell]:
    """A cell whose address counts as one that other machines reach."""
    monkeypatch.setattr(certificates, "is_loopback", lambda address: False)
    one = control.Cell("far", tmp_path, tokens.Verifier(cells.issuer.public_key))
    server = await control.start_server(one, "127.0.0.1")
    one.host.token = cells.issuer.token
    yield one
    await server.stop(None)
    await one.host.close()


async def test_over_a_network_calls_are_encrypted(cells: Cells, far: control.Cell) -> None:
    certificate = far.certificate
    assert b"CERTIFICATE" in certificate
    await far.host.start([spec("echo/0", "Echo")])
    host = cells.cells[0].host
    caller = host.env("test")

    async def code(certificates: dict[str, bytes]) -> grpc.StatusCode | None:
        host.configure(seed=1, directory=Path(), addresses={"echo/0": (far.host.target, 1)}, certificates=certificates)
        try:
            async with asyncio.timeout(20):
                await api_pb2_grpc.ApiStub(caller.dial("echo/0")).Get(get(), timeout=20)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return None

    assert await code({far.host.target: certificate}) is None
    assert await code({}) is grpc.StatusCode.UNAVAILABLE, "in clear"
    wrong = certificates.make("127.0.0.1").certificate
    assert await code({far.host.target: wrong}) is grpc.StatusCode.UNAVAILABLE, "another cell in its place"
    assert await code({far.host.target: certificate}) is None
    async with grpc.aio.secure_channel(far.host.target, grpc.ssl_channel_credentials(certificate)) as channel:
        assert await code_of(api_pb2_grpc.ApiStub(channel).Get(api_pb2.GetRequest())) is UNAUTHENTICATED


def test_a_private_key_is_not_shown() -> None:
    identity = certificates.make("192.0.2.1")
    assert "PRIVATE" in identity.key.decode()
    assert "PRIVATE" not in repr(identity)


@pytest.mark.parametrize(
    ("address", "is_loopback"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("127.9.9.9", True)]
    + [(address, False) for address in ("0.0.0.0", "::", "10.0.0.1", "192.0.2.1", "node-1", "localhost.example")],
)
def test_what_is_loopback(address: str, is_loopback: bool) -> None:
    assert certificates.is_loopback(address) is is_loopback


async def test_a_certificate_names_its_address(cells: Cells, far: control.Cell) -> None:
    """Whoever got at the key of one cell could not listen elsewhere with it."""
    target = far.host.target.replace("127.0.0.1", "127.0.0.2")
    connections = channels.Connections()
    connections.certificates = {target: far.certificate, far.host.target: far.certificate}
    try:
        for where, expected in ((far.host.target, UNAUTHENTICATED), (target, grpc.StatusCode.UNAVAILABLE)):
            stub = api_pb2_grpc.ApiStub(connections.to(where))
            assert await code_of(stub.Get(get(), timeout=20)) is expected
    finally:
        await connections.close()

"""Watches that break, end or come too late, and servers that refuse: what the bridge makes of them.

The server is a few lines of aiohttp, so that it says exactly what each case needs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kemu import errors
from kemu.emulated.bridge import connections, hosting, requests
from kemu.emulated.client import clients, informers
from kemu.emulated.objects import resources
from kemu.emulated.objects.wire import envelopes
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PROTOBUF = {"Content-Type": envelopes.MEDIA_TYPE}


def _pod(name: str, version: int) -> bytes:
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    return core_v1_pb2.Pod(metadata=metadata).SerializeToString()


def _field(number: int, data: bytes) -> bytes:
    assert len(data) < 0x4000
    length = bytes((len(data),)) if len(data) < 0x80 else bytes((len(data) & 0x7F | 0x80, len(data) >> 7))
    return bytes((number << 3 | 2,)) + length + data


def _list(version: int, *items: bytes) -> web.Response:
    meta = meta_v1_pb2.ListMeta(resourceVersion=str(version)).SerializeToString()
    raw = _field(1, meta) + b"".join(_field(2, item) for item in items)
    return web.Response(body=envelopes.wrap("v1", "PodList", raw), headers=PROTOBUF)


def _event(kind: str, wrapped: bytes) -> bytes:
    event = _field(1, kind.encode()) + _field(2, _field(1, wrapped))
    return len(event).to_bytes(4, "big") + event


def _added(name: str, version: int) -> bytes:
    return _event("ADDED", envelopes.wrap("v1", "Pod", _pod(name, version)))


async def _stream(request: web.Request, *frames: bytes, cut: bool = False) -> web.StreamResponse:
    """A watch that ends after these frames, or is cut."""
    response = web.StreamResponse(headers={"Content-Type": f"{envelopes.MEDIA_TYPE};stream=watch"})
    await response.prepare(request)
    for frame in frames:
        # In two pieces: frames do not come as they were written.
        await response.write(frame[:3])
        await response.write(frame[3:])
    if cut:
        assert request.transport is not None
        request.transport.abort()
    return response


def _kubeconfig(path: Path, port: int, token: str = "t") -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path.write_text(json.dumps(document))
    return path


async def _against(
    handler: Handler, folder: Path, use: Callable[[clients.Client], Awaitable[None]], token: str = "t"
) -> list[tuple[str, dict[str, Any]]]:
    """Use a client whose bridge has this server behind it; what was logged."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.1)  # type: ignore[arg-type]
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    logged: list[tuple[str, dict[str, Any]]] = []
    kubeconfig = _kubeconfig(folder / "kubeconfig", port, token)
    process = hosting.Process(
        {"kubeconfig": str(kubeconfig)}, lambda at, actor, kind, data: logged.append((kind, dict(data))), 1
    )
    try:
        await process.start([])
        await asyncio.wait_for(use(clients.Client(process.host.env("user"), hosting.SERVER)), 30)
    finally:
        await process.stop()
        await runner.cleanup()
    return logged


async def _shows(client: clients.Client, *names: str) -> None:
    """Wait until an informer has these pods."""
    pods = informers.Informer(client, "pods")
    await pods.synced()
    while sorted(pods.store) != sorted(f"default/{name}" for name in names):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_a_watch_that_is_cut_goes_on_after_what_it_has_seen(tmp_path: Path) -> None:
    asked: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return _list(5, _pod("listed", 3))
        asked.append(request.query["resourceVersion"])
        if len(asked) == 1:
            return await _stream(request, _added("one", 7), cut=True)
        if len(asked) == 2:
            bookmark = envelopes.wrap(
                "v1", "Pod", core_v1_pb2.Pod(metadata={"resourceVersion": "9"}).SerializeToString()
            )
            return await _stream(request, _event("BOOKMARK", bookmark))
        return await _stream(request, _added("two", 11))

    asyncio.run(_against(serve, tmp_path, lambda client: _shows(client, "listed", "one", "two")))
    assert asked[:3] == ["5", "7", "9"]


@pytest.mark.parametrize("as_event", [True, False])
def test_a_watch_whose_revision_is_gone_makes_its_informer_list_again(tmp_path: Path, as_event: bool) -> None:
    lists = 0
    gone = meta_v1_pb2.Status(status="Failure", reason="Expired", code=410, message="too old resource version: 5 (8)")

    async def serve(request: web.Request) -> web.StreamResponse:
        nonlocal lists
        if "watch" not in request.query:
            lists += 1
            return _list(5, _pod("old", 3)) if lists == 1 else _list(8, _pod("new", 6))
        if request.query["resourceVersion"] == "5":
            wrapped = envelopes.wrap("v1", "Status", gone.SerializeToString())
            if as_event:
                return await _stream(request, _event("ERROR", wrapped))
            return web.Response(status=410, body=wrapped, headers=PROTOBUF)
        await asyncio.sleep(20)
        return await _stream(request)

    asyncio.run(_against(serve, tmp_path, lambda client: _shows(client, "new")))
    assert lists == 2


def test_lists_that_are_refused_are_tried_again_and_told(tmp_path: Path) -> None:
    """A server that has just started knows no roles yet."""
    lists = 0

    async def serve(request: web.Request) -> web.StreamResponse:
        nonlocal lists
        if "watch" in request.query:
            await asyncio.sleep(20)
        lists += 1
        if lists == 1:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}
            return web.json_response({**status, "message": "pods is forbidden"}, status=403)
        return _list(5, _pod("listed", 3))

    logged = asyncio.run(_against(serve, tmp_path, lambda client: _shows(client, "listed")))
    assert ("bridge.trouble", {"message": "pods is forbidden"}) in logged


def test_what_is_asked_too_often_is_asked_again_later(tmp_path: Path) -> None:
    asked = 0

    async def serve(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        if asked == 1:
            return web.Response(status=429, text="slow down", headers={"Retry-After": "1"})
        return web.Response(body=envelopes.wrap("v1", "Pod", _pod("one", 3)), headers=PROTOBUF)

    async def use(client: clients.Client) -> None:
        assert (await client.get("pods", "one", "default")).metadata.resourceVersion == "3"

    asyncio.run(_against(serve, tmp_path, use))
    assert asked == 2


def test_credentials_that_are_refused_are_read_again(tmp_path: Path) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] != "Bearer new":
            sockname = request.transport.get_extra_info("sockname") if request.transport is not None else None
            assert sockname is not None
            _kubeconfig(tmp_path / "kubeconfig", sockname[1], "new")
            return web.Response(status=401)
        return web.Response(body=envelopes.wrap("v1", "Pod", _pod("one", 3)), headers=PROTOBUF)

    async def use(client: clients.Client) -> None:
        assert (await client.get("pods", "one", "default")).metadata.name == "one"

    asyncio.run(_against(serve, tmp_path, use, token="old"))


def test_a_write_that_is_cut_is_told_as_one_whose_outcome_nobody_knows(tmp_path: Path) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def use(client: clients.Client) -> None:
        with pytest.raises(errors.ServiceUnavailable):
            await client.bind("default", "one", "uid", "node")

    asyncio.run(_against(serve, tmp_path, use))


def test_a_connection_that_is_closed_ends_the_requests_under_way(tmp_path: Path) -> None:
    """At each step of a request: before it has a connection, as soon as it has one, and while it waits."""

    async def serve(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.002)
        return web.Response(body=b"{}")

    async def main() -> set[str]:
        runner = web.ServerRunner(web.Server(serve), shutdown_timeout=0.1)  # type: ignore[arg-type]
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        kubeconfig = _kubeconfig(tmp_path / "kubeconfig", runner.addresses[0][1])
        ends = set()
        for steps in range(60):
            connection = connections.Connection(connections.Settings(kubeconfig=str(kubeconfig)))
            await connection.open()
            asked = [
                asyncio.create_task(connection.send(requests.Request("GET", "/", resources.BY_PLURAL["pods"])))
                for _ in range(3)
            ]
            for _ in range(steps):
                await asyncio.sleep(0)
            await connection.close()
            for end in await asyncio.gather(*asked, return_exceptions=True):
                assert isinstance(end, connections.Answer | connections.Unreachable), repr(end)
                ends.add(type(end).__name__ + str(end if isinstance(end, Exception) else ""))
        await runner.cleanup()
        return ends

    assert "Unreachablethe connection was closed" in asyncio.run(main())

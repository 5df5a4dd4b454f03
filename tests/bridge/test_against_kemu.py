"""The bridge in front of ``kemu up``: kemu's scheduler and client on both sides of HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yarl
from aiohttp import web

from kemu import errors
from kemu.doors.cli import main
from kemu.emulated.bridge import hosting
from kemu.emulated.client import clients, informers
from kemu.emulated.objects.conversion import convert
from kemu.emulated.scheduler.scheduler import Scheduler
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import ActorSpec

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: bridged}
spec: {duration: 1h, nodes: [{name: node-1}, {name: node-2}], schedulers: []}
"""
DEVICES = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: devices}
spec:
  duration: 1h
  nodes: [{name: node-1}, {name: node-2, devices: [{driver: gpu.example.com, count: 2}]}]
  manifests:
    - apiVersion: resource.k8s.io/v1
      kind: ResourceClaimTemplate
      metadata: {name: one-gpu, namespace: default}
      spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
"""
CLAIMS = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
START_S = 60.0
KEMU = [sys.executable, "-m", "kemu.doors.cli.main"]


@contextlib.contextmanager
def up(folder: Path, scenario: str, *options: str) -> Iterator[Path]:
    """``kemu up`` with a scenario; the path of its kubeconfig."""
    path, kubeconfig = folder / "scenario.yaml", folder / "kubeconfig"
    path.write_text(scenario)
    command = [*KEMU, "up", str(path), f"--kubeconfig={kubeconfig}", f"--out={folder / 'run'}", *options]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ))
    deadline = time.monotonic() + START_S
    try:
        while "Ctrl-C ends it" not in (folder / "log").read_text():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, "kemu up does not start"
            time.sleep(0.05)
        yield kubeconfig
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with up(tmp_path_factory.mktemp("up"), SCENARIO) as path:
        yield path


@pytest.fixture(scope="module")
def with_devices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster with two devices on its second node, over plain HTTP."""
    with up(tmp_path_factory.mktemp("devices"), DEVICES, "--without=schedulers", "--insecure-http") as path:
        yield path


def _pod(name: str, **spec: Any) -> core_v1_pb2.Pod:
    containers = [{"name": "c", "image": "x"}]
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    return convert.from_json(core_v1_pb2.Pod, {"metadata": metadata, "spec": {"containers": containers, **spec}})


async def with_process(
    kubeconfig: Path,
    specs: list[ActorSpec],
    what: Callable[[clients.Client], Awaitable[None]],
    shares: Sequence[str] = (),
) -> list[str]:
    """Do it in a process with a bridge; the kinds of what was logged."""
    logged: list[str] = []
    cluster = {"kubeconfig": str(kubeconfig), "shares": shares}
    process = hosting.Process(cluster, lambda at, actor, kind, data: logged.append(kind), 1)
    try:
        await process.start(specs)
        client = clients.Client(process.host.env("user"), hosting.SERVER)
        await asyncio.wait_for(what(client), 60)
    finally:
        await process.stop()
    return logged


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def test_kemus_scheduler_binds_over_http(kubeconfig: Path) -> None:
    async def use(client: clients.Client) -> None:
        pods = informers.Informer(client, "pods")
        await pods.synced()
        for number in range(20):
            await client.create(_pod(f"pod-{number}"))
        await until(lambda: sum(bool(pod.spec.nodeName) for pod in pods.store.values()) == 20)
        await client.create(_pod("nowhere", nodeSelector={"no": "where"}))
        await until(lambda: bool(pods.store.get("default/nowhere", core_v1_pb2.Pod()).status.conditions))
        condition = pods.store["default/nowhere"].status.conditions[0]
        assert condition.message.startswith("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity")
        await client.delete("pods", "nowhere", "default", grace_period_seconds=0)
        await until(lambda: "default/nowhere" not in pods.store)

    factory = f"{Scheduler.__module__}:{Scheduler.__qualname__}"
    config = {"name": "default-scheduler", "apiserver": hosting.SERVER, "events": "all", "storage": True}
    spec = ActorSpec("scheduler/default-scheduler/0", factory, config)
    logged = asyncio.run(with_process(kubeconfig, [spec], use))
    assert logged.count("sched.bind") == 20
    assert "client.event_lost" not in logged


@contextlib.asynccontextmanager
async def scheduling(kubeconfig: Path, log: Path) -> AsyncIterator[None]:
    """While ``kemu scheduler`` runs; its exit code is 0."""
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *KEMU, "scheduler", f"--kubeconfig={kubeconfig}", stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield
    finally:
        process.terminate()
        code = await asyncio.wait_for(process.wait(), 20)
    assert code == 0


@contextlib.asynccontextmanager
async def lacking(kubeconfig: str, path: str, codes: Iterable[int]) -> AsyncIterator[str]:
    """A proxy of the cluster that answers requests for a path with these codes, the last one again and again; the text
    of its kubeconfig."""
    server = re.findall("server: (.*)", kubeconfig)[0]
    left = list(codes)

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == path:
            return web.Response(status=left.pop(0) if len(left) > 1 else left[0])
        headers = {key: value for key, value in request.headers.items() if key not in ("Host", "Content-Length")}
        body, url = await request.read(), yarl.URL(server + request.raw_path, encoded=True)
        async with session.request(request.method, url, data=body, headers=headers) as came:
            told = web.StreamResponse(status=came.status, headers={"Content-Type": came.headers["Content-Type"]})
            await told.prepare(request)
            async for chunk in came.content.iter_any():
                await told.write(chunk)
            return told

    async with aiohttp.ClientSession(auto_decompress=False) as session:
        runner = web.ServerRunner(web.Server(answer, handler_cancellation=True), shutdown_timeout=0.1)  # type: ignore[arg-type]
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield kubeconfig.replace(server, f"http://127.0.0.1:{runner.addresses[0][1]}")
        await runner.cleanup()


def _unscheduled(pods: informers.Informer[core_v1_pb2.Pod], name: str) -> str:
    """Why the pod is not scheduled; empty: it is, or nothing has been said."""
    conditions = pods.store.get(f"default/{name}", core_v1_pb2.Pod()).status.conditions
    return next((one.message for one in conditions if one.type == "PodScheduled" and one.status == "False"), "")


def test_kemus_scheduler_allocates_devices_of_a_cluster(with_devices: Path, tmp_path: Path) -> None:
    async def use(client: clients.Client) -> None:
        pods = informers.Informer(client, "pods")
        await pods.synced()
        names = ("first", "second", "third")
        for name in names[:2]:
            await client.create(_pod(name, **CLAIMS))

        def run(*names: str) -> bool:
            return all(pods.store[f"default/{name}"].status.phase == "Running" for name in names)

        async def devices() -> dict[str, str]:
            """By the pod for which its claim is reserved."""
            claims = (await client.list("resourceclaims")).items
            return {
                claim.status.reservedFor[0].name: claim.status.allocation.devices.results[0].device
                for claim in claims
                if claim.status.reservedFor
            }

        async with scheduling(with_devices, tmp_path / "log"):
            await until(lambda: len(pods.store) == 2 and run(*names[:2]))
            assert {pod.spec.nodeName for pod in pods.store.values()} == {"node-2"}
            had = await devices()
            assert sorted(had) == ["first", "second"]
            assert sorted(had.values()) == ["gpu-0", "gpu-1"]
            await client.create(_pod("third", **CLAIMS))
            await until(lambda: "cannot allocate all claims" in _unscheduled(pods, "third"))
            await client.delete("pods", "first", "default", grace_period_seconds=0)
            await until(lambda: run("third"))
            assert await devices() == {"second": had["second"], "third": had["first"]}
        for name in names[1:]:
            await client.delete("pods", name, "default", grace_period_seconds=0)

    asyncio.run(with_process(with_devices, [], use))
    assert "ResourceClaims" not in (tmp_path / "log").read_text()


def test_a_cluster_without_claims_is_scheduled_as_it_is(with_devices: Path, tmp_path: Path) -> None:
    async def use(client: clients.Client) -> None:
        pods = informers.Informer(client, "pods")
        await pods.synced()
        await client.create(_pod("plain"))
        await client.create(_pod("claims", **CLAIMS))
        log, proxied = tmp_path / "log", tmp_path / "kubeconfig"
        async with lacking(there, "/apis/resource.k8s.io/v1", (503, 404)) as text:
            proxied.write_text(text)
            async with scheduling(proxied, log):
                await until(lambda: bool(pods.store["default/plain"].spec.nodeName))
                await until(lambda: "ResourceClaims are not watched" in _unscheduled(pods, "claims"))
        said = log.read_text()
        assert "the cluster cannot be read: it answers 503" in said
        assert "leaves pods with ResourceClaims waiting: the cluster does not serve resource.k8s.io/v1" in said
        for name in ("plain", "claims"):
            await client.delete("pods", name, "default", grace_period_seconds=0)

    there = with_devices.read_text()
    asyncio.run(with_process(with_devices, [], use))


def test_all_verbs_pass_through_the_bridge(kubeconfig: Path) -> None:
    async def use(client: clients.Client) -> None:
        created = await client.create(_pod("verbs", schedulerName="nobody"))
        assert created.metadata.uid
        with pytest.raises(errors.AlreadyExists):
            await client.create(_pod("verbs"))
        patch = {"metadata": {"labels": {"tier": "front"}}}
        patched = await client.patch("pods", "verbs", "default", patch, uid=created.metadata.uid)
        assert dict(patched.metadata.labels) == {"app": "web", "tier": "front"}
        with pytest.raises((errors.Conflict, errors.Invalid)):
            await client.patch("pods", "verbs", "default", patch, uid="another")
        told = core_v1_pb2.Pod()
        told.status.conditions.add(type="Ready", status="False", reason="Testing")
        changed = await client.patch_message(core_v1_pb2.Pod, "verbs", "default", told.SerializeToString(), "status")
        assert [one.reason for one in changed.status.conditions if one.type == "Ready"] == ["Testing"]
        changed.metadata.annotations["a"] = "b"
        updated = await client.update(changed)
        assert updated.metadata.annotations["a"] == "b"
        with pytest.raises(errors.Conflict):
            await client.update(created)
        bound = await client.bind("default", "verbs", created.metadata.uid, "node-1")
        assert bound.metadata.name == "verbs"
        assert (await client.get("pods", "verbs", "default")).spec.nodeName == "node-1"
        with pytest.raises(errors.Conflict):
            await client.bind("default", "verbs", created.metadata.uid, "node-2")
        listed = await client.list("pods", "default", "tier=front")
        assert [pod.metadata.name for pod in listed.items] == ["verbs"]
        await client.evict("default", "verbs", grace_period_seconds=0)
        with pytest.raises(errors.NotFound, match='pods "none" not found'):
            await client.delete("pods", "none", "default")

    asyncio.run(with_process(kubeconfig, [], use))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--kubeconfig=/nowhere"], "/nowhere cannot be read: No such file"),
        (["--kubeconfig=KUBECONFIG", "--context=other"], "other"),
        (["--kubeconfig=KUBECONFIG", "--plugin=foo"], "not MODULE:CLASS"),
        (["--kubeconfig=KUBECONFIG", "--plugin=nowhere:Class"], "plugin 'nowhere:Class' cannot be loaded"),
        (["--kubeconfig=NONSENSE"], "NONSENSE: "),
        (["--kubeconfig=KUBECONFIG", "--config=GROUPS"], "serves no PodGroups of scheduling.k8s.io/v1alpha2"),
    ],
)
def test_mistakes_are_told_in_a_line(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], text: str
) -> None:
    nonsense = tmp_path / "NONSENSE"
    nonsense.write_text("hello\n")
    groups = tmp_path / "GROUPS"
    groups.write_text("featureGates: {GenericWorkload: true, GangScheduling: true}\n")
    for name, path in (("KUBECONFIG", kubeconfig), ("NONSENSE", nonsense), ("GROUPS", groups)):
        options = [one.replace(name, str(path)) for one in options]
    assert main.main(["scheduler", *options]) == 2
    printed = capsys.readouterr().err
    assert text in printed
    assert "Traceback" not in printed

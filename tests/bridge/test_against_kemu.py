"""The bridge in front of ``kemu up``: kemu's scheduler and client on both sides of HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

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
START_S = 60.0


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("up")
    scenario, path = folder / "scenario.yaml", folder / "kubeconfig"
    scenario.write_text(SCENARIO)
    command = [sys.executable, "-m", "kemu.doors.cli.main", "up", str(scenario), f"--kubeconfig={path}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--out={folder / 'run'}"], stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ)
        )
    deadline = time.monotonic() + START_S
    while "Ctrl-C ends it" not in (folder / "log").read_text():
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < deadline, "kemu up does not start"
        time.sleep(0.05)
    yield path
    process.send_signal(signal.SIGTERM)
    process.wait(60)


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
    ],
)
def test_mistakes_are_told_in_a_line(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], text: str
) -> None:
    nonsense = tmp_path / "NONSENSE"
    nonsense.write_text("hello\n")
    options = [one.replace("KUBECONFIG", str(kubeconfig)).replace("NONSENSE", str(nonsense)) for one in options]
    assert main.main(["scheduler", *options]) == 2
    printed = capsys.readouterr().err
    assert text in printed
    assert "Traceback" not in printed

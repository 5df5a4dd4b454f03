"""A whole live comparison: starts the parts, plays, stops them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from kemu.emulated.bridge import hosting
from kemu.emulated.client import clients
from kemu.emulated.real import executables
from kemu.lab.conformance.live import (
    drawn_extenders,
    drawn_pods,
    parts,
    plays,
    reports,
    scheduler_logs,
    shadows,
    stand_ins,
)


async def compare(
    count: int, seed: int, *, kubeconfig: Path | None = None, say: Callable[[str], object] = lambda text: None
) -> reports.Report:
    """``kubeconfig``: of an empty cluster without a scheduler; None: a real one is started for it.

    Raises KemuError where a real part is missing or ends.
    """
    executables.find("kube-scheduler", *(() if kubeconfig is not None else ("kube-apiserver", "etcd")))
    with tempfile.TemporaryDirectory(prefix="kemu-live-") as folder:
        started = parts.Parts(Path(folder))
        try:
            if kubeconfig is None:
                say("starting etcd and kube-apiserver")
                kubeconfig = await started.start_cluster()
            return await _compare(count, seed, kubeconfig, started, say)
        finally:
            await started.stop()


async def _compare(
    count: int, seed: int, kubeconfig: Path, started: parts.Parts, say: Callable[[str], object]
) -> reports.Report:
    extenders = drawn_extenders.Server()
    process = hosting.Process({"kubeconfig": str(kubeconfig)}, lambda *event: None, seed)
    try:
        await process.start([])
        env = process.host.env("live")
        client = clients.Client(env, hosting.SERVER)
        shadow = shadows.Shadow(env, client, drawn_pods.PROFILES)
        volumes = stand_ins.VolumeController(env, client)
        await shadow.start()
        await volumes.start()
        real = scheduler_logs.SchedulerLog(lambda attempt: play.on_attempt(attempt))
        play = plays.Play(client, shadow, real, started.check, seed, say)
        await extenders.start()
        await started.start_scheduler(kubeconfig, drawn_pods.PROFILES, extenders.configured(), real.hear)
        playing = asyncio.ensure_future(play.run(count))
        ended = asyncio.ensure_future(process.run(()))
        await asyncio.wait([playing, ended], return_when=asyncio.FIRST_COMPLETED)
        for task in (playing, ended):
            if not task.done():
                task.cancel()
        if not playing.done() or playing.cancelled():
            ended.result()
        return playing.result()
    finally:
        extenders.stop()
        await process.stop()

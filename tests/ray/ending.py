"""A run in a process of its own, for the tests of how runs end: prints the pids of its processes, then ends ``how``.

``python -m tests.ray.ending HOW DIRECTORY``
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu.runtime.env import SECOND_NS
from kemu.runtime.ray.driver import runtime as ray
from tests.ray.world import CODE, PLAN, spec


def main(how: str, directory: Path) -> None:
    events = []

    def sink(time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        events.append(kind)

    runtime = ray.RayRuntime(1, sink, directory=directory, speed=10, cells=PLAN, code=CODE)

    async def drive() -> None:
        specs = [spec("echo/0", "Echo"), spec("talker/0", "Talker", to="echo/0")]
        try:
            if how == "launch":
                specs.append(spec("talker/1", "Failing", when="run"))
            await runtime.launch(specs)
        finally:
            # Without Ray there is nothing to report; why it did not start is on the way out.
            cluster = runtime._fleet.cluster
            pids, temporary = (cluster.pids(), cluster.temporary) if cluster is not None else ([], None)
            report = {"pids": pids, "temporary": temporary, "driver": os.getpid()}
            print(json.dumps(report), flush=True)
        await runtime.begin()
        await runtime.run_until(SECOND_NS)
        print("the clock runs", flush=True)
        if how == "error":
            raise LookupError("in the driver")
        if how == "wait":
            await runtime.run_until(1000 * SECOND_NS)
        if how == "stubborn":
            try:
                await asyncio.sleep(1000)
            finally:
                print("cleaning up", flush=True)
                await asyncio.sleep(1000)
        await runtime.shutdown()

    try:
        runtime.run(drive())
    finally:
        print(json.dumps({"events": len(events)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

"""What is fuzzed: a cell in a process of its own, with a store, an API server and an extender behind real gRPC.

Prints where it serves, a token that it accepts and, with ``--tls``, its certificate; runs until its standard input is
closed. Its memory is in ``/proc``, as of any process.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from kemu.runtime.env import ActorSpec
from kemu.runtime.host import certificates, tokens
from kemu.runtime.host.control import Cell, start_server

ACTORS = (
    ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": "none"}),
    ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer", {"store": "store"}),
    ActorSpec(
        "extender/gpus",
        "kemu.emulated.scheduler.extenders.servers:ExtenderActor",
        {"plugin": "gpu-share", "apiserver": "apiserver/0"},
    ),
)


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="kemu-fuzz-") as folder:
        issuer = tokens.Issuer()
        cell = Cell("fuzzed", Path(folder), tokens.Verifier(issuer.public_key))
        cell.host.token = issuer.token
        asyncio.get_running_loop().set_exception_handler(cell.unhandled)
        cell.host.on_failure = lambda name, text: print(text, file=sys.stderr, flush=True)
        if "--tls" in sys.argv:
            certificates.is_loopback = lambda address: False
        server = await start_server(cell, "127.0.0.1")
        cell.host.configure(
            seed=1, directory=Path(folder), addresses={spec.name: (cell.host.target, 1) for spec in ACTORS}
        )
        cell.host.clock.configure(epoch_unix_ns=1, speed=1.0, epoch_unix_s=946_684_800)
        for spec in ACTORS:
            await cell.host.start([spec])
        print(cell.host.target, issuer.token(tokens.DRIVER), cell.certificate.hex(), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        await server.stop(0)


if __name__ == "__main__":
    asyncio.run(main())

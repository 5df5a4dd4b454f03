"""The crash of an actor, as by SIGKILL: none of its code has an effect any more, and its peers learn of it later.

A crash is not a cancellation. Its tasks do unwind, so that Python frees what they hold, but by then their disk is
closed, their timers and messages are dropped, and the log takes nothing from them. Neighbours: ``disks`` says what
survives, ``loops`` drops tasks and timers, ``rpc.networks`` tells the peers, ``simulation`` starts the successor.
"""

from __future__ import annotations

import random

from kemu.runtime.rpc.networks import Network, Peer
from kemu.runtime.sim.disks import MemoryDisk
from kemu.runtime.sim.loops import VirtualLoop
from kemu.runtime.sim.owners import Owner


def crash(
    loop: VirtualLoop, network: Network, owner: Owner, peer: Peer, disk: MemoryDisk, stream: random.Random
) -> MemoryDisk:
    """Returns the disk for the next incarnation; ``stream`` decides what of the unsynced data is on it."""
    # Before its tasks unwind: what they write, send or answer then must have no effect.
    survivor = disk.crash(stream)
    peer.gone = True
    network.leave(peer)
    loop.bury(owner)
    return survivor

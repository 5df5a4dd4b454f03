"""What has struck a cluster strikes another one in the same way: every kind of fault that actors meet."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from kemu.lab.up import embedded
from kemu.lab.up.chaos import scripts
from kemu.runtime.faults.kinds import CLIENT_FAULTS, DEVICE_FAULTS, KINDS

NODE, API = "kubelet/node-1", "apiserver/*"
OF_STREAM = {"from": API, "to": "scheduler/*"}
GENTLE: list[dict[str, Any]] = [
    {"crash": {"actor": "scheduler/default-scheduler/0"}, "for": "4s"},
    {"crash": {"node": "node-1"}, "for": "4s"},
    {"crash": {"node": "node-2", "powerOff": True}, "for": "4s"},
    {"crash": {"zone": "zone-c", "restart": False}},
    {"terminate": {"actor": "kubelet/node-2"}},
    {"partition": {"between": [NODE, API], "oneWay": True}, "for": "4s"},
    {"partition": {"zone": "zone-b"}, "for": "4s"},
    {"pause": {"actor": "kubelet/*"}, "for": "2s"},
    {"delay": {**OF_STREAM, "by": "1500ms"}, "for": "4s"},
    {"delay": {**OF_STREAM, "by": {"uniform": {"min": "10ms", "max": "1s"}}}, "for": "4s"},
    {"bandwidth": {**OF_STREAM, "bytesPerSecond": "1Ki"}, "for": "4s"},
    {"drop": {**OF_STREAM, "probability": 0.5}, "for": "4s"},
    {"duplicate": {**OF_STREAM, "probability": 0.5, "after": "1s"}, "for": "4s"},
    {"reset": {"between": [NODE, API]}},
    {"halfOpen": {"between": [NODE, API]}},
    {"clockSkew": {"actor": "controller/node-lifecycle", "by": "-30s", "drift": 0.01}, "for": "4s"},
    {"clockJump": {"actor": "controller/node-lifecycle", "by": "-3s"}},
    {"staleReads": {"apiServer": "apiserver/0", "by": "5s"}, "for": "4s"},
    {"cutWatches": {"of": "scheduler/*", "compacted": True}},
    {"slowApi": {"apiServer": "apiserver/0", "by": "1s"}, "for": "4s"},
]
OF_STORE: list[dict[str, Any]] = [
    {"diskFull": {"actor": "store"}, "for": "4s"},
    {"slowDisk": {"actor": "store", "fsync": "20ms"}, "for": "4s"},
    {"failingFsync": {"actor": "store"}, "for": "4s"},
    {"crash": {"actor": "store", "step": "after-fsync"}, "for": "2s"},
    {"tornWrite": {"actor": "store"}, "for": "2s"},
    {"bitRot": {"actor": "store"}},
    {"lostSectors": {"actor": "store", "sectors": 2}},
    {"lostRenames": {"actor": "store"}, "for": "4s"},
    {"restore": {"actor": "store", "age": "1s"}},
]
ELSEWHERE = {"kill", "stop", *DEVICE_FAULTS}
"""Faults of the processes of Ray, and of devices, which the nodes here do not have."""


def _struck(cluster: embedded.Cluster) -> list[tuple[Any, ...]]:
    return [
        (found["what"], round(found["begun_s"], 6), found["ended_s"] and round(found["ended_s"], 6), found["hits"])
        for found in cluster.faults()
    ]


def _play(chaos: list[dict[str, Any]], asked: list[dict[str, Any]], until_s: float) -> tuple[list[Any], str]:
    """What has struck, and the script of it."""
    found: tuple[list[Any], str] | None = None
    # What a damaged disk does to the verdict is not asked here.
    with contextlib.suppress(AssertionError), embedded.up(nodes=3, chaos=chaos) as cluster:
        for fault in asked:
            cluster.step(5)
            fault_id = cluster.chaos(fault)
        if asked and asked[-1].keys() & {"slowApi", "diskFull", "slowDisk"}:  # this one ends before its time
            cluster.step(1)
            cluster.heal(fault_id)
        cluster.step(until_s - cluster.now_s)
        found = _struck(cluster), cluster.script()
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("faults", "until_s"),
    [(GENTLE, 120.0), *(([fault], 30.0) for fault in OF_STORE)],
    ids=["together", *(next(iter(fault)) for fault in OF_STORE)],
)
def test_a_script_strikes_the_same_again(faults: list[dict[str, Any]], until_s: float) -> None:
    struck, script = _play([], faults, until_s)
    assert [what for what, *_ in struck] == [next(iter(fault)) for fault in faults]
    assert _play(scripts.read(script, "script"), [], until_s) == (struck, script)


def test_no_kind_is_left_out() -> None:
    tried = {next(iter(fault)) for fault in (*GENTLE, *OF_STORE)}
    assert tried == set(KINDS) - set(CLIENT_FAULTS) - ELSEWHERE

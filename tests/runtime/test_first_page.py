"""The example that opens kemu/runtime/env.py runs as it is printed."""

from __future__ import annotations

import re
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kemu.runtime import env
from kemu.runtime.env import ActorSpec, Env
from kemu.runtime.runlog.events import PodQueued
from kemu.testing import Recorder, sim

NAME = "the_first_page"

TAKES = """\
                await self.store.Put(PutRequest(key=b"node", value=self.env.name.encode()))
                self.env.log("node.taken", {})
"""
TAKES_IF_FREE = """\
                free = Compare(key=b"node", target=Compare.VERSION, version=0)
                put = RequestOp(request_put=PutRequest(key=b"node", value=self.env.name.encode()))
                if (await self.store.Txn(TxnRequest(compare=[free], success=[put]))).succeeded:
                    self.env.log("node.taken", {})
"""


def example() -> str:
    """The indented lines of the module's docstring."""
    assert env.__doc__ is not None
    return "\n".join(re.findall(r"^(?: {4}.*)?$", env.__doc__, re.MULTILINE))


@pytest.fixture
def page() -> Iterator[types.ModuleType]:
    module = sys.modules[NAME] = types.ModuleType(NAME)
    yield module
    del sys.modules[NAME]


def run(code: str, page: types.ModuleType) -> None:
    exec(compile(textwrap.dedent(code), NAME, "exec"), page.__dict__)


def test_the_line_finds_a_run_in_which_both_take_the_node(page: types.ModuleType) -> None:
    run(example(), page)
    assert page.failing > 0, "the first seed already fails: then the example is about no race"
    assert not page.is_taken_once(page.failing)


def test_a_transaction_is_never_broken(page: types.ModuleType) -> None:
    code = example()
    assert TAKES in code
    imports = "    from kemu.messages.etcd.rpc_pb2 import Compare, RequestOp, TxnRequest\n"
    run(imports + code.replace(TAKES, TAKES_IF_FREE).partition("    failing")[0], page)
    assert all(page.is_taken_once(seed) for seed in range(200))


def test_a_kind_and_its_data_are_an_event_too() -> None:
    """As actors of users log; a declared kind becomes its class."""

    class Teller:
        def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
            self.env = env

        async def run(self) -> None:
            self.env.log("echo.alive", {"n": 3})
            self.env.log("sched.queued", {"pod": "a", "queue": "active"})
            self.env.ready()

    log = Recorder()
    sys.modules[NAME] = types.ModuleType(NAME)
    setattr(sys.modules[NAME], "Teller", Teller)  # noqa: B010  # a module that was made here
    sim(lambda runtime: runtime.clock.sleep(1), 1, [ActorSpec("teller", f"{NAME}:Teller")], sink=log)
    assert log.of("echo.alive") == [{"n": 3}]
    (queued,) = log.of("sched.queued")
    assert isinstance(queued, PodQueued)
    assert queued.queue == "active"

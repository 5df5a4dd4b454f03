"""Bugs planted in the store, the API server and the client are found, each by the check that is there for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.emulated.apiserver.registry.reads import Reader
from kemu.emulated.apiserver.registry.registry import Registry
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.apiserver.watch.cache import Collection
from kemu.emulated.objects import meta
from kemu.emulated.store import journal
from kemu.emulated.store.operations import Requests
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.v1 import api_pb2

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
MOST_SEEDS = 5

RACE = "races/two-replicas-same-pods"
STORE_CRASH = "chaos/store-crash"
NODE_LOSS = "chaos/machine-crash"

Bug = Callable[[pytest.MonkeyPatch], None]


def amnesiac_recovery(patch: pytest.MonkeyPatch) -> None:
    """The store recovers all but one of its pods."""
    recover = journal.Journal.recover

    def forgetful(self: journal.Journal) -> journal.Recovery:
        recovery = recover(self)
        for _, changes in reversed(recovery.records):
            if isinstance(changes, list) and changes[0].startswith(b"/registry/pods/"):
                changes[0] = b"/lost"
                break
        return recovery

    patch.setattr(journal.Journal, "recover", forgetful)


def comparisons_always_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Requests, "_holds", lambda self, compare: True)


def stale_gets_and_lists(patch: pytest.MonkeyPatch) -> None:
    """What is to be the newest state comes from the cache, whatever that has."""
    get, list_ = Reader.get, Reader.list

    def from_cache(request: Any) -> Any:
        other = meta.copied(request)
        other.resource_version = other.resource_version or "0"
        return other

    async def stale_get(self: Reader, request: api_pb2.GetRequest) -> bytes:
        return await get(self, from_cache(request))

    async def stale_list(self: Reader, request: api_pb2.ListRequest) -> api_pb2.ListResponse:
        return await list_(self, request if getattr(request, "continue") else from_cache(request))

    patch.setattr(Reader, "get", stale_get)
    patch.setattr(Reader, "list", stale_list)


def acknowledged_before_it_is_written(patch: pytest.MonkeyPatch) -> None:
    """The store journals each batch only when the next one comes."""
    append = journal.Journal.append
    held: dict[journal.Journal, Any] = {}

    def late(self: journal.Journal, records: Any) -> None:
        before = held.get(self)
        held[self] = records
        if before is not None:
            append(self, before)

    patch.setattr(journal.Journal, "append", late)


def wrong_answers(patch: pytest.MonkeyPatch) -> None:
    """An API server answers a patch with the object as it was before."""
    rewrite = Registry.rewrite

    async def old(self: Registry, strategy: Any, key: bytes, *rest: Any, **more: Any) -> tuple[Entry, bool]:
        before = self.cache.collections[strategy.resource.plural].entries.get(key)
        entry, gone = await rewrite(self, strategy, key, *rest, **more)
        if before is None or gone:
            return entry, gone
        return Entry(key, entry.revision, before.value), gone

    patch.setattr(Registry, "rewrite", old)


def lists_that_lack_one(patch: pytest.MonkeyPatch) -> None:
    select = Collection.select

    def short(self: Collection, selection: Any) -> list[Entry]:
        return select(self, selection)[:-1]

    patch.setattr(Collection, "select", short)


LAGS = {"apiServers": {"cacheLag": "20s"}}
LATENCIES = {"timing": {"preset": "realistic"}}


def run(name: str, seed: int, changes: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The results of the checks, by id."""
    document = yaml.safe_load((SCENARIOS / f"{name}.yaml").read_text())
    document["spec"].update(seed=seed, expect=[], **changes)
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(document))
    result = runner.run(loader.load(file), runner.Options(out=folder / "run", runtime="sim"))
    return {check["id"]: check["holds"] for check in result.verdict["checks"]}


@pytest.mark.parametrize(
    ("bug", "scenario", "changes", "check"),
    [
        (amnesiac_recovery, STORE_CRASH, LATENCIES, "store-agrees-with-history"),
        (comparisons_always_hold, RACE, LATENCIES, "history-is-linearizable"),
        (stale_gets_and_lists, NODE_LOSS, LAGS, "history-is-linearizable"),
        (acknowledged_before_it_is_written, STORE_CRASH, LATENCIES, "acknowledged-writes-survive"),
        (wrong_answers, RACE, {}, "acknowledged-writes-survive"),
        (lists_that_lack_one, RACE, {}, "lists-are-snapshots"),
    ],
)
def test_a_planted_bug_is_found(
    bug: Bug,
    scenario: str,
    changes: Mapping[str, Any],
    check: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(scenario, 1, changes, tmp_path)[check] is True, "without the bug"
    bug(monkeypatch)
    assert any(run(scenario, seed, changes, tmp_path)[check] is False for seed in range(1, MOST_SEEDS + 1))

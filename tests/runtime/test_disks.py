"""Both disks keep the contract of ``env.Disk``; the one in memory also what a crash may and may not do."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.runtime.env import Disk
from kemu.runtime.host.files import FileDisk
from kemu.runtime.sim.disks import MemoryDisk


@pytest.fixture(params=["memory", "files"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    if request.param == "memory":
        yield MemoryDisk()
    else:
        with contextlib.closing(FileDisk(tmp_path / "disk")) as files:
            yield files


def test_append_read_truncate(disk: Disk) -> None:
    assert disk.list() == []
    disk.append("log", b"abc")
    disk.append("log", b"def")
    assert disk.read("log") == b"abcdef"
    disk.fsync("log")
    disk.truncate("log", 4)
    disk.append("log", b"!")
    assert disk.read("log") == b"abcd!"
    with pytest.raises(ValueError, match="cannot truncate 5 bytes to 6"):
        disk.truncate("log", 6)


def test_a_large_file_is_as_a_small_one() -> None:
    """The disk in memory compresses the front of it."""
    disk, written = MemoryDisk(), b""
    for number in range(40):
        line = b"%08d" % number * 4096
        disk.append("log", line)
        written += line
        if number % 3 == 0:
            disk.fsync("log")
    assert disk.read("log") == written
    assert len(disk._files["log"].tail) < len(written) / 2
    disk.truncate("log", 1000)
    disk.append("log", b"!")
    assert disk.read("log") == written[:1000] + b"!"
    disk.write("snapshot", written)
    disk.append("snapshot", b"?")
    assert disk.rot(random.Random(1))
    survivor = disk.crash(random.Random(2))
    assert len(survivor.read("snapshot")) in (len(written), len(written) + 1)
    different = [a != b for a, b in zip(survivor.read("snapshot"), written, strict=False)]
    assert sum(different) <= 1


def test_write_replaces_the_whole_file(disk: Disk) -> None:
    disk.append("b", b"old and long")
    disk.write("b", b"new")
    disk.append("b", b"er")
    disk.write("a", b"")
    assert disk.list() == ["a", "b"]
    assert (disk.read("a"), disk.read("b")) == (b"", b"newer")


@pytest.mark.parametrize("durably", [True, False])
def test_only_what_must_be_durable_waits_for_the_disk(
    disk: Disk, durably: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    monkeypatch.setattr(os, "fsync", waits.append)
    disk.write("state", b"one", durably=durably)
    disk.write("state", b"two", durably=durably)
    assert disk.read("state") == b"two"
    # Of the file and of its directory, each time.
    assert len(waits) == (4 if durably and isinstance(disk, FileDisk) else 0)


def test_remove(disk: Disk) -> None:
    disk.append("other", b"1")
    disk.append("one", b"2")
    disk.remove("one")
    assert disk.list() == ["other"]
    disk.append("one", b"3")
    assert disk.read("one") == b"3"


def test_files_that_are_not_there(disk: Disk) -> None:
    for action in (disk.read, disk.fsync, disk.remove):
        with pytest.raises(FileNotFoundError):
            action("absent")
    with pytest.raises(FileNotFoundError):
        disk.truncate("absent", 0)


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "../a"])
def test_names_are_flat(disk: Disk, name: str) -> None:
    with pytest.raises(ValueError, match="not a file name"):
        disk.append(name, b"")
    with pytest.raises(ValueError, match="not a file name"):
        disk.write(name, b"")


def test_files_outlive_their_disk_object(tmp_path: Path) -> None:
    first = FileDisk(tmp_path)
    first.append("log", b"abc")
    first.close()
    (tmp_path / ".log.new").write_bytes(b"left by a crash")
    second = FileDisk(tmp_path)
    assert second.list() == ["log"]
    assert second.read("log") == b"abc"


@given(
    st.lists(st.one_of(st.binary(min_size=1, max_size=8), st.just(None)), max_size=12),
    st.integers(),
)
def test_a_crash_keeps_what_was_fsynced_and_a_prefix_of_the_rest(steps: list[bytes | None], seed: int) -> None:
    disk, written, synced = MemoryDisk(), b"", b""
    is_durable = False
    for step in steps:
        if step is not None:
            disk.append("log", step)
            written += step
        elif written:
            disk.fsync("log")
            synced, is_durable = written, True
    after = disk.crash(random.Random(seed))
    if not is_durable and not after.list():
        return
    if written:
        found = after.read("log")
        assert found.startswith(synced)
        # A byte that is there is the one that was written, or was never written.
        assert all(byte in (0, one) for byte, one in zip(found, written, strict=False))
        assert len(found) <= len(written)


def test_a_crash_loses_keeps_and_tears() -> None:
    fates = set()
    for seed in range(60):
        disk = MemoryDisk()
        disk.write("snapshot", b"whole")
        disk.append("log", b"abcdef")
        disk.fsync("log")
        disk.append("log", b"ghijkl")
        disk.append("fresh", b"xyz")
        after = disk.crash(random.Random(seed))
        assert after.read("snapshot") == b"whole"
        length = len(after.read("log"))
        fates.add("lost" if length == 6 else "kept" if length == 12 else "torn")
        fates.add("fresh is missing" if "fresh" not in after.list() else "fresh is there")
    assert fates == {"lost", "kept", "torn", "fresh is missing", "fresh is there"}


def test_the_disk_of_the_dead_cannot_be_used() -> None:
    disk = MemoryDisk()
    disk.append("log", b"abc")
    disk.fsync("log")
    after = disk.crash(random.Random(0))
    for action in (disk.list, lambda: disk.append("log", b"late"), lambda: disk.read("log"), lambda: disk.fsync("log")):
        with pytest.raises(asyncio.CancelledError):
            action()
    assert after.read("log") == b"abc"

"""What a kubelet notes on its disk, which may be full or rot."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.kubelet import notes
from kemu.runtime.sim.disks import MemoryDisk
from tests.kubelet.cluster import Cluster, pod

NOTE = {"images": [["web:1", 300], ["web:2", None]]}


def test_what_is_noted_is_read() -> None:
    disk = MemoryDisk()
    assert notes.read(disk, "images") is None
    notes.write(disk, "images", NOTE)
    assert notes.read(disk, "images") == NOTE
    notes.write(disk, "images", [])
    assert notes.read(disk, "images") == []


@pytest.mark.parametrize("place", range(0, 40, 3))
def test_a_note_that_has_rotted_is_none(place: int) -> None:
    disk = MemoryDisk()
    notes.write(disk, "images", NOTE)
    data = bytearray(disk.read("images"))
    data[place] ^= 4
    disk.write("images", bytes(data))
    with pytest.raises(ValueError, match="images has rotted"):
        notes.read(disk, "images")
    assert notes.read_if_sound(disk, "images") is None


@pytest.mark.parametrize("data", [b"", b"{}", b"00000000", b"\0" * 512])
def test_what_is_no_note_is_none(data: bytes) -> None:
    disk = MemoryDisk()
    disk.write("images", data)
    assert notes.read_if_sound(disk, "images") is None


@pytest.mark.parametrize("fault", ["diskFull", "bitRot", "lostSectors"])
def test_images_come_and_go_on_a_disk_that_fails(fault: str, cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> Any:
        await cluster.create(pod("a"))
        await cluster.at(5)
        await cluster.runtime.inject("f", fault, {"actor": ["kubelet/n1"], "sectors": 1.0})
        await cluster.create(pod("b"))
        await cluster.at(10)
        await cluster.runtime.crash("kubelet/n1")
        await cluster.runtime.restart("kubelet/n1")
        await cluster.create(pod("c"))
        await cluster.at(20)
        return [await cluster.phase(name) for name in "abc"]

    assert cluster.play(main, images={"kemu.dev/pause:1": 1000}) == ["Running", "Running", "Running"]

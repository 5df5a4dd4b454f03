"""`kemu bench up`: what it says where real parts are missing, and that a pair is measured where they are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.errors import KemuError
from kemu.lab.bench.clients import pairs
from tests.realkube import binaries


def test_all_missing_parts_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(KemuError, match=r"needs etcd v[0-9.]+, kube-apiserver v1\.36\.3, kwok v0\.8\.0: neither in "):
        pairs.up("kwok", 1, 1, 1)


@pytest.mark.nightly("a pair of clusters takes half a minute")
def test_a_pair_of_small_clusters() -> None:
    binaries.require("etcd", "kube-apiserver", "kube-scheduler", "kwok")
    figures = pairs.up("kube-scheduler", nodes=3, pods=20, rounds=1, qps=1000)
    assert figures["kemu_pods_per_s"][0] > 0
    assert figures["real_pods_per_s"][0] > 0
    assert figures["ratio_pods_per_s"] > 0
    assert figures["ratio_running_per_s"] > 0
    figures = pairs.up("stack", nodes=3, pods=20, rounds=1)
    assert figures["kemu_cpu_ms_per_pod"][0] > 0
    assert figures["real_cpu_ms_per_pod"][0] > 0

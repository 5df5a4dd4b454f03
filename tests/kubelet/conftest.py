from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.kubelet.kubelet import Kubelet
from tests.kubelet.cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def kubelets(monkeypatch: pytest.MonkeyPatch) -> list[Kubelet]:
    """The kubelets that run, as they come."""
    made: list[Kubelet] = []
    init = Kubelet.__init__

    def remember(self: Kubelet, *args: Any) -> None:
        init(self, *args)
        made.append(self)

    monkeypatch.setattr(Kubelet, "__init__", remember)
    return made

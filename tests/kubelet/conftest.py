from __future__ import annotations

import pytest
from kubelet_cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()

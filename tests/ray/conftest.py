from __future__ import annotations

from collections.abc import Iterator

import pytest

from kemu.runtime.ray.driver.clusters import RayCluster


@pytest.fixture(scope="module")
def local_ray() -> Iterator[RayCluster]:
    """One Ray for all tests of a module; each of them has its own cells."""
    with RayCluster(workers=3) as cluster:
        yield cluster

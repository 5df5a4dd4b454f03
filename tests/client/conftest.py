from __future__ import annotations

import pytest

from tests.client.world import World


@pytest.fixture
def world() -> World:
    return World()

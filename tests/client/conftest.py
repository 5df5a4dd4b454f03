from __future__ import annotations

import pytest
from client_world import World


@pytest.fixture
def world() -> World:
    return World()

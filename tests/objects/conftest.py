"""Property tests have no deadlines: the machines that run them are shared."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("objects", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("objects")

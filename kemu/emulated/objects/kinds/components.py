"""ComponentStatus, a kind that is made for each answer and never stored."""

from __future__ import annotations

from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2

ROW = Resource("componentstatuses", "ComponentStatus", "v1", core_v1_pb2.ComponentStatus, False, ("cs",), False)

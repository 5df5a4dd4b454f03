"""The defaults of volumes: claims, volumes, and the group storage.k8s.io."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

FILL: dict[type[Message], Callable[[Any], None]] = {}

PREPARE: dict[type[Message], Callable[[Any], None]] = {}

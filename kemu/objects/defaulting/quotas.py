"""The defaults of ResourceQuotas and LimitRanges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

FILL: dict[type[Message], Callable[[Any], None]] = {}

PREPARE: dict[type[Message], Callable[[Any], None]] = {}

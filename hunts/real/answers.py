"""What commands in containers of RabbitMQ and Cassandra come to: the operators only want to hear that they succeed."""

from __future__ import annotations

from typing import Any


async def succeed(session: Any) -> int:
    return 0

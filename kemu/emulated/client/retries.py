"""Requests that are repeated until the API server answers them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kemu import errors
from kemu.emulated.client import streams
from kemu.runtime.env import Env

T = TypeVar("T")

PASSING = (
    errors.ServiceUnavailable, errors.TooManyRequests, errors.ServerTimeout, errors.InternalError, errors.NoSpace,
)  # fmt: skip
"""Errors that may pass. (TooManyRequests from an eviction is about a budget and may last.)"""


async def patiently(env: Env, request: Callable[[], Awaitable[T]]) -> T:
    """Make a request again and again while the server or its store is away, overloaded, slow or full; other refusals
    are raised.

    After a lost connection it is not known whether the request was carried out: it must bear being repeated.
    """
    backoff: streams.Backoff | None = None
    while True:
        try:
            return await request()
        except PASSING as error:
            if backoff is None:
                backoff = streams.Backoff(env)
                if isinstance(error, errors.ConnectionLost):
                    continue  # a connection that broke says nothing of the next one
            await env.clock.pause(backoff.next_s())

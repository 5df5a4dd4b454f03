"""Requests that are repeated until the API server answers them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from kemu import errors
from kemu.emulated.client import streams
from kemu.runtime.env import Clock, Env, Random

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


BACKOFF_S = (0.01, 0.05, 0.25)
"""Waits between the four tries of client-go's ``retry.DefaultBackoff``."""
RETRIES, RETRY_S = 5, 0.01
"""Tries of its ``retry.DefaultRetry``, and the wait between two of them."""
JITTER = 0.1
"""By what part of itself a wait of either is stretched at random, at most."""


class Paced(Protocol):
    """Who waits between tries: an Env, for example."""

    @property
    def clock(self) -> Clock: ...

    @property
    def random(self) -> Random: ...


class Patches(Protocol):
    """What of a client is needed for patches."""

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str, kind: str, /
    ) -> object: ...


async def status_patch(
    by: Paced, api: Patches, resource: str, name: str, namespace: str, patch: Mapping[str, Any]
) -> None:
    """Patch a status, strategically, as kube-scheduler does (``util.PatchPodStatus``, ``PatchPodGroupStatus``): up to
    four times, if the reason may pass. It raises what the last request raised.

    A connection that broke does not count as such, as the request may have been carried out; a refused one does.
    """
    for wait_s in BACKOFF_S:
        try:
            await api.patch(resource, name, namespace, patch, "status", "strategic")
            return
        except errors.ApiError as error:
            if not _may_pass(error):
                raise
        await by.clock.pause(wait_s * (1 + JITTER * by.random.random()))
    await api.patch(resource, name, namespace, patch, "status", "strategic")


def _may_pass(error: errors.ApiError) -> bool:
    """``util.Retriable``. An outcome that is unknown has code 500."""
    if isinstance(error, errors.ConnectionLost):
        return isinstance(error, errors.ConnectionRefused)
    return isinstance(error, errors.Conflict) or error.code in (500, 503)

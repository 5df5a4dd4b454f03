"""Requests of one namespace are judged together, and their quotas charged with one write each (``quotaEvaluator``).

While a namespace is being judged, further requests wait and make up the next batch. A charge that fails, because
another request has charged the quota, is tried again with what this server knows by then: three times.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from kemu import errors as kemu_errors
from kemu.emulated.apiserver.admission.quotas import checks
from kemu.emulated.apiserver.admission.quotas.accounts import Accounts
from kemu.emulated.apiserver.admission.quotas.limited_resources import LimitedResource
from kemu.emulated.objects.amounts import resource_lists
from kemu.emulated.objects.quotas.quotas import Quota
from kemu.runtime.env import SECOND_NS, Env

RETRIES = 3
WORKERS = 5
"""Namespaces that are judged at the same time."""
TIMEOUT_S = 10


class _Waiter:
    """A request, and what came of it."""

    __slots__ = ("done", "error", "finished", "request")

    def __init__(self, request: checks.Request) -> None:
        self.request = request
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.done = False
        """It is decided."""
        self.error: kemu_errors.ApiError | None = None

    def decide(self, error: kemu_errors.ApiError | None = None) -> None:
        self.done, self.error = True, error


class Evaluations:
    def __init__(self, env: Env, accounts: Accounts, limited: Sequence[LimitedResource]) -> None:
        self._env = env
        self._accounts = accounts
        self._limited = limited
        self._queue: deque[str] = deque()
        """Namespaces that have work and no worker."""
        self._work: dict[str, list[_Waiter]] = {}
        self._late: dict[str, list[_Waiter]] = {}
        """By namespace that has a worker: what came since it began."""

    async def evaluate(self, request: checks.Request) -> None:
        """Raises :class:`kemu.errors.ApiError` unless the request fits and is charged."""
        waiter = _Waiter(request)
        namespace = request.namespace
        if namespace in self._late:
            self._late[namespace].append(waiter)
        else:
            self._add(namespace, [waiter])
        clock = self._env.clock
        timer = clock.call_at_ns(clock.now_ns() + TIMEOUT_S * SECOND_NS, lambda: _finish(waiter))
        try:
            await waiter.finished
        finally:
            timer.cancel()
        if not waiter.done:
            raise kemu_errors.InternalError("Internal error occurred: resource quota evaluation timed out")
        if waiter.error is not None:
            raise waiter.error

    def _add(self, namespace: str, waiters: list[_Waiter]) -> None:
        if namespace not in self._work:
            self._work[namespace] = []
            self._queue.append(namespace)
        self._work[namespace] += waiters
        self._start()

    def _start(self) -> None:
        while self._queue and len(self._late) < WORKERS:
            namespace = self._queue.popleft()
            self._late[namespace] = []
            self._env.spawn(self._judge(namespace, self._work.pop(namespace)), "quota evaluation")

    async def _judge(self, namespace: str, waiters: list[_Waiter]) -> None:
        try:
            quotas = self._accounts.of(namespace)
            if quotas or self._limited:
                await self._charge(namespace, quotas, waiters, RETRIES)
            else:
                for waiter in waiters:
                    waiter.decide()
        finally:
            for waiter in waiters:
                _finish(waiter)
            late = self._late.pop(namespace)
            if late:
                self._add(namespace, late)
            else:
                self._start()

    async def _charge(self, namespace: str, quotas: list[Quota], waiters: list[_Waiter], retries: int) -> None:
        """``checkQuotas``: what fits is charged; what is already charged to other quotas stays so."""
        before = quotas
        charged = False
        now_unix_ns = self._env.clock.unix_ns()
        for waiter in waiters:
            try:
                after = checks.check(quotas, waiter.request, self._limited, now_unix_ns)
            except kemu_errors.ApiError as error:
                waiter.decide(error)
                continue
            if waiter.request.dry_run:
                waiter.decide()
                continue
            if any(not resource_lists.is_same(*pair) for pair in _used(quotas, after)):
                charged = True
            else:
                waiter.decide()
            quotas = after
        if not charged:
            return
        failed: dict[str, None] = {}
        last_error: kemu_errors.ApiError | None = None
        for old, new in zip(before, quotas, strict=True):
            if not resource_lists.is_same(old.used, new.used):
                try:
                    await self._accounts.charge(new)
                except kemu_errors.ApiError as error:
                    failed[new.name] = None
                    last_error = error
        undecided = [waiter for waiter in waiters if not waiter.done]
        if last_error is None or retries == 0:
            for waiter in undecided:
                waiter.decide(last_error)
            return
        again = [quota for quota in self._accounts.of(namespace) if quota.name in failed]
        await self._charge(namespace, again, waiters, retries - 1)


def _used(quotas: Sequence[Quota], others: Sequence[Quota]) -> list[tuple[resource_lists.Amounts, ...]]:
    return [(one.used, other.used) for one, other in zip(quotas, others, strict=True)]


def _finish(waiter: _Waiter) -> None:
    if not waiter.finished.done():
        waiter.finished.set_result(None)

"""Which API server a client talks to, and which one it tries next: a load balancer as its clients see it.

In a real cluster client-go dials one address, that of a TCP load balancer, which picks an API server for each new
connection and leaves out those that do not answer. All requests and watches of the client share that connection and
stay where they are until it breaks (``k8s.io/client-go/transport``: HTTP/2, one connection for each host). Here each
client knows all API servers. It keeps to one; when that connection breaks, it tries the others at once, each one time,
and backs off only when none of them has answered. It does not return when the first one is back.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from kemu.messages.v1 import api_pb2_grpc
from kemu.runtime.env import Env
from kemu.runtime.runlog.events import ApiServerChanged

AS_KEY = "kemu-as"
"""Metadata of a call: as which user its caller acts."""


class _Recorder:
    """In the place of a channel: keeps what a stub wants of it. There are many clients, and each uses two methods."""

    def unary_unary(self, path: str, **settings: Any) -> tuple[str, dict[str, Any]]:
        return path, settings

    unary_stream = stream_unary = stream_stream = unary_unary


_METHODS: Any = api_pb2_grpc.ApiStub(_Recorder())  # type: ignore[no-untyped-call]
"""Each a path and its serialisers."""


@cache
def _alone(name: str) -> tuple[str, ...]:
    """One for all clients."""
    return (name,)


class Endpoints:
    """Shared by the streams of one client, so that they move together."""

    __slots__ = ("_env", "_failing", "_metadata", "_names", "_untried", "current")

    def __init__(self, env: Env, apiservers: str | Sequence[str], acts_as: str = "") -> None:
        """``apiservers``: names of actors; the first one is where the client begins. ``acts_as``: the user as whom it
        calls, instead of its own."""
        self._env = env
        self._metadata = ((AS_KEY, acts_as),) if acts_as else None
        self._names = _alone(apiservers) if isinstance(apiservers, str) else tuple(apiservers)
        self.current = self._names[0]
        self._untried = self._names[1:]
        """Those to try before the client backs off."""
        self._failing = False
        """All have been tried, and none has answered since."""

    def open(self, method: str) -> Any:
        """A new call of a method of the current API server: a stream both ways."""
        path, settings = getattr(_METHODS, method)
        call = self._env.dial(self.current).stream_stream(path, **settings)
        return call() if self._metadata is None else call(metadata=self._metadata)

    def answered(self, name: str) -> None:
        """That API server has sent something."""
        if name == self.current:
            self._untried = tuple(other for other in self._names if other != name)
            self._failing = False

    def lost(self, name: str) -> bool:
        """The connection to that API server broke. Returns whether the next one may be tried at once."""
        if len(self._names) == 1:
            return False
        if name == self.current:
            if not self._untried:
                self._failing = True
                self._untried = tuple(other for other in self._names if other != name)
            self.current = self._choose(self._untried)
            self._untried = tuple(other for other in self._untried if other != self.current)
            self._env.log(ApiServerChanged(source=name, target=self.current))
        return not self._failing

    def _choose(self, names: Sequence[str]) -> str:
        return names[0] if len(names) == 1 else names[self._env.random.randrange(len(names))]

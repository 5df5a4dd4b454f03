"""Which API server a client talks to, and which one it tries next: a load balancer as its clients see it.

In a real cluster client-go dials one address, that of a TCP load balancer, which picks an API server for each new
connection and leaves out those that do not answer. All requests and watches of the client share that connection and
stay where they are until it breaks (``k8s.io/client-go/transport``: HTTP/2, one connection for each host). Here each
client knows all API servers. It keeps to one; when that connection breaks, it tries the others at once, each one time,
and backs off only when none of them has answered. It does not return when the first one is back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kemu.runtime.env import Env
from kemu.v1 import api_pb2_grpc


class Endpoints:
    """Shared by the streams of one client, so that they move together."""

    __slots__ = ("_env", "_failing", "_names", "_stubs", "_untried", "current")

    def __init__(self, env: Env, apiservers: str | Sequence[str]) -> None:
        """``apiservers``: names of actors; the first one is where the client begins."""
        self._env = env
        self._names = (apiservers,) if isinstance(apiservers, str) else tuple(apiservers)
        self.current = self._names[0]
        self._untried = self._names[1:]
        """Those to try before the client backs off."""
        self._failing = False
        """All have been tried, and none has answered since."""
        self._stubs: dict[str, Any] = {}

    def open(self, method: str) -> Any:
        """A new call of a method of the current API server."""
        stub = self._stubs.get(self.current)
        if stub is None:
            channel = self._env.dial(self.current)
            stub = self._stubs[self.current] = api_pb2_grpc.ApiStub(channel)  # type: ignore[no-untyped-call]
        return getattr(stub, method)()

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
            self._env.log("client.moved", {"from": name, "to": self.current})
        return not self._failing

    def _choose(self, names: Sequence[str]) -> str:
        return names[0] if len(names) == 1 else names[self._env.random.randrange(len(names))]

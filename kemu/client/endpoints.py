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

_STREAMS = ("Session", "Watch")


class Endpoints:
    """Shared by the streams of one client, so that they move together."""

    __slots__ = ("_env", "_failing", "_methods", "_names", "_untried", "current")

    def __init__(self, env: Env, apiservers: str | Sequence[str]) -> None:
        """``apiservers``: names of actors; the first one is where the client begins."""
        self._env = env
        self._names = (apiservers,) if isinstance(apiservers, str) else tuple(apiservers)
        self.current = self._names[0]
        self._untried = self._names[1:]
        """Those to try before the client backs off."""
        self._failing = False
        """All have been tried, and none has answered since."""
        self._methods: dict[str, dict[str, Any]] = {}
        """By API server: how its streams are opened. Stubs have more methods, and there are many clients."""

    def open(self, method: str) -> Any:
        """A new call of a method of the current API server."""
        methods = self._methods.get(self.current)
        if methods is None:
            stub: Any = api_pb2_grpc.ApiStub(self._env.dial(self.current))  # type: ignore[no-untyped-call]
            methods = self._methods[self.current] = {name: getattr(stub, name) for name in _STREAMS}
        return methods[method]()

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

"""A unary request that is sent again: the server sees another call, and its answer is not waited for."""

from __future__ import annotations

from kemu.runtime.rpc.ends import ClientEnd, Status


class RepeatedCall(ClientEnd):
    """The client's end of the repetition. The answer of the first call counts, so this one's goes nowhere."""

    __slots__ = ("_first",)

    def __init__(self, first: ClientEnd) -> None:
        super().__init__(first.link, first.loop)
        self.method = first.method
        self.metadata = first.metadata
        self.message = first.message
        self._first = first
        self.status = None
        self.is_started = self.start_awaited = False
        self.deadline = first.deadline

    @property
    def request(self) -> bytes:
        return self._first.request

    def cancel(self) -> bool:
        return False

    def receive_initial_metadata(self, metadata: tuple[tuple[str, str | bytes], ...]) -> None:
        pass

    def receive_status(self, status: Status) -> None:
        self.status = status

    def connection_lost(self, status: Status) -> None:
        self.status = status

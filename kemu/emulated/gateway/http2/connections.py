"""One connection of HTTP/2, within the limits of :mod:`kemu.emulated.gateway.limits.connections`.

jh2 speaks the protocol: frames, HPACK, the states of streams, windows. Here its events become calls of an ASGI
application, as uvicorn makes them of HTTP/1.1, and clients are bounded in what the protocol leaves open: how many
requests are under way whoever wants their answers, how many frames carry none, and how long anything may take.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from jh2.config import H2Configuration
from jh2.connection import H2Connection
from jh2.errors import ErrorCodes
from jh2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from jh2.exceptions import H2Error
from jh2.hyperframe.frame import GoAwayFrame
from jh2.settings import SettingCodes, Settings
from uvicorn.config import Config
from uvicorn.protocols.http import flow_control
from uvicorn.protocols.utils import get_local_addr, get_remote_addr
from uvicorn.server import ServerState

from kemu.emulated.gateway.asgi import Scope
from kemu.emulated.gateway.http2 import exchanges
from kemu.emulated.gateway.http2.exchanges import Exchange, Header
from kemu.emulated.gateway.limits import connections
from kemu.emulated.gateway.limits.connections import Limits, Tally

log = logging.getLogger(__name__)

PROTOCOL = "h2"
"""As ALPN names it."""
STREAMS = 1000
"""Requests at the same time, as of a kube-apiserver with ``--http2-max-streams-per-connection=1000``. For more, clients
open connections, which cost more than requests do."""
_QUEUED = 400
"""Requests that may wait behind those whose clients did not wait for the answer (``maxQueuedControlFrames`` and
``unstartedHandlers`` of Go are bounds of the same kind)."""
_WINDOW_BYTES = 256 << 10
"""Bytes of a body that may be under way (``resourceBody99Percentile`` there)."""
_WINDOW_OF_ALL_BYTES = 100 * _WINDOW_BYTES
"""The same of all streams of a connection."""
_IDLE_FRAMES = 1000
"""Frames each second that ask for nothing, such as pings, settings and requests that are reset at once."""
_SWEPT = 64
_PIECE_BYTES = 4096
"""That are parsed before the frames in them are counted."""
_GATHERED_BYTES = 16 << 10
"""More is written at once."""


_NO_LOGGER = SimpleNamespace(debug="".format, trace="".format)
"""jh2 tells of each frame several times. This takes any arguments, and is not written in Python."""


class _H2(H2Connection):  # type: ignore[misc]
    """jh2 looks at every stream for every request: here only now and then, or where there may be too many."""

    _unswept = 0
    """Requests since it has forgotten the streams that are closed."""

    def _open_streams(self, remainder: int) -> int:
        self._unswept += 1
        count = len(self.streams)
        if count < STREAMS and self._unswept < _SWEPT:
            return count
        self._unswept = 0
        found: int = super()._open_streams(remainder)
        return found


class Http2Connection(asyncio.Protocol):
    """Made as uvicorn makes its protocols."""

    limits = Limits()
    tally = Tally()

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.loop: asyncio.AbstractEventLoop = _loop or asyncio.get_running_loop()
        self._app = config.loaded_app
        self._idle_s: float = config.timeout_keep_alive
        self._state = server_state
        self.transport: asyncio.Transport = None  # type: ignore[assignment]
        self.flow: flow_control.FlowControl = None  # type: ignore[assignment]
        configuration = H2Configuration(
            client_side=False,
            header_encoding=None,
            # Each malformed request would end the connection, and so all other requests: see exchanges.scope_of.
            validate_inbound_headers=False,
            normalize_inbound_headers=False,  # cookies
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            logger=_NO_LOGGER,
        )
        self._h2 = _H2(configuration)
        initial = {
            SettingCodes.MAX_CONCURRENT_STREAMS: STREAMS,
            SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW_BYTES,
            SettingCodes.MAX_HEADER_LIST_SIZE: self.limits.head_bytes,
        }
        self._h2.local_settings = Settings(client=False, initial_values=initial)
        self._h2.decoder.max_header_list_size = self.limits.head_bytes
        self._exchanges: dict[int, Exchange] = {}
        """By stream: those that are not complete."""
        self._unwanted: set[int] = set()
        """Those that were answered before all of the request had come."""
        self._running = 0
        """Calls of the application, also of those whose clients have reset their requests."""
        self._waiting: deque[tuple[Exchange, Scope]] = deque()
        self._blocked: dict[Exchange, None] = {}
        """Answers for which the client gives no room."""
        self._flush_is_due = False
        self._unflushed = 0
        self._owed = 0
        """Bytes for which the client gets room again."""
        self._idle_frames = 0
        """Of this second; below 0 for windows that may be expected to open."""
        self._idle_since = self._second = 0.0
        self._has_settings = False
        """Whether the client has said what each of them says first."""
        self._is_leaving = False
        self._has_ended = False
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._scope: dict[str, Any] = {}
        self._certificate: Any = None

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self.flow = flow_control.FlowControl(transport)
        self._state.connections.add(self)  # type: ignore[arg-type]
        self._scope = {"server": get_local_addr(transport), "client": get_remote_addr(transport), "scheme": "https"}
        self._certificate = connections.certificate_of(transport)
        self._second = self._idle_since = self.loop.time()
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW_OF_ALL_BYTES)
        if len(self._state.connections) > self.limits.connections:
            self._end(ErrorCodes.ENHANCE_YOUR_CALM)
            return
        self._touch()
        self._timer = self.loop.call_later(self.limits.head_s / 2, self._tick)

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended = True
        self._state.connections.discard(self)  # type: ignore[arg-type]
        for timer in (self._timer, self._unread):
            if timer is not None:
                timer.cancel()
        self._timer = self._unread = None
        for exchange in [*self._exchanges.values(), *(exchange for exchange, _ in self._waiting)]:
            exchange.disconnect()
        self._exchanges.clear()
        self._waiting.clear()
        self._blocked.clear()
        self.flow.resume_writing()

    def shutdown(self) -> None:
        """uvicorn stops: no new requests, and an end when those that are under way are answered."""
        if self._has_ended or self._is_leaving:
            return
        self._is_leaving = True
        # jh2 sends nothing more after a GOAWAY of its own.
        goodbye = GoAwayFrame(0, last_stream_id=self._h2.highest_inbound_stream_id, error_code=ErrorCodes.NO_ERROR)
        self._flush()
        self.transport.write(goodbye.serialize())
        if not self._exchanges:
            self._close()

    def _end(self, code: ErrorCodes) -> None:
        """The client does what it must not."""
        if not self._has_ended:
            goodbye = GoAwayFrame(0, last_stream_id=self._h2.highest_inbound_stream_id, error_code=code)
            self._flush()
            self.transport.write(goodbye.serialize())
            self._close()

    def _close(self) -> None:
        self._flush()
        self._has_ended = True
        for exchange in self._exchanges.values():
            exchange.disconnect()
        self.transport.close()

    def _abort(self) -> None:
        self._unread = None
        self._has_ended = True
        self.transport.abort()

    # What comes

    def data_received(self, data: bytes) -> None:
        connections.Heard.times += 1
        position = 0
        while position < len(data) and not self._has_ended:
            piece = data[position : position + _PIECE_BYTES]
            position += len(piece)
            try:
                events = self._h2.receive_data(piece)
            except H2Error as error:
                log.debug("%s: %s", self._scope["client"], error)
                if not self._has_settings:
                    self.tally.add(self._scope["client"])
                self._close()
                return
            for event in events:
                self._hear(event)
                if self._has_ended:
                    return
        if not self._flush_is_due:
            self._flush()

    def _hear(self, event: Event) -> None:
        kind = type(event)
        if kind is RequestReceived:
            self._begin(event)
            return
        if kind is StreamEnded:
            exchange = self._exchanges.get(event.stream_id)
            if exchange is not None:
                exchange.end()
            self._unwanted.discard(event.stream_id)
            return
        if kind is DataReceived and event.data:
            exchange = self._exchanges.get(event.stream_id)
            if exchange is None:
                self.give_room(event.stream_id, event.flow_controlled_length)
            else:
                exchange.feed(event.data, event.flow_controlled_length)
            return
        if kind is DataReceived:
            self.give_room(event.stream_id, event.flow_controlled_length)
        elif kind is WindowUpdated:
            self._give_way(event.stream_id)
        elif kind is StreamReset:
            self._forget(event.stream_id)
        elif kind is RemoteSettingsChanged:
            self._has_settings = True
            self._give_way(0)
        elif kind is ConnectionTerminated:
            self._close()
        self._count_idle()

    def _count_idle(self) -> None:
        now = self.loop.time()
        if now - self._second > 1:
            self._second, self._idle_frames = now, min(self._idle_frames, 0)
        self._idle_frames += 1
        if self._idle_frames > _IDLE_FRAMES:
            self._end(ErrorCodes.ENHANCE_YOUR_CALM)

    def _begin(self, event: RequestReceived) -> None:
        exchange = Exchange(self, event.stream_id, self.loop.time())
        if self._is_leaving:
            self._h2.reset_stream(event.stream_id, ErrorCodes.REFUSED_STREAM)
            return
        self._exchanges[event.stream_id] = exchange
        if event.stream_ended is not None:
            exchange.end()
        try:
            scope = exchanges.scope_of(event.headers)
        except exchanges.Malformed as malformed:
            log.debug("%s: %s", self._scope["client"], malformed)
            self.reset(exchange, ErrorCodes.PROTOCOL_ERROR)
            return
        extensions: dict[str, Any] = {connections.RESET: exchange.reset}
        if self._certificate:
            extensions[connections.TLS] = self._certificate
        scope.update(self._scope)
        scope["extensions"] = extensions
        if self._running < STREAMS:
            self._start(exchange, scope)
        elif len(self._waiting) < _QUEUED:
            self._waiting.append((exchange, scope))
        else:
            self._end(ErrorCodes.ENHANCE_YOUR_CALM)

    def _start(self, exchange: Exchange, scope: Scope) -> None:
        self._running += 1
        task = self.loop.create_task(exchange.run(self._app, scope))
        self._state.tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._state.tasks.discard(task)
        self._running -= 1
        while self._waiting and self._running < STREAMS:
            exchange, scope = self._waiting.popleft()
            if not exchange.disconnected:
                self._start(exchange, scope)

    def _forget(self, stream: int) -> None:
        """The client wants no answer."""
        self._unwanted.discard(stream)
        exchange = self._exchanges.pop(stream, None)
        if exchange is not None:
            self._leave(exchange)
            exchange.disconnect()

    def _leave(self, exchange: Exchange) -> None:
        self._blocked.pop(exchange, None)
        self.give_room(exchange.stream, exchange.take_unread())
        if not self._exchanges:
            self._idle_since = self.loop.time()
            if self._is_leaving:
                self._close()

    def _refuse(self, exchange: Exchange, code: int, text: str) -> None:
        """Said by the connection, in the place of the application."""
        body = connections.refusal(code, text)
        headers = [(b":status", b"%d" % code), (b"content-type", b"application/json")]
        self._h2.send_headers(exchange.stream, headers)
        if self.room(exchange.stream) >= len(body):
            self._h2.send_data(exchange.stream, body, True)
            exchange.complete = True
            self.completed(exchange)
        else:
            self.reset(exchange)
        exchange.disconnect()
        self._touch()

    # What goes, for exchanges

    def give_room(self, stream: int, size: int, is_last: bool = True) -> None:
        """Bytes of a body have gone to the application, or to nobody: the client may send as many more. ``is_last``:
        on other streams, which need not be told before it is much."""
        if not size or self._has_ended:
            return
        if not is_last:
            self._h2.acknowledge_received_data(size, stream)
            self._touch()
            return
        self._owed += size
        if self._owed > _WINDOW_BYTES:
            self._h2.increment_flow_control_window(self._owed)
            self._owed = 0
            self._touch()

    def room(self, stream: int) -> int:
        """Bytes that may be sent now as one piece; 0: none."""
        window: int = self._h2.local_flow_control_window(stream)
        most: int = self._h2.max_outbound_frame_size
        return window if window < most else most

    async def wait_for_room(self, exchange: Exchange) -> None:
        """Until the client gives some; it is reset if that takes too long."""
        exchange.writable = self.loop.create_future()
        self._blocked[exchange] = None
        timer = self.loop.call_later(self.limits.unread_s, exchange.reset, True)
        try:
            await exchange.writable
        finally:
            timer.cancel()
            exchange.writable = None
            self._blocked.pop(exchange, None)

    def _give_way(self, stream: int) -> None:
        for exchange in list(self._blocked):
            if stream in (0, exchange.stream) and exchange.writable is not None and not exchange.writable.done():
                exchange.writable.set_result(None)

    def send_head(self, stream: int, headers: Sequence[Header]) -> None:
        self._h2.send_headers(stream, [headers[0], *self._state.default_headers, *headers[1:]])
        self._touch()

    def send_piece(self, stream: int, data: bytes, ends: bool) -> None:
        self._h2.send_data(stream, data, ends)
        size = len(data)
        # Go opens both windows for each 4 KiB that it has read.
        self._idle_frames -= 4 + (size >> 10)
        self._unflushed += size
        if self._unflushed > _GATHERED_BYTES:
            self._flush()
        else:
            self._touch()

    def send_end(self, stream: int) -> None:
        self._h2.end_stream(stream)
        self._touch()

    def completed(self, exchange: Exchange) -> None:
        """All of the answer is sent."""
        self._state.total_requests += 1
        self._exchanges.pop(exchange.stream, None)
        if not exchange.is_asked:
            # The rest of the body is not wanted. Told at once, curl would not show the answer.
            self._unwanted.add(exchange.stream)
            self.loop.call_later(self.limits.linger_s, self._refuse_rest, exchange.stream)
        self._leave(exchange)

    def _refuse_rest(self, stream: int) -> None:
        if stream in self._unwanted and not self._has_ended:
            self._h2.reset_stream(stream, ErrorCodes.NO_ERROR)
            self._touch()
        self._unwanted.discard(stream)

    def reset(self, exchange: Exchange, code: ErrorCodes = ErrorCodes.INTERNAL_ERROR) -> None:
        """No more is sent, and the client is told so."""
        if not self._has_ended:
            self._h2.reset_stream(exchange.stream, code)
            self._touch()
        self._forget(exchange.stream)

    def _touch(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self.loop.call_soon(self._flush)

    def _flush(self) -> None:
        """What comes in one turn of the event loop is written at once: each write costs a record of TLS."""
        self._flush_is_due = False
        self._unflushed = 0
        if not self.transport.is_closing() and (data := self._h2.data_to_send()):
            self.transport.write(data)

    # Time

    def _tick(self) -> None:
        if self._has_ended:
            return
        self._timer = self.loop.call_later(self.limits.head_s / 2, self._tick)
        now = self.loop.time()
        if not self._exchanges:
            if now - self._idle_since > self._idle_s:
                self.shutdown()
            elif not self._has_settings and now - self._idle_since > self.limits.head_s:
                self._end(ErrorCodes.SETTINGS_TIMEOUT)
            return
        for exchange in list(self._exchanges.values()):
            if not (exchange.is_asked or exchange.started) and now - exchange.begun_at > self.limits.body_s:
                self._refuse(exchange, 408, "the body of the request did not arrive in time")

    def pause_writing(self) -> None:
        """The client reads nothing. What it sends meanwhile would only make more to be sent."""
        self.flow.pause_writing()
        self.flow.pause_reading()
        if self._unread is None:
            self._unread = self.loop.call_later(self.limits.unread_s, self._abort)

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self.flow.resume_reading()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

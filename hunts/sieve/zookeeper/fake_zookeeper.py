"""As much of a ZooKeeper server as its operator asks for: fake_zookeeper.py PORT. All that is asked succeeds.

Several may listen at one port, as trials run side by side.
"""

from __future__ import annotations

import socketserver
import struct
import sys

_STAT = struct.pack(">qqqqiiiqiiq", *(0,) * 11)
_CREATE, _EXISTS, _GET, _SET, _CLOSE = 1, 3, 4, 5, -11


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        hello = self._read()
        if hello is None:
            return
        timeout = struct.unpack(">i", hello[12:16])[0]
        self._write(struct.pack(">iiqi", 0, timeout, 1, 16) + bytes(16))
        while (request := self._read()) is not None:
            xid, operation = struct.unpack(">ii", request[:8])
            answer = b""
            if operation == _CREATE:
                size = struct.unpack(">i", request[8:12])[0]
                answer = request[8 : 12 + size]
            elif operation in (_EXISTS, _SET):
                answer = _STAT
            elif operation == _GET:
                answer = struct.pack(">i", 0) + _STAT
            self._write(struct.pack(">iqi", xid, 1, 0) + answer)
            if operation == _CLOSE:
                return

    def _read(self) -> bytes | None:
        head = self.rfile.read(4)
        return self.rfile.read(struct.unpack(">i", head)[0]) if len(head) == 4 else None

    def _write(self, answer: bytes) -> None:
        self.wfile.write(struct.pack(">i", len(answer)) + answer)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = allow_reuse_port = daemon_threads = True


if __name__ == "__main__":
    with _Server(("127.0.0.1", int(sys.argv[1])), _Connection) as server:
        print("ready", flush=True)
        server.serve_forever()

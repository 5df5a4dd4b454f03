"""As much of a ZooKeeper server as its operator asks for: fake_zookeeper.py PORT.

Nodes are there once they are made. That lasts as long as the server: a node that is made again is no mistake, as the
volumes of a real one would have been deleted meanwhile.
"""

from __future__ import annotations

import socketserver
import struct
import sys

_STAT = struct.pack(">qqqqiiiqiiq", *(0,) * 11)
_CREATE, _EXISTS, _GET, _SET, _CLOSE = 1, 3, 4, 5, -11
_NO_NODE = -101
_nodes = set[bytes]()


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        hello = self._read()
        if hello is None:
            return
        timeout = struct.unpack(">i", hello[12:16])[0]
        self._write(struct.pack(">iiqi", 0, timeout, 1, 16) + bytes(16))
        while (request := self._read()) is not None:
            xid, operation = struct.unpack(">ii", request[:8])
            answer, error = b"", 0
            if operation in (_CREATE, _EXISTS, _GET, _SET):
                size = struct.unpack(">i", request[8:12])[0]
                path = request[12 : 12 + size]
                if operation == _CREATE:
                    _nodes.add(path)
                    answer = request[8 : 12 + size]
                elif path not in _nodes:
                    error = _NO_NODE
                else:
                    answer = struct.pack(">i", 0) + _STAT if operation == _GET else _STAT
            self._write(struct.pack(">iqi", xid, 1, error) + answer)
            if operation == _CLOSE:
                return

    def _read(self) -> bytes | None:
        head = self.rfile.read(4)
        return self.rfile.read(struct.unpack(">i", head)[0]) if len(head) == 4 else None

    def _write(self, answer: bytes) -> None:
        self.wfile.write(struct.pack(">i", len(answer)) + answer)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


if __name__ == "__main__":
    with _Server(("127.0.0.1", int(sys.argv[1])), _Connection) as server:
        print("ready", flush=True)
        server.serve_forever()

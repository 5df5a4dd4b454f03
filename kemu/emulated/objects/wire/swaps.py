"""What an API server asks of a store most, a compare-and-swap, between two that share a process.

Plain objects in the place of ``TxnRequest`` and ``TxnResponse``, which take fifty accesses to fields of messages to
make and read. Who needs the bytes (a network that counts them, a server that parses them) gets those of the messages.
"""

from __future__ import annotations

from kemu.messages.etcd import rpc_pb2
from kemu.runtime.rpc.ends import Standin


class Swap(tuple[bytes, int, bytes], Standin):
    """Key, expected revision, value: write the value, which is not empty, if the key's revision is still that (0: if it
    is absent); else say what is there."""

    __slots__ = ()

    def message(self) -> rpc_pb2.TxnRequest:
        key, expected, value = self
        txn = rpc_pb2.TxnRequest()
        expect(txn, key, expected)
        put(txn, key, value)
        txn.failure.add().request_range.key = key
        return txn


class Swapped(tuple[int, rpc_pb2.ResponseHeader], Standin):
    """It was written: at that revision, and the store's header but for the revision."""

    __slots__ = ()

    def message(self) -> rpc_pb2.TxnResponse:
        revision, header = self
        response = rpc_pb2.TxnResponse(succeeded=True)
        response.responses.add().response_put.header.revision = revision
        response.header.CopyFrom(header)
        response.header.revision = revision
        return response


def expect(txn: rpc_pb2.TxnRequest, key: bytes, revision: int) -> None:
    """Make the transaction depend on this revision of the key; 0: on its absence."""
    compare = txn.compare.add()
    compare.target = rpc_pb2.Compare.MOD
    compare.key = key
    compare.mod_revision = revision


def put(txn: rpc_pb2.TxnRequest, key: bytes, value: bytes) -> None:
    """Have it write that."""
    request = txn.success.add().request_put
    request.key = key
    request.value = value

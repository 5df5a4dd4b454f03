"""Random requests to a real etcd and to the embedded store: not one answer differs, nor one event."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import text_format

from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from tests.store.conformance import etcd_process

NAMES = [b"a", b"a/1", b"a/2", b"b", b"b/1", b"c"]
ENDS = [b"", b"", b"", b"\0", b"a0", b"b", b"b/2", b"d"]
VALUES = [b"", b"x", b"y", b"longer"]


class Generator:
    """Draws requests; revisions are near the present one."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.revision = 1
        self.keeps = False
        """Draw puts that keep value or lease, and no deletions from a key on: both in one request can crash etcd."""

    def put(self) -> Any:
        chance = self.chance
        request = rpc_pb2.PutRequest(key=chance.choice(NAMES), value=chance.choice(VALUES))
        request.prev_kv = chance.random() < 0.3
        if self.keeps and chance.random() < 0.2:
            request.ignore_value = True
            if chance.random() < 0.8:
                request.value = b""
        request.ignore_lease = self.keeps and chance.random() < 0.1
        return request

    def delete_range(self) -> Any:
        chance = self.chance
        end = chance.choice(ENDS)
        if self.keeps and end == b"\0":
            end = b""
        return rpc_pb2.DeleteRangeRequest(key=chance.choice(NAMES), range_end=end, prev_kv=chance.random() < 0.5)

    def range(self) -> Any:
        chance = self.chance
        request = rpc_pb2.RangeRequest(key=chance.choice(NAMES), range_end=chance.choice(ENDS))
        if chance.random() < 0.4:
            request.revision = self.near()
        if chance.random() < 0.3:
            request.limit = chance.choice((-1, 1, 2, 3))
        if chance.random() < 0.3:
            request.sort_order = chance.randrange(3)
            # Ties are broken by chance in etcd: only unique things are sorted by.
            request.sort_target = rpc_pb2.RangeRequest.KEY
        request.keys_only = chance.random() < 0.2
        request.count_only = chance.random() < 0.15
        if chance.random() < 0.2:
            name = chance.choice(("min_mod_revision", "max_mod_revision", "min_create_revision", "max_create_revision"))
            setattr(request, name, max(0, self.near()))
        return request

    def near(self) -> int:
        return self.revision + self.chance.choice((-12, -5, -3, -2, -1, 0, 0, 1))

    def compare(self) -> Any:
        chance = self.chance
        compare = rpc_pb2.Compare(key=chance.choice(NAMES), range_end=chance.choice(ENDS))
        compare.result = chance.randrange(4)
        compare.target = chance.randrange(5)
        match chance.choice((compare.target, compare.target, chance.randrange(5))):
            case 0:
                compare.version = chance.randrange(3)
            case 1:
                compare.create_revision = chance.choice((0, self.near()))
            case 2:
                compare.mod_revision = chance.choice((0, self.near()))
            case 3:
                compare.value = chance.choice(VALUES)
            case 4:
                compare.lease = chance.randrange(2)
        return compare

    def operation(self, depth: int) -> Any:
        kind = self.chance.choices(("put", "delete", "range", "txn"), (5, 2, 3, 2 if depth else 0))[0]
        if kind == "put":
            return rpc_pb2.RequestOp(request_put=self.put())
        if kind == "delete":
            return rpc_pb2.RequestOp(request_delete_range=self.delete_range())
        if kind == "range":
            return rpc_pb2.RequestOp(request_range=self.range())
        return rpc_pb2.RequestOp(request_txn=self.txn(depth - 1))

    def txn(self, depth: int = 2) -> Any:
        chance = self.chance
        return rpc_pb2.TxnRequest(
            compare=[self.compare() for _ in range(chance.choice((0, 1, 1, 2)))],
            success=[self.operation(depth) for _ in range(chance.choice((0, 1, 1, 2, 3)))],
            failure=[self.operation(depth) for _ in range(chance.choice((0, 1, 1, 2)))],
        )

    def request(self) -> tuple[str, Any]:
        self.keeps = self.chance.random() < 0.5
        method = self.chance.choices(("Put", "DeleteRange", "Range", "Txn", "Compact"), (6, 2, 6, 12, 0.5))[0]
        if method == "Compact":
            return method, rpc_pb2.CompactionRequest(revision=self.near())
        make = {"Put": self.put, "DeleteRange": self.delete_range, "Range": self.range, "Txn": self.txn}
        return method, make[method]()


def same_for_all(response: Any) -> Any:
    """Without what may differ between two clusters."""
    header = response.header
    header.cluster_id = header.member_id = header.raft_term = 0
    return response


async def answer(kv: Any, method: str, request: Any) -> str:
    try:
        response = await getattr(kv, method)(request)
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {error.details()}"
    return text_format.MessageToString(same_for_all(response), as_one_line=True)


async def events(channel: Any, since: int, until: int) -> list[str]:
    """All events from one revision to another, with what was there before."""
    call = rpc_pb2_grpc.WatchStub(channel).Watch()
    create = rpc_pb2.WatchCreateRequest(key=b"\0", range_end=b"\0", start_revision=since, prev_kv=True)
    await call.write(rpc_pb2.WatchRequest(create_request=create))
    found: list[str] = []
    last = 0
    while last < until:
        response = await call.read()
        assert not response.canceled, response
        for event in response.events:
            last = event.kv.mod_revision
            found.append(text_format.MessageToString(event, as_one_line=True))
    call.cancel()
    return found


@pytest.mark.skipif(etcd_process.binary() is None, reason="etcd is not installed (Debian: etcd-server)")
async def test_no_answer_differs(embedded_store: str, tmp_path: Path) -> None:
    with etcd_process.running(tmp_path) as real:
        async with grpc.aio.insecure_channel(real) as there, grpc.aio.insecure_channel(embedded_store) as here:
            kvs = rpc_pb2_grpc.KVStub(there), rpc_pb2_grpc.KVStub(here)
            for seed in range(20):
                generator = Generator(seed)
                start = (await kvs[1].Put(rpc_pb2.PutRequest(key=b"begin"))).header.revision
                assert (await kvs[0].Put(rpc_pb2.PutRequest(key=b"begin"))).header.revision == start
                compacted = 0
                for _ in range(60):
                    status = await kvs[1].Range(rpc_pb2.RangeRequest(key=b"\0", count_only=True))
                    generator.revision = status.header.revision
                    method, request = generator.request()
                    theirs = await answer(kvs[0], method, request)
                    ours = await answer(kvs[1], method, request)
                    assert ours == theirs, f"seed {seed}: {method} {text_format.MessageToString(request)}"
                    if method == "Compact" and "header" in ours:
                        compacted = request.revision
                end = (await kvs[1].Put(rpc_pb2.PutRequest(key=b"end"))).header.revision
                await kvs[0].Put(rpc_pb2.PutRequest(key=b"end"))
                # Of a compacted revision itself etcd tells neither deletions nor what was there before.
                since = max(start, compacted + 1)
                ours_seen, theirs_seen = await events(here, since, end), await events(there, since, end)
                assert ours_seen == theirs_seen, f"seed {seed}"

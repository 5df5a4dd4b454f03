"""Transactions, as etcd's."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from kemu.messages.etcd import rpc_pb2
from tests.store.conformance.etcd_client import Etcd
from tests.store.conformance.test_kv import FUTURE, INVALID, OUT_OF_RANGE, refused

C = rpc_pb2.Compare
DUPLICATE = "etcdserver: duplicate key given in txn request"


class Ops:
    """Operations on the keys of one test."""

    def __init__(self, etcd: Etcd) -> None:
        self.etcd = etcd

    def put(self, name: str, value: bytes = b"v", **fields: Any) -> Any:
        return rpc_pb2.RequestOp(request_put=rpc_pb2.PutRequest(key=self.etcd.key(name), value=value, **fields))

    def delete(self, name: str, end: str = "") -> Any:
        end_key = self.etcd.key(end) if end else b""
        request = rpc_pb2.DeleteRangeRequest(key=self.etcd.key(name), range_end=end_key, prev_kv=True)
        return rpc_pb2.RequestOp(request_delete_range=request)

    def range(self, name: str, **fields: Any) -> Any:
        return rpc_pb2.RequestOp(request_range=rpc_pb2.RangeRequest(key=self.etcd.key(name), **fields))

    def txn(self, **fields: Any) -> Any:
        return rpc_pb2.RequestOp(request_txn=rpc_pb2.TxnRequest(**fields))

    def compare(self, name: str, target: int, result: int = C.EQUAL, **fields: Any) -> Any:
        return C(key=self.etcd.key(name), target=target, result=result, **fields)


@pytest.fixture
def ops(etcd: Etcd) -> Ops:
    return Ops(etcd)


async def test_compare_and_swap(etcd: Etcd, ops: Ops) -> None:
    async def swap(expected: int, value: bytes) -> Any:
        compare = ops.compare("a", C.MOD, mod_revision=expected)
        return await etcd.txn(compare=[compare], success=[ops.put("a", value)], failure=[ops.range("a")])

    created = await swap(0, b"1")
    assert created.succeeded
    revision = created.header.revision
    assert created.responses[0].response_put.header.revision == revision
    late = await swap(0, b"2")
    assert not late.succeeded
    assert late.header.revision == revision
    (pair,) = late.responses[0].response_range.kvs
    assert (pair.value, pair.mod_revision) == (b"1", revision)
    assert (await swap(revision, b"2")).succeeded


async def test_all_changes_have_one_revision_and_see_each_other(etcd: Etcd, ops: Ops) -> None:
    await etcd.put("old", b"o")
    start = await etcd.revision()
    response = await etcd.txn(
        success=[
            ops.range("new"),
            ops.put("new", b"n"),
            ops.range("new"),
            ops.range("old", revision=start),
            ops.delete("old"),
            ops.range("old"),
            ops.delete("absent"),
        ]
    )
    assert response.succeeded
    assert response.header.revision == start + 1
    ranges = [one.response_range for one in response.responses if one.HasField("response_range")]
    assert [[pair.value for pair in one.kvs] for one in ranges] == [[], [b"n"], [b"o"], []]
    # Each answer tells the revision as it stood then.
    assert [one.header.revision for one in ranges] == [start, start + 1, start + 1, start + 1]
    assert ranges[1].kvs[0].mod_revision == start + 1
    deletes = [one.response_delete_range for one in response.responses if one.HasField("response_delete_range")]
    assert [(one.deleted, one.header.revision) for one in deletes] == [(1, start + 1), (0, start + 1)]
    assert deletes[0].prev_kvs[0].value == b"o"


async def test_without_changes_there_is_no_revision(etcd: Etcd, ops: Ops) -> None:
    start = await etcd.revision()
    response = await etcd.txn(success=[ops.delete("absent"), ops.range("absent")])
    assert response.header.revision == start
    assert response.responses[0].response_delete_range.header.revision == start
    assert (await etcd.txn()).succeeded
    assert await etcd.revision() == start


@pytest.mark.parametrize(
    ("target", "field", "low", "high"),
    [
        (C.VERSION, "version", 1, 3),
        (C.VALUE, "value", b"a", b"c"),
    ],
)
async def test_comparisons(etcd: Etcd, ops: Ops, target: int, field: str, low: Any, high: Any) -> None:
    await etcd.put("k", b"-")
    await etcd.put("k", b"b")
    middle: Any = 2 if target == C.VERSION else b"b"
    table = {
        C.EQUAL: (False, True, False),
        C.NOT_EQUAL: (True, False, True),
        C.GREATER: (True, False, False),
        C.LESS: (False, False, True),
    }
    for result, expected in table.items():
        for asked, holds in zip((low, middle, high), expected, strict=True):
            response = await etcd.txn(compare=[ops.compare("k", target, result, **{field: asked})])
            assert response.succeeded == holds, (result, asked)


async def test_comparisons_of_revisions(etcd: Etcd, ops: Ops) -> None:
    created = (await etcd.put("k")).header.revision
    changed = (await etcd.put("k")).header.revision

    async def holds(target: int, result: int, **fields: int) -> bool:
        return bool((await etcd.txn(compare=[ops.compare("k", target, result, **fields)])).succeeded)

    assert await holds(C.CREATE, C.EQUAL, create_revision=created)
    assert not await holds(C.CREATE, C.GREATER, create_revision=created)
    assert await holds(C.MOD, C.EQUAL, mod_revision=changed)
    assert await holds(C.MOD, C.GREATER, mod_revision=created)
    assert await holds(C.LEASE, C.EQUAL, lease=0)
    assert not await holds(C.LEASE, C.EQUAL, lease=3)


async def test_comparisons_of_what_is_not_there(etcd: Etcd, ops: Ops) -> None:
    async def holds(**fields: Any) -> bool:
        return bool((await etcd.txn(compare=[ops.compare("absent", **fields)])).succeeded)

    assert await holds(target=C.VERSION, version=0)
    assert await holds(target=C.CREATE, create_revision=0)
    assert await holds(target=C.MOD, result=C.LESS, mod_revision=1)
    assert not await holds(target=C.VALUE, value=b"")
    assert not await holds(target=C.VALUE, result=C.NOT_EQUAL, value=b"x")
    # A value of another kind than the target counts as none.
    assert await holds(target=C.MOD, value=b"x")


async def test_comparisons_of_ranges(etcd: Etcd, ops: Ops) -> None:
    for name in ("a", "b"):
        await etcd.put(name, b"same")

    async def holds(**fields: Any) -> bool:
        compare = C(key=etcd.prefix, range_end=etcd.end, **fields)
        return bool((await etcd.txn(compare=[compare])).succeeded)

    assert await holds(target=C.VALUE, value=b"same")
    await etcd.put("b", b"other")
    assert not await holds(target=C.VALUE, value=b"same")
    assert await holds(target=C.VERSION, result=C.GREATER, version=0)
    nothing = C(key=etcd.key("x"), range_end=etcd.key("y"), target=C.VERSION, version=0)
    assert (await etcd.txn(compare=[nothing])).succeeded


async def test_all_comparisons_must_hold(etcd: Etcd, ops: Ops) -> None:
    await etcd.put("a")
    there = ops.compare("a", C.VERSION, version=1)
    absent = ops.compare("b", C.VERSION, version=1)
    response = await etcd.txn(compare=[there, absent], success=[ops.put("yes")], failure=[ops.put("no")])
    assert not response.succeeded
    assert (await etcd.range("no")).count == 1


async def test_nested_transactions(etcd: Etcd, ops: Ops) -> None:
    start = await etcd.revision()
    response = await etcd.txn(
        success=[
            ops.put("outer"),
            ops.txn(
                # Compared with the state before the whole, where it is not there yet.
                compare=[ops.compare("outer", C.VERSION, version=0)],
                success=[ops.put("inner"), ops.txn(success=[ops.put("innermost")])],
                failure=[ops.put("never")],
            ),
            ops.range("inner"),
        ]
    )
    assert response.header.revision == start + 1
    inner = response.responses[1].response_txn
    assert inner.succeeded
    assert inner.HasField("header")
    assert inner.header.revision == 0
    assert inner.responses[0].response_put.header.revision == start + 1
    assert inner.responses[1].response_txn.responses[0].response_put.header.revision == start + 1
    assert response.responses[2].response_range.count == 1
    assert (await etcd.range("never")).count == 0


async def test_keys_that_are_given_twice(etcd: Etcd, ops: Ops) -> None:
    start = await etcd.revision()
    for branch in (
        [ops.put("a"), ops.put("a")],
        [ops.put("a"), ops.delete("a")],
        [ops.delete("a"), ops.put("a")],
        [ops.delete("a", "c"), ops.put("b")],
        [ops.put("a"), ops.txn(success=[ops.put("a")])],
        [ops.put("a"), ops.txn(failure=[ops.put("a")])],
        [ops.put("a"), ops.txn(success=[ops.delete("a")])],
        [ops.delete("a"), ops.txn(success=[ops.put("a")])],
        [ops.txn(success=[ops.put("a")]), ops.txn(success=[ops.put("a")])],
        [ops.txn(success=[ops.delete("a")]), ops.txn(success=[ops.put("a")])],
        [ops.txn(success=[ops.put("b"), ops.txn(success=[ops.put("b")])])],
    ):
        await refused(etcd.txn(success=branch), INVALID, DUPLICATE)
        await refused(etcd.txn(failure=branch), INVALID, DUPLICATE)
    assert await etcd.revision() == start


async def test_keys_that_may_be_given_twice(etcd: Etcd, ops: Ops) -> None:
    await etcd.put("d")
    for branch in (
        [ops.delete("d"), ops.delete("d")],
        [ops.delete("a", "c"), ops.put("c")],
        [ops.range("a"), ops.put("a")],
        [ops.txn(success=[ops.put("a")], failure=[ops.put("a")])],
        # etcd does not look this closely: put, then deleted, at the same revision.
        [ops.txn(success=[ops.put("a")]), ops.txn(success=[ops.delete("a")])],
    ):
        assert (await etcd.txn(success=branch)).succeeded
    assert (await etcd.range("a")).count == 0
    assert (await etcd.txn(success=[ops.put("a")], failure=[ops.put("a")])).succeeded


async def test_a_refused_part_refuses_the_whole(etcd: Etcd, ops: Ops) -> None:
    start = await etcd.revision()
    await refused(etcd.txn(success=[ops.put("a"), ops.range("a", revision=start + 1)]), OUT_OF_RANGE, FUTURE)
    missing = "etcdserver: key not found"
    await refused(etcd.txn(success=[ops.put("a"), ops.put("b", b"", ignore_value=True)]), INVALID, missing)
    await refused(etcd.txn(success=[ops.put("a"), rpc_pb2.RequestOp()]), INVALID, missing)
    lease = "etcdserver: requested lease not found"
    await refused(etcd.txn(success=[ops.put("a"), ops.put("b", lease=9)]), grpc.StatusCode.NOT_FOUND, lease)
    # What the other branch would do does not matter.
    assert (await etcd.txn(failure=[ops.put("b", lease=9)])).succeeded
    empty = "etcdserver: key is not provided"
    await refused(etcd.txn(compare=[C()]), INVALID, empty)
    await refused(etcd.txn(failure=[rpc_pb2.RequestOp(request_put=rpc_pb2.PutRequest())]), INVALID, empty)
    await refused(etcd.txn(failure=[rpc_pb2.RequestOp(request_range=rpc_pb2.RangeRequest())]), INVALID, empty)
    assert await etcd.revision() == start


async def test_no_more_than_128_operations(etcd: Etcd, ops: Ops) -> None:
    many = [ops.put(f"k{i}") for i in range(129)]
    text = "etcdserver: too many operations in txn request"
    await refused(etcd.txn(success=many), INVALID, text)
    await refused(etcd.txn(compare=[ops.compare("k", C.MOD)] * 129), INVALID, text)
    await refused(etcd.txn(success=[ops.txn(success=many[:128])]), INVALID, text)
    response = await etcd.txn(success=[ops.txn(success=many[:127])])
    assert len(response.responses[0].response_txn.responses) == 127
    assert (await etcd.txn(success=many[:128])).succeeded
    assert (await etcd.range(count_only=True)).count == 128

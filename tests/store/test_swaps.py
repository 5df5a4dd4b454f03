"""The short way of a compare-and-swap: whatever it answers, the long way would have answered too."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kemu.emulated.objects.wire import swaps
from kemu.emulated.store import mvcc, operations
from kemu.emulated.store.operations import MAX_REQUEST_BYTES, Requests
from kemu.errors import StoreError
from kemu.messages.etcd import rpc_pb2

KEYS = st.sampled_from([b"", b"/a", b"/b"])
VALUES = st.sampled_from([b"", b"x", b"y" * 300_000, b"z" * MAX_REQUEST_BYTES])


@st.composite
def transactions(draw: st.DrawFn) -> Any:
    """Mostly what API servers send; now and then with something else in it."""
    txn = rpc_pb2.TxnRequest()
    for _ in range(draw(st.sampled_from([1, 1, 1, 1, 0, 2]))):
        compare = txn.compare.add()
        compare.key = draw(KEYS)
        compare.target = draw(st.sampled_from([rpc_pb2.Compare.MOD] * 4 + [rpc_pb2.Compare.CREATE]))
        compare.result = draw(st.sampled_from([rpc_pb2.Compare.EQUAL] * 4 + [rpc_pb2.Compare.NOT_EQUAL]))
        compare.mod_revision = draw(st.integers(0, 4))
        if draw(st.integers(0, 9)) == 0:
            compare.range_end = b"/z"
    if draw(st.integers(0, 4)) == 0:
        txn.success.add().request_delete_range.key = draw(KEYS)
    else:
        put = txn.success.add().request_put
        put.key, put.value = draw(KEYS), draw(VALUES)
        if draw(st.integers(0, 5)) == 0:
            put.prev_kv = True
        if draw(st.integers(0, 9)) == 0:
            put.lease = 7
    look = txn.failure.add().request_range
    look.key = draw(KEYS)
    if draw(st.integers(0, 9)) == 0:
        look.sort_order = 9
    if draw(st.integers(0, 9)) == 0:
        txn.failure.add().request_range.key = b"/a"
    return txn


def answer(carry_out: Any, txn: Any) -> Any:
    try:
        return carry_out(txn)
    except StoreError as error:
        return type(error).__name__, str(error)


@given(st.lists(transactions(), max_size=8))
def test_the_short_way_does_what_the_long_way_does(sent: list[Any]) -> None:
    header = rpc_pb2.ResponseHeader(cluster_id=1, member_id=2, raft_term=3)
    short, long = mvcc.KeySpace(), mvcc.KeySpace()
    one, other = Requests(short, header), Requests(long, header)
    for txn in sent:
        assert answer(one.txn, txn) == answer(other._carried_out, txn)
    assert short.digest() == long.digest()
    assert one.bases == other.bases


@given(st.lists(st.tuples(KEYS.filter(bool), st.integers(0, 4), VALUES.filter(bool)), max_size=8))
def test_what_is_handed_over_does_what_its_message_does(sent: list[tuple[bytes, int, bytes]]) -> None:
    header = rpc_pb2.ResponseHeader(cluster_id=1, member_id=2, raft_term=3)
    short, long = mvcc.KeySpace(), mvcc.KeySpace()
    one, other = Requests(short, header), Requests(long, header)
    for swap in map(swaps.Swap, sent):
        got = answer(one.swap, swap)
        if isinstance(got, swaps.Swapped):
            assert got[0] == short.revision
            got = got.message()
        assert got == answer(other._carried_out, rpc_pb2.TxnRequest.FromString(swap.SerializeToString()))
    assert short.digest() == long.digest()
    assert one.bases == other.bases


def test_the_swap_of_an_api_server_goes_the_short_way() -> None:
    requests = operations.Requests(mvcc.KeySpace(), rpc_pb2.ResponseHeader())
    txn = rpc_pb2.TxnRequest()
    compare = txn.compare.add()
    compare.target, compare.key, compare.mod_revision = rpc_pb2.Compare.MOD, b"/a", 0
    put = txn.success.add().request_put
    put.key, put.value = b"/a", b"x"
    txn.failure.add().request_range.key = b"/a"
    assert requests.swapped(txn).succeeded
    assert requests.swapped(txn) is None, "the key is there by now"

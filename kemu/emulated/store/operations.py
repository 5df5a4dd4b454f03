"""What requests to etcd's KV service mean: checks, comparisons, changes, responses.

Mirrors etcd's ``server/etcdserver/api/v3rpc`` (key.go: what is refused before anything is done) and
``server/etcdserver/txn`` (how it is done), with their texts. Everything that can be refused is checked before the first
change, because the key space does not roll back. Comparisons of nested transactions see the state before the outermost
transaction.

There are no leases: a request that names one is refused, as etcd refuses a lease that does not exist.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import grpc
from google.protobuf.message import Message

from kemu.emulated.objects.wire import swaps
from kemu.emulated.store.mvcc import Entry, KeySpace
from kemu.errors import Compacted, FutureRevision, NoSpace, StoreError
from kemu.messages.etcd import kv_pb2, rpc_pb2

MAX_OPERATIONS = 128
"""In one transaction, nested ones counted with it: etcd's default."""
MAX_REQUEST_BYTES = 1536 * 1024
"""Most request bytes of a request that may change something: etcd's default."""
SMALL_BYTES = MAX_REQUEST_BYTES // 2
"""A request with so many bytes of keys and values is not too large."""

_NOTHING = Entry(b"", b"", 0, 0, 0)
"""What comparisons see of a key that does not exist."""

_COMPARE = rpc_pb2.Compare
_MOD, _EQUAL = int(_COMPARE.MOD), int(_COMPARE.EQUAL)
_RANGE_REQUEST = rpc_pb2.RangeRequest

_RANGE, _PUT, _DELETE_RANGE, _TXN = "request_range", "request_put", "request_delete_range", "request_txn"

_Operation = tuple[str, Any]
"""Which of those, and the request; a nested transaction as a :class:`_Plan`."""
_Interval = tuple[bytes, bytes]
"""Key and range end."""


class Response(Protocol):
    @property
    def header(self) -> rpc_pb2.ResponseHeader: ...


R = TypeVar("R", bound=Response)


class RequestError(StoreError):
    """The request is invalid, or asks for something that does not exist. Nothing was changed."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


def _invalid(text: str) -> Callable[[], RequestError]:
    return lambda: RequestError(grpc.StatusCode.INVALID_ARGUMENT, f"etcdserver: {text}")


_empty_key = _invalid("key is not provided")
_key_not_found = _invalid("key not found")
_value_provided = _invalid("value is provided")
_lease_provided = _invalid("lease is provided")
_too_many_operations = _invalid("too many operations in txn request")
_duplicate_key = _invalid("duplicate key given in txn request")
_invalid_sort_option = _invalid("invalid sort option")
_too_large = _invalid("request is too large")


NO_SPACE = (grpc.StatusCode.RESOURCE_EXHAUSTED, NoSpace.MESSAGE)
"""To writes, as long as the alarm NOSPACE is raised."""


def corrupt(what: object) -> tuple[grpc.StatusCode, str]:
    """To everything, when the alarm CORRUPT is raised."""
    return grpc.StatusCode.DATA_LOSS, f"etcdserver: corrupt cluster: {what}"


def _lease_not_found() -> RequestError:
    return RequestError(grpc.StatusCode.NOT_FOUND, "etcdserver: requested lease not found")


def refusal(error: StoreError) -> tuple[grpc.StatusCode, str]:
    """The gRPC status and text of an error."""
    if isinstance(error, RequestError):
        return error.code, str(error)
    assert isinstance(error, (Compacted, FutureRevision))
    return grpc.StatusCode.OUT_OF_RANGE, str(error)


class Requests:
    """Carries out requests, one after the other.

    Each method returns the response, and raises :class:`RequestError`, Compacted or FutureRevision.
    """

    __slots__ = ("_header", "_space", "bases")

    def __init__(self, space: KeySpace, header: rpc_pb2.ResponseHeader) -> None:
        """``header``: a ``ResponseHeader`` with all but the revision."""
        self.bases: dict[int, list[int | None]] = {}
        """By revision, for each change of a transaction: the revision that it demanded of that key (0: that it is
        absent; None: nothing). For the run log, which takes them out."""
        self._space = space
        self._header = header

    def put_header(self, response: R) -> R:
        """Give a response a header with the present revision. Returns the response."""
        header = response.header
        header.CopyFrom(self._header)
        header.revision = self._space.revision
        return response

    def range(self, request: rpc_pb2.RangeRequest) -> rpc_pb2.RangeResponse:
        _check_range(request)
        self._check_readable(request)
        response = rpc_pb2.RangeResponse()
        self._apply_range(request, response)
        return self.put_header(response)

    def put(self, request: rpc_pb2.PutRequest) -> rpc_pb2.PutResponse:
        _check_put(request)
        _check_size(request)
        self._check_put_possible(request)
        response = rpc_pb2.PutResponse()
        self._apply_put(request, response)
        self._space.commit()
        return self.put_header(response)

    def delete_range(self, request: rpc_pb2.DeleteRangeRequest) -> rpc_pb2.DeleteRangeResponse:
        if not request.key:
            raise _empty_key()
        _check_size(request)
        response = rpc_pb2.DeleteRangeResponse()
        self._apply_delete_range(request, response)
        self._space.commit()
        return self.put_header(response)

    def txn(self, request: rpc_pb2.TxnRequest) -> rpc_pb2.TxnResponse:
        return self.swapped(request) or self._carried_out(request)

    def swap(self, request: swaps.Swap) -> swaps.Swapped | rpc_pb2.TxnResponse:
        """As :meth:`txn` for that message."""
        key, revision, value = request
        space = self._space
        entry = space.get(key)
        if (0 if entry is None else entry.mod_revision) != revision or len(value) > SMALL_BYTES:
            return self._carried_out(request.message())
        space.put(key, value)
        space.commit()
        done = space.revision
        self.bases[done] = [revision]
        return swaps.Swapped((done, self._header))

    def swapped(self, request: rpc_pb2.TxnRequest) -> rpc_pb2.TxnResponse | None:
        """The response to a compare-and-swap that succeeds, as API servers send it: one comparison of a revision, one
        put, and one look at the key otherwise. It is most of what a store is asked. None for everything else, and for
        what is to be refused."""
        compares, success, failure = request.compare, request.success, request.failure
        if not len(compares) == len(success) == len(failure) == 1:
            return None
        compare, change, otherwise = compares[0], success[0], failure[0]
        if change.WhichOneof("request") != _PUT or otherwise.WhichOneof("request") != _RANGE:
            return None
        put, look = change.request_put, otherwise.request_range
        expected, key, value, looked = compare.key, put.key, put.value, look.key
        # Other fields than these would be options.
        if not (expected and key and value and looked and len(put.ListFields()) == 2 and len(look.ListFields()) == 1):
            return None
        if compare.target != _MOD or compare.result != _EQUAL or compare.range_end:
            return None
        space = self._space
        entry = space.get(expected)
        revision = compare.mod_revision
        if (0 if entry is None else entry.mod_revision) != revision:
            return None
        size = len(expected) + len(key) + len(value) + len(looked)
        if size > SMALL_BYTES and request.ByteSize() > MAX_REQUEST_BYTES:
            return None
        space.put(key, value)
        space.commit()
        done = space.revision
        self.bases[done] = [revision if key == expected else None]
        response = rpc_pb2.TxnResponse(succeeded=True)
        response.responses.add().response_put.header.revision = done
        header = response.header  # put_header, inlined
        header.CopyFrom(self._header)
        header.revision = done
        return response

    def _carried_out(self, request: rpc_pb2.TxnRequest) -> rpc_pb2.TxnResponse:
        plan = _plan(request, MAX_OPERATIONS)
        _check_size(request)
        _check_overlaps(plan.success)
        _check_overlaps(plan.failure)
        self._compare(plan)
        self._check_each(plan, _PUT, self._check_put_possible)
        self._check_each(plan, _RANGE, self._check_readable)
        response = rpc_pb2.TxnResponse()
        self._apply_txn(plan, response)
        changes = self._space.commit()
        if changes:
            demanded = {}
            for compare in plan.compares:
                if compare.target == _MOD and compare.result == _EQUAL and not compare.range_end:
                    demanded[compare.key] = compare.mod_revision
            self.bases[self._space.revision] = [demanded.get(entry.key) for entry, _ in changes]
        return self.put_header(response)

    def compact(self, request: rpc_pb2.CompactionRequest) -> rpc_pb2.CompactionResponse:
        self._space.compact(request.revision)
        return self.put_header(rpc_pb2.CompactionResponse())

    # Comparisons, and what can only be checked against the state

    def _compare(self, plan: _Plan) -> None:
        """Decide which branch the transaction takes, and likewise the nested ones in that branch."""
        plan.succeeds = True
        for compare in plan.compares:
            if not self._holds(compare):
                plan.succeeds = False
                break
        for kind, nested in plan.operations():
            if kind == _TXN:
                self._compare(nested)

    def _holds(self, compare: rpc_pb2.Compare) -> bool:
        key = compare.key
        end = compare.range_end
        target = compare.target
        if not end:
            entry = self._space.get(key)
            if entry is not None:
                return _holds_for(compare, target, entry)
        else:
            entries, _ = self._space.range(key, end)
            if entries:
                return all(_holds_for(compare, target, entry) for entry in entries)
        # A value that does not exist is not even different from another.
        return bool(target != _COMPARE.VALUE) and _holds_for(compare, target, _NOTHING)

    def _check_each(self, plan: _Plan, which: str, check: Callable[[Any], None]) -> None:
        """Check all operations of one kind that will be carried out."""
        for kind, request in plan.operations():
            if kind == which:
                check(request)
            elif kind == _TXN:
                self._check_each(request, which, check)

    def _check_put_possible(self, put: rpc_pb2.PutRequest) -> None:
        if put.lease:
            raise _lease_not_found()
        if (put.ignore_value or put.ignore_lease) and self._space.get(put.key) is None:
            raise _key_not_found()

    def _check_readable(self, request: rpc_pb2.RangeRequest) -> None:
        revision = request.revision
        if revision > 0:
            self._space.check_readable(revision)

    # Carrying out

    def _apply_txn(self, plan: _Plan, response: rpc_pb2.TxnResponse) -> None:
        response.succeeded = plan.succeeds
        add = response.responses.add
        for kind, request in plan.operations():
            one = add()
            if kind == _PUT:
                put = one.response_put
                self._apply_put(request, put)
                header = put.header
            elif kind == _RANGE:
                read = one.response_range
                self._apply_range(request, read)
                header = read.header
            elif kind == _DELETE_RANGE:
                deletion = one.response_delete_range
                self._apply_delete_range(request, deletion)
                header = deletion.header
            else:
                inner = one.response_txn
                inner.header.SetInParent()
                self._apply_txn(request, inner)
                continue
            header.revision = self._space.read_revision

    def _apply_put(self, put: rpc_pb2.PutRequest, response: rpc_pb2.PutResponse) -> None:
        space = self._space
        key = put.key
        value = put.value
        if put.ignore_value:
            # It was there at the beginning. A deletion since then is one that overlaps were not checked against (etcd
            # itself dies of it).
            present = space.get(key)
            value = b"" if present is None or present.value is None else present.value
        previous = space.put(key, value)
        if previous is not None and put.prev_kv:
            fill(response.prev_kv, previous)

    def _apply_delete_range(self, request: rpc_pb2.DeleteRangeRequest, response: rpc_pb2.DeleteRangeResponse) -> None:
        space = self._space
        key, end = request.key, request.range_end
        entries = space.range(key, end)[0]
        response.deleted = len(entries)
        for entry in entries:
            space.delete(entry.key)
            if request.prev_kv:
                fill(response.prev_kvs.add(), entry)

    def _apply_range(self, request: rpc_pb2.RangeRequest, response: rpc_pb2.RangeResponse) -> None:
        space = self._space
        key, end = request.key, request.range_end
        revision = max(request.revision, 0)
        if request.count_only:
            response.count = space.count(key, end, revision)
            return
        limit = max(request.limit, 0)
        order, target = request.sort_order, request.sort_target
        bounds = (
            request.min_mod_revision,
            request.max_mod_revision,
            request.min_create_revision,
            request.max_create_revision,
        )
        is_plain = order == _RANGE_REQUEST.NONE and target == _RANGE_REQUEST.KEY and not any(bounds)
        entries, response.count = space.range(key, end, revision, limit + 1 if limit and is_plain else 0)
        if not is_plain:
            if any(bounds):
                entries = [entry for entry in entries if _is_within(entry, *bounds)]
            if target != _RANGE_REQUEST.KEY:
                entries.sort(key=_SORT_KEYS[target])
            if order == _RANGE_REQUEST.DESCEND:
                entries.reverse()
        if limit and len(entries) > limit:
            del entries[limit:]
            response.more = True
        add = response.kvs.add
        if request.keys_only:
            for entry in entries:
                add(
                    key=entry.key,
                    create_revision=entry.create_revision,
                    mod_revision=entry.mod_revision,
                    version=entry.version,
                )
        else:
            for entry in entries:
                add(
                    key=entry.key,
                    value=entry.value,
                    create_revision=entry.create_revision,
                    mod_revision=entry.mod_revision,
                    version=entry.version,
                )


def fill(pair: kv_pb2.KeyValue, entry: Entry) -> None:
    """Fill a ``KeyValue`` from an entry; for a deletion etcd sends only the key and the revision."""
    pair.key = entry.key
    pair.mod_revision = entry.mod_revision
    if entry.value is not None:
        pair.create_revision = entry.create_revision
        pair.version = entry.version
        pair.value = entry.value


_SORT_KEYS: dict[int, Callable[[Entry], Any]] = {
    _RANGE_REQUEST.VERSION: operator.attrgetter("version"),
    _RANGE_REQUEST.CREATE: operator.attrgetter("create_revision"),
    _RANGE_REQUEST.MOD: operator.attrgetter("mod_revision"),
    _RANGE_REQUEST.VALUE: operator.attrgetter("value"),
}


def _is_within(entry: Entry, min_mod: int, max_mod: int, min_create: int, max_create: int) -> bool:
    """0: no bound."""
    return (
        (not min_mod or entry.mod_revision >= min_mod)
        and (not max_mod or entry.mod_revision <= max_mod)
        and (not min_create or entry.create_revision >= min_create)
        and (not max_create or entry.create_revision <= max_create)
    )


def _holds_for(compare: rpc_pb2.Compare, target: int, entry: Entry) -> bool:
    # A member of the union that is not set, or another than the target's, reads as 0 or empty: so it does in etcd.
    there: Any
    asked: Any
    if target == _COMPARE.MOD:
        there, asked = entry.mod_revision, compare.mod_revision
    elif target == _COMPARE.VALUE:
        there, asked = entry.value, compare.value
    elif target == _COMPARE.CREATE:
        there, asked = entry.create_revision, compare.create_revision
    elif target == _COMPARE.VERSION:
        there, asked = entry.version, compare.version
    else:
        there, asked = 0, compare.lease
    result = compare.result
    if result == _COMPARE.EQUAL:
        return bool(there == asked)
    if result == _COMPARE.NOT_EQUAL:
        return bool(there != asked)
    if result == _COMPARE.GREATER:
        return bool(there > asked)
    return result != _COMPARE.LESS or bool(there < asked)


# What is refused without a look at the state


class _Plan:
    """A transaction, parsed."""

    __slots__ = ("compares", "failure", "succeeds", "success")

    def __init__(self, compares: list[rpc_pb2.Compare], success: list[_Operation], failure: list[_Operation]) -> None:
        self.compares = compares
        self.success = success
        self.failure = failure
        self.succeeds = False

    def operations(self) -> list[_Operation]:
        """Operations of the branch that it takes."""
        return self.success if self.succeeds else self.failure


def _check_size(request: Message) -> None:
    if request.ByteSize() > MAX_REQUEST_BYTES:
        raise _too_large()


def _check_range(request: rpc_pb2.RangeRequest) -> None:
    if not request.key:
        raise _empty_key()
    if not (0 <= request.sort_order <= 2 and 0 <= request.sort_target <= 4):
        raise _invalid_sort_option()


def _check_put(request: rpc_pb2.PutRequest) -> None:
    if not request.key:
        raise _empty_key()
    if request.ignore_value and request.value:
        raise _value_provided()
    if request.ignore_lease and request.lease:
        raise _lease_provided()


def _plan(txn: rpc_pb2.TxnRequest, max_operations: int) -> _Plan:
    """Parse a transaction once, and check its operations."""
    # A slice is a list, made faster than by list().
    compares, success, failure = txn.compare[:], txn.success[:], txn.failure[:]
    operations = max(len(compares), len(success), len(failure))
    if operations > max_operations:
        raise _too_many_operations()
    for compare in compares:
        if not compare.key:
            raise _empty_key()
    left = max_operations - operations
    return _Plan(compares, [_operation(one, left) for one in success], [_operation(one, left) for one in failure])


def _operation(operation: rpc_pb2.RequestOp, max_operations: int) -> _Operation:
    kind = operation.WhichOneof("request")
    if kind == _PUT:
        put = operation.request_put
        _check_put(put)
        return kind, put
    if kind == _RANGE:
        look = operation.request_range
        _check_range(look)
        return kind, look
    if kind == _DELETE_RANGE:
        deletion = operation.request_delete_range
        if not deletion.key:
            raise _empty_key()
        return kind, deletion
    if kind == _TXN:
        return kind, _plan(operation.request_txn, max_operations)
    raise _key_not_found()


def _check_overlaps(branch: Sequence[_Operation]) -> tuple[set[bytes], list[_Interval]]:
    """Refuses a key that is put twice, or put and deleted. Returns what is put and what is deleted.

    As etcd's ``checkIntervals``, with what it lets through: a nested transaction that deletes what an earlier one has
    put, and the range end 0 of a deletion, which it takes literally here.
    """
    puts: set[bytes] = set()
    deletes: list[_Interval] = []
    if len(branch) == 1:
        kind, request = branch[0]
        if kind == _PUT:
            return {request.key}, deletes
        if kind == _RANGE:
            return puts, deletes
    for kind, request in branch:
        if kind == _DELETE_RANGE:
            deletes.append((request.key, request.range_end))
    for kind, nested in branch:
        if kind == _TXN:
            puts_then, deletes_then = _check_overlaps(nested.success)
            puts_else, deletes_else = _check_overlaps(nested.failure)
            # The two exclude each other, so both may put a key.
            for key in sorted(puts_then | puts_else):
                _add_put(key, puts, deletes)
            deletes += deletes_then
            deletes += deletes_else
    for kind, request in branch:
        if kind == _PUT:
            _add_put(request.key, puts, deletes)
    return puts, deletes


def _add_put(key: bytes, puts: set[bytes], deletes: list[_Interval]) -> None:
    if key in puts or _is_deleted(key, deletes):
        raise _duplicate_key()
    puts.add(key)


def _is_deleted(key: bytes, deletes: list[_Interval]) -> bool:
    return any(key == start if not end else start <= key < end for start, end in deletes)

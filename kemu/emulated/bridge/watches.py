"""One watch at a real API server, kept alive, as events of kemu's Watch stream.

A real server ends each watch after some minutes, and connections break: the watch goes on after the last revision that
it has seen, with client-go's waits between attempts. Only when that revision is gone its owner hears of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from kemu.emulated.bridge import answers, connections, requests, tenants
from kemu.emulated.client import streams
from kemu.emulated.objects import resources
from kemu.emulated.objects.wire import envelopes, wires
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, Env

SHORTEST_S, LONGEST_S = 300, 600
"""How long a watch is asked to last, as client-go's reflector does (``minWatchTimeout``)."""
GONE = 410

_TYPES = {
    "ADDED": api_pb2.WatchEvent.ADDED,
    "MODIFIED": api_pb2.WatchEvent.MODIFIED,
    "DELETED": api_pb2.WatchEvent.DELETED,
    "BOOKMARK": api_pb2.WatchEvent.BOOKMARK,
}

Hand = Callable[[api_pb2.WatchEvent], object]

# The state with which a watch of kemu's clients begins comes from a list: each version of an API server knows it, not
# only those since v1.32, and a watch that many clients share can be joined to it.

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_PAGE = 500


def begins_with_state(create: api_pb2.WatchCreate) -> bool:
    """Whether a watch begins with the state."""
    return create.HasField("send_initial_events") and create.send_initial_events


async def pages(
    connection: connections.Connection, where: api_pb2.Resource, selectors: api_pb2.WatchCreate
) -> AsyncIterator[api_pb2.ListResponse]:
    """A consistent list of what the selectors choose. Raises Unreachable and Refused."""
    token = ""
    while True:
        request = api_pb2.ListRequest(
            resource=where,
            field_selector=selectors.field_selector,
            label_selector=selectors.label_selector,
            limit=_PAGE,
        )
        setattr(request, "continue", token)
        made = requests.of("list", request)
        page = answers.of(made, await connection.send(made))
        assert isinstance(page, api_pb2.ListResponse)
        yield page
        token = getattr(page, "continue")
        if not token:
            return


async def tell_state(
    connection: connections.Connection,
    create: api_pb2.WatchCreate,
    hand: Callable[[api_pb2.WatchEvent], object],
    tenant: tenants.Tenant | None,
) -> int:
    """Hand each object on as added, then the bookmark that ends them, and return their revision. Nothing is handed on
    before the list is complete. Raises Unreachable and Refused."""
    resource = resources.BY_PLURAL[create.resource.resource]
    namespace = create.resource.namespace if tenant is None else tenant.theirs(create.resource.namespace)
    where = api_pb2.Resource(resource=create.resource.resource, namespace=namespace)
    found: list[bytes] = []
    revision = 0
    async for page in pages(connection, where, create):
        found += [raw for item in page.items if (raw := item if tenant is None else tenant.inward(resource, item))]
        revision = int(page.resource_version)
    for raw in found:
        version = envelopes.resource_version(raw)
        hand(
            api_pb2.WatchEvent(
                watch_id=create.watch_id, type=api_pb2.WatchEvent.ADDED, resource_version=version, object=raw
            )
        )
    last = resource.message()
    last.metadata.resourceVersion = str(revision)
    last.metadata.annotations[INITIAL_EVENTS_END] = "true"
    hand(
        api_pb2.WatchEvent(
            watch_id=create.watch_id,
            type=api_pb2.WatchEvent.BOOKMARK,
            resource_version=revision,
            object=last.SerializeToString(),
        )
    )
    return revision


class Watch:
    """``hand``: where its events go; ``on_trouble`` is told why the server cannot be watched now; ``tenant``: only what
    is of that run is handed on."""

    def __init__(
        self,
        env: Env,
        connection: connections.Connection,
        create: api_pb2.WatchCreate,
        hand: Hand,
        on_trouble: Callable[[str], object],
        tenant: tenants.Tenant | None = None,
    ) -> None:
        self._env = env
        self._connection = connection
        self._create = create
        self._tenant = tenant
        self._resource = resources.BY_PLURAL.get(create.resource.resource)
        self._hand = hand
        self._on_trouble = on_trouble
        self._revision = "" if create.resource_version in ("", "0") else create.resource_version
        self._begins = begins_with_state(create) and not self._revision
        self._backoff = streams.Backoff(env)

    async def run(self) -> None:
        """Returns when the watch has ended for good."""
        clock = self._env.clock
        while True:
            began_ns = clock.now_ns()
            try:
                if await self._attempt():
                    return
            except connections.Unreachable as error:
                self._on_trouble(str(error))
            except answers.Refused as refused:
                if refused.status.code == GONE:
                    self._end(refused.status)
                    return
                self._on_trouble(str(refused))
            else:
                if clock.now_ns() - began_ns > SECOND_NS:
                    continue
            await clock.pause(self._backoff.next_s())

    async def _attempt(self) -> bool:
        """One request, or with the state first. Returns whether the watch is over."""
        if self._begins:
            self._revision = str(await tell_state(self._connection, self._create, self._hand, self._tenant))
            self._begins = False
        timeout_s = self._env.random.randrange(SHORTEST_S, LONGEST_S)
        create = self._create
        if self._tenant is not None:
            create = api_pb2.WatchCreate()
            create.CopyFrom(self._create)
            create.resource.namespace = self._tenant.theirs(create.resource.namespace)
        request = requests.watch(create, self._revision, timeout_s)
        async for frame in self._connection.watch(request):
            if isinstance(frame, connections.Answer):
                answers.check(frame)
                raise connections.Unreachable("the server watches in JSON only")
            self._backoff.reset()
            kind, envelope = envelopes.watch_event(frame)
            if kind == "ERROR":
                status = meta_v1_pb2.Status.FromString(envelope.raw)
                if status.code == GONE:
                    self._end(status)
                    return True
                self._on_trouble(status.message)
                return False
            if kind in _TYPES:
                self._hand_on(_TYPES[kind], envelope.raw)
        return False

    def _hand_on(self, kind: api_pb2.WatchEvent.Type, raw: bytes) -> None:
        wire, revision = wires.of_real(raw)
        self._revision = str(revision)
        if self._tenant is not None and self._resource is not None and kind != api_pb2.WatchEvent.BOOKMARK:
            found = self._tenant.inward(self._resource, wire)
            if found is None:
                return
            wire = found
        event = api_pb2.WatchEvent(watch_id=self._create.watch_id, type=kind, resource_version=revision)
        if kind != api_pb2.WatchEvent.BOOKMARK:
            event.object = wire
        self._hand(event)

    def _end(self, status: meta_v1_pb2.Status) -> None:
        # One reason for both ways in which it is told.
        status.reason = "Expired"
        event = api_pb2.WatchEvent(watch_id=self._create.watch_id, type=api_pb2.WatchEvent.ERROR)
        event.error = status.SerializeToString()
        self._hand(event)

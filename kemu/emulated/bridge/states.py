"""The state with which a watch of kemu's clients begins, from a list of the real API server.

A real server sends it itself since v1.32 (``sendInitialEvents``). A list is what each version understands, and what a
watch that many clients share can be joined to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from kemu.emulated.bridge import answers, connections, requests, tenants
from kemu.emulated.objects import resources
from kemu.emulated.objects.wire import envelopes
from kemu.messages.v1 import api_pb2

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_PAGE = 500


def is_wanted(create: api_pb2.WatchCreate) -> bool:
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


async def tell(
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

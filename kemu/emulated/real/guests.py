"""What a run leaves in a cluster that stands, and what it may not begin with.

    python -m kemu.emulated.real.guests KUBECONFIG CONTEXT RUN      removes a run, when its standard input ends

That program stands by as long as a run lasts: a process that is killed removes nothing itself.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kemu.emulated.bridge import answers, connections, requests, rights, tenants
from kemu.emulated.bridge import nodes as bridge_nodes
from kemu.emulated.bridge.requests import JSON, Request
from kemu.emulated.bridge.tenants import GIVEN, LABEL, LEASES, Tenant
from kemu.emulated.objects import resources
from kemu.errors import KemuError
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2

DONE = b"done\n"
"""Says that nothing is left to remove."""
_REMOVED_S = 90.0
_LOOK_S = 0.2
_TOLD = 3
_KEEPING_OUT = ("NoSchedule", "NoExecute")
_OF_SCHEDULERS = (
    *rights.rights("get list watch", "nodes pods services replicationcontrollers namespaces"),
    *rights.rights("get list watch", "persistentvolumes persistentvolumeclaims"),
    *rights.rights("get list watch", "replicasets statefulsets", "apps"),
    *rights.rights("get list watch", "poddisruptionbudgets", "policy"),
    *rights.rights("get list watch", "storageclasses csinodes csidrivers csistoragecapacities", "storage.k8s.io"),
    *rights.rights("create", "pods/binding"),
    *rights.rights("create patch update", "events", "events.k8s.io"),
)
_OWN = (
    *bridge_nodes.RIGHTS,
    *rights.rights("create get list watch delete", "namespaces"),
    *rights.rights("get list watch create update patch delete deletecollection", "pods"),
    *rights.rights("get", "serviceaccounts"),
    *rights.rights("list", "daemonsets", "apps"),
    *rights.rights("list", "leases", "coordination.k8s.io"),
)


@dataclass(frozen=True, kw_only=True)
class Guest:
    """A run, as the cluster is asked about it before it begins."""

    kubeconfig: str
    context: str = ""
    run: str
    nodes: Sequence[str]
    """Names that the run gives to its nodes."""
    objects: Sequence[tuple[str, str]]
    """Plurals and names of what it creates outside of namespaces."""
    creates: Sequence[str]
    """Plurals of everything that it creates."""
    schedules: bool
    """kube-schedulers of its own."""
    goes_anywhere: str = ""
    """What of it tolerates every taint; "": nothing."""

    @property
    def settings(self) -> connections.Settings:
        return connections.Settings(kubeconfig=self.kubeconfig, context=self.context)


def check(guest: Guest) -> None:
    """Raises KemuError with everything that speaks against the run, before anything is written."""
    asyncio.run(_check(guest))


async def _check(guest: Guest) -> None:
    connection = connections.Connection(guest.settings)
    try:
        await connection.open()
        await rights.require(connection, dict.fromkeys(_rights(guest)))
        problems = [problem async for problem in _problems(connection, guest)]
    finally:
        await connection.close()
    if problems:
        raise KemuError(f"{connection.server} cannot be lent for this run:\n  " + "\n  ".join(problems))


def _rights(guest: Guest) -> Iterable[rights.Right]:
    yield from _OWN
    if guest.schedules:
        for right in _OF_SCHEDULERS:
            for plural in right.resource.split():
                yield right._replace(resource=plural)
    for plural in guest.creates:
        group = resources.BY_PLURAL[plural].group
        yield from rights.rights("create get update patch delete", plural, group)


async def _problems(connection: connections.Connection, guest: Guest) -> AsyncIterator[str]:
    found = [core_v1_pb2.Node.FromString(raw) for raw in await _list(connection, "nodes")]
    names = {node.metadata.name for node in found}
    taken = sorted(names & set(guest.nodes))
    if taken:
        yield f"it has nodes of these names: {_some(taken)}"
    is_open = [node.metadata.name for node in found if not _keeps_out(node)]
    if is_open:
        yield f"pods of the run could go to nodes that are not its own: cordon or remove {_some(is_open)}"
    elif found and guest.goes_anywhere:
        yield f"{guest.goes_anywhere} tolerates the taints of nodes that are not the run's: {_some(sorted(names))}"
    pending = await _list(connection, "pods", field_selector="spec.nodeName=")
    if pending:
        yield f"{len(pending)} of its pods wait for a node, and would go to those of the run"
    sets = [_name_in("daemonsets", raw) for raw in await _list(connection, "daemonsets")]
    if sets:
        yield f"its DaemonSets would put pods on the nodes of the run: {_some(sets)}"
    for plural, name in guest.objects:
        if name in {_name_in(plural, raw) for raw in await _list(connection, plural)}:
            yield f"it has {plural} {name} already"


def _keeps_out(node: core_v1_pb2.Node) -> bool:
    return node.spec.unschedulable or any(taint.effect in _KEEPING_OUT for taint in node.spec.taints)


def _name_in(plural: str, raw: bytes) -> str:
    metadata: Any = resources.BY_PLURAL[plural].message.FromString(raw).metadata  # type: ignore[attr-defined]
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_TOLD]) + (f" and {len(names) - _TOLD} more" if len(names) > _TOLD else "")


async def _list(connection: connections.Connection, plural: str, **selectors: str) -> list[bytes]:
    """Raises KemuError."""
    request = api_pb2.ListRequest(resource=api_pb2.Resource(resource=plural), **selectors)  # type: ignore[arg-type]
    made = requests.of("list", request)
    try:
        answer = answers.of(made, await connection.send(made))
    except (connections.Unreachable, answers.Refused) as error:
        raise KemuError(f"{connection.server}: {plural} cannot be listed: {error}") from None
    assert isinstance(answer, api_pb2.ListResponse)
    return [*answer.items]


# Beginning


async def furnish(connection: connections.Connection, tenant: Tenant) -> None:
    """Make the namespaces that every run finds. Raises KemuError."""
    await asyncio.gather(*(_make_namespace(connection, tenant, name) for name in GIVEN))


async def _make_namespace(connection: connections.Connection, tenant: Tenant, name: str) -> None:
    namespace = core_v1_pb2.Namespace()
    namespace.metadata.name = tenant.theirs(name)
    namespace.metadata.labels[LABEL] = tenant.run
    where = api_pb2.Resource(resource="namespaces")
    made = requests.of("create", api_pb2.CreateRequest(resource=where, object=namespace.SerializeToString()))
    try:
        answers.of(made, await connection.send(made))
    except (connections.Unreachable, answers.Refused) as error:
        raise KemuError(f"{connection.server}: namespace {namespace.metadata.name}: {error}") from None
    await tenants.account_made(connection, namespace.metadata.name)


# Ending


class Remover:
    """The program that stands by."""

    def __init__(self, guest: Guest) -> None:
        arguments = [sys.executable, "-m", __name__, guest.kubeconfig, guest.context, guest.run]
        # A session of its own: Ctrl-C in the terminal does not reach it.
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, start_new_session=True)

    def dismiss(self) -> None:
        """Nothing is left to remove."""
        assert self._process.stdin is not None
        self._process.stdin.write(DONE)
        self._process.stdin.close()
        self._process.wait()


async def remove(connection: connections.Connection, run: str) -> list[str]:
    """Everything that carries the label of a run. Returns what could not be removed."""
    selector = f"{LABEL}={run}"
    left: list[str] = []

    async def delete(plural: str, name: str, namespace: str = "") -> None:
        where = api_pb2.Resource(resource=plural, namespace=namespace)
        made = requests.of("delete", api_pb2.DeleteRequest(resource=where, name=name))
        try:
            answers.of(made, await connection.send(made))
        except (connections.Unreachable, answers.Refused) as error:
            if not (isinstance(error, answers.Refused) and error.status.reason in ("NotFound", "Conflict")):
                left.append(f"{plural} {name}")

    found = {}
    for resource in resources.RESOURCES:
        if not resource.namespaced:
            try:
                raws = await _list(connection, resource.plural, label_selector=selector)
            except KemuError:
                continue  # what may not be listed, or is not served, was not created
            found[resource.plural] = [_name_in(resource.plural, raw) for raw in raws]
    namespaces = found.pop("namespaces", [])
    await asyncio.gather(*(delete("namespaces", name) for name in namespaces))
    # No kubelet is left to end them.
    await asyncio.gather(*(_end_pods(connection, name) for name in namespaces))
    await asyncio.gather(*(delete(plural, name) for plural, names in found.items() for name in names))
    leases = await _list(connection, "leases", label_selector=selector)
    await asyncio.gather(*(delete("leases", _name_in("leases", raw).partition("/")[2], LEASES) for raw in leases))
    until = time.monotonic() + _REMOVED_S
    while (names := await _list(connection, "namespaces", label_selector=selector)) and time.monotonic() < until:
        await asyncio.gather(*(_end_pods(connection, _name_in("namespaces", raw)) for raw in names))
        await asyncio.sleep(_LOOK_S * 5)
    return left + [f"namespace {_name_in('namespaces', raw)}" for raw in names]


async def _end_pods(connection: connections.Connection, namespace: str) -> None:
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    path = f"/api/v1/namespaces/{namespace}/pods"
    await connection.send(Request("DELETE", path, resources.BY_PLURAL["pods"], (), json.dumps(body).encode(), JSON))


async def _stand_by(kubeconfig: str, context: str, run: str) -> int:
    if await asyncio.to_thread(sys.stdin.buffer.read) == DONE:
        return 0
    connection = connections.Connection(connections.Settings(kubeconfig=kubeconfig, context=context))
    try:
        await connection.open()
        return 1 if await remove(connection, run) else 0
    finally:
        await connection.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(_stand_by(*sys.argv[1:])))

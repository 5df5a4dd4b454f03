"""What a kubeconfig may do on its cluster, asked before anything begins (``SelfSubjectAccessReview``)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import NamedTuple

from kemu.emulated.bridge import answers, connections
from kemu.emulated.bridge.requests import JSON, Request
from kemu.emulated.objects import resources
from kemu.emulated.objects.wire import envelopes
from kemu.errors import KemuError
from kemu.messages.k8s import authorization_v1_pb2

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_AT_ONCE = 20


class Right(NamedTuple):
    """One thing that a user may do, or not."""

    verb: str
    resource: str
    """A plural, with its subresource: ``pods/status``."""
    group: str = ""
    namespace: str = ""
    """"": in all of them."""

    def __str__(self) -> str:
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {name}" + (f" in {self.namespace}" if self.namespace else "")


def rights(verbs: str, resource: str, group: str = "", namespace: str = "") -> tuple[Right, ...]:
    """One right for each verb; ``verbs`` separates them by blanks."""
    return tuple(Right(verb, resource, group, namespace) for verb in verbs.split())


async def require(connection: connections.Connection, wanted: Iterable[Right]) -> None:
    """Raises KemuError that names every right that is missing, and ClusterError for a cluster that does not answer."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def ask(right: Right) -> bool:
        async with gate:
            return await _allows(connection, right)

    asked = tuple(wanted)
    granted = await asyncio.gather(*map(ask, asked))
    missing = [str(right) for right, is_granted in zip(asked, granted, strict=True) if not is_granted]
    if missing:
        raise KemuError(f"{connection.server}: the user of the kubeconfig may not {', '.join(missing)}")


async def _allows(connection: connections.Connection, right: Right) -> bool:
    plural, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": plural,
        "subresource": subresource,
        "namespace": right.namespace,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
    }
    request = Request("POST", _PATH, resources.BY_PLURAL["pods"], (), json.dumps(body).encode(), JSON)
    try:
        answer = await connection.send(request)
        answers.check(answer)
    except connections.Unreachable as error:
        raise connections.ClusterError(f"{connection.server} does not answer: {error}") from None
    except answers.Refused as refused:
        raise connections.ClusterError(f"{connection.server}: {refused}") from None
    if answer.body.startswith(envelopes.MAGIC):
        review = authorization_v1_pb2.SelfSubjectAccessReview.FromString(envelopes.unwrap(answer.body).raw)
        return review.status.allowed
    return bool(json.loads(answer.body)["status"].get("allowed"))

"""The defaults of CustomResourceDefinitions (``pkg/apis/apiextensions/v1/defaults.go``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from kemu.messages.k8s import apiextensions_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition

HTTPS_PORT = 443


def _default(definition: CustomResourceDefinition) -> None:
    spec = definition.spec
    names = spec.names
    if not names.singular and names.kind:
        names.singular = names.kind.lower()
    if not names.listKind and names.kind:
        names.listKind = f"{names.kind}List"
    if not spec.HasField("conversion"):
        spec.conversion.strategy = "None"
    config = spec.conversion.webhook.clientConfig
    if config.HasField("service") and not config.service.HasField("port"):
        config.service.port = HTTPS_PORT
    if not definition.status.storedVersions:
        store(definition)


def store(definition: CustomResourceDefinition) -> None:
    """The status lists the storage version among those in which there may be objects."""
    stored = definition.status.storedVersions
    for version in definition.spec.versions:
        if version.storage:
            if version.name not in stored:
                stored.append(version.name)
            return


def _prepare(definition: CustomResourceDefinition) -> None:
    """``strategy.PrepareForCreate``."""
    definition.ClearField("status")
    definition.metadata.generation = 1
    store(definition)


FILL: dict[type[Message], Callable[[Any], None]] = {apiextensions_v1_pb2.CustomResourceDefinition: _default}
PREPARE: dict[type[Message], Callable[[Any], None]] = {apiextensions_v1_pb2.CustomResourceDefinition: _prepare}

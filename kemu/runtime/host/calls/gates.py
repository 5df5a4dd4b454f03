"""The gate of a cell's server: only who belongs to the run gets in, and only the driver may tell the cell what to do.

It looks at the metadata of a call alone: a stranger is refused before any message is read or any code of a service
runs. Neighbours: ``tokens`` tells who belongs to the run, ``inbound`` finds the actor that an admitted call is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import grpc

from kemu.runtime.host import tokens
from kemu.runtime.host.calls import inbound


class Gate(grpc.GenericRpcHandler):  # type: ignore[misc,type-arg]
    """Stands before the services that are added to it; it takes the place of a server in
    ``add_…Servicer_to_server``."""

    def __init__(self, verifier: tokens.Verifier, control: str) -> None:
        """``control``: the full name of the service that only the driver may call."""
        self._verifier = verifier
        self._control = f"/{control}/"
        self._handlers: list[Any] = []

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        self._handlers.extend(handlers)

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Generated code registers every method twice; gRPC would ask these first, and never for a token."""

    def service(self, call: grpc.HandlerCallDetails) -> Any:
        found: dict[str, list[str]] = {tokens.TOKEN: [], tokens.CALLER: []}
        for key, value in call.invocation_metadata or ():
            if key in found:
                found[key].append(value)
        # Services read the caller, too: a second one could be another than the one that is verified.
        if any(len(values) != 1 for values in found.values()):
            return _STRANGER
        (token,), (caller,) = found[tokens.TOKEN], found[tokens.CALLER]
        if not self._verifier.admits(caller, token):
            return _STRANGER
        if call.method.startswith(self._control) and caller != tokens.DRIVER:
            return _NOT_DRIVER
        for handler in self._handlers:
            method = handler.service(call)
            if method is not None:
                return method
        return None


_STRANGER = inbound.refusal(
    grpc.StatusCode.UNAUTHENTICATED,
    f"name an actor of this run in {tokens.CALLER} and show its token in {tokens.TOKEN}",
)
_NOT_DRIVER = inbound.refusal(grpc.StatusCode.PERMISSION_DENIED, "only the driver of the run may call this service")

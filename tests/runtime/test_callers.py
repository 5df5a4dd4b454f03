"""The gate of a cell knows exactly one caller of a call, the one that the services behind it see."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kemu.runtime.host import tokens
from kemu.runtime.host.calls import gates

ISSUER = tokens.Issuer()
THIEF, VICTIM = "kubelet/node-1", "user"
OWN = [(tokens.CALLER, THIEF), (tokens.TOKEN, ISSUER.token(THIEF))]
SERVICE = object()


def found(metadata: list[tuple[str, str]]) -> Any:
    gate = gates.Gate(tokens.Verifier(ISSUER.public_key), "kemu.v1.Cell")
    gate.add_generic_rpc_handlers([SimpleNamespace(service=lambda call: SERVICE)])
    return gate.service(SimpleNamespace(method="/kemu.v1.Api/Get", invocation_metadata=metadata))


def test_who_shows_its_token_gets_in() -> None:
    assert found(OWN) is SERVICE
    assert found([*OWN, ("kemu-as", "alice")]) is SERVICE


@pytest.mark.parametrize(
    "metadata",
    [
        [(tokens.CALLER, VICTIM), OWN[1]],
        [(tokens.CALLER, VICTIM), *OWN],
        [*OWN, (tokens.CALLER, VICTIM)],
        [*OWN, OWN[1]],
        OWN[:1],
        OWN[1:],
        [],
    ],
)
def test_who_names_somebody_else_does_not(metadata: list[tuple[str, str]]) -> None:
    assert found(metadata) is not SERVICE

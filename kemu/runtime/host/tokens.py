"""Who calls: every actor of a run has a token, and shows it in each call to another process.

A token is the driver's signature of the actor's name, under a key that is made for the run. A cell gets the tokens of
the actors that it starts, and the public half of the key: enough to recognise all actors, and to impersonate none.
Neighbours: ``gates`` asks for the token before a call reaches any code, ``channels`` and ``relays`` add it to calls.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import grpc

from kemu.runtime.env import Codec

CALLER = "kemu-actor"
"""Metadata of a call: who calls."""
TOKEN = "kemu-token"
"""Metadata of a call: the token of the actor that calls."""

DRIVER = "driver"
"""Who may tell a cell what to do. No actor has this name: theirs are ``store``, ``user`` or have a slash."""

_LENGTH = 88
"""Length of a token: 64 bytes in base64."""


class Issuer:
    """Makes the tokens of one run. Only the driver has one."""

    def __init__(self) -> None:
        # Of an extra, which not all who name callers have.
        from cryptography.hazmat.primitives.asymmetric import ed25519

        self._key = ed25519.Ed25519PrivateKey.generate()
        self.public_key: bytes = self._key.public_key().public_bytes_raw()
        """Verifies the tokens; no secret."""
        self._tokens: dict[str, str] = {}

    def token(self, actor: str) -> str:
        token = self._tokens.get(actor)
        if token is None:
            token = self._tokens[actor] = base64.b64encode(self._key.sign(_statement(actor))).decode()
        return token


class Verifier:
    """Recognises the tokens of one run."""

    def __init__(self, public_key: bytes) -> None:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ed25519

        self._refused = (InvalidSignature, binascii.Error, ValueError)
        self._key = ed25519.Ed25519PublicKey.from_public_bytes(public_key)
        self._digests: dict[str, bytes] = {}
        """Digests of the tokens seen so far, by actor. Only what the driver has signed gets here, so no other process
        fills it.
        """

    def admits(self, actor: str, token: str) -> bool:
        if len(token) != _LENGTH:
            return False
        digest = hashlib.sha256(token.encode()).digest()
        known = self._digests.get(actor)
        if known is not None:
            return hmac.compare_digest(known, digest)
        try:
            self._key.verify(base64.b64decode(token, validate=True), _statement(actor))
        except self._refused:
            return False
        self._digests[actor] = digest
        return True


class Signed:
    """A channel of gRPC, asyncio's or the other, on which every call names its caller and shows its token."""

    def __init__(self, channel: grpc.aio.Channel, actor: str, token: str) -> None:
        self._channel = channel
        self._metadata = ((CALLER, actor), (TOKEN, token))

    def unary_unary(self, method: str, *args: Codec | None, **kwargs: Codec | bool | None) -> Callable[..., Any]:
        return self._signed(self._channel.unary_unary(method, *args, **kwargs))

    def unary_stream(self, method: str, *args: Codec | None, **kwargs: Codec | bool | None) -> Callable[..., Any]:
        return self._signed(self._channel.unary_stream(method, *args, **kwargs))

    def stream_unary(self, method: str, *args: Codec | None, **kwargs: Codec | bool | None) -> Callable[..., Any]:
        return self._signed(self._channel.stream_unary(method, *args, **kwargs))

    def stream_stream(self, method: str, *args: Codec | None, **kwargs: Codec | bool | None) -> Callable[..., Any]:
        return self._signed(self._channel.stream_stream(method, *args, **kwargs))

    def _signed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, metadata=(), **kwargs: method(*args, metadata=(*self._metadata, *metadata), **kwargs)


def _statement(actor: str) -> bytes:
    return b"kemu token\0" + actor.encode("utf-8", "surrogatepass")

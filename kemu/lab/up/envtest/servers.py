"""An API server alone, for envtest."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kemu.emulated.apiserver import admission
from kemu.emulated.apiserver.authorization import authorizers
from kemu.emulated.gateway.authentication import authenticators, certificates, service_accounts
from kemu.emulated.objects.identities import User
from kemu.errors import KemuError
from kemu.lab.scenario import forms
from kemu.lab.scenario.playing import judging, plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.up import clusters, credentials, sessions
from kemu.lab.up.envtest.flags import Flags
from kemu.runtime.runtimes import Runtime

OUT = "KEMU_ENVTEST_OUT"
"""The environment's variable that says where run folders are kept."""


class Session(sessions.Session):
    alone = True
    read: Flags
    is_kept = True
    """The run is judged, and its folder kept."""

    def make_credentials(self, scenario: Scenario) -> credentials.Credentials:
        return make_credentials(self.read)

    async def drive(
        self, runtime: Runtime, scenario: Scenario, recorder: plays.Recorder, beats: Heartbeats
    ) -> judging.End:
        leaving = asyncio.create_task(self._leave(), name="leave")
        try:
            return await super().drive(runtime, scenario, recorder, beats)
        finally:
            leaving.cancel()

    async def _leave(self) -> None:
        await self.stop.wait()
        if not self.is_kept:
            # Nobody reads what would still be written.
            self.settings.give_up()


def serve(read: Flags) -> int:
    """Until it is stopped. Raises KemuError."""
    kept = os.environ.get(OUT, "")
    out = _folder(Path(kept)) if kept else Path(tempfile.mkdtemp(prefix="kemu-envtest-"))

    def give_up() -> None:
        if not kept:
            shutil.rmtree(out, ignore_errors=True)
        os._exit(0)

    def make(*arguments: Any) -> Session:
        session = Session(*arguments)
        session.read, session.is_kept = read, bool(kept)
        return session

    settings = sessions.Settings(out=out, host=read.host, port=read.port, force=True, give_up=give_up)
    try:
        scenario = made_of(read)
        sessions.run(scenario, settings, _say, make=make)
    finally:
        if not kept:
            shutil.rmtree(out, ignore_errors=True)
    return 0


def _say(up: sessions.Up) -> None:
    print(f"kube-apiserver: kemu's, at {up.url}; kubectl --kubeconfig {up.kubeconfig}", file=sys.stderr, flush=True)


def _folder(parent: Path) -> Path:
    """A new one, named after the package that is tested: Go runs tests where their sources are."""
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        found = parent / f"{Path.cwd().name or 'envtest'}-{number}"
        with contextlib.suppress(FileExistsError):
            found.mkdir()
            return found
        number += 1


def made_of(read: Flags) -> Scenario:
    """A cluster without anything but its API server. Raises KemuError for what kube-apiserver refuses, too."""
    spec: dict[str, Any] = {
        "duration": f"{clusters.FOREVER_S}s",
        "nodes": [],
        "schedulers": [],
        "controllers": [],
        "eventObjects": "all",
        # As envtest starts etcd: --unsafe-no-fsync.
        "store": {"fsync": "none"},
        "apiServers": _api_servers(read),
    }
    return forms.load(spec, {}, name="envtest")


def _api_servers(read: Flags) -> Mapping[str, Any]:
    modes = [mode for mode in read.modes if mode in authorizers.MODES]
    for mode in read.modes:
        if mode not in modes:
            _tell(f"--authorization-mode={mode}")
    on = {*admission.DEFAULT_ON, *admission.DEFAULT_OFF} - {*admission.OFF_IN_KUBERNETES, *read.disabled}
    on |= {*read.enabled}
    for name in (*read.enabled, *read.disabled):
        if name not in admission.PLUGINS and name not in _ALWAYS:
            _tell(f"the admission plugin {name}")
    return {
        "webhooks": "call",
        "unsimulatedFields": "store",
        "serviceRanges": list(read.service_ranges),
        "authorization": modes or [authorizers.ALWAYS_ALLOW],
        "disableAdmissionPlugins": [name for name in admission.DEFAULT_ON if name not in on],
        "enableAdmissionPlugins": [name for name in admission.DEFAULT_OFF if name in on],
    }


_ALWAYS = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook", "ValidatingAdmissionPolicy",
           "MutatingAdmissionPolicy")  # fmt: skip
"""Admission plugins that are on in kemu whatever is said."""


def _tell(what: str) -> None:
    print(f"kube-apiserver: kemu does not heed {what}", file=sys.stderr)


def make_credentials(read: Flags) -> credentials.Credentials:
    """Those that the flags name. Raises KemuError."""
    made = credentials.make(read.host)
    server = made.server
    if read.certificate is not None and read.key is not None:
        server = certificates.KeyPair(_read(read.certificate), _read(read.key))
    others: dict[str, User] = {} if read.tokens is None else authenticators.read_token_file(read.tokens)
    key = None if read.account_key is None else _account_key(read.account_key)
    issuer = read.issuer or service_accounts.ISSUER
    clients = b"" if read.client_ca is None else _read(read.client_ca)
    tokens = service_accounts.Tokens(key, issuer)
    return credentials.Credentials(made.authority, server, made.token, others, clients, tokens, signs=False)


def _account_key(file: Path) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = serialization.load_pem_private_key(_read(file), None)
    except (ValueError, TypeError) as error:
        raise KemuError(f"--service-account-signing-key-file {file}: {error}") from None
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    print(f"kube-apiserver: {file} has no key on the curve P-256: kemu signs with its own", file=sys.stderr)
    return None


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise KemuError(f"{file}: {error.strerror}") from None

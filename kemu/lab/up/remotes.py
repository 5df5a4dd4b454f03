"""Calls the control endpoint of a cluster that is up, by its kubeconfig: for ``kemu step`` and ``kemu chaos``."""

from __future__ import annotations

import base64
import json
import os
import ssl
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from kemu.emulated.objects.conversion import user_files
from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError
from kemu.lab.up import kubeconfigs
from kemu.lab.up.controls import PREFIX

PATIENCE_S = 60.0
"""Real time in which a cluster answers, and in which its time moves while it is stepped."""
_LOOK_S = 2.0
"""Real time between two looks at the clock of a cluster that is stepped."""


class NoAnswer(KemuError):
    """The cluster cannot be reached."""


class Remote:
    """Remote of the current context of a kubeconfig."""

    def __init__(self, file: Path) -> None:
        """Raises KemuError."""
        self._file = file
        try:
            found = kubeconfigs.read(file) or {}
        except user_files.FileProblem as error:
            hint = "kemu up writes one, and says where: --kubeconfig FILE, or export KUBECONFIG=FILE"
            raise KemuError(f"{file} {error}: {hint}") from None
        context = _named(found, "contexts", "context", found.get("current-context"))
        cluster = _named(found, "clusters", "cluster", context.get("cluster"))
        user = _named(found, "users", "user", context.get("user"))
        self._server = str(cluster.get("server", "")).rstrip("/")
        if not self._server:
            raise KemuError(f"{file}: its current context names no server")
        self._token = str(user.get("token", ""))
        self._tls = _tls(cluster, user) if self._server.startswith("https") else None

    def step(self, asked: Mapping[str, Any], patience_s: float = PATIENCE_S) -> Any:
        """Let time pass (``POST step`` of :mod:`kemu.lab.up.controls`), however long that takes while it does pass.

        Raises KemuError with what the cluster says, and where time has stood for ``patience_s`` of real time more than
        the cluster itself may wait for its clients.
        """
        stepped: Future[Any] = Future()

        def ask() -> None:
            try:
                stepped.set_result(self.call("POST", "step", asked, None))
            except BaseException as error:
                stepped.set_exception(error)

        threading.Thread(target=ask, name="step", daemon=True).start()
        seen: Mapping[str, Any] = {}
        moved_s = time.monotonic()
        while True:
            try:
                return stepped.result(min(_LOOK_S, patience_s))
            except TimeoutError:
                found = self._clock()
            if found is not None and found["now_s"] != seen.get("now_s"):
                seen, moved_s = found, time.monotonic()
            stood_s = time.monotonic() - moved_s
            if stood_s > patience_s + seen.get("patience_s", 0.0) and not stepped.done():
                raise (KemuError if found is not None else NoAnswer)(self._stalled(seen, found, stood_s))

    def _clock(self) -> Any:
        """None: no answer."""
        try:
            return self.call("GET", "clock", timeout_s=_LOOK_S)
        except KemuError:
            return None

    def _stalled(self, seen: Mapping[str, Any], found: Mapping[str, Any] | None, stood_s: float) -> str:
        stands = f"time stands at {seen['now_s']:.3f} s" if seen else "time does not pass"
        if found is not None:
            waits_for = found.get("waits_for") or "all that happens at this instant"
            return f"{stands}, for {stood_s:.0f} s of real time: the cluster waits for {waits_for}"
        return (
            f"{stands}: {self._server} has not answered for {stood_s:.0f} s of real time; is its process stopped, or "
            "does code in it (a plugin) not return?"
        )

    def call(self, method: str, what: str, body: Json = None, timeout_s: float | None = PATIENCE_S) -> Any:
        """Raises KemuError with what the cluster says."""
        text = self.text(method, what, body, timeout_s)
        return json.loads(text) if text else {}

    def text(self, method: str, what: str, body: Json = None, timeout_s: float | None = PATIENCE_S) -> str:
        return self.ask(method, f"{PREFIX}{what}", body, timeout_s)

    def ask(
        self,
        method: str,
        path: str,
        body: Json = None,
        timeout_s: float | None = None,
        content_type: str = "application/json",
    ) -> str:
        """Any path of the server, such as one of Kubernetes' API. Raises KemuError with what it says."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._server}{path}", data, method=method)
        request.add_header("Content-Type", content_type)
        request.add_header("User-Agent", "kemu")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        # A proxy of the environment has no business between this machine and its own cluster.
        handlers: list[Any] = [urllib.request.ProxyHandler({})]
        if self._tls is not None:
            handlers.append(urllib.request.HTTPSHandler(context=self._tls))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=timeout_s) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            raise KemuError(_said(error.read(), error.code)) from None
        except OSError as error:
            why = getattr(error, "reason", error)
            raise NoAnswer(f"{self._server} (of {self._file}) does not answer: {why}; is kemu up running?") from None


def late(found: Mapping[str, Any], real_s: float) -> str:
    """Why a step has not come to its end: what it answered says so."""
    passed = f"{found['passed_s']:.3f} s have passed in {real_s:g} s of real time; it is {found['now_s']:.3f} s"
    waits_for = found.get("waits_for")
    return f"{passed}: the cluster waits for {waits_for}" if waits_for else f"{passed}: that is all that it can do"


def default_file() -> Path:
    """As kubectl: the first file of KUBECONFIG, or ``~/.kube/config``."""
    named = [each for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    return Path(named[0]) if named else Path.home() / ".kube" / "config"


def _named(document: dict[str, Any], plural: str, key: str, name: Json) -> dict[str, Any]:
    for each in document.get(plural) or ():
        if each.get("name") == name and isinstance(each.get(key), dict):
            return dict(each[key])
    return {}


def _tls(cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    authority = cluster.get("certificate-authority-data")
    context = ssl.create_default_context(
        cafile=cluster.get("certificate-authority"),
        cadata=base64.b64decode(authority).decode() if authority else None,
    )
    certificate, key = user.get("client-certificate-data"), user.get("client-key-data")
    if certificate and key:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "client"
            file.touch(0o600)
            file.write_bytes(base64.b64decode(certificate) + b"\n" + base64.b64decode(key))
            context.load_cert_chain(file)
    elif user.get("client-certificate"):
        context.load_cert_chain(user["client-certificate"], user.get("client-key"))
    return context


def _said(body: bytes, code: int) -> str:
    try:
        found = json.loads(body)
        text = found.get("error") or found.get("message")
    except (ValueError, AttributeError):
        text = ""
    return str(text or f"the server answers {code}: is it a cluster of kemu up?")

"""The control endpoint: how ``kemu step`` and ``kemu chaos`` reach a cluster that is up.

It stands in front of the gateway, on the same port, below ``/kemu/v1``. Only administrators may use it (the group
``system:masters``); the token in the kubeconfig that ``kemu up`` wrote is one of them.

    GET    /kemu/v1/clock          {"now_s": 12.5, "date": "2026-11-28T09:00:12.5Z", "virtual": true, "waits_for": "",
                                   "patience_s": 30.0}; the last two in virtual time: what keeps it from passing now,
                                   and for how long clients at most do
    POST   /kemu/v1/step           {"seconds": 10, "until": "pod/web running", "idle": false, "namespace": "default",
                                   "seen_by": "my-controller/*", "real_s": 30}; time stops when the client goes away
    GET    /kemu/v1/chaos          the faults that have begun
    POST   /kemu/v1/chaos          a fault, as in a scenario
    DELETE /kemu/v1/chaos/ID       ends one
    GET    /kemu/v1/chaos.yaml     the script of what has struck
    GET    /kemu/v1/metrics/NAME   the metrics of kube-scheduler, kube-controller-manager, kubelet (all of them) or
                                   kube-state-metrics, where they are asked for (kemu up --metrics); NAME/INSTANCE: of
                                   one process. 503: nobody answers
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import urllib.parse
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol, TypeVar

from kemu.emulated.gateway.asgi import Application, Receive, Scope, Send
from kemu.emulated.gateway.limits import connections
from kemu.emulated.gateway.settings import Authenticator
from kemu.emulated.objects import times
from kemu.emulated.objects.plain import Json
from kemu.errors import ApiError, Forbidden, KemuError, NotFound
from kemu.lab.up import callers
from kemu.lab.up.chaos.injectors import Injector, NoSuchFault
from kemu.runtime.env import SECOND_NS
from kemu.runtime.metrics import texts
from kemu.runtime.metrics.families import APISERVER, COMPONENTS

PREFIX = "/kemu/v1/"
_BODY_BYTES = 1 << 20

T = TypeVar("T")


class Steps(Protocol):
    """A cluster in virtual time."""

    async def step(self, seconds: float, *, idle: bool = False, real_s: float = math.inf) -> str: ...

    async def step_until(
        self, text: str, seconds: float, namespace: str = "default", *, seen_by: str = "", real_s: float = math.inf
    ) -> str: ...

    @property
    def hurried(self) -> int: ...

    @property
    def restless(self) -> list[str]: ...

    @property
    def waits_for(self) -> str: ...

    @property
    def kept_by(self) -> str: ...

    @property
    def patience_s(self) -> float: ...


class Answer(NamedTuple):
    code: int
    body: bytes
    media: bytes = b"application/json"


class Controls:
    """An ASGI application around the gateway."""

    def __init__(
        self,
        app: Application,
        authenticator: Authenticator,
        now_s: Callable[[], float],
        unix_ns: Callable[[], int],
        injector: Injector,
        steps: Steps | None = None,
        measures: Callable[[str, str], str] | None = None,
    ) -> None:
        """``steps``: None in real time. ``measures``: the metrics of a component, or of one
        instance of it, as a text; None: nobody counts."""
        self._app = app
        self._authenticator = authenticator
        self._now_s = now_s
        self._unix_ns = unix_ns
        self._injector = injector
        self._steps = steps
        self._measures = measures

    def close(self) -> None:
        self._app.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            if scope["type"] == "http" and self._steps is not None:
                callers.CALLER.set(callers.of(scope))
            await self._app(scope, receive, send)
            return
        try:
            answer = await self._answer(scope, receive)
        except NoSuchFault as error:
            answer = _refused(404, str(error))
        except ApiError as error:
            answer = _refused(error.code, error.message)
        except KemuError as error:
            answer = _refused(400, str(error))
        headers = [(b"content-type", answer.media), (b"content-length", b"%d" % len(answer.body))]
        await send({"type": "http.response.start", "status": answer.code, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body, "more_body": False})

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        user = await self._authenticator.authenticate(headers, (scope.get("extensions") or {}).get(connections.TLS))
        if not user.is_master:
            raise Forbidden(f'User "{user.name}" cannot control the cluster: only administrators may')
        method, what = scope["method"], scope["path"].removeprefix(PREFIX)
        if (method, what) == ("GET", "clock"):
            return _found(self._clock())
        if (method, what) == ("POST", "step"):
            asked = await _body(receive)
            return _found(await _while_connected(receive, self._step(asked)))
        if (method, what) == ("GET", "chaos"):
            return _found({"faults": [each.as_data() for each in self._injector.faults()]})
        if (method, what) == ("GET", "chaos.yaml"):
            return Answer(200, self._injector.script.text().encode(), b"application/yaml")
        if method == "GET" and what.startswith("metrics/"):
            return Answer(200, self._metrics(what.removeprefix("metrics/")).encode(), texts.CONTENT_TYPE.encode())
        if (method, what) == ("POST", "chaos"):
            return _found({"id": self._injector.strike(await _body(receive))})
        if method == "DELETE" and what.startswith("chaos/"):
            self._injector.heal(what.removeprefix("chaos/"))
            return _found({})
        raise NotFound(f"there is no {method} {scope['path']}")

    def _metrics(self, which: str) -> str:
        component, _, instance = urllib.parse.unquote(which).partition("/")
        names = [name for name in COMPONENTS if name != APISERVER]
        if component not in names:
            raise NotFound(f"there are no metrics of {component!r}, but those of {', '.join(names)}")
        if self._measures is None:
            raise KemuError("this cluster does not count what metrics tell; kemu up --metrics makes one that does")
        return self._measures(component, instance)

    def _clock(self) -> dict[str, Any]:
        steps, date = self._steps, times.format_micro_time(*divmod(self._unix_ns(), SECOND_NS))
        found = {"now_s": self._now_s(), "date": date, "virtual": steps is not None}
        return found if steps is None else {**found, "waits_for": steps.waits_for, "patience_s": steps.patience_s}

    async def _step(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self._steps is None:
            raise KemuError("the clock of this cluster runs by itself; kemu up --virtual makes one that is stepped")
        begun_s, hurried = self._now_s(), self._steps.hurried
        seconds = asked.get("seconds")
        if not isinstance(seconds, int | float) or seconds < 0:
            raise KemuError("seconds: must be a number from 0")
        real_s = asked.get("real_s") or math.inf
        if not isinstance(real_s, int | float) or real_s < 0:
            raise KemuError("real_s: must be a number above 0")
        seen_by = str(asked.get("seen_by") or "")
        if seen_by and not asked.get("until"):
            raise KemuError("seen_by: needs a condition (until)")
        if asked.get("until"):
            namespace = str(asked.get("namespace") or "default")
            ended = await self._steps.step_until(
                str(asked["until"]), seconds, namespace, seen_by=seen_by, real_s=real_s
            )
        else:
            ended = await self._steps.step(seconds, idle=bool(asked.get("idle")), real_s=real_s)
        found = {"ended": ended, "passed_s": self._now_s() - begun_s, **self._clock()}
        if ended == "late":
            found["waits_for"] = self._steps.kept_by
        return {**found, "hurried": self._steps.hurried - hurried, "restless": self._steps.restless}


async def _while_connected(receive: Receive, answering: Coroutine[Any, Any, T]) -> T:
    """What it returns; it is cancelled when its client goes away. Raises KemuError then."""
    task = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise KemuError("the client has gone away")
        return task.result()
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(receive: Receive) -> dict[str, Any]:
    """Raises KemuError."""
    data = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise KemuError("the client has gone away")
        data += message.get("body", b"")
        if len(data) > _BODY_BYTES:
            raise KemuError("the body is too large")
        if not message.get("more_body"):
            break
    try:
        found = json.loads(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise KemuError(f"the body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise KemuError("the body must be an object")
    return found


def _found(data: Json) -> Answer:
    return Answer(200, json.dumps(data).encode() + b"\n")


def _refused(code: int, message: str) -> Answer:
    return Answer(code, json.dumps({"error": message}).encode() + b"\n")

"""Asks a webhook: a POST of JSON, answered with JSON.

    client = WebhookClient(env, cache, services)
    answer = await client.call(webhook.clientConfig, review, timeout_s=10)

Role: ``apiserver/pkg/util/webhook``. Nothing listens at the address of an emulated Service: ``services`` says which
port of loopback stands for it (``kemu up --service``). One of the type ExternalName leads to that host.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import sizes
from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError, RequestEntityTooLarge
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1
from kemu.messages.k8s import apiextensions_v1_pb2, core_v1_pb2
from kemu.runtime import outside
from kemu.runtime.env import Env

_SERVICES = resources.BY_PLURAL["services"]
_DEFAULT_PORT = 443
_LOOPBACK = "127.0.0.1"
_EXTERNAL = "ExternalName"
_LONGEST_QUOTED = 2048
"""Characters of an answer that is no JSON which the error shows (``maxUnstructuredResponseTextBytes``)."""

_BY_STATUS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "{text}",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    413: "Request entity too large: {text}",
    415: "{text}",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    500: 'an error on the server ("{text}") has prevented the request from succeeding',
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
"""``NewGenericServerResponse``."""


Configuration = v1.WebhookClientConfig | apiextensions_v1_pb2.WebhookClientConfig
"""Of webhooks of admission, and of conversion."""
Service = v1.ServiceReference | apiextensions_v1_pb2.ServiceReference


class CallFailed(KemuError):
    """The webhook gave no answer that can be used; the text says why, in the words of Go's clients."""


class BadClient(KemuError):
    """The configuration names nothing that could be asked."""


class WebhookClient:
    def __init__(self, env: Env, cache: WatchCache, services: Mapping[str, int] | None = None) -> None:
        """``services``: by ``NAMESPACE/NAME`` the port of loopback where a process listens for them."""
        self._env = env
        self._cache = cache
        self._services = services or {}

    async def call(self, configuration: Configuration, body: Json, timeout_s: float) -> dict[str, Any]:
        """The object that the webhook answers. Raises CallFailed and BadClient."""
        url, host, port = self._address(configuration, timeout_s)
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        question = outside.Question(url, data, timeout_s, bytes(configuration.caBundle), port, host)
        try:
            answer = await self._env.ask(question)
        except outside.BadAuthorities as error:
            raise BadClient(str(error)) from None
        except outside.Unanswered as error:
            raise CallFailed(f'Post "{url}": {error}') from None
        if not 200 <= answer.status <= 206:
            raise CallFailed(_refusal(answer))
        return _read(answer.body)

    def _address(self, configuration: Configuration, timeout_s: float) -> tuple[str, str, int]:
        """The URL, and the host and the port in place of where it points; port 0: where it points. Raises CallFailed
        and BadClient."""
        query = urlencode({"timeout": f"{max(1, -(-timeout_s // 1)):.0f}s"})
        if not configuration.HasField("service"):
            if not configuration.url:
                raise BadClient("webhook configuration must have either service or URL")
            place = urlsplit(configuration.url)
            return f"{place.scheme}://{place.netloc}{_clean(place.path)}?{query}", "", 0
        service = configuration.service
        port = service.port if service.HasField("port") else _DEFAULT_PORT
        path = _clean(service.path)
        url = f"https://{service.name}.{service.namespace}.svc:{port}{path}?{query}"
        return url, *self._behind(service, port, url)

    def _behind(self, service: Service, port: int, url: str) -> tuple[str, int]:
        """Where a Service leads (``ResolveCluster`` of ``apiserver/pkg/util/proxy``). Raises CallFailed."""
        key = resources.key(_SERVICES, service.namespace, service.name)
        entry = self._cache.collections["services"].entries.get(key)
        if entry is None:
            raise CallFailed(f'Post "{url}": service "{service.name}" not found')
        found = core_v1_pb2.Service.FromString(entry.wire)
        if found.spec.type == _EXTERNAL:
            return found.spec.externalName, port
        if found.spec.clusterIP == "None":
            raise CallFailed(f'Post "{url}": cannot route to service with ClusterIP "None"')
        if all(one.port != port for one in found.spec.ports):
            raise CallFailed(f'Post "{url}": no service port {port} found for service "{service.name}"')
        name = f"{service.namespace}/{service.name}"
        if name not in self._services:
            raise CallFailed(
                f'Post "{url}": dial tcp {found.spec.clusterIP}:{port}: connect: connection refused (no process stands '
                f"for service {name}: kemu up --service {name}=PORT)"
            )
        return _LOOPBACK, self._services[name]


def _clean(path: str) -> str:
    """As clients of client-go join it (``path.Join``), without slashes that say nothing: envtest writes ``//validate``,
    which servers of Go would redirect."""
    return posixpath.normpath("/" + path.lstrip("/"))


def _refusal(answer: outside.Answer) -> str:
    text = answer.body[:_LONGEST_QUOTED].decode("utf-8", "replace").strip() if answer.is_text else ""
    words = _BY_STATUS.get(answer.status)
    if words is None and answer.status >= 500:
        words = _BY_STATUS[500]
    if words is None:
        return f"the server responded with the status code {answer.status} but did not return more information"
    return words.format(text=text or "unknown")


def _read(data: bytes) -> dict[str, Any]:
    """Raises CallFailed."""
    try:
        sizes.check_json(data)
        found = json.loads(data)
    except (ValueError, RecursionError, RequestEntityTooLarge) as error:
        text = data[:_LONGEST_QUOTED].decode("utf-8", "replace").strip()
        what = "is no JSON" if text else "is empty"
        raise CallFailed(f"couldn't get version/kind; json parse error: the answer {what}: {error}") from None
    if not isinstance(found, dict):
        raise CallFailed("couldn't get version/kind; json parse error: the answer is no object")
    return found

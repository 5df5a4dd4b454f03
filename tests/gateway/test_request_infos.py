"""What method and URL ask for, as the RequestInfoFactory of Kubernetes says."""

from __future__ import annotations

import pytest

from kemu.emulated.gateway.requests import request_infos

PODS = "/api/v1/namespaces/shop/pods"


def info(method: str, url: str) -> request_infos.RequestInfo:
    path, _, query = url.partition("?")
    return request_infos.of({"method": method, "path": path, "query_string": query.encode()})


@pytest.mark.parametrize(
    ("method", "url", "verb"),
    [
        ("GET", f"{PODS}/a", "get"),
        ("HEAD", f"{PODS}/a", "get"),
        ("GET", PODS, "list"),
        ("GET", f"{PODS}?watch=false", "list"),
        ("GET", f"{PODS}?watch=yes", "watch"),
        ("GET", f"{PODS}/a?watch=1", "get"),
        ("GET", "/api/v1/watch/namespaces/shop/pods/a", "watch"),
        ("POST", PODS, "create"),
        ("PUT", f"{PODS}/a/status", "update"),
        ("PATCH", f"{PODS}/a", "patch"),
        ("DELETE", f"{PODS}/a", "delete"),
        ("DELETE", PODS, "deletecollection"),
        ("POST", "/healthz", "post"),
    ],
)
def test_the_verb(method: str, url: str, verb: str) -> None:
    assert info(method, url).verb == verb


def test_the_server_that_a_client_chooses_is_no_part_of_the_path() -> None:
    found = info("GET", f"/servers/1{PODS}/a/log")
    assert (found.server, found.path) == ("1", f"{PODS}/a/log")
    assert found.parts is not None
    assert (found.parts.namespace, found.parts.name, found.parts.subresource) == ("shop", "a", "log")
    assert info("GET", PODS).server is None


def test_a_request_is_read_once_and_its_replacement_anew() -> None:
    scope = {"method": "GET", "path": PODS, "query_string": b""}
    found = request_infos.of(scope)
    assert request_infos.of(scope) is found
    other = request_infos.changed(scope, query_string=b"watch=1")
    assert request_infos.of(other).verb == "watch"
    assert found.verb == "list"


def test_what_cannot_be_read_says_why() -> None:
    found = info("GET", "/api/v1/watch")
    assert found.problem is not None
    assert found.problem.code == 500
    assert found.parts is None

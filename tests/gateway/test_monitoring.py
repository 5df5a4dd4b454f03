"""Health, metrics, and what becomes of mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kemu.emulated.gateway.authentication.authenticators import Authenticator, authenticated
from kemu.emulated.gateway.requests import envelopes
from kemu.emulated.gateway.settings import Settings
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster, pod

PODS = "/api/v1/namespaces/default/pods"


def test_a_gateway_without_its_server_lives_but_is_not_ready() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        for path in ("/healthz", "/livez", "/readyz", "/livez/ping"):
            assert (await http.get(path)).text == "ok", path
        verbose = (await http.get("/readyz?verbose=1")).text.splitlines()
        wanted = {"[+]ping ok", "[+]etcd ok", "[+]poststarthook/bootstrap-controller ok", "[+]apiserver-0 ok"}
        assert wanted <= set(verbose)
        assert verbose[-1] == "readyz check passed"
        assert (await http.get("/livez/nosuch")).status_code == 404
        cluster.host.crash("apiserver/0")
        assert (await http.get("/livez")).status_code == 200
        unready = await http.get("/readyz")
        assert unready.status_code == 500
        assert "[-]apiserver-0 failed: apiserver/0 is not reachable" in unready.text
        assert "[-]etcd-readiness failed: apiserver/0 is not reachable" in unready.text

    gateway_cluster.run(main)


def test_statusz_tells_of_the_server() -> None:
    """As kube-apiserver v1.36.3 answers, but for its Go version and ``/flagz``."""

    async def main(cluster: Cluster) -> None:
        found = await cluster.http.get("/statusz")
        assert found.headers["content-type"] == "text/plain; charset=utf-8"
        assert found.text.startswith("\napiserver statusz\nWarning: This endpoint is not meant to be machine parseable")
        assert found.text.endswith("Paths: /healthz /livez /metrics /readyz /statusz /version\n")
        form = "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"
        found = await cluster.http.get("/statusz", headers={"accept": form})
        assert found.headers["content-type"] == "application/json;g=config.k8s.io;v=v1beta1;as=Statusz"
        told = found.json()
        assert (told["kind"], told["apiVersion"], told["binaryVersion"]) == ("Statusz", "config.k8s.io/v1beta1", "1.36")
        assert list(told) == [
            "kind", "apiVersion", "metadata", "startTime", "uptimeSeconds", "goVersion", "binaryVersion",
            "emulationVersion", "paths",
        ]  # fmt: skip
        found = await cluster.http.get("/statusz", headers={"accept": "application/json"})
        assert found.status_code == 406
        assert found.json()["message"] == (
            "only the following media types are accepted: application/json, application/yaml, text/plain"
        )

    gateway_cluster.run(main)


def test_checks_as_metrics() -> None:
    async def main(cluster: Cluster) -> None:
        text = (await cluster.http.get("/metrics/slis")).text
        for check, kind in (("etcd", "healthz"), ("ping", "livez"), ("apiserver-0", "readyz")):
            assert f'kubernetes_healthcheck{{name="{check}",type="{kind}"}} 1\n' in text

    gateway_cluster.run(main)


def test_a_deadline_that_is_none() -> None:
    async def main(cluster: Cluster) -> None:
        for text, why in (("invalid", "invalid duration"), ("5", "missing unit in duration")):
            for path in ("/version", PODS):
                answer = await cluster.http.get(f"{path}?timeout={text}")
                message = f'invalid timeout specified in the request URL - time: {why} "{text}"'
                assert (answer.status_code, answer.json()["message"]) == (400, message)
        for text in ("", "0s", "-1s", "3m"):
            assert (await cluster.http.get(f"/version?timeout={text}")).status_code == 200
        watch = await cluster.http.get(f"{PODS}?watch=1&timeoutSeconds=1&timeout=invalid")
        assert watch.status_code == 200

    gateway_cluster.run(main)


def test_metrics_count_requests() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        await http.get(f"{PODS}/none")
        await http.get(f"{PODS}/none")
        await http.get(f"{PODS}/none/status")
        await http.get(f'{PODS}/none/"invented"')
        await http.get(f"{PODS}?watch=1&timeoutSeconds=1")
        text = (await http.get("/metrics")).text
        found: dict[tuple[str, ...], float] = {}
        families = {family.name: family for family in text_string_to_metric_families(text)}
        for sample in families["apiserver_request"].samples:
            labels = sample.labels
            if labels["resource"] == "pods":
                assert (labels["component"], labels["group"], labels["version"]) == ("apiserver", "", "v1")
                key = labels["verb"], labels["subresource"], labels["scope"], labels["dry_run"], labels["code"]
                found[key] = sample.value
        assert found == {
            ("GET", "", "resource", "", "404"): 2,
            ("GET", "status", "resource", "", "404"): 1,
            ("GET", "other", "resource", "", "404"): 1,
            ("WATCH", "", "namespace", "", "200"): 1,
        }
        durations = families["apiserver_request_duration_seconds"]
        assert durations.type == "histogram"
        assert sum(one.value for one in durations.samples if one.name.endswith("_count")) >= 5
        assert "invented" not in text
        assert sum(one.value for one in families["apiserver_longrunning_requests"].samples) == 0

    gateway_cluster.run(main)


def test_metrics_are_not_for_everybody() -> None:
    settings = Settings(authenticator=Authenticator({"v": authenticated("viewer", [])}))

    async def main(cluster: Cluster) -> None:
        http = cluster.connection(2, headers={"authorization": "Bearer v"})
        assert (await http.get("/metrics")).status_code == 403
        assert (await cluster.http.get("/readyz")).status_code == 200

    gateway_cluster.run(main, settings=settings)


def test_a_mistake_in_the_gateway_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("a mistake")

    async def main(cluster: Cluster) -> None:
        monkeypatch.setattr("kemu.emulated.gateway.app._row", fail)
        answer = await cluster.http.get(PODS)
        assert (answer.status_code, answer.json()["reason"]) == (500, "InternalError")
        assert "a mistake" in answer.json()["message"]

    gateway_cluster.run(main)


def test_clients_are_told_of_deprecated_kinds() -> None:
    async def main(cluster: Cluster) -> None:
        answer = await cluster.http.get("/api/v1/namespaces/default/endpoints")
        wanted = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
        assert answer.headers["warning"] == wanted
        assert "warning" not in (await cluster.http.get(PODS)).headers

    gateway_cluster.run(main)


def test_discovery_in_protobuf() -> None:
    async def main(cluster: Cluster) -> None:
        accept = {"accept": "application/vnd.kubernetes.protobuf, */*"}
        answer = await cluster.http.get("/apis/events.k8s.io/v1", headers=accept)
        assert answer.headers["content-type"] == "application/vnd.kubernetes.protobuf"
        version, kind, data = envelopes.unpack(answer.content)
        assert (version, kind) == ("v1", "APIResourceList")
        fields = dict(envelopes.fields(data, 0))
        assert fields[1] == b"events.k8s.io/v1"
        assert fields[2].startswith(b"\x0a\x06events\x10\x01\x1a\x05Event\x22")

    gateway_cluster.run(main)


def test_the_old_prefix_of_watches() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.http.post(PODS, json=pod())
        await cluster.http.post(PODS, json=pod("b"))
        for path, names in (("namespaces/default/pods", ["a", "b"]), ("namespaces/default/pods/b", ["b"])):
            answer = await cluster.http.get(f"/api/v1/watch/{path}?timeoutSeconds=1&resourceVersion=1")
            assert [line.count('"name":"b"') > 0 for line in answer.text.splitlines()] == [one == "b" for one in names]

    gateway_cluster.run(main)


def test_a_mistake_in_the_api_server_ends_the_request_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("a mistake")

    async def main(cluster: Cluster) -> None:
        monkeypatch.setattr("kemu.emulated.apiserver.registry.entries.place", fail)
        answer = await cluster.http.post(PODS, json=pod())
        assert (answer.status_code, answer.json()["reason"]) == (500, "InternalError")
        monkeypatch.undo()
        assert (await cluster.http.post(PODS, json=pod())).status_code == 201
        refused = [data["message"] for _, kind, data in cluster.log if kind == "api.refused"]
        assert refused == ["This request caused apiserver to panic: ValueError('a mistake')"]

    gateway_cluster.run(main)

"""In which form answers come, and which bodies are taken."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from kemu.emulated.gateway.requests import envelopes, negotiation
from kemu.emulated.gateway.requests.negotiation import Form
from kemu.errors import NotAcceptable
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster, pod

PODS = "/api/v1/namespaces/default/pods"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIALS = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("application/json, */*", Form()),
        ("application/vnd.kubernetes.protobuf,application/json", Form(PROTOBUF)),
        ("application/json;q=0.5,application/yaml", Form("application/yaml")),
        ("text/html,application/yaml", Form("application/yaml")),
        # A Table in protobuf does not exist, and what is unknown is passed over.
        (f"{PROTOBUF};{TABLE},application/json;{TABLE}", Form("application/json", "Table")),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", Form("application/json", "Table")),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Form()),
        ("application/json;as=Chair;v=v1;g=meta.k8s.io,application/json", Form()),
        (f"{PROTOBUF};{PARTIALS},application/json", Form(PROTOBUF, "PartialObjectMetadataList")),
        ("application/json;stream=watch", Form()),
    ],
)  # fmt: skip
def test_the_first_form_that_can_be_served(accept: str, form: Form) -> None:
    assert negotiation.negotiate(accept) == form


def test_forms_that_nobody_serves() -> None:
    for accept in ("text/html", "application/cbor", "application/json;as=Table;v=v1;g=apps"):
        with pytest.raises(NotAcceptable):
            negotiation.negotiate(accept)


def fields(data: bytes) -> list[tuple[int, bytes]]:
    return list(envelopes.fields(data, 0))


def frames(data: bytes) -> list[tuple[str, str, bytes]]:
    """Type, kind and message of the events of a watch in protobuf."""
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        event = dict(fields(data[4 : 4 + size]))
        _, kind, message = envelopes.unpack(dict(fields(event[2]))[1])
        found.append((event[1].decode(), kind, message))
        data = data[4 + size :]
    return found


def test_lists_and_watches_in_protobuf() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        for name in ("a", "b"):
            await http.post(PODS, json=pod(name))
        accept = {"accept": f"{PROTOBUF}, */*"}
        listed = await http.get(f"{PODS}?limit=1", headers=accept)
        version, kind, data = envelopes.unpack(listed.content)
        assert (version, kind) == ("v1", "PodList")
        (_, head), (_, item) = fields(data)
        metadata = meta_v1_pb2.ListMeta.FromString(head)
        assert core_v1_pb2.Pod.FromString(item).metadata.name == "a"
        assert (bool(getattr(metadata, "continue")), metadata.remainingItemCount) == (True, 1)
        query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
        watched = await http.get(f"{PODS}?{query}&timeoutSeconds=1", headers=accept)
        assert watched.headers["content-type"] == f"{PROTOBUF};stream=watch"
        events = frames(watched.content)
        assert [(event, kind) for event, kind, _ in events[:3]] == [
            ("ADDED", "Pod"), ("ADDED", "Pod"), ("BOOKMARK", "Pod"),
        ]  # fmt: skip
        assert core_v1_pb2.Pod.FromString(events[2][2]).metadata.annotations["k8s.io/initial-events-end"] == "true"
        refused = await http.get(f"{PODS}/c", headers=accept)
        assert envelopes.unpack(refused.content)[1] == "Status"

    gateway_cluster.run(main)


def test_metadata_alone() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        await http.post(PODS, json=pod(metadata={"labels": {"app": "x"}}))
        answer = await http.get(f"{PODS}/a", headers={"accept": f"application/json;{PARTIAL}"})
        found = answer.json()
        assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
        assert (sorted(found), found["metadata"]["labels"]) == (["apiVersion", "kind", "metadata"], {"app": "x"})
        answer = await http.get(PODS, headers={"accept": f"{PROTOBUF};{PARTIALS}"})
        version, kind, data = envelopes.unpack(answer.content)
        assert (version, kind) == ("meta.k8s.io/v1", "PartialObjectMetadataList")
        item = core_v1_pb2.Pod.FromString(dict(fields(data))[2])
        assert (item.metadata.name, item.HasField("spec")) == ("a", False)
        watched = await http.get(f"{PODS}?watch=1&timeoutSeconds=1", headers={"accept": f"application/json;{PARTIAL}"})
        (event,) = (json.loads(line) for line in watched.text.splitlines())
        assert (event["object"]["kind"], "spec" in event["object"]) == ("PartialObjectMetadata", False)
        answer = await http.get(PODS, headers={"accept": f"application/json;{PARTIAL}"})
        assert answer.status_code == 406
        answer = await http.get(f"{PODS}/a", headers={"accept": f"application/json;{PARTIALS}"})
        assert answer.status_code == 406

    gateway_cluster.run(main)


def test_yaml_and_indented_json() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        body = yaml.safe_dump(pod()).encode()
        headers = {"content-type": "application/yaml", "accept": "application/yaml"}
        created = await http.post(PODS, content=body, headers=headers)
        assert (created.status_code, created.headers["content-type"]) == (201, "application/yaml")
        assert yaml.safe_load(created.text)["metadata"]["name"] == "a"
        assert (await http.get(f"{PODS}?watch=1", headers=headers)).status_code == 406
        for options in ({"params": {"pretty": "true"}}, {"headers": {"user-agent": "curl/8"}}):
            assert '\n  "kind": "Pod"' in (await http.get(f"{PODS}/a", **options)).text  # type: ignore[arg-type]
        plain = await http.get(f"{PODS}/a", params={"pretty": "false"}, headers={"user-agent": "curl/8"})
        assert plain.text.count("\n") == 1

    gateway_cluster.run(main)


def test_bodies_of_other_types_are_refused() -> None:
    async def main(cluster: Cluster) -> None:
        async def send(method: str, path: str, media: str, body: bytes = b"{}") -> tuple[int, Any]:
            answer = await cluster.http.request(method, path, content=body, headers={"content-type": media})
            return answer.status_code, answer.json().get("reason")

        assert await send("POST", PODS, "text/plain") == (415, "UnsupportedMediaType")
        assert await send("PATCH", f"{PODS}/a", "application/json") == (415, "UnsupportedMediaType")
        assert await send("DELETE", f"{PODS}/a", "text/plain", b"x") == (415, "UnsupportedMediaType")
        assert await send("POST", PODS, PROTOBUF, b"nonsense") == (400, "BadRequest")
        assert await send("POST", PODS, PROTOBUF, b"k8s\x00\xff\xff") == (400, "BadRequest")
        # Some clients say nothing: then it is JSON.
        body = json.dumps(pod()).encode()
        assert (await cluster.http.request("POST", PODS, content=body)).status_code == 201

    gateway_cluster.run(main)


def test_warnings_are_headers_that_clients_can_take() -> None:
    async def main(cluster: Cluster) -> None:
        async def warned(spec: dict[str, Any]) -> list[str]:
            answer = await cluster.http.post(PODS, params={"dryRun": "All"}, json=pod(**spec))
            assert answer.status_code == 201, answer.text
            return answer.headers.get_list("warning")

        assert await warned({"wrong": 1}) == ['299 - "unknown field \\"spec.wrong\\""']
        many = await warned({f"wrong{number}": 1 for number in range(1000)})
        assert 100 <= len(many) < 200
        long = await warned({"x" * 5000: 1, "y": 1})
        assert len(long) == 2
        assert len(long[0]) < 300

    gateway_cluster.run(main)


def test_a_list_is_the_same_in_every_form() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        table = "application/json;as=Table;g=meta.k8s.io;v=v1"
        for names in ([], ["a"], ["b"]):
            for name in names:
                await http.post(PODS, json=pod(name))
            for accept in ("application/json", f"application/json;{PARTIALS}", table):
                plain = (await http.get(PODS, headers={"accept": accept})).json()
                shown = plain.get("items", plain.get("rows"))
                assert len(shown) == {"": 0, "a": 1, "b": 2}[names[0] if names else ""]
                indented = await http.get(PODS, params={"pretty": "1"}, headers={"accept": accept})
                assert indented.text == json.dumps(indented.json(), indent=2, ensure_ascii=False) + "\n"
                in_yaml = await http.get(PODS, headers={"accept": accept.replace("json", "yaml", 1)})
                for other in (indented.json(), yaml.load(in_yaml.text, yaml.BaseLoader)):
                    assert sorted(other) == sorted(plain)
                    assert other["metadata"] == plain["metadata"]
                    assert len(other.get("items", other.get("rows"))) == len(shown)

    gateway_cluster.run(main)


def test_texts_in_protobuf_that_are_none() -> None:
    """Messages of proto2 take any bytes as a text, and give bytes back: nothing behind may see them."""

    def broken(message: Any) -> bytes:
        data: bytes = message.SerializeToString().replace(b"BROKEN", b"\xff\xfe\xfd\xff\xfe\xfd")
        return data

    found = core_v1_pb2.Pod()
    found.metadata.name = "a"
    found.metadata.labels["BROKEN"] = "x"
    listed = core_v1_pb2.Pod()
    listed.metadata.name = "a"
    listed.spec.containers.add(name="c", image="BROKEN")
    binding = core_v1_pb2.Binding()
    binding.metadata.name = binding.target.name = "BROKEN"
    options = meta_v1_pb2.DeleteOptions()
    options.preconditions.uid = "BROKEN"

    async def main(cluster: Cluster) -> None:
        http = cluster.http
        await http.post(PODS, json=pod())
        for method, path, kind, message in (
            ("POST", PODS, "Pod", found),
            ("PUT", f"{PODS}/a", "Pod", listed),
            ("POST", f"{PODS}/a/binding", "Binding", binding),
            ("DELETE", f"{PODS}/a", "DeleteOptions", options),
        ):
            body = envelopes.pack("v1", kind, broken(message))
            answer = await http.request(method, path, content=body, headers={"content-type": PROTOBUF})
            assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest"), (path, answer.text)
        assert (await http.get(f"{PODS}/a")).status_code == 200

    gateway_cluster.run(main)


def test_large_answers_are_compressed_for_who_takes_it() -> None:
    found: dict[str, tuple[str, bytes]] = {}

    async def main(cluster: Cluster) -> None:
        path = "/api/v1/namespaces/default/configmaps"
        for name, size in (("small", 100_000), ("large", 200_000)):
            body = {"metadata": {"name": name}, "data": {"text": "x" * size}}
            assert (await cluster.http.post(path, json=body)).status_code == 201
            for accepted in ("gzip", "identity", "br;q=1.0, gzip", "gzip;q=0.5"):
                answer = await cluster.http.get(f"{path}/{name}", headers={"Accept-Encoding": accepted})
                assert answer.json()["data"] == {"text": "x" * size}
                found[f"{name} {accepted}"] = answer.headers.get("content-encoding", ""), answer.content
                assert ("vary" in answer.headers) == ("content-encoding" in answer.headers)

    gateway_cluster.run(main)
    assert {name: encoding for name, (encoding, _) in found.items()} == {
        "small gzip": "",
        "small identity": "",
        "small br;q=1.0, gzip": "",
        "small gzip;q=0.5": "",
        "large gzip": "gzip",
        "large identity": "",
        "large br;q=1.0, gzip": "gzip",
        "large gzip;q=0.5": "",
    }

"""What a real kube-apiserver answers under webhooks and policies, kemu's answers, too.

:mod:`tests.admission.recorder` has asked it.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.admission import cases, recorder, webhook_server
from tests.admission.webhook_server import Server
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

REAL: dict[str, Any] = json.loads(gzip.decompress((Path(__file__).parent / "real.json.gz").read_bytes()))
ALL = [*cases.WEBHOOKS, *cases.POLICIES, *cases.UNSTORED]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with webhook_server.serving() as found:
        yield found


@pytest.mark.parametrize("number", range(len(ALL)), ids=lambda number: f"{number} {ALL[number]['name']}")
def test_kemu_answers_as_kube_apiserver(server: Server, number: int) -> None:
    one = ALL[number]
    namespace = cases.named(number)
    where = recorder.places(server, namespace)

    async def main(cluster: Cluster) -> None:
        http = cluster.http
        labels = {"kubernetes.io/metadata.name": namespace}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
        assert (await http.post("/api/v1/namespaces", json=body)).status_code == 201
        for obj in one["setup"]:
            obj = cases.confined(cases.filled(obj, where), namespace)
            made = await http.post(cases.collection(obj, namespace), json=obj)
            assert made.status_code == 201, made.text
        await asyncio.sleep(0.02)
        answers = []
        for asked in one["requests"]:
            asked = cases.filled(asked, where)
            content = json.dumps(asked["body"]) if "body" in asked else None
            headers = {"content-type": asked.get("type", "application/json")}
            got = await http.request(
                asked["method"], asked["path"], params=asked.get("query"), content=content, headers=headers
            )
            answers.append(cases.seen(got.status_code, got.json(), recorder.told(got), where))
        assert answers == REAL[f"{number} {one['name']}"]

    gateway_cluster.run(main)

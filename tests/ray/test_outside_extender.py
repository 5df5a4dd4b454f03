"""An extender that is no actor: a gRPC server of somebody else's, which schedulers on Ray reach as
``grpc://host:port``."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.v1 import extender_pb2, extender_pb2_grpc

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("local_ray")]

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  duration: 10m
  nodes: [{namePrefix: node-, count: 3}]
  schedulers:
    - name: default-scheduler
      config:
        extenders: [{urlPrefix: "grpc://ADDRESS", filterVerb: filter, nodeCacheCapable: true, httpTimeout: 20s}]
  workloads:
    - {name: job, start: 2s, arrivals: {count: 3}, pods: {spec: {containers: [{name: main}]}}}
  until: {pods: {workload: job}, all: {bound: {}}}
  expect:
    - {pods: {workload: job}, all: {bound: {node: node-2}}}
"""


class OnlyTheSecond(extender_pb2_grpc.ExtenderServicer):
    def Filter(self, request: Any, context: Any) -> Any:
        result = extender_pb2.ExtenderFilterResult()
        result.node_names.SetInParent()
        for name in request.node_names.names:
            if name == "node-2":
                result.node_names.names.append(name)
            else:
                result.failed_nodes[name] = "not the second"
        return result


@pytest.fixture
def address() -> Iterator[str]:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    extender_pb2_grpc.add_ExtenderServicer_to_server(OnlyTheSecond(), server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)


def test_its_answers_count(address: str, tmp_path: Path) -> None:
    scenario = loader.loads(SCENARIO.replace("ADDRESS", address))
    result = runner.run(scenario, runner.Options(out=tmp_path, runtime="ray", speed=5))
    assert result.verdict["verdict"] == "holds", result.verdict["expectations"]

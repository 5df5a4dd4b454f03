"""The output of a probe that failed or timed out, as it stands in the event Unhealthy.

The handler never decides about the answer (:mod:`kemu.emulated.kubelet.probes.answers` does), only about its text. The
texts are those of ``pkg/probe/exec``, ``http``, ``tcp`` and ``grpc``, for an application that answers 503, exits with
1, does not listen, or says NOT_SERVING.
"""

from __future__ import annotations

from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2


def output(probe: core_v1_pb2.Probe, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container, *, timed_out: bool) -> str:
    """``probe``, ``container``: of the spec of ``pod``."""
    handler = probe.handler
    host = pod.status.podIP or pod.metadata.name
    timeout = f"{probe.timeoutSeconds or 1}s"
    if handler.HasField("httpGet"):
        if not timed_out:
            return "HTTP probe failed with statuscode: 503"
        get = handler.httpGet
        path = get.path or "/"
        address = f"{(get.scheme or 'HTTP').lower()}://{get.host or host}:{_port(get.port, container)}{path}"
        return f'Get "{address}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    if handler.HasField("tcpSocket"):
        socket = handler.tcpSocket
        address = f"{socket.host or host}:{_port(socket.port, container)}"
        return f"dial tcp {address}: {'i/o timeout' if timed_out else 'connect: connection refused'}"
    if handler.HasField("grpc"):
        if timed_out:
            return f"timeout: health rpc did not complete within {timeout}"
        return 'service unhealthy (responded with "NOT_SERVING")'
    if timed_out:
        command = " ".join(handler.exec.command)
        return f'command timed out: "{command}" timed out after {timeout}'
    return ""


def _port(port: meta_v1_pb2.IntOrString, container: core_v1_pb2.Container) -> int:
    """A number, or the port of the container of that name."""
    if port.strVal:
        return next((int(one.containerPort) for one in container.ports if one.name == port.strVal), 0)
    return int(port.intVal)

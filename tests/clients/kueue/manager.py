"""Kueue's manager beside a cluster: as `config/default` of its module installs it, but as a process of this machine.

It is the service account of its Deployment, with the rights that Kueue's roles give it, and makes its certificates
itself. What a kubelet would do stays to be done here: the process is started, and its Secret written to its folder.
Left out are the Deployment, and the API services of pending workloads, behind which nothing would listen.
"""

from __future__ import annotations

import base64
import contextlib
import json
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.real import components
from tests.clients.emulated import eventually
from tests.clients.kueue import programs
from tests.realkube import clusters, processes

NAMESPACE, SERVICE, SECRET = "kueue-system", "kueue-webhook-service", "kueue-webhook-server-cert"
ACCOUNT = "kueue-controller-manager"
START_S = 120.0
_LEFT_OUT = ("APIService", "Deployment")
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def install(cluster: clusters.Components, port: int, *, service_is_local: bool, qps: int = 50) -> processes.Process:
    """Install Kueue and start its manager, whose webhooks listen on ``port`` of loopback; it works when this returns.

    ``service_is_local``: the Service of the webhooks names this machine itself, for an API server that knows no other
    way here. ``qps``: limit of the manager's client; 50 is Kueue's own.
    """
    documents = [one for one in yaml.safe_load_all(programs.manifests().read_text()) if one["kind"] not in _LEFT_OUT]
    if service_is_local:
        _point_to_loopback(documents, port)
    folder = cluster.folder
    (folder / "kueue.yaml").write_text(yaml.safe_dump_all(documents))
    kinds = [one["metadata"]["name"] for one in documents if one["kind"] == "CustomResourceDefinition"]
    cluster.kubectl("apply", "--server-side", "-f", str(folder / "kueue.yaml"), timeout_s=START_S)
    cluster.kubectl("wait", "--for=condition=Established", *(f"crd/{name}" for name in kinds), "--timeout=60s")
    health = components.free_ports(1)[0]
    process = _start(cluster, documents, port, qps, health)
    _hand_over_certificates(cluster, process)
    eventually("Kueue is ready", lambda: _is_ready(process, health), START_S)
    return process


def _start(cluster: clusters.Components, documents: list[Any], port: int, qps: int, health: int) -> processes.Process:
    folder = cluster.folder
    config = yaml.safe_load(
        next(one["data"]["controller_manager_config.yaml"] for one in documents if one["kind"] == "ConfigMap")
    )
    metrics = components.free_ports(1)[0]
    config["health"] = {"healthProbeBindAddress": f"127.0.0.1:{health}"}
    config["metrics"] = {"bindAddress": f"127.0.0.1:{metrics}"}
    config["webhook"] = {"host": "127.0.0.1", "port": port, "certDir": str(folder / "certificates-of-kueue")}
    config["leaderElection"]["resourceNamespace"] = NAMESPACE
    config["clientConnection"] = {"qps": qps, "burst": 2 * qps}
    file = folder / "kueue-config.yaml"
    file.write_text(yaml.safe_dump(config))
    command = [programs.manager(), f"--config={file}", f"--kubeconfig={_kubeconfig(cluster)}", "--zap-log-level=2"]
    process = processes.Process("kueue", [*command, "--feature-gates=VisibilityOnDemand=false"], folder)
    cluster.processes.append(process)
    return process


def _kubeconfig(cluster: clusters.Components) -> Path:
    """With a token of the manager's account."""
    token = cluster.kubectl("create", "token", ACCOUNT, f"--namespace={NAMESPACE}", "--duration=3h").strip()
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    for user in document["users"]:
        user["user"] = {"token": token}
    file = cluster.folder / "kueue.kubeconfig"
    file.write_text(yaml.safe_dump(document))
    return file


def _hand_over_certificates(cluster: clusters.Components, process: processes.Process) -> None:
    """As kubelets write a Secret that a pod mounts."""
    folder = cluster.folder / "certificates-of-kueue"
    folder.mkdir(exist_ok=True)

    def data() -> dict[str, str]:
        process.check()
        got = cluster.kubectl("get", "secret", SECRET, f"--namespace={NAMESPACE}", "-o", "json")
        return dict(json.loads(got).get("data") or {})

    for name, text in eventually("Kueue makes its certificates", data, START_S).items():
        passing = folder / f".{name}"
        passing.write_bytes(base64.b64decode(text))
        passing.rename(folder / name)


def _is_ready(process: processes.Process, port: int) -> bool:
    process.check()
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
        return bool(answer.status == 200)
    return False


def _point_to_loopback(documents: list[Any], port: int) -> None:
    """An external name is where an API server asks, with the port that a webhook names."""
    for one in documents:
        if one["kind"] == "Service" and one["metadata"]["name"] == SERVICE:
            one["spec"] = {"type": "ExternalName", "externalName": "localhost"}
        elif one["kind"] in _WEBHOOKS:
            for webhook in one["webhooks"]:
                webhook["clientConfig"]["service"]["port"] = port
        elif one["kind"] == "CustomResourceDefinition" and "conversion" in one["spec"]:
            one["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] = port

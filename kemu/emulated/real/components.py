"""Command lines and configurations of etcd, kube-apiserver, kube-scheduler and kube-controller-manager.

What a scenario does not state is as Kubernetes has it by default. Everything listens on loopback.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import ssl
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kemu.emulated.apiserver.settings import ApiServers
from kemu.emulated.real import executables
from kemu.runtime.real.programs import Program

LOOPBACK = "127.0.0.1"
CONTROLLERS = {
    "node-lifecycle": "node-lifecycle-controller",
    "taint-eviction": "taint-eviction-controller",
    "pod-gc": "pod-garbage-collector-controller",
    "daemonset": "daemonset-controller",
    "statefulset": "statefulset-controller",
    "replicaset": "replicaset-controller",
    "replicationcontroller": "replicationcontroller-controller",
    "deployment": "deployment-controller",
    "job": "job-controller",
    "cronjob": "cronjob-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
    "garbage-collector": "garbage-collector-controller",
    "namespace": "namespace-controller",
    "resourcequota": "resourcequota-controller",
    "disruption": "disruption-controller",
    "horizontal-pod-autoscaler": "horizontal-pod-autoscaler-controller",
    "endpoints": "endpoints-controller",
    "endpointslice": "endpointslice-controller",
    "endpointslice-mirroring": "endpointslice-mirroring-controller",
    "resourceclaim": "resourceclaim-controller",
    "device-taint-eviction": "device-taint-eviction-controller",
}
"""By their names in a scenario, as kube-controller-manager calls them."""
COMPANIONS = {"taint-eviction": "daemonset"}
"""A second controller in the process of the first, without which that does nothing: taint-eviction looks pods up in an
index that only node-lifecycle and daemonset add (``AddPodNodeNameIndexer``, v1.36.3), and a daemonset controller has no
work in a cluster without DaemonSets."""
FLAGS = {
    "node_monitor_period_ns": "node-monitor-period",
    "node_monitor_grace_period_ns": "node-monitor-grace-period",
    "node_startup_grace_period_ns": "node-startup-grace-period",
    "node_eviction_rate": "node-eviction-rate",
    "secondary_node_eviction_rate": "secondary-node-eviction-rate",
    "large_cluster_size_threshold": "large-cluster-size-threshold",
    "unhealthy_zone_threshold": "unhealthy-zone-threshold",
    "terminated_pod_threshold": "terminated-pod-gc-threshold",
    "sync_period_ns": "horizontal-pod-autoscaler-sync-period",
    "downscale_stabilization_ns": "horizontal-pod-autoscaler-downscale-stabilization",
    "tolerance": "horizontal-pod-autoscaler-tolerance",
    "cpu_initialization_period_ns": "horizontal-pod-autoscaler-cpu-initialization-period",
    "initial_readiness_delay_ns": "horizontal-pod-autoscaler-initial-readiness-delay",
    "max_endpoints_per_slice": "max-endpoints-per-slice",
    "endpoint_updates_batch_period_ns": "endpoint-updates-batch-period",
    "endpointslice_updates_batch_period_ns": "endpointslice-updates-batch-period",
    "mirroring_max_endpoints_per_subset": "mirroring-max-endpoints-per-subset",
    "mirroring_endpointslice_updates_batch_period_ns": "mirroring-endpointslice-updates-batch-period",
}
"""kube-controller-manager's flag of each setting of a controller."""
GATES = {"max_unavailable_stateful_set": "MaxUnavailableStatefulSet", "workload_with_job": "WorkloadWithJob"}
"""The feature gates that controllers have as settings."""
GROUPS_API = "scheduling.k8s.io/v1alpha2"
"""What is served for groups of pods, with the gate GenericWorkload."""
WITHOUT_ADMISSION = ("ServiceAccount", "StorageObjectInUseProtection", "TaintNodesByCondition")
"""Plugins that need controllers which a scenario does not have: of service account tokens, of volumes, and of nodes,
which kemu's kubelets register as ready."""
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "omitManagedFields": True,
    "rules": [
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "None", "users": ["system:apiserver"]},
        {
            "level": "None",
            "resources": [
                {"group": "", "resources": ["events"]},
                {"group": "events.k8s.io", "resources": ["events"]},
                {"group": "coordination.k8s.io", "resources": ["leases"]},
                {"group": "authorization.k8s.io"},
            ],
        },
        # What is created has a name only in the answer; a binding says to which node.
        {"level": "RequestResponse", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods"]}]},
        {"level": "Request", "resources": [{"group": "", "resources": ["pods/binding"]}]},
        {"level": "Metadata"},
    ],
}


def free_ports(count: int) -> list[int]:
    """Ports of loopback that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind((LOOPBACK, 0))
        return [int(one.getsockname()[1]) for one in held]


def authority_of(folder: Path, server: str) -> Path:
    """The certificate that an API server has made for itself."""
    return folder / f"{server}-certificates" / "apiserver.crt"


def audit_of(folder: Path, server: str) -> Path:
    """Its audit log."""
    return folder / f"{server}.audit"


def _serving(folder: Path, name: str, port: int) -> tuple[str, ...]:
    certificates = folder / f"{name}-certificates"
    return f"--bind-address={LOOPBACK}", f"--secure-port={port}", f"--cert-dir={certificates}"


def etcd(folder: Path, port: int, peers: int, fsync: bool) -> Program:
    """``fsync``: False: it does not wait for its disk (``store.fsync: none``)."""
    url, peer_url = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{peers}"
    return Program(
        executables.find("etcd")["etcd"],
        [
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--log-level=warn",
            *(() if fsync else ("--unsafe-no-fsync",)),
        ],
        folder / "etcd.log",
        is_ready=lambda: _answers(f"{url}/health"),
    )


def apiserver(
    folder: Path,
    name: str,
    port: int,
    etcd_url: str,
    tokens: Path,
    settings: ApiServers,
    token: str,
    *,
    audits: bool = True,
    gates: Sequence[str] = (),
) -> Program:
    """``token``: one of ``tokens``, to ask whether it is ready. ``audits``: it writes an audit log, ``NAME.audit``.
    ``gates``: feature gates of groups of pods that are on."""
    key = folder / "service-accounts.key"
    policy = folder / "audit-policy.json"
    if not key.exists():
        _write_key(key)
        policy.write_text(json.dumps(_AUDIT_POLICY))
    authority = authority_of(folder, name)

    async def is_ready() -> bool:
        return authority.exists() and await _answers(f"https://{LOOPBACK}:{port}/readyz", authority, token)

    reading, mutating = settings.max_requests_in_flight, settings.max_mutating_requests_in_flight
    enabled, disabled = settings.enable_admission_plugins, [*settings.disable_admission_plugins, *WITHOUT_ADMISSION]
    return Program(
        executables.find("kube-apiserver")["kube-apiserver"],
        [
            f"--etcd-servers={etcd_url}",
            *_serving(folder, name, port),
            f"--advertise-address={LOOPBACK}",
            f"--token-auth-file={tokens}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--authorization-mode={','.join(settings.authorization)}",
            "--endpoint-reconciler-type=none",
            f"--disable-admission-plugins={','.join(dict.fromkeys(disabled))}",
            *((f"--enable-admission-plugins={','.join(enabled)}",) if enabled else ()),
            *((f"--max-requests-inflight={reading}",) if reading is not None else ()),
            *((f"--max-mutating-requests-inflight={mutating}",) if mutating is not None else ()),
            f"--event-ttl={settings.event_ttl_ns}ns",
            *((f"--feature-gates={_on(gates)}", f"--runtime-config={GROUPS_API}=true") if gates else ()),
            *(
                (f"--audit-policy-file={policy}", f"--audit-log-path={audit_of(folder, name)}", "--audit-log-maxsize=0")
                if audits
                else ()
            ),
            "--shutdown-delay-duration=0s",
        ],
        folder / f"{name}.log",
        is_ready=is_ready,
        stop_s=1.0,  # it would wait for its watches
    )


def scheduler(
    folder: Path,
    name: str,
    kubeconfig: Path,
    port: int,
    config: Mapping[str, Any],
    hear: Callable[[str], object],
) -> Program:
    """``config``: a KubeSchedulerConfiguration, as far as the scenario states one; without an election unless it asks
    for it."""
    path = folder / f"{name}.json"
    stated = {key: value for key, value in config.items() if key != "featureGates"}
    gates = [f"{gate}={str(is_on).lower()}" for gate, is_on in config.get("featureGates", {}).items()]
    path.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                **stated,
                "leaderElection": {"leaderElect": False, **config.get("leaderElection", {})},
                "clientConnection": {**config.get("clientConnection", {}), "kubeconfig": str(kubeconfig)},
                **({"profiles": with_kinds(config["profiles"])} if "profiles" in config else {}),
            }
        )
    )
    return Program(
        executables.find("kube-scheduler")["kube-scheduler"],
        [
            f"--config={path}",
            *_serving(folder, name, port),
            "--authentication-skip-lookup=true",
            "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
            *((f"--feature-gates={','.join(gates)}",) if gates else ()),
            "--v=2",
            "--vmodule=schedule_one=3,default_binder=3,default_preemption=3,preemption=3,executor=3",
        ],
        folder / f"{name}.log",
        hear=hear,
        is_ready=lambda: _answers(f"https://{LOOPBACK}:{port}/readyz"),
    )


def with_kinds(profiles: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As a kube-scheduler wants them: arguments say what they are."""
    version = "kubescheduler.config.k8s.io/v1"
    return [
        profile
        if "pluginConfig" not in profile
        else {
            **profile,
            "pluginConfig": [
                {"name": one["name"], "args": {"apiVersion": version, "kind": f"{one['name']}Args", **one["args"]}}
                for one in profile["pluginConfig"]
            ],
        }
        for profile in map(dict, profiles)
    ]


def controller_manager(
    folder: Path, name: str, kubeconfig: Path, port: int, controller: str, config: Mapping[str, Any]
) -> Program:
    """One controller in a process of its own, as an actor is one. ``config``: that of the actor."""
    stated = dict(config.get("settings", {}))
    gates = [f"{GATES[key]}={str(value).lower()}" for key, value in stated.pop("feature_gates", {}).items()]
    gates += ["GenericWorkload=true"] if "WorkloadWithJob=true" in gates else []
    flags = [f"--{FLAGS[key]}={_flag(key, value)}" for key, value in stated.items()]
    flags += [f"--feature-gates={','.join(gates)}"] if gates else []
    connection = config.get("connection", {})
    flags += [f"--kube-api-{key}={value:g}" for key, value in connection.items() if value]
    election = config.get("election")
    if election is not None:
        flags += [
            f"--leader-elect-resource-name={election['name']}",
            f"--leader-elect-resource-namespace={election['namespace']}",
            f"--leader-elect-lease-duration={election['lease_duration_s']:g}s",
            f"--leader-elect-renew-deadline={election['renew_deadline_s']:g}s",
            f"--leader-elect-retry-period={election['retry_period_s']:g}s",
        ]
    return Program(
        executables.find("kube-controller-manager")["kube-controller-manager"],
        [
            f"--kubeconfig={kubeconfig}",
            *_serving(folder, name, port),
            "--authentication-skip-lookup=true",
            f"--controllers={','.join(CONTROLLERS[one] for one in (controller, COMPANIONS.get(controller)) if one)}",
            f"--leader-elect={'true' if election is not None else 'false'}",
            "--use-service-account-credentials=false",
            "--v=2",
            *flags,
        ],
        folder / f"{name}.log",
        is_ready=lambda: _answers(f"https://{LOOPBACK}:{port}/healthz"),
    )


def _on(gates: Sequence[str]) -> str:
    return ",".join(f"{gate}=true" for gate in gates)


def _flag(key: str, value: float) -> str:
    return f"{value}ns" if key.endswith("_ns") else f"{value:g}"


def kubeconfig(path: Path, server: str, authority: Path, token: str) -> Path:
    """Write one, for a user with a token."""
    path.touch(mode=0o600)
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "kemu", "cluster": {"server": server, "certificate-authority": str(authority)}}],
                "users": [{"name": "kemu", "user": {"token": token}}],
                "contexts": [{"name": "kemu", "context": {"cluster": "kemu", "user": "kemu"}}],
                "current-context": "kemu",
            }
        )
    )
    return path


async def metrics(port: int) -> str | None:
    """What a component says at ``/metrics``; None: it does not answer."""
    return await asyncio.to_thread(_ask, f"https://{LOOPBACK}:{port}/metrics", None, "")


async def _answers(url: str, authority: Path | None = None, token: str = "") -> bool:
    return await asyncio.to_thread(_ask, url, authority, token) is not None


def _ask(url: str, authority: Path | None, token: str) -> str | None:
    """The answer, if it is a good one."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    context = None
    if url.startswith("https"):
        context = ssl.create_default_context(cafile=None if authority is None else str(authority))
        if authority is None:
            # A certificate that the component has made itself, on loopback, and nothing secret is said.
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, context=context, timeout=5) as answer:
            return answer.read().decode() if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None


def _write_key(path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))

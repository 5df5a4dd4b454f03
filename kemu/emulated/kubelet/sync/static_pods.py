"""Pods that a kubelet runs from manifests of its own, and the mirror pods by which the API server sees them.

A static pod lives and dies with its manifest: it is admitted when the clock starts, as critical (see
:mod:`kemu.emulated.kubelet.pods.critical`), and what happens to the API server or to its mirror does not touch it. The
mirror is created when there is a status to tell, and anew when it is deleted. A kubelet that starts again finds
by the mirrors which of its static pods run already. :mod:`kemu.emulated.kubelet.sync.pod_workers` runs them like
others,
:mod:`kemu.emulated.kubelet.sync.status_managers` writes their status to the mirror.

Mirrors ``applyDefaults`` of ``pkg/kubelet/config`` and ``MirrorClient`` of ``pkg/kubelet/pod``.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence

from kemu import errors
from kemu.emulated.client import clients, retries
from kemu.emulated.kubelet.pods import critical, mirrors
from kemu.emulated.kubelet.sync import pod_workers
from kemu.emulated.objects import meta, times
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.validation import small_groups
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env

HASH_ANNOTATION = "kubernetes.io/config.hash"
SEEN_ANNOTATION = "kubernetes.io/config.seen"
SOURCE = "file"


def read(manifest: bytes, node_name: str, seen_unix_s: int) -> core_v1_pb2.Pod:
    """The static pod of a manifest (a serialised Pod) on a node. Its UID is the hash of both."""
    digest = hashlib.md5(manifest, usedforsecurity=False)
    digest.update(f"host:{node_name}".encode())
    pod = core_v1_pb2.Pod.FromString(manifest)
    metadata, spec = pod.metadata, pod.spec
    metadata.uid = metadata.uid or digest.hexdigest()
    metadata.name = f"{metadata.name}-{node_name.lower()}"
    metadata.namespace = metadata.namespace or "default"
    for name, value in (
        (HASH_ANNOTATION, metadata.uid),
        (SEEN_ANNOTATION, times.format_time(seen_unix_s)),
        (critical.STATIC_ANNOTATION, SOURCE),
    ):
        metadata.annotations[name] = value
    spec.nodeName = node_name
    if not any(one.operator == "Exists" and one.effect == "NoExecute" and not one.key for one in spec.tolerations):
        spec.tolerations.add(operator="Exists", effect="NoExecute")
    defaults.apply(pod)
    # The API server resolves the class of the mirror; the kubelet itself knows the classes that every cluster has.
    priority = small_groups.SYSTEM_PRIORITY_CLASSES.get(spec.priorityClassName)
    if priority is not None and not spec.HasField("priority"):
        spec.priority = priority
    return pod


class StaticPods:
    """The static pods of one node. It observes mirror pods; all others go to the ``PodWorkers``."""

    def __init__(
        self, env: Env, client: clients.Client, manifests: Sequence[bytes], host: pod_workers.PodWorkers
    ) -> None:
        self._env = env
        self._client = client
        self._manifests = manifests
        self._host = host
        self._static: dict[str, core_v1_pb2.Pod] = {}
        self._mirrors: dict[str, mirrors.Mirror] = {}
        """Both by ``namespace/name``."""

    def read(self, node: core_v1_pb2.Node) -> None:
        """The manifests, of the node as it is registered."""
        now_s = self._env.clock.unix_ns() // SECOND_NS
        for manifest in self._manifests:
            static = read(manifest, node.metadata.name, now_s)
            key = meta.namespaced_name(static)
            self._static[key] = static
            self._mirrors[key] = mirrors.Mirror(self._env, self._client, static, node)

    def start(self) -> None:
        """Those that do not run yet arrive now."""
        now_ns = self._env.clock.now_ns()
        for key, static in self._static.items():
            if static.metadata.uid not in self._host.by_uid:
                self._host.observe(static, now_ns, self._mirrors[key])

    def observe(self, pod: core_v1_pb2.Pod) -> None:
        """The newest state of a mirror pod."""
        mirror = self._mirrors.get(meta.namespaced_name(pod))
        if mirror is None or not mirror.is_of(pod) or pod.metadata.HasField("deletionTimestamp"):
            # No other component removes it for good. If its static pod is there, a new mirror follows.
            self._env.spawn(self._remove(pod), f"remove mirror pod {pod.metadata.name}")
            return
        is_first = mirror.object is None
        mirror.see(pod)
        static = self._static[meta.namespaced_name(pod)]
        # Like any pod that an earlier kubelet admitted, whether all of its containers had started or not.
        was_admitted = not pod_phases.is_terminal(pod) and pod.status.HasField("startTime")
        if is_first and static.metadata.uid not in self._host.by_uid and was_admitted:
            running = meta.copied(static)
            running.status.CopyFrom(pod.status)
            self._host.observe(running, self._env.clock.now_ns(), mirror)
        worker = self._host.by_uid.get(static.metadata.uid)
        if worker is not None:
            self._host.compare(worker, pod)

    def forget(self, pod: core_v1_pb2.Pod) -> None:
        """A mirror pod is gone."""
        key = meta.namespaced_name(pod)
        mirror = self._mirrors.get(key)
        if mirror is None or mirror.object is None or mirror.object.metadata.uid != pod.metadata.uid:
            return
        mirror.object = None
        worker = self._host.by_uid.get(self._static[key].metadata.uid)
        if worker is not None:
            self._host.report(worker)

    async def _remove(self, pod: core_v1_pb2.Pod) -> None:
        metadata = pod.metadata
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await retries.patiently(
                self._env,
                lambda: self._client.delete(
                    "pods", metadata.name, metadata.namespace, grace_period_seconds=0, uid=metadata.uid
                ),
            )

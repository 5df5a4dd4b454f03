"""Draining nodes, as ``kubectl drain`` does: cordon them, choose their pods, evict these, wait until they are gone.

``k8s.io/kubectl/pkg/drain`` and ``pkg/cmd/drain``: the filters with their texts, an eviction for each pod at the same
time, another attempt every 5 s while a disruption budget refuses it, and a look every second whether the pod is gone.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kemu import errors
from kemu.emulated.client import clients
from kemu.emulated.objects import meta, selectors
from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.settings.declared import Complaint, setting
from kemu.emulated.settings.shapes import DURATION, NAME, Switch, Text, Whole
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, Env

RETRY_S = 5.0
"""``EvictErrorRetryDelay``."""
POLL_S = 1.0
CHUNK = 500
"""Pods of one list (``cmdutil.DefaultChunkSize``)."""

DAEMON_SET_FATAL = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
LOCAL_STORAGE_FATAL = "Pods with local storage (use --delete-emptydir-data to override)"
UNMANAGED_FATAL = "Pods that declare no controller (use --force to override)"
DAEMON_SET_WARNING = "ignoring DaemonSet-managed Pods"
LOCAL_STORAGE_WARNING = "deleting Pods with local storage"
UNMANAGED_WARNING = "deleting Pods that declare no controller"


@dataclass(frozen=True)
class Options:
    """The flags of ``kubectl drain``."""

    node: str | None = setting(NAME, "A node.", choice=True)
    selector: str | None = setting(
        Text(), "A label selector of nodes: all are cordoned, then drained in the order of their names.", choice=True
    )
    at_once: int = setting(
        Whole(1), "Of several nodes, how many are drained at a time; {default} by default, as kubectl.", 1,
    )  # fmt: skip
    ignore_daemon_sets: bool = setting(Switch(), "Leave the pods of DaemonSets; without it they are an error.", False)
    delete_empty_dir_data: bool = setting(Switch(), "Pods with emptyDir volumes may go; without it, an error.", False)
    force: bool = setting(Switch(), "Pods without a controller may go; without it they are an error.", False)
    grace_period_seconds: int | None = setting(Whole(0), "Instead of the pod's own grace period, in seconds.")
    timeout_ns: int = setting(DURATION, "Give up after this time; by default never.", 0)
    pod_selector: str = setting(Text(".*"), "A label selector: only these pods.", "")
    disable_eviction: bool = setting(Switch(), "Delete the pods: disruption budgets are not asked.", False)
    skip_wait_for_delete_timeout_ns: int = setting(
        DURATION, "Do not wait for pods that have been terminating for longer.", 0
    )

    def complaints(self) -> Iterator[Complaint]:
        for key, selector in (("selector", self.selector), ("podSelector", self.pod_selector)):
            try:
                selectors.parse_labels(selector or "")
            except ValueError as error:
                yield Complaint((key,), str(error))
        if self.at_once > 1 and self.node is not None:
            yield Complaint(("atOnce",), "is of the nodes that a selector selects", key=True)


class Refused(errors.KemuError):
    """The drain has failed: everything that went wrong."""


class Teller(Protocol):
    """Told of what the drain of a node does: a step, and which pod it is about (``namespace/name``, or "") and why."""

    def __call__(self, node: str, step: str, pod: str = "", why: str = "") -> None: ...


Insist = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Carries out a request, again and again while no API server answers it."""


async def drain(env: Env, client: clients.Client, options: Options, insist: Insist, tell: Teller) -> None:
    """Until all pods that have to go are gone. Of each node it is told at last that it is ``drained``, or ``refused``
    and why, which does not keep the others. Raises the ApiError of a list of nodes."""
    names = [options.node] if options.node is not None else await _selected(client, options.selector or "", insist)
    found = [_Drain(env, client, options, name, insist, functools.partial(tell, name)) for name in names]
    waiting = iter([one for one in found if await one.cordon()])

    async def work() -> None:
        for one in waiting:
            await one.run()

    for task in [env.spawn(work(), "drain") for _ in range(min(options.at_once, len(found)))]:
        await task


async def _selected(client: clients.Client, selector: str, insist: Insist) -> list[str]:
    listed = await insist(lambda: client.list("nodes", label_selector=selector))
    return sorted(node.metadata.name for node in listed.items)


class _Drain:
    """One node's."""

    def __init__(
        self, env: Env, client: clients.Client, options: Options, node: str, insist: Insist, tell: Callable[..., None]
    ) -> None:
        self._env = env
        self._client = client
        self._options = options
        self._node = node
        self._insist = insist
        self._tell = tell

    async def cordon(self) -> bool:
        """Whether that went well."""
        return await self._told(self._cordon)

    async def run(self) -> None:
        if await self._told(self._empty):
            self._tell("drained")

    async def _told(self, what: Callable[[], Awaitable[None]]) -> bool:
        try:
            await what()
        except (Refused, errors.ApiError) as error:
            self._tell("refused", "", str(error))
            return False
        return True

    async def _empty(self) -> None:
        pods = await self._chosen()
        timeout_ns = self._options.timeout_ns
        deadline_ns = self._env.clock.now_ns() + timeout_ns if timeout_ns else None
        if self._options.disable_eviction:
            await self._delete_all(pods, deadline_ns)
            return
        tasks = [self._env.spawn(self._evict(pod, deadline_ns), f"eviction of {pod.metadata.name}") for pod in pods]
        problems = [problem for problem in [await task for task in tasks] if problem]
        if problems:
            raise Refused(_aggregate(problems))

    async def _cordon(self) -> None:
        name = self._node
        node = await self._insist(lambda: self._client.get("nodes", name))
        if node.spec.unschedulable:
            self._tell("already cordoned")
            return
        await self._insist(
            lambda: self._client.patch("nodes", name, "", {"spec": {"unschedulable": True}}, type="strategic")
        )
        self._tell("cordoned")

    # --- which pods --------------------------------------------------------------------------------------------------

    async def _chosen(self) -> list[core_v1_pb2.Pod]:
        """``GetPodsForDeletion``. Raises :class:`Refused` when one must not go."""
        kept: list[core_v1_pb2.Pod] = []
        fatal: dict[str, list[str]] = {}
        warnings: dict[str, list[str]] = {}
        for pod in await self._pods():
            goes, problem, warning = await self._judge(pod)
            if goes:
                kept.append(pod)
            if problem:
                fatal.setdefault(problem, []).append(meta.namespaced_name(pod))
            elif warning:
                warnings.setdefault(warning, []).append(meta.namespaced_name(pod))
        if fatal:
            raise Refused(_aggregate([f"cannot delete {what}: {', '.join(names)}" for what, names in fatal.items()]))
        for what, names in warnings.items():
            self._tell("warns", "", f"{what}: {', '.join(names)}")
        return kept

    async def _pods(self) -> list[core_v1_pb2.Pod]:
        found: list[core_v1_pb2.Pod] = []
        token = ""
        while True:
            page = await self._insist(
                functools.partial(
                    self._client.list,
                    "pods",
                    label_selector=self._options.pod_selector,
                    field_selector=f"spec.nodeName={self._node}",
                    limit=CHUNK,
                    continue_token=token,
                )
            )
            found += page.items
            token = page.continue_token
            if not token:
                return found

    async def _judge(self, pod: core_v1_pb2.Pod) -> tuple[bool, str, str]:
        """``makeFilters``: whether the pod goes, why that is an error, and a warning."""
        options, is_over, warning = self._options, pod_phases.is_terminal(pod), ""
        if self._is_skipped(pod):
            return False, "", ""
        owner = meta.controller_of(pod)
        if owner is not None and (owner.kind, owner.apiVersion) == ("DaemonSet", "apps/v1") and not is_over:
            try:
                await self._insist(lambda: self._client.get("daemonsets", owner.name, pod.metadata.namespace))
            except errors.NotFound as error:
                if not options.force:
                    return False, str(error), ""
                warning = str(error)
            else:
                if not options.ignore_daemon_sets:
                    return False, DAEMON_SET_FATAL, ""
                return False, "", DAEMON_SET_WARNING
        if meta.MIRROR_ANNOTATION in pod.metadata.annotations:
            return False, "", ""
        if is_over:
            return True, "", warning
        if any(volume.volumeSource.HasField("emptyDir") for volume in pod.spec.volumes):
            if not options.delete_empty_dir_data:
                return False, LOCAL_STORAGE_FATAL, ""
            warning = LOCAL_STORAGE_WARNING
        if owner is None:
            return (True, "", UNMANAGED_WARNING) if options.force else (False, UNMANAGED_FATAL, "")
        # A later filter that has nothing to say takes the warning of an earlier one away, as in kubectl.
        return True, "", ""

    def _is_skipped(self, pod: core_v1_pb2.Pod) -> bool:
        """``shouldSkipPod``: it has been terminating for so long that it is not waited for any more."""
        limit_s = self._options.skip_wait_for_delete_timeout_ns // SECOND_NS
        if not limit_s or not pod.metadata.HasField("deletionTimestamp"):
            return False
        return self._env.clock.unix_ns() // SECOND_NS - pod.metadata.deletionTimestamp.seconds > limit_s

    # --- their end ---------------------------------------------------------------------------------------------------

    async def _evict(self, pod: core_v1_pb2.Pod, deadline_ns: int | None) -> str:
        """Returns what went wrong."""
        name, namespace, clock = pod.metadata.name, pod.metadata.namespace, self._env.clock
        key = f"{namespace}/{name}"
        self._tell("evicting", key)
        while True:
            if deadline_ns is not None and clock.now_ns() >= deadline_ns:
                return f'error when evicting pods/"{name}" -n "{namespace}": global timeout reached: {self._timeout()}'
            try:
                await self._insist(
                    lambda: self._client.evict(namespace, name, grace_period_seconds=self._options.grace_period_seconds)
                )
                break
            except errors.NotFound:
                self._tell("gone", key)
                return ""
            except errors.ApiError as error:
                if _is_of_namespace(error) and pod.metadata.HasField("deletionTimestamp"):
                    break
                if not _is_tried_again(error):
                    self._tell("failed", key, str(error))
                    return f'error when evicting pods/"{name}" -n "{namespace}": {error}'
                self._tell("waits", key, str(error))
            await clock.sleep(RETRY_S)
            with contextlib.suppress(errors.ApiError):  # the next eviction will tell
                pod = await self._insist(lambda: self._client.get("pods", name, namespace))
        problem = await self._wait([pod], deadline_ns)
        if problem:
            return f'error when waiting for pod "{name}" in namespace "{namespace}" to terminate: {problem}'
        return ""

    async def _delete_all(self, pods: Sequence[core_v1_pb2.Pod], deadline_ns: int | None) -> None:
        for pod in pods:
            metadata = pod.metadata
            try:
                await self._insist(
                    functools.partial(
                        self._client.delete,
                        "pods",
                        metadata.name,
                        metadata.namespace,
                        grace_period_seconds=self._options.grace_period_seconds,
                    )
                )
            except errors.NotFound:
                continue
        problem = await self._wait(pods, deadline_ns)
        if problem:
            raise Refused(problem)

    async def _wait(self, pods: Sequence[core_v1_pb2.Pod], deadline_ns: int | None) -> str:
        """``waitForDelete``. Returns what went wrong."""
        clock = self._env.clock
        while True:
            pods = [pod for pod in pods if await self._is_there(pod)]
            if not pods:
                return ""
            if deadline_ns is not None and clock.now_ns() + round(POLL_S * SECOND_NS) > deadline_ns:
                await clock.sleep_until_ns(deadline_ns)
                return f"global timeout reached: {self._timeout()}"
            await clock.sleep(POLL_S)

    async def _is_there(self, pod: core_v1_pb2.Pod) -> bool:
        metadata = pod.metadata
        try:
            now = await self._insist(lambda: self._client.get("pods", metadata.name, metadata.namespace))
        except errors.NotFound:
            now = None
        if now is not None and now.metadata.uid == metadata.uid:
            return not self._is_skipped(now)
        self._tell("gone", f"{metadata.namespace}/{metadata.name}")
        return False

    def _timeout(self) -> str:
        """As Go prints it."""
        seconds = self._options.timeout_ns / SECOND_NS
        minutes, rest = divmod(seconds, 60)
        hours, minutes = divmod(int(minutes), 60)
        return f"{hours}h{minutes}m{rest:g}s" if hours else f"{minutes}m{rest:g}s" if minutes else f"{rest:g}s"


def _is_of_namespace(error: errors.ApiError) -> bool:
    """Its namespace is being terminated: an eviction will never succeed, but the pod goes soon."""
    return isinstance(error, errors.Forbidden) and any(one.reason == "NamespaceTerminating" for one in error.causes)


def _is_tried_again(error: errors.ApiError) -> bool:
    return isinstance(error, errors.TooManyRequests) or _is_of_namespace(error)


def _aggregate(problems: Sequence[str]) -> str:
    """``utilerrors.NewAggregate``: each text once."""
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"

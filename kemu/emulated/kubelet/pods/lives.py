"""The life of a pod's containers, as its annotations state it: there are no real containers.

An annotation holds for the main containers of the pod; with the suffix ``.<container>`` it holds for that container and
takes precedence. What they do not say, the container's program does (:mod:`kemu.emulated.kubelet.programs.courses`),
where the cluster has programs. Otherwise init containers succeed at once; all others run for ever and stop at once.

A text that is not a number counts as absent: the API server accepts any annotation, and a kubelet must not fail on one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kemu.emulated.kubelet.pods.containers import INIT, MAIN, Container
from kemu.messages.k8s import core_v1_pb2

START_SECONDS = "kemu.dev/start-seconds"
RUN_SECONDS = "kemu.dev/run-seconds"
EXIT_CODE = "kemu.dev/exit-code"
SHUTDOWN_SECONDS = "kemu.dev/shutdown-seconds"
PRE_STOP_SECONDS = "kemu.dev/pre-stop-seconds"
POST_START_SECONDS = "kemu.dev/post-start-seconds"
POST_START_ERROR = "kemu.dev/post-start-error"
"""While it is there, the container's postStart hook fails."""
PULL_ERROR = "kemu.dev/image-pull-error"
"""While it is there, the image cannot be pulled, for this reason."""
FINISH = "kemu.dev/finish"
"""Put on a running pod, it ends the pod with this exit code, whatever its restart policy."""

_LONGEST_S = 1e9


def start_s(pod: core_v1_pb2.Pod) -> float | None:
    """Seconds from admission until the first containers run; None: the pod does not say."""
    return _seconds(pod, START_SECONDS)


def container_start_s(pod: core_v1_pb2.Pod, container: Container) -> float:
    """Seconds that every start of this very container takes."""
    return _seconds(pod, f"{START_SECONDS}.{container.name}") or 0.0 if pod.metadata.annotations else 0.0


def run_s(pod: core_v1_pb2.Pod, container: Container) -> float | None:
    """Seconds that it runs before it exits; None: for ever."""
    said_s = _of(pod, RUN_SECONDS, container, _seconds)
    if said_s is None and container.course is not None:
        return container.course.run_s
    return 0.0 if said_s is None and container.kind == INIT else said_s


def shutdown_s(pod: core_v1_pb2.Pod, container: Container) -> float:
    """Seconds that it takes to stop when it is asked to."""
    return _of(pod, SHUTDOWN_SECONDS, container, _seconds) or 0.0


def pre_stop_s(pod: core_v1_pb2.Pod, container: Container, hook: core_v1_pb2.LifecycleHandler) -> float:
    """Seconds that its preStop hook takes."""
    if hook.HasField("sleep"):
        return float(hook.sleep.seconds)
    return _of(pod, PRE_STOP_SECONDS, container, _seconds) or 0.0


def post_start_s(pod: core_v1_pb2.Pod, container: Container, hook: core_v1_pb2.LifecycleHandler) -> float:
    """Seconds that its postStart hook takes."""
    if hook.HasField("sleep"):
        return float(hook.sleep.seconds)
    return _of(pod, POST_START_SECONDS, container, _seconds) or 0.0


def post_start_fails(pod: core_v1_pb2.Pod, container: Container) -> bool:
    annotations = pod.metadata.annotations
    return bool(annotations) and (
        f"{POST_START_ERROR}.{container.name}" in annotations
        or (POST_START_ERROR in annotations and container.kind == MAIN)
    )


def states(pod: core_v1_pb2.Pod, container: Container, names: Sequence[str]) -> bool:
    """Whether one of these annotations is there for it."""
    annotations = pod.metadata.annotations
    return bool(annotations) and any(
        f"{name}.{container.name}" in annotations or (name in annotations and container.kind == MAIN) for name in names
    )


def exit_code(pod: core_v1_pb2.Pod, container: Container) -> int:
    said: int | None = _of(pod, EXIT_CODE, container, _code)
    if said is not None:
        return said
    return 0 if container.course is None else container.course.exit_code


def pull_error(pod: core_v1_pb2.Pod, container: Container) -> str:
    """Why its image cannot be pulled; empty: it can."""
    annotations = pod.metadata.annotations
    if not annotations:
        return ""
    own = f"{PULL_ERROR}.{container.name}"
    if own in annotations:
        return str(annotations[own])
    return annotations[PULL_ERROR] if PULL_ERROR in annotations and container.kind == MAIN else ""


def finish(pod: core_v1_pb2.Pod) -> int | None:
    """The exit code with which a user wants the pod to end now; None: there is none."""
    return _code(pod, FINISH)


def _of(pod: core_v1_pb2.Pod, name: str, container: Container, read: Callable[..., Any]) -> Any:
    if not pod.metadata.annotations:
        return None
    own = read(pod, f"{name}.{container.name}")
    return read(pod, name) if own is None and container.kind == MAIN else own


def _seconds(pod: core_v1_pb2.Pod, name: str) -> float | None:
    annotations = pod.metadata.annotations
    if name not in annotations:
        return None
    try:
        seconds = float(annotations[name])
    except ValueError:
        return None
    return seconds if 0 <= seconds < _LONGEST_S else None


def _code(pod: core_v1_pb2.Pod, name: str) -> int | None:
    annotations = pod.metadata.annotations
    if name not in annotations:
        return None
    text = annotations[name]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None

"""What becomes of a pod once its node has taken it, as its annotations say: there are no real containers to ask.

Texts that are no numbers count as absent: the API server takes any annotation, and a kubelet must not fall over one.
"""

from __future__ import annotations

from typing import Any

START_SECONDS = "kemu.dev/start-seconds"
RUN_SECONDS = "kemu.dev/run-seconds"
EXIT_CODE = "kemu.dev/exit-code"
SHUTDOWN_SECONDS = "kemu.dev/shutdown-seconds"
FINISH = "kemu.dev/finish"
"""Put on a running pod, it ends the pod with this exit code, whatever its restart policy."""

_LONGEST_S = 1e9


def start_s(pod: Any) -> float | None:
    """Seconds from admission until the containers run; None: the pod does not say."""
    return _seconds(pod, START_SECONDS)


def run_s(pod: Any) -> float | None:
    """Seconds that the containers run before they exit; None: for ever."""
    return _seconds(pod, RUN_SECONDS)


def shutdown_s(pod: Any) -> float:
    """Seconds that the containers take to stop when they are asked to."""
    return _seconds(pod, SHUTDOWN_SECONDS) or 0.0


def exit_code(pod: Any) -> int:
    return _code(pod, EXIT_CODE) or 0


def finish(pod: Any) -> int | None:
    """The exit code with which somebody wants the pod to end now; None: nobody does."""
    return _code(pod, FINISH)


def _seconds(pod: Any, name: str) -> float | None:
    annotations = pod.metadata.annotations
    if name not in annotations:
        return None
    try:
        seconds = float(annotations[name])
    except ValueError:
        return None
    return seconds if 0 <= seconds < _LONGEST_S else None


def _code(pod: Any, name: str) -> int | None:
    annotations = pod.metadata.annotations
    if name not in annotations:
        return None
    text = annotations[name]
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None

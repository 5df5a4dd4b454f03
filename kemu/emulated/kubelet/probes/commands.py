"""What probes that run a command get as answers: what the command comes to, in the container as it is then.

Takes the place of :mod:`kemu.emulated.kubelet.probes.answers` where the pod does not state what its probes answer. A
command that is not understood succeeds at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kemu.emulated.kubelet.pods import containers
from kemu.emulated.kubelet.pods.workers import Worker
from kemu.emulated.kubelet.programs.residents import Answer, Programs
from kemu.runtime.env import SECOND_NS

_AT_ONCE = Answer(0, "", 0.0, is_lasting=True)


class CommandAnswers:
    """Answers of one probe of one start of a container. Times are ns since that start."""

    __slots__ = ("_answer", "_at_ns", "_changes", "_command", "_container", "_programs", "_timeout_ns", "_worker")

    def __init__(
        self,
        programs: Programs,
        worker: Worker,
        container: containers.Container,
        command: Sequence[str],
        timeout_ns: int,
    ) -> None:
        self._programs = programs
        self._worker = worker
        self._container = container
        self._command = command
        self._timeout_ns = timeout_ns
        self._at_ns = -1
        self._answer = _AT_ONCE
        self._changes = -1

    @property
    def output(self) -> str:
        """What it printed the last time."""
        return self._answer.output

    def latency_ns(self, at_ns: int) -> int:
        took_s = self._ask(at_ns).took_s
        return self._timeout_ns + 1 if math.isinf(took_s) else int(took_s * SECOND_NS)

    def fails(self, at_ns: int, number: int) -> bool:
        return self._ask(at_ns).code != 0

    def next_doubt(self, at_ns: int, period_ns: int, number: int, slowest_ns: int) -> int | None:
        """As :meth:`kemu.emulated.kubelet.probes.answers.Answers.next_doubt`: nothing is certain beyond the next change
        of a file."""
        answer, pod = self._answer, self._worker.pod
        if self._at_ns < 0 or answer.code or not answer.is_lasting or self._changes != self._programs.changes(pod):
            return 0
        if answer.took_s * SECOND_NS > slowest_ns:
            return 0
        next_s = self._programs.next_change_s(pod)
        if math.isinf(next_s):
            return None
        left_ns = int(next_s * SECOND_NS) - self._container.started_ns - at_ns
        return max(0, -(-left_ns // period_ns))

    def _ask(self, at_ns: int) -> Answer:
        if at_ns != self._at_ns:
            pod, container = self._worker.pod, self._container
            spec = containers.spec_of(pod, container)
            now_s = (container.started_ns + at_ns) / SECOND_NS
            answer = self._programs.run(pod, spec, self._command, now_s, self._timeout_ns / SECOND_NS)
            self._answer = _AT_ONCE if answer is None else answer
            self._at_ns = at_ns
            self._changes = self._programs.changes(pod)
        return self._answer

"""A run with all of its messages: who sent what to whom, when it arrived, and which hold kept it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kemu.lab.exploration import executions
from kemu.lab.exploration.executions import Execution
from kemu.lab.scenario.scenarios import Scenario
from kemu.messages.v1 import api_pb2
from kemu.runtime.holds import Label
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.sim.steering.messages import Message


@dataclass(frozen=True, slots=True)
class Flight:
    """One message, or one event of a message that carries several."""

    source: str
    target: str
    label: Label
    is_request: bool
    revision: int
    """Revision of the object that an event of a watch shows; 0: it shows none."""
    sent_ns: int
    due_ns: int
    """When it would usually have arrived."""
    arrived_ns: int
    """-1: never."""
    holds: tuple[int, ...]
    """Those that kept it, by their places in the scenario."""
    number: int
    """Number of its message, from this source to this target."""

    @property
    def is_news(self) -> bool:
        """An event of a watch."""
        return self.revision > 0


@dataclass(frozen=True)
class Recording:
    """A run that is over, with its log and its messages."""

    scenario: Scenario
    execution: Execution
    events: list[Entry]
    flights: list[Flight]


class _Watching:
    """Delays nothing; that there is a choice at all is what makes the run keep its messages."""

    def delay_ns(self, message: Message) -> int:
        return 0


def record(scenario: Scenario) -> Recording:
    """Run it. It is the same run as without a record, byte for byte."""
    execution = executions.execute(scenario, chooser=_Watching(), keep_log=True)
    flights = [flight for message, labels in execution.messages for flight in _of(message, labels)]
    return Recording(scenario, execution, execution.events, flights)


def _of(message: Message, labels: tuple[Label, ...]) -> Iterator[Flight]:
    revisions = _revisions(message)
    for index, label in enumerate(labels):
        yield Flight(
            message.source,
            message.target,
            label,
            message.is_request,
            revisions[index] if index < len(revisions) else 0,
            message.sent_ns,
            message.due_ns,
            message.arrived_ns,
            message.holds,
            message.number,
        )


def _revisions(message: Message) -> list[int]:
    """One for each label of a message of an API server's watch."""
    if message.is_request or not message.method.startswith("/kemu.") or not message.method.endswith("/Watch"):
        return []
    if not isinstance(message.payload, bytes):
        return []
    shown = (api_pb2.WatchEvent.ADDED, api_pb2.WatchEvent.MODIFIED, api_pb2.WatchEvent.DELETED)
    events = api_pb2.WatchResponse.FromString(message.payload).events
    return [event.resource_version if event.type in shown else 0 for event in events]

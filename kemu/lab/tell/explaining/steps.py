"""The events of a run log that a story can consist of, in words: decisions, writes, and what became of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell.explaining import knowledge
from kemu.lab.tell.explaining.knowledge import NEVER, PODS, Change, Knowledge, Moment
from kemu.lab.tell.explaining.names import Names, listed
from kemu.runtime.faults.kinds import KINDS
from kemu.runtime.holds import short_name
from kemu.runtime.runlog.frames import Event

BEGINNING = Moment(0, 0)
DECISION, OUTCOME, WRITE, USUAL = 5, 4, 2, 1
"""Weights: what somebody decided; what came of it; what was written; what every pod goes through."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One event of the log, or one change of a transaction."""

    at: Moment
    actor: str
    what: str
    """A word, to compare steps of two runs."""
    text: str
    """With its subject, in the past tense, without a full stop."""
    short: str
    """For a picture, beside the line of the actor."""
    weight: int
    pod: str = ""
    """``namespace/name``, the pod that it is about."""
    uid: str = ""
    node: str = ""
    which: int = 0
    """Of several pods of that name, in the order of their creation."""
    others: tuple[str, ...] = ()
    """Further pods: victims, a preemptor."""
    begun: Moment = BEGINNING
    """What it knew until then counted."""
    change: Change | None = None
    """What was written."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The data of the event."""

    @property
    def sign(self) -> tuple[str, ...]:
        """Equal for steps of two runs that are the same but for their time."""
        return self.actor, self.what, self.pod, str(self.which), self.node

    @property
    def is_decision(self) -> bool:
        return self.weight >= OUTCOME and self.change is None


class Teller:
    """Turns the events of one run into steps."""

    def __init__(self, scenario: Scenario, events: Sequence[Event], known: Knowledge, names: Names) -> None:
        self._scenario = scenario
        self._events = events
        self._known = known
        self._names = names
        self._handlers: dict[str, Callable[[Moment, str, Mapping[str, Any]], Step | None]] = {
            "sched.attempt": self._attempt,
            "sched.preemption": self._preemption,
            "sched.queued": self._queued,
            "node.tainted": self._tainted,
            "node.unknown": self._unknown,
            "sched.victim": self._victim,
            "rescheduler.victim": self._victim,
            "sched.nominated": self._nominated,
            "sched.bind": self._bind,
            "api.request": self._request,
            "api.refused": self._refused,
            "kubelet.admit": self._admit,
            "kubelet.preempting": self._kubelet_preempting,
            "user.event": self._user_event,
            "controller.pod": self._controller_pod,
            "taint.eviction": self._deletion,
            "affinity.eviction": self._deletion,
            "podgc.deleted": self._deletion,
            "chaos.begin": self._fault,
            "actor.crashed": self._crashed,
            "actor.exited": self._crashed,
            "actor.started": self._started,
        }
        self._ended: dict[str, int] = {}
        self._chosen: set[tuple[str, str]] = set()
        """UIDs of pods and the nodes that schedulers have chosen for them."""

    def steps(self) -> list[Step]:
        """In the order of the log, until the shutdown."""
        found: list[Step] = []
        for index, (time_ns, actor, kind, data) in enumerate(self._events):
            at = Moment(time_ns, index)
            if kind == "run.ended":
                break
            if kind == "store.txn":
                changes = [one for one in self._known.by_revision.get(data["rev"], ()) if one.at == at]
                found += [step for one in changes if (step := self._written(at, actor, one)) is not None]
                continue
            handler = self._handlers.get(kind)
            step = handler(at, actor, data) if handler is not None else self._of_kubelet(at, actor, kind, data)
            if step is not None:
                found.append(step)
        return found

    # --- who decided what --------------------------------------------------------------------------------------------

    def _attempt(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        who, pod, result = self._names.actor(actor), self._pod(data), data["result"]
        if result == "scheduled":
            self._chosen.add((data["uid"], data["node"]))
            text, short = f"{who} chose {data['node']} for {pod}", f"{pod} → {data['node']}"
        elif result == "unschedulable":
            text, short = f"{who} found no node for {pod}{_why(data['message'])}", f"no node for {pod}"
        elif result == "skipped":
            text, short = f"{who} skipped {pod}", f"skips {pod}"
        else:
            text, short = f"{who} failed to schedule {pod}{_why(data['message'])}", f"error with {pod}"
        begun = _begun(at, data)
        return self._step(at, actor, f"attempt {result}", text, short, DECISION, data, begun=begun)

    def _preemption(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        if not data["node"]:
            return None
        others = tuple(key for key, _uid, _priority in data["victims"])
        whom = f", to preempt {listed(map(short_name, others))} there" if others else ", to preempt pods there"
        text = f"{self._names.actor(actor)} chose {data['node']} for {self._pod(data)}{whom}"
        short = f"preempts for {self._pod(data)}"
        return self._step(at, actor, "preemption", text, short, DECISION, data, others=others, begun=_begun(at, data))

    def _queued(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        if data["queue"] == "active":
            return None
        text = f"{self._names.actor(actor)} requeued {self._pod(data)} ({data['event']})"
        return self._step(at, actor, "requeued", text, f"requeues {self._pod(data)}", USUAL, data)

    def _tainted(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        node, who = data["node"], self._names.actor(actor)
        added = listed(taint.removeprefix("node.kubernetes.io/") for taint in data["add"])
        text = f"{who} tainted {node} ({added})" if added else f"{who} took taints off {node}"
        return Step(at, actor, "tainted" if added else "untainted", text, f"taints {node}", OUTCOME, node=node)

    def _unknown(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        text = f"{self._names.actor(actor)} heard nothing of {data['node']} any more"
        return Step(at, actor, "unknown", text, f"{data['node']} is silent", OUTCOME, node=data["node"])

    def _victim(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        if not data["ok"]:
            return None
        verb = "turned away" if data.get("how") == "rejected" else "deleted"
        by = f" to make room for {short_name(data['by'])}" if data.get("by") else ""
        text = f"{self._names.actor(actor)} {verb} {self._pod(data)} on {data['node']}{by}"
        others = (data["by"],) if data.get("by") else ()
        return self._step(at, actor, "victim", text, f"deletes {self._pod(data)}", OUTCOME, data, others=others)

    def _nominated(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        if data["node"]:
            verb, short = f"nominated {data['node']} for {self._pod(data)}", f"nominates {data['node']}"
        else:
            verb, short = f"cleared the nomination of {self._pod(data)}", f"clears {self._pod(data)}"
        return self._step(at, actor, "nominated", f"{self._names.actor(actor)} {verb}", short, WRITE, data)

    def _bind(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        if data["ok"]:
            return None  # The write itself is told.
        pod, who = self._pod(data), self._names.actor(actor)
        text = f"{who} was told that its binding of {pod} to {data['node']} failed ({data['reason']})"
        return self._step(at, actor, "bind refused", text, f"{pod}: {data['reason']}", OUTCOME, data)

    def _request(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        if data["resource"] != "pods" or data["verb"] not in ("delete", "evict"):
            return None
        by, pod = data["by"], self._names.pod(_key(data), data.get("uid", ""))
        verb = "deleted" if data["verb"] == "delete" else "evicted"
        who = self._names.actor(by)
        what = f"{data['verb']} by {by}"
        # A kubelet deletes what has ended; a user is told of by the event of the scenario.
        weight = USUAL if by.startswith("kubelet/") else OUTCOME
        return Step(at, by, what, f"{who} {verb} {pod}", f"{verb} {pod}", weight, _key(data), data.get("uid", ""))

    def _refused(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        by, key = self._names.actor(data["by"]), _key(data)
        is_pod = data["resource"] == "pods"
        about = short_name(key) if is_pod else f"{data['resource']}/{short_name(key)}"
        text = f"{self._names.actor(actor)} refused the {data['verb']} of {about} by {by} ({data['reason']})"
        what = f"{data['verb']} refused {data['reason']}"
        # A scheduler tells of its binding itself; writes that collide are made again.
        weight = OUTCOME if is_pod and data["verb"] != "bind" and data["reason"] != "ServiceUnavailable" else USUAL
        short = f"refuses {data['verb']}"
        return Step(at, actor, what, text, short, weight, key if is_pod else "", data.get("uid") or "")

    def _admit(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        who, pod = self._names.actor(actor), self._pod(data)
        begun = Moment(at.time_ns, NEVER)
        if data["ok"]:
            return self._step(at, actor, "admitted", f"{who} admitted {pod}", f"admits {pod}", WRITE, data, begun=begun)
        text = f"{who} rejected {pod} ({data['reason']})"
        return self._step(at, actor, "rejected", text, f"rejects {pod}", DECISION, data, begun=begun)

    def _kubelet_preempting(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        text = f"{self._names.actor(actor)} killed {self._pod(data)} to make room for {short_name(data['by'])}"
        short = f"kills {self._pod(data)}"
        return self._step(at, actor, "kubelet preempts", text, short, DECISION, data, others=(data["by"],))

    def _user_event(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        event = next((one for one in self._scenario.events if one.index == data["index"]), None)
        if event is None or event.what == "create":  # The write is told.
            return None
        about = f"{event.namespace or 'default'}/{event.name}"
        text = f"the user's event: {event.what} {short_name(about) if event.name else ''}".rstrip()
        if event.what in ("delete", "evict"):
            text = f"the user asked to {event.what} {short_name(about)}"
        is_pod = event.resource in ("pods", "")
        key, node = (about, "") if is_pod and event.name else ("", event.name if event.resource == "nodes" else "")
        return Step(at, actor, f"user {event.what} {event.name}", text, f"{event.what} {event.name}", OUTCOME, key,
                    node=node)  # fmt: skip

    def _controller_pod(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        place = f" in place of {short_name(data['replaces'])}" if data.get("replaces") else ""
        text = f"{self._names.actor(actor)} created {self._pod(data)} for {data['owner']}{place}"
        others = (data["replaces"],) if data.get("replaces") else ()
        return self._step(at, actor, "created", text, f"creates {self._pod(data)}", OUTCOME, data, others=others)

    def _deletion(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        if not data["ok"]:
            return None
        why = f" ({data['why']})" if data.get("why") else ""
        text = f"{self._names.actor(actor)} deleted {self._pod(data)}{why}"
        return self._step(at, actor, "deletes", text, f"deletes {self._pod(data)}", OUTCOME, data)

    # --- what happened -----------------------------------------------------------------------------------------------

    _KUBELET: Mapping[str, tuple[str, str, int]] = {
        "kubelet.running": ("started {pod}", "runs {pod}", WRITE),
        "kubelet.finished": ("saw {pod} end ({phase})", "{pod} ended", WRITE),
        "kubelet.terminating": ("began to end {pod}", "ends {pod}", WRITE),
        "kubelet.terminated": ("saw the containers of {pod} end", "{pod} is gone", WRITE),
        "kubelet.evicting": ("evicted {pod} ({signal})", "evicts {pod}", DECISION),
        "kubelet.oom_killed": ("lost a container of {pod} to the kernel (OOM)", "OOM kill of {pod}", OUTCOME),
        "kubelet.probed": ("has the {probe} probe of {pod} {say}", "{probe} of {pod}: {say}", WRITE),
        "kubelet.killing": ("killed a container of {pod} (its {probe} probe)", "restarts {pod}", DECISION),
        "kubelet.hook_failed": ("killed a container of {pod} (its postStart hook)", "restarts {pod}", DECISION),
        "kubelet.resize": ("has the resize of {pod} {what}", "resize of {pod} {what}", DECISION),
        "kubelet.restarting": ("will restart {pod}", "restarts {pod}", USUAL),
        "kubelet.shutting_down": ("ended {pod} for the shutdown", "ends {pod}", WRITE),
    }

    def _of_kubelet(self, at: Moment, actor: str, kind: str, data: Mapping[str, Any]) -> Step | None:
        row = self._KUBELET.get(kind)
        if row is None:
            return None
        words = {"pod": self._pod(data), "say": "succeed" if data.get("ok") else "fail"}
        words.update((key, data.get(key, "")) for key in ("phase", "signal", "probe", "what"))
        text = f"{self._names.actor(actor)} {row[0].format_map(words)}"
        what = kind.partition(".")[2]
        return self._step(at, actor, what, text, row[1].format_map(words), row[2], data)

    def _written(self, at: Moment, actor: str, change: Change) -> Step | None:
        """Where nobody says why: told by what is stored."""
        clause = knowledge.told(change)
        if not clause:
            return None
        state = change.pod or (change.before.pod if change.before is not None else None)
        if change.key.startswith(PODS):
            key = change.key.removeprefix(PODS)
            uid = state.uid if state is not None else ""
            name, node = self._names.pod(key, uid), state.node if state is not None else ""
            weight = WRITE if "bound" in clause or "removed" in clause else USUAL
            is_chosen = (uid, node) in self._chosen or not self._chosen
            if clause.endswith(" again") or ("bound to" in clause and not is_chosen):
                # Nobody wanted that.
                weight = DECISION
            short = f"{name} {clause.removeprefix('was ')}"
            what = f"written {clause}"
            text = f"{name} {clause}" if name.startswith("the ") else f"pod {name} {clause}"
            return Step(
                at, actor, what, text, short, weight, key, uid, node, self._names.which(key, uid), change=change
            )
        if change.key.startswith(knowledge.NODES):
            weight = USUAL if clause == "joined" else OUTCOME
            name = change.name
            what = f"written {clause}"
            return Step(at, actor, what, f"node {name} {clause}", f"{name} {clause}", weight, node=name, change=change)
        return None

    def revision(self, change: Change) -> Step:
        """A write that a check names, whatever it is about."""
        writer = self._known.writer(change.revision)
        who = self._names.actor(writer) if writer else "somebody"
        verb = "removed" if change.value is None else "created" if change.before is None else "changed"
        text = f"{who} {verb} {knowledge.plural_of(change.key)}/{change.name} (revision {change.revision})"
        key = change.key.removeprefix(PODS) if change.key.startswith(PODS) else ""
        short = f"writes {change.name}"
        return Step(change.at, writer or "store", "write", text, short, OUTCOME, key, change=change)

    # --- faults ------------------------------------------------------------------------------------------------------

    def _fault(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        kind = KINDS.get(data["what"])
        if kind is None or data["what"] == "crash":
            return None
        words = {name: self._plain(value) for name, value in data.items()}
        text = kind.begins.format_map(words)
        return Step(at, actor, f"fault {data['what']}", text, str(data["what"]), DECISION, facts=data)

    def _crashed(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        self._ended[actor] = at.time_ns
        step = f" at its step {data['step']}" if data.get("step") else ""
        why = f": {data['why']}" if data.get("why") else ""
        text = f"{self._names.actor(actor)} crashed{step}{why}"
        return Step(at, actor, "crashed", text, "crashes", DECISION)

    def _started(self, at: Moment, actor: str, data: Mapping[str, Any]) -> Step | None:
        if actor not in self._ended:
            return None
        return Step(at, actor, "started again", f"{self._names.actor(actor)} started again", "starts again", OUTCOME)

    def _plain(self, value: Json) -> Json:
        """A parameter of a fault: actors by their names, two sides one by one."""
        if isinstance(value, list):
            if value and isinstance(value[0], list):
                return [self._plain(side) for side in value]
            return listed(self._names.actor(str(one)) for one in value)
        if isinstance(value, str):
            return self._names.actor(value)
        return f"{value:g}" if isinstance(value, float) else value

    # --- helpers -----------------------------------------------------------------------------------------------------

    def _pod(self, data: Mapping[str, Any]) -> str:
        return self._names.pod(data["pod"], data.get("uid", ""))

    def _step(
        self,
        at: Moment,
        actor: str,
        what: str,
        text: str,
        short: str,
        weight: int,
        data: Mapping[str, Any],
        *,
        others: tuple[str, ...] = (),
        begun: Moment | None = None,
    ) -> Step:
        node = data.get("node") or ""
        uid = data.get("uid", "")
        when = begun if begun is not None else at
        which = self._names.which(data["pod"], uid)
        return Step(at, actor, what, text, short, weight, data["pod"], uid, node, which, others, when, facts=data)


def _key(data: Mapping[str, Any]) -> str:
    return f"{data['namespace']}/{data['name']}" if data.get("namespace") else data["name"]


def _begun(at: Moment, data: Mapping[str, Any]) -> Moment:
    """An attempt that takes time decides on what was known at its beginning."""
    start = data.get("start", at.time_ns)
    return at if start == at.time_ns else Moment(start, NEVER)


def _why(message: str) -> str:
    """A scheduler's message without what says nothing here."""
    text = message.replace("no new claims to deallocate, ", "").partition(" preemption: ")[0].strip().rstrip(".")
    return f" ({text})" if text else ""

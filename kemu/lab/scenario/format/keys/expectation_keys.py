"""The keys of expectations: who is looked at, and what must be true of it.

:mod:`kemu.lab.scenario.expectations` makes expectations of what they hold.
"""

from __future__ import annotations

from kemu.emulated.objects.pods import pod_phases
from kemu.emulated.objects.validation import placement
from kemu.emulated.settings.shapes import (
    BUDGET_REFERENCE,
    DURATION,
    NAME,
    POD_REFERENCE,
    Choice,
    Free,
    Key,
    ListOf,
    MapOf,
    Named,
    Number,
    Record,
    Switch,
    Text,
    Whole,
)

VERBS = ("create", "update", "update_status", "patch", "delete", "bind", "commit", "evict", "get", "list", "watch")
_PHASES = (pod_phases.PENDING, pod_phases.RUNNING, *pod_phases.TERMINAL, "Unknown")

_WINDOW = {
    "after": Key(DURATION, "Not before this time, from the start of the run."),
    "before": Key(DURATION, "Not after this time."),
}
_AT_NODE = {"node": Key(NAME, "Where.")}


def _fact(doc: str, keys: dict[str, Key] | None = None) -> Key:
    return Key(Record({**(keys or {}), **_WINDOW}), doc)


FACTS: dict[str, Key] = {
    "created": _fact("The pod was created."),
    "attempted": _fact(
        "A scheduler tried to place it, whatever came of it.",
        {**_AT_NODE, "by": Key(Text(), "By which scheduler: <name> or <name>/<replica>.")},
    ),
    "unschedulable": _fact(
        "An attempt to schedule it found no node.",
        {"by": Key(Text(), "By which scheduler: <name> or <name>/<replica>.")},
    ),
    "nominated": _fact("Its nominated node was set.", _AT_NODE),
    "nominationCleared": _fact("Its nominated node was cleared before it was bound.", _AT_NODE),
    "bound": _fact(
        "It was bound to a node.", {**_AT_NODE, "by": Key(Text(), "By which scheduler: <name> or <name>/<replica>.")}
    ),
    "rejected": _fact("The kubelet refused to admit it.", {**_AT_NODE, "reason": Key(Text(), "Such as OutOfcpu.")}),
    "running": _fact("Its containers ran.", _AT_NODE),
    "preempted": _fact("A scheduler deleted it to make room.", {"by": Key(POD_REFERENCE, "For which pod.")}),
    "terminating": _fact("It began to terminate.", _AT_NODE),
    "ended": _fact(
        "Its containers have ended: its room is free, though the object may still be there, or be gone already.",
        _AT_NODE,
    ),
    "finished": _fact(
        "Its containers ended by themselves, or it was rejected.",
        {"phase": Key(Choice(pod_phases.TERMINAL), "How.")},
    ),
    "deleted": _fact("It was gone from the API.", _AT_NODE),
    "evicted": _fact(
        "It was evicted: by its kubelet, through the API, for a taint, or with its node.",
        {**_AT_NODE, "reason": Key(Text(), "Evicted, or that of the condition DisruptionTarget.")},
    ),
    "oomKilled": _fact("The kernel killed one of its containers, as the node ran out of memory.", _AT_NODE),
}
"""What can happen to a pod, at a time."""

NODE_FACTS: dict[str, Key] = {
    "added": _fact("The Node was created."),
    "condition": _fact(
        "A condition took this status.",
        {
            "type": Key(Text(), "Such as MemoryPressure.", required=True),
            "status": Key(Choice(("True", "False", "Unknown"), booleans=True), "The new status.", required=True),
        },
    ),
    "tainted": _fact(
        "It got a taint.",
        {
            "key": Key(Text(), "The key of the taint.", required=True),
            "effect": Key(Choice(placement.TAINT_EFFECTS), "Its effect."),
        },
    ),
    "untainted": _fact(
        "It lost a taint.",
        {
            "key": Key(Text(), "The key of the taint.", required=True),
            "effect": Key(Choice(placement.TAINT_EFFECTS), "Its effect."),
        },
    ),
    "drained": _fact("An event drain was done: all pods that had to go were gone."),
    "drainFailed": _fact("An event drain gave up, or a pod kept it from beginning."),
    "removed": _fact("The Node was deleted."),
}
"""What can happen to a node, at a time."""

SCORED = _fact(
    "A scheduler scored a node for it; a node that is the only feasible one gets no score.",
    {
        "node": Key(NAME, "Which node.", required=True),
        "equals": Key(Whole(), "The weighted sum of the plugins' scores."),
        "atLeast": Key(Whole(), "Not less."),
        "atMost": Key(Whole(), "Not more."),
    },
)
STATEMENTS: dict[str, Key] = {
    **FACTS,
    "scored": SCORED,
    "never": Key(Record(choices=FACTS, noun="statement"), "The contrary: in this window it did not happen."),
    "neverBound": Key(Switch(), "It was not bound as long as the run lasted."),
    "phase": Key(Choice(_PHASES), "Its phase at the end."),
    "waited": Key(
        Record({"atMost": Key(DURATION, "No longer than this."), "atLeast": Key(DURATION, "At least so long.")}),
        "From its creation until it was bound (or until the end).",
    ),
}
STATEMENT = Named("statement", Record(choices=STATEMENTS, noun="statement"))

_BOUNDS = {
    "equals": Key(Number(), "Exactly."),
    "atLeast": Key(Number(), "Not less."),
    "atMost": Key(Number(), "Not more."),
}
_TIMES = {
    "equals": Key(Whole(0), "Exactly so often."),
    "atLeast": Key(Whole(0), "At least so often; once by default."),
    "atMost": Key(Whole(0), "At most so often."),
}
_CONDITION = MapOf(Free(mapping=False))

EXPECTATION = Named(
    "expectation",
    Record(
        {
            "id": Key(Text(), "Its name in the verdict."),
            "when": Key(_CONDITION, "Only in the variants of the matrix in which these paths have these values."),
        },
        choices={
            "pod": Key(POD_REFERENCE, "One pod: name, or namespace/name."),
            "pods": Key(
                Record(
                    choices={
                        "workload": Key(NAME, "All pods of a workload."),
                        "selector": Key(Free(), "All pods with these labels."),
                        "names": Key(ListOf(POD_REFERENCE, 1), "These pods."),
                    },
                    noun="selection",
                ),
                "Several pods, as far as they were created.",
            ),
            "node": Key(NAME, "A node."),
            "pdb": Key(BUDGET_REFERENCE, "A PodDisruptionBudget: name, or namespace/name."),
            "counter": Key(Text(), "A counter of the verdict."),
            "check": Key(Text(), "A check."),
            "metric": Key(Text(), "A figure of the verdict: waiting.p99_s, utilisation.cpu, refused.Conflict, …"),
            "refused": Key(
                Record(
                    {
                        "kind": Key(Text(), "Of the object, such as Pod."),
                        "name": Key(Text(), "Of the object; with its namespace where that is not default."),
                        "reason": Key(Text(), "Such as Conflict, Forbidden, TooManyRequests."),
                        "verb": Key(Choice(VERBS), "What was asked for."),
                        **_TIMES,
                    }
                ),
                "Requests that an API server refused.",
            ),
            "event": Key(
                Record(
                    {
                        "reason": Key(Text(), "Such as Preempted.", required=True),
                        "about": Key(Text(), "The object that it is about: its name, or namespace/name."),
                        "kind": Key(Text(), "The kind of that object."),
                        **_TIMES,
                    }
                ),
                "Event objects that somebody wrote.",
            ),
            "object": Key(
                Record(
                    {
                        "kind": Key(Text(), "Its kind, such as Pod.", required=True),
                        "name": Key(Text(), "Its name.", required=True),
                        "namespace": Key(NAME, "Its namespace; default by default."),
                    }
                ),
                "An object as it is at the end.",
            ),
            "fault": Key(Text(), "A fault, by its id."),
            "order": Key(
                ListOf(
                    Record(
                        {"pod": Key(POD_REFERENCE, "A pod: name, or namespace/name.", required=True)},
                        choices=FACTS,
                        noun="statement",
                    ),
                    2,
                ),
                "Each happens before the next.",
            ),
            "compare": Key(
                Record(
                    {
                        "metric": Key(Text(), "waiting.p99_s, overtaken.max, a counter, …", required=True),
                        "priority": Key(Whole(), "Only pods of this priority."),
                        "of": Key(_CONDITION, "The variant that is looked at.", required=True),
                        "timesThatOf": Key(_CONDITION, "The variant that it is compared with.", required=True),
                        "atLeast": Key(Number(0), "At least so many times."),
                        "atMost": Key(Number(0), "At most so many times."),
                    }
                ),
                "Compares two variants of the matrix.",
            ),
        },
        noun="subject",
        companions={
            "pod": Record(choices=STATEMENTS, noun="statement"),
            "pods": Record(
                choices={
                    "all": Key(STATEMENT, "It is true of every one (and there is one)."),
                    "any": Key(STATEMENT, "It is true of one at least."),
                    "none": Key(STATEMENT, "It is true of none."),
                    "count": Key(
                        Record({"is": Key(STATEMENT, "Of how many it is true.", required=True), **_BOUNDS}),
                        "It is true of so many.",
                    ),
                },
                noun="statement",
            ),
            "node": Record(
                choices={
                    **NODE_FACTS,
                    "never": Key(Record(choices=NODE_FACTS, noun="statement"), "In this window it did not happen."),
                },
                noun="statement",
            ),
            "pdb": Record(
                choices={
                    "healthy": Key(
                        Record({"atLeast": Key(Whole(0), "So many; by default as many as it wants."), **_WINDOW}),
                        "From after on (by default: since it first had so many) it never has fewer healthy pods.",
                    )
                },
                noun="statement",
            ),
            "counter": Record(_BOUNDS),
            "metric": Record({"priority": Key(Whole(), "Only pods of this priority."), **_BOUNDS}),
            "object": Record(
                {
                    "field": Key(Text(), "Path of a field: spec.priority, metadata.labels[a.b/c]."),
                    "equals": Key(Free(mapping=False), "Its value as in YAML."),
                    "atLeast": Key(Number(), "Not less."),
                    "atMost": Key(Number(), "Not more."),
                    "exists": Key(Switch(), "Whether the object or, with field, that field is there."),
                }
            ),
            "fault": Record({"hit": Key(Switch(), "Whether it struck anybody; true by default.")}),
            "check": Record({"holds": Key(Switch(), "false: the scenario shows that it is broken.")}),
        },
    ),
)

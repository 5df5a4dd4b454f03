"""Timelines for the recorder: small clusters with disruption budgets, with pods that wait for a permit, with extenders;
and ones in which the API server does not take statuses.

``random`` are the timelines of :mod:`tests.conformance.random_timelines`, as they are; in ``overtaking``, watches of
nodes and of pods lag behind.
"""

from __future__ import annotations

import random
from typing import Any

from tests.conformance import random_timelines

Json = dict[str, Any]

FAMILIES = ("random", "budgets", "permit", "extended", "refused", "overtaking")
START = "2000-01-01T00:00:05Z"
"""Where the virtual clock of the recorder begins, plus a few seconds."""
PASSING = ("Conflict", "InternalError", "ServiceUnavailable", "outcome unknown", "connection refused")
LASTING = ("Timeout", "TooManyRequests", "connection reset")
"""Errors that kube-scheduler tries to get over at once, and others."""
BEFORE = "1999-12-31T23:{:02}:{:02}Z"


def case(family: str, seed: int, number: int) -> Json:
    rng = random.Random(f"{family} {seed} {number}")
    if family in ("random", "overtaking"):
        made = random_timelines.case(rng.randrange(1 << 30))
    else:
        made = _Maker(rng, family).make()
    if family == "overtaking":
        # Pods that are there from the beginning have a second to be shown.
        made["lateKinds"] = {"nodes": rng.choice((0.35, 1.35, 2.75)), "pods": rng.choice((0, 0.25, 0.65))}
    for place, pod in enumerate(made["pods"]):
        if "nodeName" in pod["spec"]:
            pod["status"]["startTime"] = BEFORE.format(place // 60, place % 60)
    return {**made, "id": f"{family}-s{seed}-{number:05}", "family": family, "start": START}


class _Maker:
    def __init__(self, rng: random.Random, family: str) -> None:
        self.rng = rng
        self.family = family
        self.names: list[str] = []

    def make(self) -> Json:
        rng = self.rng
        # Pods that wait for a permit make many small races: few of them, and much time in between.
        calm = self.family == "permit"
        nodes = [self.node(number) for number in range(rng.randrange(1, 3 if calm else 4))]
        names = [node["metadata"]["name"] for node in nodes]
        running = [self.pod(on=rng.choice(names)) for _ in range(rng.randrange(1, 4) if calm else rng.randrange(2, 7))]
        pods = [*running, *(self.pod() for _ in range(1 if calm else rng.randrange(1, 6)))]
        made: Json = {"horizon_s": 60, "nodes": nodes, "pods": pods}
        budgets = [self.budget(app) for app in random_timelines.APPS if rng.random() < 0.7]
        if self.family == "budgets":
            made["pdbs"] = budgets
        elif self.family == "permit":
            permit = {"enabled": [{"name": "ScriptedPermit"}]}
            made["configuration"] = {"profiles": [{"plugins": {"permit": permit}}]}
        elif self.family == "refused":
            made["statusErrors"] = {
                name: self.errors() for name in rng.sample(self.names, min(len(self.names), rng.randrange(1, 5)))
            }
        else:
            made["extenders"] = [self.extender(names) for _ in range(rng.randrange(1, 3))]
        events = []
        at_s = 0.0
        while (at_s := round(at_s + rng.choice((2.3, 5.4, 9.7) if calm else (0.4, 1.1, 2.3, 5.4)), 1)) < made[
            "horizon_s"
        ] - 15:
            if at_s % 1 in (0.0, 0.1, 0.9):
                at_s = round(at_s + 0.3, 1)
            events.append({"at_s": at_s, **self.event(nodes, budgets)})
        return {**made, "events": events}

    def node(self, number: int) -> Json:
        name = f"node-{number}"
        labels = {random_timelines.HOSTNAME: name, "pool": self.rng.choice("ab")}
        amounts = {"cpu": str(self.rng.randrange(3, 7)), "memory": "8Gi", "pods": "110"}
        return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"allocatable": amounts}}

    def pod(self, on: str = "") -> Json:
        rng = self.rng
        name = f"p{len(self.names):02}"
        self.names.append(name)
        requests = {"cpu": f"{rng.randrange(1, 7) * 500}m"}
        container: Json = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
        spec: Json = {
            "containers": [container],
            "priority": rng.choice((0, 10)) if on else rng.choice((0, 10, 100, 100, 1000)),
            "preemptionPolicy": "PreemptLowerPriority",
            "terminationGracePeriodSeconds": rng.choice((0, 3, 10)),
        }
        metadata: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        metadata |= {"labels": {"app": rng.choice(random_timelines.APPS)}, "annotations": {}}
        if rng.random() < 0.3:
            metadata["annotations"]["kemu.dev/run-seconds"] = str(round(rng.uniform(4, 20), 1))
        if self.family == "extended" and rng.random() < 0.3:
            # Its score counts the pods on each node, of which extenders send back none.
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": random_timelines.HOSTNAME,
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": metadata["labels"]["app"]}},
                }
            ]
        if on:
            spec["nodeName"] = on
        elif self.family == "permit" and rng.random() < 0.7:
            metadata["annotations"]["kemu.dev/permit"] = self.permit()
        return {"metadata": metadata, "spec": spec, "status": {}}

    def errors(self) -> list[str]:
        """What patches of the status of a pod get first: mostly what is tried again, up to three times."""
        rng = self.rng
        return [rng.choice(PASSING if rng.random() < 0.8 else LASTING) for _ in range(rng.randrange(1, 7))]

    def permit(self) -> str:
        rng = self.rng
        limit = round(rng.uniform(2, 20), 1)
        how = rng.choice(("reject", "wait", "wait allow", "wait allow", "wait reject"))
        first, _, then = how.partition(" ")
        if first == "reject":
            return first
        return f"wait {limit}" + (f" {then} {round(rng.uniform(0.5, limit - 1), 1)}" if then else "")

    def budget(self, app: str) -> Json:
        allowed = self.rng.choice((0, 0, 1, 2))
        return {
            "metadata": {"name": f"budget-{app}", "namespace": "default", "uid": f"uid-budget-{app}"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": allowed + 1, "desiredHealthy": 1},
        }

    def extender(self, nodes: list[str]) -> Json:
        rng = self.rng
        made: Json = {"configuration": {}, "script": {}}
        verbs, script = made["configuration"], made["script"]
        if rng.random() < 0.8:
            verbs["filterVerb"] = "filter"
            script["refuses"] = {
                node: f"{node} is {rng.choice(('dark', 'damp'))}" for node in nodes if rng.random() < 0.4
            }
            script["hopeless"] = rng.random() < 0.4
        if rng.random() < 0.6 or not verbs:
            verbs |= {"prioritizeVerb": "prioritize", "weight": rng.randrange(1, 4)}
            # No two nodes get the same score: with extenders, a lot decides between equal ones.
            script["scores"] = dict(zip(nodes, rng.sample(range(11), len(nodes)), strict=True))
        if rng.random() < 0.5:
            verbs["preemptVerb"] = "preempt"
            script["objects"] = [node for node in nodes if rng.random() < 0.3]
        if rng.random() < 0.2:
            verbs["ignorable"] = True
        return made

    def event(self, nodes: list[Json], budgets: list[Json]) -> Json:
        rng = self.rng
        name = rng.choice(self.names)
        kinds = ["createPod", "createPod", "deletePod", "finishPod", "resize"]
        if self.family == "budgets" and budgets:
            kinds += ["updateBudget", "updateBudget"]
        elif self.family == "extended":
            kinds += ["relabel", "touch"]
        kind = rng.choice(kinds)
        if kind == "createPod":
            return {"do": kind, "pod": self.pod()}
        if kind == "deletePod":
            return {"do": kind, "name": name, **({"graceSeconds": 0} if rng.random() < 0.3 else {})}
        if kind == "finishPod":
            return {"do": kind, "name": name}
        if kind == "updateBudget":
            app = rng.choice(budgets)["metadata"]["name"].removeprefix("budget-")
            return {"do": kind, "pdb": self.budget(app)}
        if kind == "relabel":
            return {"do": "updatePod", "name": name, "labels": {"app": rng.choice(random_timelines.APPS)}}
        node = rng.choice(nodes)
        if kind == "touch":
            # Only pods that any event wakes notice.
            if rng.random() < 0.5:
                notes = {"note": str(rng.randrange(1000))}
                return {"do": "updateNode", "node": {**node, "metadata": {**node["metadata"], "annotations": notes}}}
            conditions = [{"type": "Ready", "status": rng.choice(("True", "False", "Unknown"))}]
            return {"do": "updateNode", "node": {**node, "status": {**node["status"], "conditions": conditions}}}
        amounts = {**node["status"]["allocatable"], "cpu": str(rng.randrange(2, 8))}
        return {"do": "updateNode", "node": {**node, "status": {"allocatable": amounts}}}

"""A scheduler of one's own: first fit, with optimistic transactions.

Several replicas serve the same pods without a leader. Each reads nodes and pods through informers, so it may decide on
old news. What keeps them from giving the same room away twice is a transaction: every node carries a ledger, an
annotation with the requests of all pods placed there. A replica adds its pod to the ledger that it has read, and the
API server takes the update only if nobody has changed the node since (``resourceVersion``); after Conflict it thinks
again. Then it binds the pod, which the API server allows once; the entry of the replica that came second is struck out.

``config``: ``thinkSeconds`` a decision takes, and ``transactions: false`` to see what happens without them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import clients, informers, retries, workqueues
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.pods import pod_phases
from kemu.runtime.env import Env

LEDGER = "example.com/first-fit"

Ledger = dict[str, dict[str, int]]
"""The requests of pods, by UID."""


class FirstFit:
    def __init__(self, env: Env, config: Mapping[str, Any]) -> None:
        self.env = env
        self.name = config["name"]
        self.think_s = config["config"].get("thinkSeconds", 0.05)
        self.transactions = config["config"].get("transactions", True)
        self.client = clients.Client(env, config["apiserver"])
        self.queue = workqueues.WorkQueue[str](env, base_delay_s=0.02, max_delay_s=5)
        self.waiting: dict[str, None] = {}
        """Pods for which there was no room."""
        room = informers.Callbacks(self.room_changed, lambda old, new: self.room_changed(new))
        self.nodes = informers.Informer(self.client, "nodes", handler=room)
        seen = informers.Callbacks(self.pod_seen, lambda old, new: self.pod_seen(new), self.room_changed)
        self.pods = informers.Informer(self.client, "pods", handler=seen)

    async def run(self) -> None:
        await self.nodes.synced()
        await self.pods.synced()
        self.env.ready()
        await self.env.clock.started()
        while True:
            key = await self.queue.get()
            try:
                await self.schedule(key)
                self.queue.forget(key)
            except (errors.Conflict, errors.NotFound, *retries.PASSING):
                # Somebody was faster, or the API server is away: look again, at a time that the others do not choose.
                await self.env.clock.sleep(self.env.random.uniform(0, self.think_s))
                self.queue.add_rate_limited(key)
            finally:
                self.queue.done(key)

    async def schedule(self, key: str) -> None:
        """Place one pod: decide, enter it into the ledger of the node, bind it."""
        pod = self.pods.store.get(key)
        if pod is None or pod.spec.nodeName:
            return
        node = next((self.nodes.store[name] for name in sorted(self.nodes.store) if self.fits(pod, name)), None)
        if node is None:
            self.waiting[key] = None
            return
        await self.env.clock.sleep(self.think_s)
        if self.transactions:
            await self.write(node, {**self.ledger(node), pod.metadata.uid: requests.pod_requests(pod)})
        await self.client.bind(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, node.metadata.name)

    def fits(self, pod: Any, node_name: str) -> bool:
        node = self.nodes.store[node_name]
        ledger = self.ledger(node)
        for other in self.pods.store.values():  # those that came without the ledger count, too
            if other.spec.nodeName == node_name and not pod_phases.is_terminal(other):
                ledger[other.metadata.uid] = requests.pod_requests(other)
        free = requests.resource_list(node.status.allocatable)
        free["pods"] -= len(ledger)
        for amounts in (*ledger.values(), requests.pod_requests(pod)):
            for resource, amount in amounts.items():
                free[resource] = free.get(resource, 0) - amount
        return not node.spec.unschedulable and free["pods"] > 0 and min(free.values()) >= 0

    def ledger(self, node: Any) -> Ledger:
        """What its annotation says, less the pods that have ended or were bound elsewhere."""
        found: Ledger = json.loads(node.metadata.annotations.get(LEDGER, "{}"))
        pods = {pod.metadata.uid: pod for pod in self.pods.store.values()}
        # A pod that is not in the store is gone, unless the news of its creation is still to come.
        complete = self.pods.revision >= int(node.metadata.resourceVersion)

        def counts(uid: str) -> bool:
            pod = pods.get(uid)
            if pod is None:
                return not complete
            return pod.spec.nodeName in ("", node.metadata.name) and not pod_phases.is_terminal(pod)

        return {uid: found[uid] for uid in sorted(found) if counts(uid)}

    async def write(self, node: Any, ledger: Ledger) -> None:
        """Raises Conflict if the node has changed since it was read."""
        new = type(node)()
        new.CopyFrom(node)
        new.metadata.annotations[LEDGER] = json.dumps(ledger, sort_keys=True)
        await self.client.update(new)

    def pod_seen(self, pod: Any) -> None:
        if pod_phases.is_terminal(pod):
            self.room_changed(pod)
        elif not pod.spec.nodeName and pod.spec.schedulerName == self.name:
            self.queue.add(f"{pod.metadata.namespace}/{pod.metadata.name}")

    def room_changed(self, _: Any) -> None:
        for key in self.waiting:
            self.queue.add(key)
        self.waiting.clear()

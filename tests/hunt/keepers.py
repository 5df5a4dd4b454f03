"""A small controller with planted bugs, without any client library so that it starts fast: for each ConfigMap with the
label ``keep`` it keeps a Secret, and writes into the ConfigMap which one, and which size it has seen.

It has caches of both kinds, as informers do. ``--bug`` plants one mistake; without, it has none.

* ``double``: it looks for the Secret in its cache only, and its Secrets have random names
* ``hasty``: a Secret that cannot be made is noted all the same
* ``impatient``: what takes more than five seconds is given up, and not tried again
* ``fragile``: who watches ends when a list fails
* ``forgetful``: when a watch ends, the next one begins now, and not where the last one ended
* ``by-name``: it remembers whom it has served by name, and not by identity
* ``unfenced``: its Secrets are named by the replica that makes them (with ``--elect``)
* ``unsure``: what it is not sure of having made it makes once more
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import queue
import ssl
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlparse

import yaml

BUGS = ("double", "hasty", "impatient", "fragile", "forgetful", "by-name", "unfenced", "unsure")
LEASE_S = 15
PLACE = "/api/v1/namespaces/default"
Object = dict[str, Any]


class Refused(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"HTTP {code}")
        self.code = code


class Client:
    def __init__(self, kubeconfig: str) -> None:
        document = yaml.load(Path(kubeconfig).read_text(), yaml.CSafeLoader)
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        self._url = urlparse(cluster["server"])
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        self._token = user["token"]

    def open(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Any:
        connection = http.client.HTTPSConnection(
            str(self._url.hostname), self._url.port, context=self._context, timeout=60
        )
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind, "User-Agent": "keepers/1.0"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        if answer.status >= 300:
            answer.read()
            raise Refused(answer.status)
        return answer

    def ask(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Object:
        found: Object = json.loads(self.open(method, path, body, kind).read())
        return found


class Keepers:
    def __init__(self, kubeconfig: str, bug: str) -> None:
        self._client = Client(kubeconfig)
        self._bug = bug
        self._identity = Path(kubeconfig).suffix[1:]
        self._seen: dict[str, dict[str, Object]] = {"configmaps": {}, "secrets": {}}
        self._listed = {plural: threading.Event() for plural in self._seen}
        self._wanted: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._served = set[str]()
        self._failed = set[str]()

    # Leases, by the cluster's time: KEMU_TIMERS is asked to say when that has passed

    def lead(self) -> None:
        """Returns when it leads; ends the program when it does no more."""
        leads = threading.Event()
        threading.Thread(target=self._renew, args=(leads,), daemon=True).start()
        leads.wait()

    def _renew(self, leads: threading.Event) -> None:
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        timers = int(os.environ["KEMU_TIMERS"])
        while True:
            try:
                lease = self._client.ask("GET", f"{path}/keepers")
            except Refused:
                lease = {"metadata": {"name": "keepers"}, "spec": {}}
            spec = lease["spec"]
            is_own = spec.get("holderIdentity") == self._identity
            if leads.is_set() and not is_own:
                print("the lease is lost", flush=True)
                os._exit(1)
            if is_own or now_s() - spec.get("leaseTransitions", 0) > LEASE_S:
                # When it was renewed, in seconds, stands where it is short to read.
                spec |= {"holderIdentity": self._identity, "leaseTransitions": int(now_s())}
                verb, place = ("PUT", f"{path}/keepers") if "uid" in lease["metadata"] else ("POST", path)
                try:
                    self._client.ask(verb, place, lease)
                    leads.set()
                except Refused as error:
                    print(f"lease: {error}", flush=True)
            try:
                os.write(timers, (int(now_s() * 1e9) + 2_000_000_000).to_bytes(8, "little"))
                os.read(timers, 8)
            except OSError:  # the cluster has ended
                return

    def run(self) -> None:
        for plural in self._seen:
            threading.Thread(target=self._follow, args=(plural,), daemon=True).start()
        for listed in self._listed.values():
            listed.wait()
        while True:
            name = self._wanted.get()
            try:
                self._keep(name)
            except (OSError, http.client.HTTPException, Refused) as error:
                print(f"{name}: {error!r}", flush=True)
                time.sleep(0.02)
                self._wanted.put(name)

    # What is seen

    def _follow(self, plural: str) -> None:
        revision = ""
        while True:
            try:
                revision = self._watch(plural, revision or self._list(plural))
                if self._bug == "forgetful":
                    revision = str(self._client.ask("GET", self._path(plural))["metadata"]["resourceVersion"])
            except Refused as error:
                print(f"{plural}: {error}", flush=True)
                if self._bug == "fragile" and error.code != 410:
                    return
                revision = ""
                time.sleep(0.02)
            except (OSError, http.client.HTTPException) as error:
                print(f"{plural}: {error!r}", flush=True)

    def _path(self, plural: str, **query: str) -> str:
        return f"{PLACE}/{plural}?{urlencode({'labelSelector': 'keep', **query})}"

    def _list(self, plural: str) -> str:
        found = self._client.ask("GET", self._path(plural, resourceVersion="0"))
        seen = {one["metadata"]["name"]: one for one in found["items"]}
        gone = [one for name, one in self._seen[plural].items() if name not in seen]
        self._seen[plural] = seen
        for one in (*gone, *seen.values()):
            self._tell(one, is_gone=one in gone)
        self._listed[plural].set()
        return str(found["metadata"]["resourceVersion"])

    def _watch(self, plural: str, revision: str) -> str:
        for line in self._client.open("GET", self._path(plural, watch="true", resourceVersion=revision)):
            event = json.loads(line)
            one = event["object"]
            if event["type"] == "ERROR":
                raise Refused(one["code"])
            revision = one["metadata"]["resourceVersion"]
            if event["type"] == "DELETED":
                self._seen[plural].pop(one["metadata"]["name"], None)
            else:
                self._seen[plural][one["metadata"]["name"]] = one
            self._tell(one, is_gone=event["type"] == "DELETED")
        return revision

    def _tell(self, one: Object, *, is_gone: bool) -> None:
        name = one["metadata"]["labels"]["keep"]
        if is_gone and "type" not in one:
            self._served.discard(name)
        self._wanted.put(name)

    # What is done

    def _keep(self, name: str) -> None:
        begun_s = now_s()
        box = self._seen["configmaps"].get(name)
        if box is None or name in self._failed or (self._bug == "by-name" and name in self._served):
            return
        secret = self._secret(name, box)
        if self._bug == "impatient" and now_s() - begun_s > 5:
            self._failed.add(name)
            return
        data = {"secret": secret, "seen": (box.get("data") or {}).get("size", "0")}
        if not data.items() <= (box.get("data") or {}).items():
            self._client.ask("PATCH", f"{PLACE}/configmaps/{name}", {"data": data}, "application/merge-patch+json")
        if self._bug == "by-name" and data["seen"] == "1":
            self._served.add(name)

    def _secret(self, name: str, box: Object) -> str:
        """The name of the Secret, which is there then."""
        metadata: Object = {"name": f"{name}-key", "labels": {"keep": name}}
        if self._bug == "unfenced":
            metadata["name"] = (box.get("data") or {}).get("secret") or f"{name}-{self._identity}"
        if self._bug == "double":
            metadata = {"generateName": f"{name}-", "labels": {"keep": name}}
            for one in self._seen["secrets"].values():
                if one["metadata"]["labels"]["keep"] == name:
                    return str(one["metadata"]["name"])
        elif self._bug == "hasty" and (box.get("data") or {}).get("secret"):
            return str(box["data"]["secret"])
        elif metadata["name"] in self._seen["secrets"]:
            return str(metadata["name"])
        try:
            made = self._client.ask("POST", f"{PLACE}/secrets", {"metadata": metadata, "type": "Opaque"})
        except (Refused, OSError, http.client.HTTPException) as error:
            code = error.code if isinstance(error, Refused) else 0
            if code == 409 or (code and self._bug == "hasty"):
                return str(metadata["name"])
            if self._bug != "unsure":
                raise
            metadata["name"] += "-2"
            made = self._client.ask("POST", f"{PLACE}/secrets", {"metadata": metadata, "type": "Opaque"})
        return str(made["metadata"]["name"])


def now_s() -> float:
    """The time of day in the cluster."""
    return float(Path(os.environ["KEMU_CLOCK"]).read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--bug", default="", choices=("", *BUGS))
    parser.add_argument("--elect", action="store_true", help="one of several")
    options = parser.parse_args()
    keepers = Keepers(options.kubeconfig, options.bug)
    if options.elect:
        keepers.lead()
    keepers.run()


if __name__ == "__main__":
    main()

"""A small controller of the standard library alone, which starts fast: it copies ConfigMaps labelled ``work: "yes"``.

Without ``--careful`` it gives up when a write fails in whatever way; with ``--slow`` it tries again after a while.
"""

from __future__ import annotations

import json
import ssl
import sys
import tempfile
import time
import urllib.error
import urllib.request
from base64 import b64decode
from typing import Any

import yaml

REST_S = 0.002
PATH = "/api/v1/namespaces/default/configmaps"


class Client:
    def __init__(self, kubeconfig: str) -> None:
        with open(kubeconfig) as file:
            found = yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        cluster = found["clusters"][0]["cluster"]
        self._url, self._token = cluster["server"], found["users"][0]["user"]["token"]
        with tempfile.NamedTemporaryFile() as authority:
            authority.write(b64decode(cluster["certificate-authority-data"]))
            authority.flush()
            self._tls = ssl.create_default_context(cafile=authority.name)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}{path}", data, method=method)
        request.add_header("Authorization", f"Bearer {self._token}")
        request.add_header("Content-Type", "application/json")
        return urllib.request.urlopen(request, context=self._tls)


def copy(client: Client, one: dict[str, Any], careful: bool) -> None:
    if one["metadata"].get("labels") != {"work": "yes"}:
        return
    made = {"metadata": {"name": f"{one['metadata']['name']}-copy"}, "data": one.get("data", {})}
    while True:
        try:
            client.ask("POST", PATH, made).read()
            return
        except (OSError, ConnectionError) as error:
            if not careful or (isinstance(error, urllib.error.HTTPError) and error.code == 409):
                return
            time.sleep(REST_S)


def follow(client: Client, careful: bool) -> None:
    with client.ask("GET", PATH) as answer:
        found = json.load(answer)
    for one in found["items"]:
        copy(client, one, careful)
    with client.ask("GET", f"{PATH}?watch=true&resourceVersion={found['metadata']['resourceVersion']}") as events:
        for line in events:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            if event["type"] == "ADDED":
                copy(client, event["object"], careful)


def main(kubeconfig: str, *more: str) -> None:
    global REST_S
    REST_S = 0.06 if "--slow" in more else REST_S
    client = Client(kubeconfig)
    while True:
        try:
            follow(client, "--careful" in more)
        except (OSError, ConnectionError):
            time.sleep(REST_S)


if __name__ == "__main__":
    main(*sys.argv[1:])

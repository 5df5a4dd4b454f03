"""Ask a real kube-apiserver: ``python -m tests.conformance.requests_recorder [file …] > recorded.jsonl``.

Starts one with its etcd on loopback, sends the requests of the files (or of standard input) as they stand there and
writes down what comes back. Before each sequence everything is removed that the ones before have made.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from kemu.emulated.objects import resources
from kemu.lab.conformance.requests import results, sequences
from kemu.lab.conformance.requests.exchanges import Answer
from tests.conformance.generators import request_parts
from tests.realkube.clusters import Cluster

Json = dict[str, Any]
MERGE = "application/merge-patch+json"


class Server:
    """A connection to the API server."""

    def __init__(self, cluster: Cluster) -> None:
        place = urlparse(cluster.url)
        context = ssl.create_default_context(cafile=str(cluster.authority))
        self._connection = http.client.HTTPSConnection(str(place.hostname), place.port, context=context, timeout=20)
        self._token = cluster.token
        for name in sequences.NAMESPACES:
            self.send(*sequences.parts_of(sequences.creation_of(name), ()))
        self._first = {plural: self._listed(plural) for plural in request_parts.PLURALS}

    def send(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Nothing is added but Host and Content-Length."""
        self._connection.putrequest(method, f"{path}?{query}" if query else path, skip_accept_encoding=True)
        for name, value in headers.items():
            self._connection.putheader(name, value)
        if body or method in ("POST", "PUT", "PATCH"):
            self._connection.putheader("Content-Length", str(len(body)))
        with contextlib.suppress(OSError):  # It has not read a body that is too large; its answer is there.
            self._connection.endheaders(body or None)
        found = self._connection.getresponse()
        data = found.read()
        if found.will_close:
            self._connection.close()
        return Answer(found.status, [(name.lower(), value) for name, value in found.getheaders()], data)

    def reconnect(self) -> None:
        self._connection.close()

    def clean(self) -> None:
        """As it was before the first sequence."""
        # What is in a namespace cannot be changed without it.
        for plural in sorted(request_parts.PLURALS, key=lambda one: one == "namespaces"):
            for name in sorted(self._listed(plural) - self._first[plural]):
                self._remove(plural, name)

    def _remove(self, plural: str, name: str) -> None:
        path = f"{_root(plural)}/{name}"
        for _ in range(5):
            if self._ask("DELETE", f"{path}?gracePeriodSeconds=0")[0] == 404:
                break
            self._ask("PATCH", path, {"metadata": {"finalizers": None}})
            if plural == "namespaces":
                self._ask("PUT", f"{path}/finalize", {"metadata": {"name": name.rpartition("/")[2]}, "spec": {}})

    def _listed(self, plural: str) -> set[str]:
        """Paths below the collection's."""
        found = set()
        for one in self._ask("GET", _everywhere(plural))[1]["items"]:
            metadata = one["metadata"]
            namespace = metadata.get("namespace")
            found.add(
                f"namespaces/{namespace}/{plural}/{metadata['name']}" if namespace else f"{plural}/{metadata['name']}"
            )
        return found

    def _ask(self, method: str, path: str, body: Json | None = None) -> tuple[int, Json]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": MERGE if method == "PATCH" else "application/json",
        }
        answer = self.send(method, path, "", headers, b"" if body is None else json.dumps(body).encode())
        return answer.status, json.loads(answer.body)


def _root(plural: str) -> str:
    version = resources.BY_PLURAL[plural].api_version
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _everywhere(plural: str) -> str:
    return f"{_root(plural)}/{plural}"


def main() -> None:
    lines = [line for name in sys.argv[1:] or ["/dev/stdin"] for line in Path(name).read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder, Cluster.start(Path(folder)) as cluster:
        server = Server(cluster)
        for line in lines:
            case = json.loads(line)["case"]
            server.clean()
            try:
                expect = {"steps": record(server, case)}
            except (http.client.RemoteDisconnected, TimeoutError) as error:
                print(f"{case['id']}: {error!r}: left out", file=sys.stderr)
                server.reconnect()
                continue
            json.dump({"case": case, "expect": expect}, sys.stdout, separators=(",", ":"), sort_keys=True)
            sys.stdout.write("\n")


def record(server: Server, case: Json) -> list[Json]:
    answers: list[Answer] = []
    for step in case["steps"]:
        answers.append(server.send(*sequences.parts_of(step, answers)))
    return [results.of_answer(step, one) for step, one in zip(case["steps"], answers, strict=True)]


if __name__ == "__main__":
    main()

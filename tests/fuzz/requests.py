"""Requests to a Kubernetes API that nobody should send: drawn from a seed, from what the server says that it serves.

Paths come from discovery, bodies from small objects of many kinds and from what the server has answered; both are then
spoilt: values of wrong types, keys that go or come, numbers and strings at the edge, bytes that flip.
"""

from __future__ import annotations

import copy
import json
import random
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

NAMESPACES = ("fuzz-a", "fuzz-b")
NAMES = ("a", "b", "c", "d")
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
ACCEPTED = (
    JSON,
    YAML,
    PROTOBUF,
    "*/*",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/cbor",
    "text/html",
    "application/json;q=0,*/*;q=x",
    ";;;",
    "application/json;as=Table;g=;v=",
)
UNTOUCHED = (
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "apiservices",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicybindings",
    "clusterrolebindings",
    "flowschemas",
    "prioritylevelconfigurations",
)
"""Only read: what is written there decides about the fuzzer's own requests."""

# good first: a spec for another kind: those that are not here are sent an empty one, and little of them is fuzzed
SPECS: dict[str, dict[str, Any]] = yaml.safe_load("""
pods: {spec: &pod {containers: [{name: main, image: a, resources: {requests: {cpu: 10m}}}]}}
configmaps: {data: {k: v}, binaryData: {b: AAE=}}
secrets: {type: Opaque, data: {k: AAE=}}
services: {spec: {selector: {a: b}, ports: [{port: 80, targetPort: http}]}}
deployments:
  spec: &set {replicas: 2, selector: &all {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: *pod}}
replicasets: {spec: *set}
statefulsets: {spec: {<<: *set, serviceName: a}}
daemonsets: {spec: {selector: *all, template: {metadata: {labels: {a: b}}, spec: *pod}}}
jobs: {spec: &job {template: {spec: {<<: *pod, restartPolicy: Never}}}}
cronjobs: {spec: {schedule: "*/5 * * * *", jobTemplate: {spec: *job}}}
poddisruptionbudgets: {spec: {minAvailable: 50%, selector: *all}}
horizontalpodautoscalers: {spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}
leases: {spec: {holderIdentity: a, renewTime: "2026-01-01T00:00:00.000000Z"}}
resourcequotas: {spec: {hard: {pods: "100", count/configmaps: 1k}}}
limitranges: {spec: {limits: [{type: Container, default: {cpu: 100m}}]}}
roles: {rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
rolebindings:
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}
  subjects: [{kind: User, name: u}]
persistentvolumeclaims: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
persistentvolumes: {spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /a}}}
networkpolicies: {spec: {podSelector: *all, ingress: [{}]}}
ingresses: {spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}
endpointslices: {addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}], ports: [{port: 80}]}
priorityclasses: {value: 10}
storageclasses: {provisioner: a.b/c}
resourceclaims: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}}
deviceclasses: {spec: {selectors: [{cel: {expression: device.driver == 'a'}}]}}
certificatesigningrequests: {spec: {request: AAE=, signerName: a.b/c, usages: [client auth]}}
customresourcedefinitions:
  spec:
    group: f.dev
    scope: Namespaced
    names: {plural: as, singular: a, kind: A, listKind: AList}
    versions:
      - name: v1
        served: true
        storage: true
        schema:
          openAPIV3Schema:
            type: object
            properties:
              spec:
                type: object
                x-kubernetes-preserve-unknown-fields: true
                x-kubernetes-validations: [{rule: self == self}]
subjectaccessreviews: {spec: {user: u, resourceAttributes: {verb: get, resource: pods}}}
tokenreviews: {spec: {token: t}}
""")
"""What each kind has beside its name, by resource. Others get an empty ``spec``."""

_STRINGS = (
    "",
    " ",
    "a" * 300,
    "a" * 70_000,
    "\x00",
    "\x1b[2J",
    "é" * 100,
    "\ud7ff",
    "💥",
    "../../etc/passwd",
    "%2e%2e",
    "a/b",
    "-a",
    "A",
    "1e100",
    "NaN",
    "-1",
    "9" * 400,
    "1Ei",
    "0.0000000001",
    "100%",
    "-5%",
    "2026-13-45T99:99:99Z",
    "null",
    "true",
    "{{x}}",
    "self.x[",
    "'" * 50,
    "(" * 2_000,
    "$(A)",
    "a,b=c",
    "k8s.io/",
    "127.0.0.1",
    "::1",
    "10.0.0.0/99",
    "* * * *",
    "*/0 * * * *",
    "TZ=Mars 0 0 * * *",
    "[a-z]+)*(",
    "<script>",
)
_NUMBERS = (
    0,
    -1,
    1,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**30,
    0.5,
    -0.0,
    1e308,
    1e-320,
)
_QUERY: dict[str, Sequence[str]] = {
    "limit": ("0", "1", "500", "-1", "9" * 30, "x"),
    "continue": ("x", "", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", "a" * 5_000),
    "resourceVersion": ("0", "1", "", "-1", "9" * 25, "x", "100"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x"),
    "labelSelector": ("a=b", "a in (b,c)", "a in (", "!a", ",,,", "a>1", "=" * 100, "é"),
    "fieldSelector": (
        "metadata.name=a",
        "spec.nodeName=",
        "x=y",
        "metadata.name!=a,status.phase=Running",
        "===",
        "a\\,b=c",
    ),
    "watch": ("true", "1", "false", "x"),
    "allowWatchBookmarks": ("true", "x"),
    "sendInitialEvents": ("true", "false"),
    "timeoutSeconds": ("0", "1", "2", "-1", "99999999999999999999", "x"),
    "timeout": ("1s", "0s", "-1s", "10m", "x"),
    "dryRun": ("All", "", "x"),
    "fieldManager": ("fuzz", "a" * 200, "\x00", ""),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "force": ("true", "x"),
    "pretty": ("true", "x"),
    "propagationPolicy": ("Foreground", "Background", "Orphan", "x"),
    "gracePeriodSeconds": ("0", "-1", "30", "x"),
    "orphanDependents": ("true",),
    "includeObject": ("None", "Object", "x"),
    "command": ("sh", "-c", "true", "\x00", "a" * 5_000),
    "container": ("main", "x"),
    "stdin": ("true",),
    "stdout": ("true",),
    "stderr": ("true",),
    "tty": ("true", "x"),
    "ports": ("80", "0", "99999", "x"),
    "follow": ("false", "x"),
    "tailLines": ("1", "-1", "x"),
    "sinceSeconds": ("1", "-1"),
    "limitBytes": ("1", "0"),
    "previous": ("true",),
}


@dataclass(frozen=True)
class Resource:
    prefix: str
    """As ``/apis/apps/v1``."""
    name: str
    """As ``deployments``, or ``deployments/scale``."""
    kind: str
    version: str
    """As ``apps/v1``."""
    namespaced: bool
    verbs: frozenset[str]


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def is_watch(self) -> bool:
        """Whatever ``watch`` says but false: so does Kubernetes."""
        return "watch=" in self.target or "follow=" in self.target


class Draw:
    def __init__(self, seed: str, resources: Sequence[Resource]) -> None:
        self._random = random.Random(seed)
        self._resources = resources
        self._seen: list[dict[str, Any]] = []
        """Objects that the server has answered with."""
        self._messages: list[bytes] = []
        """Bodies in protobuf that it has answered with."""

    def learn(self, content_type: str, body: bytes) -> None:
        """Keeps an answer, to send it back spoilt."""
        if content_type.startswith(PROTOBUF):
            kept: list[Any] = self._messages
            found: Any = body[:20_000]
        elif content_type.startswith(JSON):
            try:
                found = json.loads(body)
            except ValueError:
                return
            if isinstance(found, dict) and isinstance(found.get("items"), list) and found["items"]:
                found = self._one(found["items"])
            if not isinstance(found, dict) or "metadata" not in found:
                return
            kept = self._seen
        else:
            return
        if len(kept) < 60:
            kept.append(found)
        else:
            kept[self._random.randrange(60)] = found

    def request(self) -> Request:
        resource = self._one(self._resources)
        method = self._one(("GET", "GET", "POST", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE"))
        if resource.name.partition("/")[0] in UNTOUCHED:
            method = "GET"
        if self._often(0.02):
            method = self._one(("HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", "X" * 300))
        named = "/" in resource.name or method in ("PUT", "PATCH") or (method in ("GET", "DELETE") and self._often(0.6))
        if method == "DELETE" and not (named and resource.namespaced) and resource.name != "customresourcedefinitions":
            method = "GET"
        name = self._one(NAMES)
        headers = {"Accept": self._one(ACCEPTED) if self._often(0.5) else JSON}
        if self._often(0.03):
            headers["Impersonate-User"] = (
                self._one(_STRINGS[:20]).encode("ascii", "ignore").decode().replace("\x00", "")[:300]
            )
            headers["Impersonate-User"] = headers["Impersonate-User"].replace("\x1b", "")
        if self._often(0.1):
            headers["Accept-Encoding"] = self._one(("gzip", "identity;q=0", "deflate,gzip;q=0.5", ""))
        body = b""
        if method in ("POST", "PUT", "PATCH") or self._often(0.05):
            headers["Content-Type"], body = self._content(resource, method, name)
        return Request(method, self._target(resource, name, named), headers, body)

    def _target(self, resource: Resource, name: str, named: bool) -> str:
        collection, _, sub = resource.name.partition("/")
        path = resource.prefix
        if resource.namespaced and not self._often(0.05):
            path += f"/namespaces/{self._one(NAMESPACES)}"
        path += f"/{collection}"
        if named:
            path += f"/{urllib.parse.quote(self._one(_STRINGS)[:500], safe='') if self._often(0.05) else name}"
            if sub:
                path += f"/{sub}"
        if self._often(0.02):
            path += self._one(("/", "//", "/x", "/%00", "/..", "/.%2e/x", "?", "/status/status", "/%ff", ";a=b"))
        count = self._one((0, 0, 1, 2, 4))
        query = [(key, self._one(_QUERY[key])) for key in self._random.sample(sorted(_QUERY), count)]
        if sub in ("exec", "attach") and self._often(0.7):
            query += [("command", "true"), ("stdout", "true")]
        if any(key == "watch" for key, _ in query):
            query.insert(0, ("timeoutSeconds", "1"))
        if not query:
            return path
        return f"{path}?{urllib.parse.urlencode(query, errors='surrogatepass')}"

    def _content(self, resource: Resource, method: str, name: str) -> tuple[str, bytes]:
        """A content type and a body."""
        if self._messages and self._often(0.1):
            return PROTOBUF, self._flipped(self._one(self._messages))
        if self._often(0.03):
            return self._one((JSON, YAML, PROTOBUF, *PATCHES, "x/y", "")), self._random.randbytes(
                self._random.randrange(200)
            )
        if method == "PATCH":
            return self._patch(resource, name)
        body = self._object(resource, name)
        if self._often(0.15):
            return YAML, yaml.safe_dump(body).encode()
        return JSON, self._flipped(json.dumps(body).encode()) if self._often(0.05) else json.dumps(body).encode()

    def _object(self, resource: Resource, name: str) -> Any:
        collection = resource.name.partition("/")[0]
        same = [one for one in self._seen if one.get("kind") == resource.kind]
        if same and self._often(0.4):
            made = copy.deepcopy(self._one(same))
        elif self._seen and self._often(0.05):
            made = copy.deepcopy(self._one(self._seen))
        else:
            made = {
                "apiVersion": resource.version,
                "kind": resource.kind,
                "metadata": {"name": name},
                **copy.deepcopy(SPECS.get(collection, {"spec": {}})),
            }
            if collection == "customresourcedefinitions":
                made["metadata"]["name"] = "as.f.dev"
        for _ in range(self._one((0, 0, 1, 1, 1, 2, 4))):
            made = self._spoilt(made)
        return made

    def _patch(self, resource: Resource, name: str) -> tuple[str, bytes]:
        kind = self._one(PATCHES)
        if kind == PATCHES[0] and not self._often(0.1):
            paths = (
                "/metadata/labels/x",
                "/spec",
                "/spec/containers/0/image",
                "/spec/containers/-",
                "/metadata/name",
                "",
                "/a~2",
                "/" * 50,
            )
            steps = [
                {
                    "op": self._one(("add", "remove", "replace", "test", "move", "copy", "x")),
                    "path": self._one(paths),
                    "from": self._one(paths),
                    "value": self._value(),
                }
                for _ in range(self._one((1, 2, 50)))
            ]
            return kind, json.dumps(steps).encode()
        body = self._object(resource, name)
        if isinstance(body, dict) and kind == PATCHES[2] and self._often(0.3):
            body = {
                "spec": {"containers": [{"name": "main", "$patch": self._one(("delete", "replace", "merge", "x"))}]},
                self._one(
                    ("$setElementOrder/containers", "$retainKeys", "$deleteFromPrimitiveList/finalizers")
                ): self._value(),
            }
        return kind, json.dumps(body).encode()

    def _spoilt(self, value: Any) -> Any:
        """One place of it changed."""
        if isinstance(value, dict) and value and not self._often(0.1):
            key = self._one(sorted(value, key=str))
            what = self._random.random()
            if what < 0.1:
                return {other: part for other, part in value.items() if other != key}
            if what < 0.2:
                return {
                    **value,
                    self._one(
                        (*_STRINGS, "metadata", "status", "finalizers", "ownerReferences", "labels")
                    ): self._value(),
                }
            return {**value, key: self._spoilt(value[key])}
        if isinstance(value, list) and value and not self._often(0.15):
            index = self._random.randrange(len(value))
            what = self._random.random()
            if what < 0.15:
                return value[:index] + value[index + 1 :]
            if what < 0.3:
                return [*value, value[index]] * self._one((1, 1, 40))
            return [self._spoilt(part) if place == index else part for place, part in enumerate(value)]
        return self._value()

    def _value(self) -> Any:
        return self._one(
            (
                None,
                True,
                self._one(_NUMBERS),
                self._one(_NUMBERS),
                self._one(_STRINGS),
                self._one(_STRINGS),
                self._one(_STRINGS),
                [],
                {},
                [None],
                [[]],
                {"": ""},
                {"a": None},
                [{}],
                {self._one(_STRINGS): self._one(_STRINGS)},
                [self._one(_STRINGS)] * 30,
            )
        )

    def _flipped(self, body: bytes) -> bytes:
        changed = bytearray(body)
        for _ in range(self._one((0, 1, 1, 3, 10))):
            if changed:
                place = self._random.randrange(len(changed))
                if self._often(0.3):
                    del changed[place : place + self._random.randrange(1, 9)]
                else:
                    changed[place] = self._random.randrange(256)
        return bytes(changed)

    def upgrade(self) -> tuple[bytes, list[bytes]]:
        """The head of a request that asks for another protocol, and frames after it."""
        name, namespace = self._one(NAMES), self._one(NAMESPACES)
        sub = self._one(("exec", "attach", "portforward"))
        query = "command=cat&stdin=true&stdout=true&stderr=true" if sub == "exec" else "stdin=true&stdout=true&ports=80"
        lines = [
            f"{self._one(('GET', 'POST'))} /api/v1/namespaces/{namespace}/pods/{name}/{sub}?{query} HTTP/1.1",
            "Connection: Upgrade",
        ]
        if self._often(0.6):
            protocols = (
                "v5.channel.k8s.io",
                "v4.channel.k8s.io",
                "SPDY/3.1+portforward.k8s.io",
                "base64.channel.k8s.io",
                "x",
                "",
            )
            lines += [
                "Upgrade: websocket",
                f"Sec-WebSocket-Version: {self._one(('13', '13', '13', '7', 'x'))}",
                f"Sec-WebSocket-Key: {self._one(('dGhlIHNhbXBsZSBub25jZQ==', 'x', ''))}",
                f"Sec-WebSocket-Protocol: {self._one(protocols)}",
            ]
            frames = [self._websocket_frame() for _ in range(self._random.randrange(12))]
        else:
            lines += [
                f"Upgrade: {self._one(('SPDY/3.1', 'h2c', 'x'))}",
                f"X-Stream-Protocol-Version: {self._one(('v4.channel.k8s.io', 'portforward.k8s.io', 'x'))}",
            ]
            frames = [self._spdy_frame() for _ in range(self._random.randrange(12))]
        return "\r\n".join(lines).encode(), frames

    def _websocket_frame(self) -> bytes:
        payload = self._random.randbytes(self._one((0, 1, 5, 125, 2_000)))
        first = self._one((0x82, 0x81, 0x80, 0x02, 0x88, 0x89, 0x8A, 0xFF, 0x00))
        length = self._one((len(payload), len(payload), len(payload), 125, 0))
        if length < 126:
            head = bytes((first, 0x80 | length))
        else:
            head = bytes((first, 0x80 | 126)) + length.to_bytes(2, "big")
        if self._often(0.05):
            head = bytes((first, 0x80 | 127)) + self._one((2**63, 2**40, 2**64 - 1)).to_bytes(8, "big")
        return head + b"\0\0\0\0" + payload

    def _spdy_frame(self) -> bytes:
        payload = self._random.randbytes(self._one((0, 4, 10, 18, 300)))
        if self._often(0.3):
            return (
                self._one((0, 1, 3, 2**31 - 1)).to_bytes(4, "big") + b"\0" + len(payload).to_bytes(3, "big") + payload
            )
        kind = self._one((1, 2, 3, 4, 6, 7, 8, 9, 99))
        length = self._one((len(payload), len(payload), 2**24 - 1))
        return b"\x80\x03" + kind.to_bytes(2, "big") + b"\1" + length.to_bytes(3, "big") + payload

    def garbage(self) -> bytes:
        return self._one(
            (
                self._random.randbytes(300),
                b"GET / HTTP/9.9\r\n\r\n",
                b"GET /api HTTP/1.1\r\nhost: a\r\n" + b"a: b\r\n" * 500 + b"\r\n",
                b"POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                b"\x16\x03\x01" * 50,
                b"POST /api HTTP/1.1\r\nhost: a\r\ncontent-length: -5\r\n\r\n",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self._random.randbytes(200),
                b"POST /api HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                b"GET  HTTP/1.1\r\n\r\n",
            )
        )

    def what(self) -> str:
        return self._one(("request",) * 40 + ("upgrade", "upgrade", "garbage"))

    def _one(self, of: Sequence[Any]) -> Any:
        return of[self._random.randrange(len(of))]

    def _often(self, share: float) -> bool:
        return self._random.random() < share

"""Requests about Services, ServiceCIDRs and IPAddresses, which a real control plane has answered:
``python -m tests.apiserver.service_ranges KUBECONFIG one|two`` (families) keeps its answers."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.admission import recorder

FILE = Path(__file__).with_name("real_service_ranges.json")
GROUP = "/apis/networking.k8s.io/v1"
RANGES, ADDRESSES, SERVICES = f"{GROUP}/servicecidrs", f"{GROUP}/ipaddresses", "/api/v1/namespaces/default/services"
MERGE = "application/merge-patch+json"
SETTLED_S = 3.0
WAIT = "WAIT"
Step = tuple[str, str, Any, float]
"""Method, path, body, and how long it takes until the answer is the expected one."""


def _post(path: str, kind: str, name: str, spec: Any, **metadata: Any) -> Step:
    api_version = "v1" if path.startswith("/api/") else "networking.k8s.io/v1"
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
    return "POST", path, body, 0


def _service(name: str, query: str = "", **spec: Any) -> Step:
    return _post(SERVICES + query, "Service", name, {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec})


def _range(name: str, *cidrs: str) -> Step:
    return _post(RANGES, "ServiceCIDR", name, {"cidrs": list(cidrs)})


def _address(name: str, parent: Any, **labels: str) -> Step:
    spec = {} if parent is None else {"parentRef": parent}
    return _post(ADDRESSES, "IPAddress", name, spec, labels=labels)


def _patch(path: str, **body: Any) -> Step:
    return "PATCH", path, body, 0


def _get(path: str) -> Step:
    return "GET", path, None, 0


def _until(path: str, seconds: float = SETTLED_S) -> Step:
    return "GET", path, None, seconds


def _wait(seconds: float) -> Step:
    return WAIT, "", None, seconds


def _delete(path: str) -> Step:
    return "DELETE", path, None, 0


OF_NOBODY = {"resource": "services", "namespace": "default", "name": "nobody"}
MANAGED = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io", "ipaddress.kubernetes.io/ip-family": "IPv4"}

ONE: list[Step] = [
    _until(f"{RANGES}/kubernetes"),
    _service("a", clusterIP="10.96.5.5"),
    _get(f"{ADDRESSES}/10.96.5.5"),
    *(
        _service("b", query, clusterIP=address)
        for query in ("", "?dryRun=All")
        for address in (
            "10.96.5.5", "10.97.0.5", "10.96.0.0", "10.96.255.255", "fd00::5", "010.96.0.9", "::ffff:10.96.0.9",
        )
    ),
    _service("b", "?dryRun=All"),
    _get(f"{ADDRESSES}/10.96.0.0"),
    _service("b", ipFamilyPolicy="RequireDualStack"),
    _service("b", ipFamilies=["IPv6"]),
    _service("b", ipFamilies=["IPv4", "IPv6"]),
    _service("b", clusterIP="10.96.5.7", clusterIPs=["10.96.5.7", "fd00::1"]),
    _service("b", clusterIP="10.96.5.7", clusterIPs=["10.96.5.7", "fd00::1"], ipFamilyPolicy="PreferDualStack"),
    _service("b", clusterIP="10.96.5.7", ports=[{"port": 80, "nodePort": 3}], type="NodePort"),
    _get(f"{ADDRESSES}/10.96.5.7"),
    _service("prefers", clusterIP="10.96.5.8", ipFamilyPolicy="PreferDualStack"),
    # What is no range
    *(
        _range(name, *cidrs)
        for name, *cidrs in (
            ("x",), ("x", "10.1.0.0/16", "fd01::/64", "10.2.0.0/16"), ("x", "10.1.0.0"), ("x", "10.1.0.0/33"),
            ("x", "010.1.0.0/16"), ("x", "10.1.0.0/016"), ("x", "10.1.0.1/16"), ("x", "::ffff:10.1.0.0/112"),
            ("x", "FD01::/64"), ("x", "fd01:0::/64"), ("x", "10.1.0.0/16", "10.2.0.0/16"), ("X", "10.1.0.0/16"),
            ("x", "fd01::/64", "fd02::/64"), ("x", "10.1.0.0/255.255.0.0"), ("x", ""), ("x", "10.1.0.0/16", "bad"),
        )
    ),
    # What is no address
    *(
        _address(name, OF_NOBODY)
        for name in (
            "x", "10.1.2", "010.1.2.3", "10.1.2.3/32", "::ffff:1.2.3.4", "FD00::1", "fd00:0:0::1", "fe80::1%eth0",
        )
    ),
    *(
        _address("10.1.2.3", parent)
        for parent in (
            None, {}, {"resource": "services"}, {"name": "a"}, {"group": "A_b", "resource": "a/b", "name": ".."},
            {"resource": "services", "namespace": "a%", "name": "b"},
        )
    ),
    _address("10.1.2.3", OF_NOBODY, a="b"),
    _patch(f"{ADDRESSES}/10.1.2.3", spec={"parentRef": {"name": "other"}}),
    _patch(f"{ADDRESSES}/10.1.2.3", spec=None),
    _patch(f"{ADDRESSES}/10.1.2.3", metadata={"labels": {"a": "c"}}),
    _delete(f"{ADDRESSES}/10.1.2.3"),
    # A second range, until its end
    _range("second", "10.98.0.0/29"),
    _until(f"{RANGES}/second"),
    _service("c", clusterIP="10.98.0.3"),
    _service("d", clusterIP="10.98.0.7"),
    _patch(f"{RANGES}/second", spec={"cidrs": ["10.98.0.0/28"]}),
    _patch(f"{RANGES}/second", spec={"cidrs": ["10.98.0.0/29", "10.99.0.0/29"]}),
    _patch(f"{RANGES}/second", spec={"cidrs": ["10.98.0.0/29", "fd98::/64"]}),
    _patch(f"{RANGES}/second", spec={"cidrs": ["10.98.0.0/29", "fd99::/64"]}),
    _patch(f"{RANGES}/second", spec={"cidrs": ["10.98.0.0/29"]}),
    _patch(f"{RANGES}/second", status={"conditions": []}),
    _delete(f"{RANGES}/second"),
    _until(f"{RANGES}/second"),
    _service("d", clusterIP="10.98.0.4"),
    _delete(f"{SERVICES}/c"),
    _until(f"{ADDRESSES}/10.98.0.3"),
    _until(f"{RANGES}/second"),
    # Other types
    _patch(f"{SERVICES}/a", spec={"type": "ExternalName", "externalName": "example.com"}),
    _until(f"{ADDRESSES}/10.96.5.5"),
    _patch(f"{SERVICES}/a", spec={"type": "ClusterIP", "externalName": None, "clusterIP": "10.97.5.6"}),
    _patch(f"{SERVICES}/a", spec={"type": "ClusterIP", "externalName": None, "clusterIP": "10.96.5.6"}),
    _get(f"{ADDRESSES}/10.96.5.6"),
    _patch(f"{SERVICES}/a", spec={"clusterIP": "10.96.5.9"}),
    _patch(f"{SERVICES}/a", spec={"clusterIP": "None", "clusterIPs": ["None"]}),
    _patch(f"{SERVICES}/a", spec={"clusterIP": None, "clusterIPs": None}),
    _patch(f"{SERVICES}/a", spec={"ipFamilyPolicy": "RequireDualStack"}),
    _patch(f"{SERVICES}/a", spec={"ipFamilyPolicy": "PreferDualStack"}),
    _service("headless", clusterIP="None"),
    _patch(f"{SERVICES}/headless", spec={"clusterIP": "10.96.5.10", "clusterIPs": ["10.96.5.10"]}),
    _service("of-nobody", clusterIP="None", selector=None),
    # What is mended
    _delete(f"{ADDRESSES}/10.96.5.6"),
    _patch(f"{SERVICES}/a", metadata={"labels": {"a": "b"}}),
    _until(f"{ADDRESSES}/10.96.5.6"),
    _patch(f"{ADDRESSES}/10.96.5.6", metadata={"labels": None}),
    _patch(f"{SERVICES}/a", metadata={"labels": {"a": "c"}}),
    _until(f"{ADDRESSES}/10.96.5.6"),
    _address("10.96.7.7", {"group": "example.com", "resource": "gateways", "name": "g"}, **MANAGED),
    _until(f"{ADDRESSES}/10.96.7.7"),
    _address("10.96.7.8", {"resource": "services", "namespace": "default", "name": "a"}, **MANAGED),
    _address("10.96.7.9", OF_NOBODY),
    _service("taken", clusterIP="10.96.7.9"),
    _until(f"{ADDRESSES}/10.96.7.8", 8),
    _until("/api/v1/namespaces/default/events"),
    _delete(f"{SERVICES}/a"),
    _until(f"{ADDRESSES}/10.96.5.6"),
]  # fmt: skip

TWO: list[Step] = [
    _until(f"{RANGES}/kubernetes"),
    _service("a", clusterIP="10.96.5.5", ipFamilyPolicy="RequireDualStack", clusterIPs=["10.96.5.5", "fd00:10::5"]),
    _get(f"{ADDRESSES}/fd00:10::5"),
    _service("b", clusterIP="10.96.5.6", ipFamilyPolicy="PreferDualStack", clusterIPs=["10.96.5.6", "fd00:10::5"]),
    _service("b", clusterIP="10.96.5.6", ipFamilyPolicy="PreferDualStack", clusterIPs=["10.96.5.6", "fd00:11::5"]),
    _service("b", clusterIP="fd00:10::0", ipFamilyPolicy="SingleStack"),
    _service("six", clusterIP="fd00:10::6"),
    _service("six-wrong", clusterIP="fd00:10::7", ipFamilies=["IPv4"]),
    _service("two", clusterIP="10.96.5.7", clusterIPs=["10.96.5.7", "fd00:10::7"], ipFamilyPolicy="SingleStack"),
    _service("two", ipFamilies=["IPv4", "IPv6"]),
    _service("turned", "?dryRun=All", ipFamilies=["IPv6", "IPv4"], ipFamilyPolicy="RequireDualStack"),
    # Up and down
    _service("up", clusterIP="10.96.5.8"),
    # What a Service gets in its first second has "a wrong reference" where the repair is faster than the update.
    _wait(2),
    _patch(f"{SERVICES}/up", spec={"ipFamilyPolicy": "PreferDualStack", "clusterIPs": ["10.96.5.8", "fd00:10::8"]}),
    _get(f"{ADDRESSES}/fd00:10::8"),
    _patch(f"{SERVICES}/up", spec={"clusterIPs": ["10.96.5.8"]}),
    _patch(f"{SERVICES}/up", spec={"ipFamilies": ["IPv4"]}),
    _patch(f"{SERVICES}/up", spec={"ipFamilies": ["IPv6", "IPv4"]}),
    _patch(f"{SERVICES}/up", spec={"ipFamilyPolicy": "SingleStack"}),
    _until(f"{ADDRESSES}/fd00:10::8"),
    _patch(f"{SERVICES}/up", spec={"ipFamilies": ["IPv6"]}),
    _patch(f"{SERVICES}/a", spec={"type": "ExternalName", "externalName": "example.com"}),
    _until(f"{ADDRESSES}/fd00:10::5"),
    _until(f"{ADDRESSES}/10.96.5.5"),
    _service("headless", clusterIP="None", ipFamilyPolicy="PreferDualStack"),
    _service("of-nobody", clusterIP="None", selector=None),
    _delete(f"{RANGES}/kubernetes"),
    _until(f"{RANGES}/kubernetes"),
    _service("late"),
]
STEPS = {"one": ONE, "two": TWO}

_ASKED = json.dumps(STEPS)
_GIVEN = re.compile(r"10\.96\.\d+\.[1-9]\d*|fd00:10::.+")
_LEFT_OUT = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "lastTransitionTime", "deletionTimestamp",
             "deletionGracePeriodSeconds", "generation"}  # fmt: skip


def told(status: int, answer: Any) -> dict[str, Any]:
    """What does not differ from run to run."""
    if answer.get("kind") == "EventList":
        events = [(one["involvedObject"]["name"], one["reason"], one["message"]) for one in answer["items"]]
        ours = {one for one in events if one[1].startswith(("ClusterIP", "IPAddress"))}
        return {"events": sorted(map(list, ours))}
    return {"status": status, "answer": _plain(answer)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key not in _LEFT_OUT and one not in (None, {}, "")}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, str) and _GIVEN.fullmatch(value) and value not in _ASKED:
        return "ADDRESS"
    return value


def content_type(method: str) -> str:
    return MERGE if method == "PATCH" else "application/json"


def _record(kubeconfig: Path, steps: list[Step]) -> Iterator[dict[str, Any]]:
    config = yaml.safe_load(kubeconfig.read_text())
    server = config["clusters"][0]["cluster"]["server"]
    with httpx.Client(verify=recorder._context(config), base_url=server, timeout=40) as http:
        for method, path, body, waits in steps:
            time.sleep(waits or 0.3)
            if method == WAIT:
                yield {"request": [method, path, body, waits]}
                continue
            content = None if body is None else json.dumps(body)
            answer = http.request(method, path, content=content, headers={"content-type": content_type(method)})
            yield {"request": [method, path, body, waits], **told(answer.status_code, answer.json())}


if __name__ == "__main__":
    kept = json.loads(FILE.read_text()) if FILE.exists() else {}
    kept[sys.argv[2]] = list(_record(Path(sys.argv[1]), STEPS[sys.argv[2]]))
    FILE.write_text(json.dumps(kept, separators=(",", ":")).replace('},{"request"', '},\n{"request"') + "\n")

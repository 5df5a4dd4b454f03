"""Unmodified kube-scheduler, KWOK and kubectl, a Go informer and a Python watch on one cluster of kemu: they work."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.clients import emulated, go_programs, python_programs
from tests.clients.emulated import Emulated, eventually
from tests.realkube import binaries

OPTIONS = ("--without=schedulers", "--set=nodes=[]", "--set=controllers=[replicaset, deployment, disruption]")
COLUMNS = "-o=custom-columns=:.metadata.name,:.status.phase,:.spec.nodeName"


def node(name: str) -> dict[str, Any]:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": {"app": name.partition("-")[0]}, **spec.pop("metadata", {})}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def documents(*objects: dict[str, Any]) -> str:
    return yaml.safe_dump_all(objects)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulated]:
    binaries.require("kube-scheduler", "kwok", "kubectl")
    with emulated.start(tmp_path_factory.mktemp("up"), *OPTIONS) as found:
        found.start_scheduler(leader_elect=True)
        found.start_kwok()
        yield found


@pytest.fixture(scope="module")
def nodes(cluster: Emulated) -> Emulated:
    cluster.kubectl("create", "-f", "-", stdin=documents(*(node(f"n{number}") for number in (1, 2, 3))))
    cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=15s")
    return cluster


def one(cluster: Emulated, *words: str) -> Any:
    return json.loads(cluster.kubectl("get", *words, "-o", "json"))


def status_of(cluster: Emulated, name: str, condition: str) -> str:
    path = f'-o=jsonpath={{.status.conditions[?(@.type=="{condition}")].status}}'
    return cluster.kubectl("get", "pod", name, path, check=False)


def test_the_scheduler_leads_and_places_pods_that_kwok_runs(nodes: Emulated) -> None:
    names = [f"web-{number}" for number in range(20)]
    nodes.kubectl("apply", "-f", "-", stdin=documents(*map(pod, names)))
    nodes.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod", "-l", "app=web", "--timeout=20s")
    rows = [line.split() for line in nodes.kubectl("get", "pods", "-l", "app=web", "-o", "wide").splitlines()]
    assert rows[0][:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert sorted((row[0], row[1], row[2]) for row in rows[1:]) == sorted((name, "1/1", "Running") for name in names)
    assert {row[6] for row in rows[1:]} == {"n1", "n2", "n3"}

    def told() -> bool:
        events = one(nodes, "events", "--field-selector=reason=Scheduled")["items"]
        return {event["involvedObject"]["name"] for event in events} >= set(names)

    eventually("an event of each binding", told)
    lease = one(nodes, "lease", "-n", "kube-system", "kube-scheduler")
    assert lease["spec"]["holderIdentity"]


def test_a_pod_that_fits_nowhere_says_so(nodes: Emulated) -> None:
    nodes.kubectl("create", "-f", "-", stdin=documents(pod("huge", cpu="100")))
    eventually("the condition", lambda: status_of(nodes, "huge", "PodScheduled") == "False")
    text = eventually("the event", lambda: nodes.kubectl("events", "--for=pod/huge"))
    assert "FailedScheduling" in text
    assert "0/3 nodes are available: 3 Insufficient cpu" in text
    nodes.kubectl("delete", "pod", "huge", "--now")


def test_an_important_pod_preempts(nodes: Emulated) -> None:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    held = {"metadata": {"finalizers": ["example.com/held"]}}  # so that it can still be read
    nodes.kubectl("create", "-f", "-", stdin=documents(kind, *(pod(f"low-{n}", cpu="3", **held) for n in (1, 2, 3))))
    nodes.kubectl("wait", "--for=condition=Ready", "pod", "-l", "app=low", "--timeout=15s")
    nodes.kubectl("create", "-f", "-", stdin=documents(pod("important", cpu="3", priorityClassName="high")))

    def victims() -> list[str]:
        lows = one(nodes, "pods", "-l", "app=low")["items"]
        return [low["metadata"]["name"] for low in lows if "deletionTimestamp" in low["metadata"]]

    victim = eventually("a victim", victims)[0]
    assert status_of(nodes, victim, "DisruptionTarget") == "True"
    assert one(nodes, "pod", "important")["status"]["nominatedNodeName"]
    nodes.kubectl("patch", "pod", victim, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    nodes.kubectl("wait", "--for=condition=Ready", "pod/important", "--timeout=15s")
    nodes.kubectl("patch", "pod", "low-1", "--type=merge", "-p", '{"metadata":{"finalizers":null}}', check=False)
    for name in {"low-1", "low-2", "low-3"} - {victim}:
        nodes.kubectl("patch", "pod", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    nodes.kubectl("delete", "pod", "-l", "app in (low, important)", "--now")


def test_a_drained_node_is_empty_and_its_pods_run_elsewhere(nodes: Emulated) -> None:
    nodes.kubectl("create", "deployment", "moved", "--image=nginx", "--replicas=6")
    nodes.kubectl("rollout", "status", "deployment/moved", "--timeout=20s")
    nodes.kubectl("drain", "n1", "--force", "--timeout=20s")
    assert nodes.kubectl("get", "pods", "--field-selector=spec.nodeName=n1", "-o", "name") == ""
    nodes.kubectl("rollout", "status", "deployment/moved", "--timeout=20s")
    assert one(nodes, "node", "n1")["spec"]["unschedulable"] is True
    nodes.kubectl("uncordon", "n1")
    nodes.kubectl("delete", "deployment", "moved")


def test_mistakes_are_refused_in_the_words_of_kubernetes(nodes: Emulated) -> None:
    wrong = pod("wrong")
    wrong["spec"]["contaners"] = []
    done = nodes.run_kubectl("create", "-f", "-", stdin=documents(wrong))
    assert done.returncode == 1
    says = 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.contaners"'
    assert says in done.stderr
    bad = pod("Bad_Name")
    bad["spec"]["containers"][0]["image"] = ""
    done = nodes.run_kubectl("create", "-f", "-", stdin=documents(bad))
    assert 'The Pod "Bad_Name" is invalid: \n* metadata.name: Invalid value' in done.stderr
    assert "\n* spec.containers[0].image: Required value" in done.stderr
    nodes.kubectl("create", "configmap", "stale", "--from-literal=a=b")
    old = one(nodes, "configmap", "stale")
    nodes.kubectl("label", "configmap", "stale", "x=y")
    done = nodes.run_kubectl("replace", "-f", "-", stdin=json.dumps(old))
    assert "(Conflict)" in done.stderr
    assert "the object has been modified; please apply your changes to the latest version and try again" in done.stderr


def test_programs_of_go_choose_http2_unless_they_are_told_not_to(
    nodes: Emulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GODEBUG", "http2debug=1")
    by_http2 = nodes.run_kubectl("get", "nodes", "-o", "name")
    assert "http2: Transport received HEADERS" in by_http2.stderr
    monkeypatch.setenv("DISABLE_HTTP2", "1")
    by_http1 = nodes.run_kubectl("get", "nodes", "-o", "name")
    assert "http2: Transport received HEADERS" not in by_http1.stderr
    assert by_http2.stdout == by_http1.stdout != ""


@pytest.mark.parametrize("http2", [True, False])
def test_an_informer_loses_nothing_when_its_watches_are_cut_and_what_it_missed_is_gone(
    nodes: Emulated, http2: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not http2:
        monkeypatch.setenv("DISABLE_HTTP2", "1")
    namespace = "held-2" if http2 else "held-1"
    command = go_programs.command(nodes.kubeconfig, "hold", "-content=protobuf", f"-namespace={namespace}")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        assert held.stdin is not None
        assert held.stdout is not None
        assert json.loads(held.stdout.readline()) == {"synced": True}
        for number, how in enumerate(("reset", "expired")):
            write(nodes, namespace, number)
            chaos(nodes, "cutStreams", f"--how={how}", f"--namespace={namespace}", "--for=1s")
            write(nodes, namespace, number + 10)
            time.sleep(2)  # client-go comes back after about a second
        nodes.kubectl("delete", "configmap", "-n", namespace, "c-0")
        out, _ = held.communicate("now\n", timeout=30)
    found = json.loads(out)
    assert found["objects"] == len(one(nodes, "configmap", "-n", namespace)["items"])
    assert found["seen"]["deletes"] == 1
    assert found["timings"]["sync"] < 1000
    # 410 Expired: everything anew. client-go does the same after a reset of a stream, but not of a connection.
    assert found["lists"] + found["watchlists"] >= (3 if http2 else 2)
    assert found["watches"] >= (0 if http2 else 1)


def write(cluster: Emulated, namespace: str, number: int) -> None:
    cluster.kubectl("create", "configmap", "-n", namespace, f"c-{number}", "--from-literal=a=b")


def chaos(cluster: Emulated, *words: str) -> None:
    main = "from kemu.doors.cli.main import main; raise SystemExit(main())"
    subprocess.run(
        [sys.executable, "-c", main, "chaos", *words, f"--kubeconfig={cluster.kubeconfig}"],
        check=True,
        capture_output=True,
        timeout=30,
    )


def test_a_watch_of_a_python_client_that_is_too_old_is_an_exception_with_410(nodes: Emulated) -> None:
    chaos(nodes, "cutStreams", "--how=expired", "--fresh", "--namespace=old", "--for=30s")
    program = (
        "from kubernetes import client, config\n"
        "from tests.clients.programs import synchronous\n"
        f"config.load_kube_config({str(nodes.kubeconfig)!r})\n"
        "print(synchronous.expired(client.ApiClient(), 'old'))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        cwd=python_programs.ROOT,
    )
    assert done.stdout.strip() == "ApiException 410", done.stderr


def test_what_happened_is_judged_and_the_real_scheduler_has_its_row(nodes: Emulated) -> None:
    verdict = nodes.end()
    assert verdict["verdict"] == "holds", verdict
    (real,) = [row for name, row in verdict["schedulers"].items() if name.startswith("gateway/kube-scheduler")]
    assert real["bound"] >= 20

"""``kemu import``: a dump that a real control plane printed becomes a cluster in which nothing happens that it does not
call for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.doors.cli.main import main
from kemu.emulated.objects.conversion import convert
from kemu.lab.incidents import dumps, folders, trimming
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.tell.causes import gentler
from kemu.lab.tell.causes.acts import differences

DUMP = Path(__file__).parent / "data" / "cluster.yaml.gz"
"""``kubectl get … -A -o yaml`` of all kinds, from Kubernetes v1.36.3 with KWOK's nodes."""
SECRET = "c2VjcmV0"


@pytest.fixture(scope="module")
def text() -> str:
    return gzip.decompress(DUMP.read_bytes()).decode()


@pytest.fixture(scope="module")
def objects(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))["items"]
    return found


@pytest.fixture(scope="module")
def incident(text: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("incident")
    (folder / "dump.yaml").write_text(text)
    assert main(["import", str(folder / "dump.yaml"), "--out", str(folder / "out")]) == 0
    return folder / "out"


def write(folder: Path, name: str, objects: Sequence[Mapping[str, Any]]) -> Path:
    file = folder / name
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return file


def of_kind(objects: Sequence[Mapping[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [dict(each) for each in objects if each["kind"] in kinds]


def scenario(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "scenario.yaml").read_text())
    return found


def manifests(folder: Path) -> list[dict[str, Any]]:
    return [each for file in folder.glob("manifests/*/*.yaml") for each in yaml.safe_load_all(file.read_text())]


def test_nothing_happens_that_the_dump_does_not_call_for(
    incident: Path, objects: list[dict[str, Any]], tmp_path: Path
) -> None:
    loaded = loader.load(incident / "scenario.yaml", overrides={"duration": "3m"})
    (result,) = runner.run_all(loaded, runner.Options(out=tmp_path / "run"))[1]
    assert result.verdict["verdict"] == "holds", result.verdict["headline"]
    there = {pod.key: pod for pod in result.history.pods.values() if pod.gone_ns is None}
    before = {f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in of_kind(objects, "Pod")}
    nodes = {name: node for name, each in before.items() if (node := each["spec"].get("nodeName"))}
    assert {name: there[name].node if name in there else "gone" for name in nodes} == nodes
    # Controllers find their pods, running, waiting and ended ones, and make no others. The one waited for a volume that
    # nobody provisioned in that cluster.
    made = [pod.key for pod in result.history.pods.values() if pod.created_by.startswith("controller/")]
    assert made == ["databases/postgres-replica-1"]


def test_a_person_can_read_it(incident: Path, text: str) -> None:
    lines = (incident / "scenario.yaml").read_text().splitlines()
    assert len(lines) < 60
    assert max(map(len, lines)) <= 160
    files = list(incident.glob("manifests/*/*.yaml"))
    assert {"cluster/nodes.yaml", "shop/deployments.yaml", "shop/pods.yaml"} <= {
        file.relative_to(incident / "manifests").as_posix() for file in files
    }
    # What the API server fills in is gone, though the objects come out the same.
    assert sum(len(file.read_text().splitlines()) for file in files) < 0.4 * len(text.splitlines())


def test_the_examples_in_its_comments_hold(incident: Path, tmp_path: Path) -> None:
    lines = (incident / "scenario.yaml").read_text().splitlines()
    begin = next(index for index, line in enumerate(lines) if line == "  # events:")
    examples = [line.replace("  # ", "  ", 1) for line in lines[begin:]]
    assert len(examples) == 5
    (incident / "tried.yaml").write_text("\n".join([*lines[:begin], *examples]))
    loaded = loader.load(incident / "tried.yaml")
    assert [event.what for event in loaded.events] == ["patch", "drain"]


def test_what_is_left_out_is_told_once_with_what_to_write(incident: Path) -> None:
    told = (incident / "scenario.yaml").read_text()
    assert told.count("HorizontalPodAutoscaler: pods of which no usage is known") == 1
    assert "events: {at: 1m, patch: {kind: Deployment" in told
    # What servers make for themselves is no loss.
    assert "FlowSchema:" not in told
    assert "11 FlowSchema" in told.replace("\n# ", " ")


def test_secrets_stay_where_they_are(text: str, incident: Path) -> None:
    held = [each for each in manifests(incident) if each["kind"] == "Secret"]
    assert held
    assert all(value == "" for each in held for value in each["data"].values())


def test_what_a_partial_dump_lacks_is_made(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    file = write(tmp_path, "pods.json", of_kind(objects, "Pod", "Node"))
    assert main(["import", str(file), "--out", str(tmp_path / "out")]) == 0
    kinds = {(each["kind"], each["metadata"]["name"]) for each in manifests(tmp_path / "out")}
    assert {("Namespace", "shop"), ("Namespace", "untrusted")} <= kinds
    classes = {
        each["metadata"]["name"]: each["value"]
        for each in manifests(tmp_path / "out")
        if each["kind"] == "PriorityClass"
    }
    stated = {each["metadata"]["name"]: each["value"] for each in of_kind(objects, "PriorityClass")}
    assert classes
    assert all(stated[name] == value for name, value in classes.items())


def test_pods_of_a_dump_without_claims_can_be_drained_and_come_back(
    objects: list[dict[str, Any]], tmp_path: Path
) -> None:
    """As of ``kubectl get nodes,all``: their claims are made, as an emptyDir would change what they are."""
    node = of_kind(objects, "Node")[0]["metadata"]["name"]
    placed = json.loads(json.dumps(of_kind(objects, "Node", "Pod", "StatefulSet", "ControllerRevision", "Namespace")))
    wanted = [each for each in of_kind(placed, "Pod") if "postgres" in each["metadata"]["name"]]
    for each in wanted:
        each["spec"] |= {"nodeName": node}
        each["spec"]["containers"] = [{"name": "postgres", "image": "postgres"}]
        each["status"] = {"phase": "Running"}
    others = [each for each in placed if each["kind"] != "Pod"]
    assert main(["import", str(write(tmp_path, "d.json", [*others, *wanted])), "--out", str(tmp_path / "out")]) == 0
    made = {each["metadata"]["name"]: each["spec"] for each in manifests(tmp_path / "out") if "Claim" in each["kind"]}
    assert made["data-postgres-primary-0"]["storageClassName"] == "io2"
    loaded = loader.load(
        tmp_path / "out" / "scenario.yaml",
        overrides={"duration": "3m", "events": [{"at": "1m", "drain": {"node": node}}]},
    )
    (result,) = runner.run_all(loaded, runner.Options(out=tmp_path / "run"))[1]
    moved = [pod for pod in result.history.pods.values() if "postgres-primary-0" in pod.key and pod.gone_ns is None]
    assert [pod.node not in ("", node) for pod in moved] == [True]


@pytest.mark.parametrize("named", [True, False])
def test_a_dump_without_claims_and_classes_can_scale_its_stateful_sets(
    objects: list[dict[str, Any]], tmp_path: Path, *, named: bool
) -> None:
    """A made claim keeps the volume mode of its template; a new one gets a volume of a made class."""
    placed = json.loads(json.dumps(of_kind(objects, "Node", "StatefulSet", "ControllerRevision", "Namespace")))
    (primary,) = (each for each in of_kind(placed, "StatefulSet") if each["metadata"]["name"] == "postgres-primary")
    spec = primary["spec"]["volumeClaimTemplates"][0]["spec"]
    spec["volumeMode"] = "Block"
    if not named:
        spec.pop("storageClassName", None)
    replicas = primary["spec"]["replicas"]
    wanted = [each for each in of_kind(objects, "Pod") if "postgres-primary" in each["metadata"]["name"]]
    assert main(["import", str(write(tmp_path, "d.json", [*placed, *wanted])), "--out", str(tmp_path / "out")]) == 0
    made = manifests(tmp_path / "out")
    claims = [each for each in made if each["metadata"]["name"].startswith("data-postgres-primary")]
    assert [each["spec"]["volumeMode"] for each in claims] == ["Block"]
    scale = {"kind": "StatefulSet", "namespace": "databases", "name": "postgres-primary"}
    scaled = {"at": "1m", "patch": {**scale, "merge": {"spec": {"replicas": replicas + 1}}}}
    loaded = loader.load(tmp_path / "out" / "scenario.yaml", overrides={"duration": "3m", "events": [scaled]})
    (result,) = runner.run_all(loaded, runner.Options(out=tmp_path / "run"))[1]
    (added,) = (pod for pod in result.history.pods.values() if pod.key == f"databases/postgres-primary-{replicas}")
    assert added.node


def test_one_field_that_is_no_default_leaves_the_others_out() -> None:
    """``kubectl set image`` keeps the pull policy of the image before: for a tag it is another than the default."""
    spec = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {"name": "c", "image": "nginx:2", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
            },
        },
    }
    made = trimming.trimmed({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    assert made["spec"]["template"]["spec"] == {
        "containers": [{"name": "c", "image": "nginx:2", "imagePullPolicy": "Always"}]
    }


def test_the_last_rollout_is_what_somebody_wrote_not_defaults() -> None:
    """Of two templates one may have them written out."""

    def workload(kind: str, image: str, **more: Any) -> dict[str, Any]:
        pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image, **more}]}}
        spec = {"selector": {"matchLabels": {"app": "web"}}, "template": pod}
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}

    new: Any = convert.from_manifest(workload("Deployment", "nginx:2", terminationMessagePolicy="File"))
    same, old = (workload("ReplicaSet", image) for image in ("nginx:2", "nginx:1"))
    for number, one in enumerate((old, same), 1):
        one["metadata"] |= {
            "name": f"web-{number}",
            "annotations": {"deployment.kubernetes.io/revision": str(number)},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
            ],
        }
    template = gentler.previous_template(new, [convert.from_manifest(one) for one in (old, same)])
    assert template is not None
    before, after = (gentler.with_template(new, one) for one in (template, new.spec.template))
    assert list(differences(before, after)) == ["spec.template.spec.containers[c].image"]


def test_a_folder_as_cluster_info_dump_writes_it(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    (dump / "shop" / "web-1").mkdir(parents=True)
    write(dump, "nodes.json", of_kind(objects, "Node"))
    write(
        dump / "shop",
        "pods.json",
        [each for each in of_kind(objects, "Pod") if each["metadata"]["namespace"] == "shop"],
    )
    (dump / "shop" / "events.json").write_text('{"kind": "EventList", "apiVersion": "v1", "items": null}')
    (dump / "shop" / "web-1" / "logs.txt").write_text("==== START logs for container web ====\n")
    found = dumps.read([dump])
    assert {key.kind for key in found.objects} == {"Node", "Pod"}
    assert [Path(file).name for file in found.other_files] == ["logs.txt"]


def test_a_dump_without_what_tells_of_a_server_is_one_all_the_same(
    objects: list[dict[str, Any]], tmp_path: Path
) -> None:
    """As tools leave it that make dumps shorter, or hide what is secret."""
    nodes = [{**each, "metadata": {"name": each["metadata"]["name"]}} for each in of_kind(objects, "Node")]
    assert all(each["status"]["conditions"] for each in nodes)
    file = write(tmp_path, "dump.json", nodes)
    assert main(["import", str(file), "--out", str(tmp_path / "out")]) == 0
    assert [sorted(each["status"]) for each in manifests(tmp_path / "out") if each["kind"] == "Node"] == [
        sorted(set(each["status"]) & {"addresses", "allocatable", "capacity", "images", "nodeInfo"}) for each in nodes
    ]
    loader.load(tmp_path / "out" / "scenario.yaml")


def test_of_an_object_that_stands_twice_the_newest_counts(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    node = of_kind(objects, "Node")[0]
    newer = {**node, "metadata": {**node["metadata"], "resourceVersion": "99999999", "labels": {"new": "yes"}}}
    found = dumps.read([write(tmp_path, "b.json", [newer]), write(tmp_path, "c.json", [node])])
    (kept,) = found.objects.values()
    assert kept["metadata"]["labels"] == {"new": "yes"}
    assert found.repeated == 1


def test_all_mistakes_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text(
        "kind: List\napiVersion: v1\nitems:\n  - {kind: Pod, apiVersion: v1, metadata: {}}\n  - 3\n"
    )
    (tmp_path / "b.yaml").write_text("{ not: yaml")
    (tmp_path / "top.txt").write_text("NAMESPACE NAME CPU(cores) MEMORY(bytes)\nshop web-1 many 3Mi\n")
    paths = [str(tmp_path / name) for name in ("a.yaml", "b.yaml", "none.yaml", "top.txt")]
    assert main(["import", *paths, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    for part in ("a.yaml:4:5: items[0]: metadata.name is missing", "a.yaml:5:5: items[1]: is no Kubernetes object",
                 "b.yaml:", "none.yaml:", "top.txt:2:1: 'many' is no amount"):  # fmt: skip
        assert part in told
    assert not (tmp_path / "out").exists()


def test_without_nodes_there_is_nothing_to_run_on(
    objects: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, "pods.json", of_kind(objects, "Pod"))
    assert main(["import", str(file), "--out", str(tmp_path / "out")]) == 2
    assert "kubectl get nodes -o yaml" in capsys.readouterr().err


def test_a_folder_of_the_users_is_never_overwritten(
    incident: Path, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dump.yaml").write_text(text)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    for force in ([], ["--force"]):
        assert main(["import", str(tmp_path / "dump.yaml"), "--out", str(mine), *force]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert (mine / "notes.txt").read_text() == "mine"


def test_nodes_that_were_not_ready_begin_so(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    nodes = of_kind(objects, "Node")
    sick = nodes[0]["metadata"]["name"]
    lost = [
        {**one, "status": "Unknown", "reason": "NodeStatusUnknown"} if one["type"] == "Ready" else one
        for one in nodes[0]["status"]["conditions"]
    ]
    nodes[0] = {**nodes[0], "status": {**nodes[0]["status"], "conditions": lost}}
    file = write(tmp_path, "dump.json", [*nodes, *of_kind(objects, "Pod", "Namespace", "PriorityClass")])
    assert main(["import", str(file), "--out", str(tmp_path / "out"), "--duration", "2m"]) == 0
    assert scenario(tmp_path / "out")["spec"]["chaos"] == [
        {"at": "0s", "crash": {"actor": f"kubelet/{sick}", "restart": False}}
    ]
    loaded = loader.load(tmp_path / "out" / "scenario.yaml")
    (result,) = runner.run_all(loaded, runner.Options(out=tmp_path / "run"))[1]
    assert f"kubelet/{sick}" in json.dumps(result.verdict["faults"]) or result.verdict["counts"]["faults"] == 1


def test_the_time_line_tells_what_the_cluster_said(incident: Path) -> None:
    told = (incident / folders.TIMELINE).read_text().splitlines()
    assert any("! FailedScheduling" in line for line in told)
    assert not any(" Scheduled" in line for line in told)


def test_unknown_custom_kinds_are_told(
    objects: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    widgets = [{"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {"name": name}} for name in "ab"]
    file = write(tmp_path, "dump.json", [*of_kind(objects, "Node"), *widgets])
    assert main(["import", str(file), "--out", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [text for text in told["left_out"] if text.startswith("Gadget.example.org (2 times)")]


def test_nodes_keep_the_images_that_pods_want(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    nodes = [dict(each) for each in of_kind(objects, "Node")[:2]]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
    }
    images = [
        {"names": ["docker.io/library/nginx@sha256:ab", "docker.io/library/nginx:1.27"], "sizeBytes": 70_000_000},
        {"names": ["registry.example.com/other:1"], "sizeBytes": 5},
    ]
    nodes[1]["status"] = {**nodes[1]["status"], "images": images}
    file = write(tmp_path, "dump.json", [*nodes, pod])
    assert main(["import", str(file), "--out", str(tmp_path / "out")]) == 0
    kept = {
        each["metadata"]["name"]: each["status"].get("images")
        for each in manifests(tmp_path / "out")
        if each["kind"] == "Node"
    }
    first, second = (each["metadata"]["name"] for each in nodes)
    assert kept == {first: None, second: [{"names": ["nginx:1.27"], "sizeBytes": 70_000_000}]}
    loaded = loader.load(tmp_path / "out" / "scenario.yaml")
    assert loaded.images == {"nginx:1.27": 70_000_000}
    (result,) = runner.run_all(loaded, runner.Options(out=tmp_path / "run"))[1]
    # ImageLocality prefers the node that has it.
    assert result.history.pod("web").node == second


def test_run_and_explain_take_the_folder(incident: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        main(["run", str(incident), "--set", "duration=1s", "--set", "expect=[{counter: pods_bound, atLeast: 99}]"])
        == 1
    )
    assert main(
        ["explain", str(incident), "--set", "duration=1s", "--set", "expect=[{counter: pods_bound, atLeast: 99}]"]
    ) in (0, 1)
    assert not list(incident.glob("explanation*"))


def test_what_the_api_server_refuses_is_left_out(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    services = [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "resourceVersion": "5"}, "spec": spec}
        for name, spec in (
            ("foreign", {"clusterIP": "10.100.3.4", "ports": [{"port": 80, "nodePort": 31234}], "type": "NodePort"}),
            ("headless", {"clusterIP": "None", "ports": [{"port": 80}]}),
        )
    ]
    written = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "mine"},
        "spec": {"selector": {"app": "mine"}},
    }
    budget = {
        "apiVersion": "policy/v1beta1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "old"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
    }
    file = write(tmp_path, "dump.json", [*of_kind(objects, "Node"), *services, written, budget])
    assert main(["import", str(file), "--out", str(tmp_path / "out")]) == 0
    kept = {each["metadata"]["name"]: each for each in manifests(tmp_path / "out")}
    assert "clusterIP" not in kept["foreign"]["spec"]
    assert kept["headless"]["spec"]["clusterIP"] == "None"
    assert kept["old"]["apiVersion"] == "policy/v1"
    assert "mine" not in kept
    assert "ports: Required value" in (tmp_path / "out" / "scenario.yaml").read_text().replace("\n#     ", " ")
    assert main(["run", str(tmp_path / "out"), "--out", str(tmp_path / "run"), "--set", "duration=1s"]) == 0


def test_static_pods_go_on_running(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    node = of_kind(objects, "Node")[0]
    mirror = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "etcd-cp",
            "namespace": "kube-system",
            "uid": "bb0b9f0e-8d6f-4c0c-9a6a-0d5a4b7c7f10",
            "annotations": {"kubernetes.io/config.mirror": "h", "kubernetes.io/config.source": "file"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"], "uid": "x", "controller": True}
            ],
        },
        "spec": {
            "nodeName": node["metadata"]["name"],
            "priorityClassName": "system-node-critical",
            "containers": [{"name": "etcd", "image": "etcd:3"}],
        },
        "status": {"phase": "Running"},
    }
    file = write(tmp_path, "dump.json", [node, mirror])
    assert main(["import", str(file), "--out", str(tmp_path / "out")]) == 0
    loaded = loader.load(tmp_path / "out" / "scenario.yaml", overrides={"duration": "1m"})
    (result,) = runner.run_all(loaded, runner.Options(out=tmp_path / "run"))[1]
    pod = result.history.pod("kube-system/etcd-cp")
    assert pod is not None
    assert (pod.phase, pod.gone_ns) == ("Running", None)


def test_pods_keep_their_devices(tmp_path: Path) -> None:
    """Six of eight pods have the six devices of three nodes; one is deleted, and its device goes to one that waits."""
    (tmp_path / "dump.yaml").write_bytes(gzip.decompress((DUMP.parent / "devices.yaml.gz").read_bytes()))
    assert main(["import", str(tmp_path / "dump.yaml"), "--out", str(tmp_path / "out")]) == 0
    file = tmp_path / "out" / "scenario.yaml"
    event = "{at: 1m, delete: {kind: Pod, namespace: default, name: train-5f8f658458-2g4km}}"
    file.write_text(file.read_text().replace("spec:\n", f"spec:\n  events: [{event}]\n", 1))
    loaded = loader.load(file, overrides={"duration": "2m"})
    (result,) = runner.run_all(loaded, runner.Options(out=tmp_path / "run"))[1]
    dump = {each["metadata"]["name"]: each for each in yaml.safe_load((tmp_path / "dump.yaml").read_text())["items"]}
    freed = dump["train-5f8f658458-2g4km"]["spec"]["nodeName"]
    kept = {name for name, each in dump.items() if each["kind"] == "Pod" and each["spec"].get("nodeName")}
    waited = {name for name, each in dump.items() if each["kind"] == "Pod"} - kept
    run = {pod.name: pod for pod in result.history.pods.values() if pod.phase == "Running" and pod.gone_ns is None}
    (came,) = run.keys() - kept
    assert (came in waited, run[came].node) == (True, freed)
    assert {name: run[name].node for name in kept - {"train-5f8f658458-2g4km"}} == {
        name: dump[name]["spec"]["nodeName"] for name in kept - {"train-5f8f658458-2g4km"}
    }


def test_a_dump_that_means_harm_writes_nothing_elsewhere_and_no_key_of_a_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "x\nmodules: [evil]"
    pod = {"containers": [{"name": "main", "image": "a"}]}
    node = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    outside = "../../../outside"
    steering = "\x1b]0;a title\x07"
    ready = {"type": "Ready", "status": "False", "reason": key}
    status = {"allocatable": node, "capacity": node, "conditions": [ready]}
    objects: list[dict[str, Any]] = [
        {"kind": "Node", "metadata": {"name": "n", "uid": "1", "resourceVersion": "1"}, "status": status},
        {"kind": "Namespace", "metadata": {"name": outside}},
        {"kind": "ConfigMap", "metadata": {"name": "c", "namespace": outside}},
        {"kind": "ConfigMap", "metadata": {"name": f"../{key}", "namespace": "default"}},
        {"kind": "Pod", "metadata": {"name": "p", "namespace": key}, "spec": pod},
        {"kind": "Pod", "metadata": {"name": "q"}, "spec": {**pod, "schedulerName": key}},
        {"kind": "Pod", "metadata": {"name": "r"}, "spec": {**pod, key: {}}},
        {"kind": "../../Evil", "apiVersion": f"evil.dev/v1{key}", "metadata": {"name": "e", "namespace": outside}},
        {
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "reason": key,
            "involvedObject": {"kind": "Pod", "name": f"q{steering}"},
            "message": steering,
            "lastTimestamp": "2026-01-01T00:00:00Z",
        },
    ]
    file = write(tmp_path, "dump.yaml", [{"apiVersion": "v1", **each} for each in objects])
    folder = tmp_path / "a" / "b" / "incident"
    assert main(["import", str(file), "--out", str(folder)]) == 2, "a scheduler of such a name is refused"
    said = capsys.readouterr()
    made = {each.relative_to(tmp_path).as_posix() for each in tmp_path.rglob("*") if each.is_file()}
    assert all(each == "dump.yaml" or each.startswith("a/b/incident/") for each in made)
    spec = scenario(folder)["spec"]
    assert set(spec) == {"seed", "duration", "manifests", "schedulers", "chaos", "observed"}
    assert spec["schedulers"] == [{"name": "default-scheduler"}, {"name": key}]
    shown = said.out + said.err + "".join(each.read_text() for each in folder.rglob("*") if each.is_file())
    assert not {*shown} & {*"\x1b\x07"}
    assert "\nmodules:" not in (folder / "scenario.yaml").read_text() + (folder / "timeline.txt").read_text()

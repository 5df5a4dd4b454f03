"""The commands, in order, with what components write between them.

Nothing but the script changes the cluster: no scheduler, no kubelet, no controller runs. ``Write`` says what they would
write. So both servers hold the same objects at each command, and two runs of the script differ in no more than time,
UIDs, resource versions and generated names.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

NAMESPACE = "demo"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
_BATCH = f"/apis/batch/v1/namespaces/{NAMESPACE}"
_POLICY = f"/apis/policy/v1/namespaces/{NAMESPACE}"
_CORE = f"/api/v1/namespaces/{NAMESPACE}"
_THEN = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Command:
    """One command line of kubectl; its texts and its exit code are compared."""

    line: str
    stdin: str = ""
    editor: str = ""
    """For ``kubectl edit``: a sed expression that edits."""
    pause_s: float = 0.0
    """Before it: writers are shown in the order of the seconds in which they wrote."""

    @property
    def arguments(self) -> list[str]:
        return shlex.split(self.line)

    @property
    def name(self) -> str:
        """Unique in the script."""
        shown = (
            self.line + (f" <<< {self.stdin!r}" if self.stdin else "") + (f" # {self.editor}" if self.editor else "")
        )
        return shown.replace("\n", "\\n")


@dataclass(frozen=True)
class Write:
    """What a component writes. ``{uid:PATH}`` in the body stands for the UID of the object at PATH."""

    method: str
    path: str
    body: dict[str, Any] | list[Any]
    content_type: str = "application/json"
    may_exist: bool = False
    """What it creates may be there already: a component of the cluster does the same."""


@dataclass(frozen=True)
class Watch:
    """``kubectl get -w``, ended after ``lines`` lines; ``writes`` are done once ``before`` lines are there."""

    line: str
    before: int
    writes: tuple[Write, ...]
    lines: int

    @property
    def arguments(self) -> list[str]:
        return shlex.split(self.line)

    @property
    def name(self) -> str:
        return self.line


Step = Command | Write | Watch


def _status(path: str, status: dict[str, Any]) -> Write:
    return Write("PATCH", f"{path}/status", {"status": status}, "application/merge-patch+json")


def _merge(path: str, body: dict[str, Any]) -> Write:
    return Write("PATCH", path, body, "application/merge-patch+json")


def _bind(pod: str, node: str) -> Write:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
    return Write("POST", f"{_PODS}/{pod}/binding", body)


def _condition(kind: str, status: str, **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": _THEN, **more}


def _runs(pod: str, ip: str, *containers: dict[str, Any], **more: Any) -> Write:
    status = {
        "phase": "Running",
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": _THEN,
        "conditions": [
            _condition("Initialized", "True"),
            _condition("Ready", "True"),
            _condition("ContainersReady", "True"),
            _condition("PodScheduled", "True"),
        ],
        "containerStatuses": list(containers),
        **more,
    }
    return _status(f"{_PODS}/{pod}", status)


def _container(name: str, image: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "imageID": f"example.com/{name}@sha256:00",
        "containerID": f"containerd://{name}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": _THEN}},
        **more,
    }


def _event(
    name: str, kind: str, of: str, path: str, reason: str, message: str, kind_of: str = "Normal", **more: Any
) -> Write:
    involved: dict[str, Any] = {"kind": kind, "name": of, "uid": f"{{uid:{path}}}", "apiVersion": "v1"}
    if kind != "Node":
        involved["namespace"] = NAMESPACE
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": NAMESPACE if kind != "Node" else "default"},
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": kind_of,
        "source": {"component": "kubelet", "host": "n0"},
        "firstTimestamp": _THEN,
        "lastTimestamp": _THEN,
        "count": 1,
        **more,
    }
    return Write("POST", f"/api/v1/namespaces/{body['metadata']['namespace']}/events", body)


def _replicaset(name: str, revision: int, image: str, replicas: int) -> tuple[Write, Write]:
    labels = {"app": "web", "pod-template-hash": name.partition("-")[2]}
    body = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {
                "deployment.kubernetes.io/revision": str(revision),
                "deployment.kubernetes.io/desired-replicas": "2",
                "deployment.kubernetes.io/max-replicas": "3",
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": "web",
                    "uid": f"{{uid:{_APPS}/deployments/web}}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": image}]},
            },
        },
    }
    status = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "observedGeneration": 1}
    return Write("POST", f"{_APPS}/replicasets", body), _status(f"{_APPS}/replicasets/{name}", status)


def _rolled_out(replicas: int, generation: int) -> Write:
    status = {
        "observedGeneration": generation,
        "replicas": replicas,
        "updatedReplicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas,
        "conditions": [
            _condition(
                "Available",
                "True",
                reason="MinimumReplicasAvailable",
                message="Deployment has minimum availability.",
                lastUpdateTime=_THEN,
            ),
            _condition(
                "Progressing",
                "True",
                reason="NewReplicaSetAvailable",
                message='ReplicaSet "web-2" has successfully progressed.',
                lastUpdateTime=_THEN,
            ),
        ],
    }
    return _status(f"{_APPS}/deployments/web", status)


def _pod(name: str, **more: Any) -> Write:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "nginx"}], **more},
    }
    return Write("POST", _PODS, body)


def script() -> Iterator[Step]:
    """The whole session."""
    yield from _objects()
    yield from _reads()
    yield from _patches()
    yield from _applies()
    yield from _rollouts()
    yield from _nodes()
    yield from _wrong_input()
    yield from _answers()
    yield from _deletions()


def beginning(commands: int) -> Iterator[Step]:
    """Its first so many commands, and what is written before them."""
    for step in script():
        if not isinstance(step, Write):
            commands -= 1
        if commands < 0:
            return
        yield step


def _objects() -> Iterator[Step]:
    yield Command(f"create namespace {NAMESPACE}")
    yield Command("create -f nodes.yaml")
    yield Command("create -f cluster.yaml")
    yield Write(
        "POST",
        f"{_CORE}/serviceaccounts",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}},
        may_exist=True,
    )
    yield Command("create -f pod-running.yaml -f pod-pending.yaml")
    yield _bind("running", "n0")
    yield _runs(
        "running",
        "10.1.0.5",
        _container("c", "nginx:1.27"),
        _container(
            "sidecar",
            "busybox",
            ready=False,
            restartCount=3,
            state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}},
            lastState={"terminated": {"exitCode": 1, "reason": "Error", "startedAt": _THEN, "finishedAt": _THEN}},
        ),
        initContainerStatuses=[
            _container(
                "setup",
                "busybox",
                state={"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": _THEN, "finishedAt": _THEN}},
            )
        ],
    )
    unschedulable = "0/3 nodes are available: 3 Insufficient cpu."
    yield _status(
        f"{_PODS}/pending",
        {
            "conditions": [_condition("PodScheduled", "False", reason="Unschedulable", message=unschedulable)],
            "nominatedNodeName": "n0",
        },
    )
    yield _pod("preempted", nodeName="n0", priority=0)
    yield _runs(
        "preempted",
        "10.1.0.6",
        _container(
            "c",
            "nginx",
            ready=False,
            state={"terminated": {"exitCode": 137, "reason": "Error", "startedAt": _THEN, "finishedAt": _THEN}},
        ),
        phase="Failed",
        reason="Preempted",
        message="Preempted in order to admit critical pod",
        conditions=[
            _condition(
                "DisruptionTarget", "True", reason="PreemptionByScheduler", message="default-scheduler: preempting"
            )
        ],
    )
    yield _pod("gated", schedulingGates=[{"name": "example.com/wait"}])
    yield _event(
        "running.1", "Pod", "running", f"{_PODS}/running", "Pulled", "Container image already present", fieldPath=""
    )
    yield _event(
        "pending.1",
        "Pod",
        "pending",
        f"{_PODS}/pending",
        "FailedScheduling",
        unschedulable,
        "Warning",
        count=4,
        source={"component": "default-scheduler"},
        reportingComponent="default-scheduler",
    )
    yield _event("n0.1", "Node", "n0", "/api/v1/nodes/n0", "NodeReady", "Node n0 status is now: NodeReady")
    yield Command("create -f deployment.yaml -f workloads.yaml")
    yield _merge(f"{_APPS}/deployments/web", {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "2"}}})
    yield from _replicaset("web-1", 1, "nginx:0", 0)
    yield from _replicaset("web-2", 2, "nginx:1", 2)
    yield _rolled_out(2, 1)
    yield _status(
        f"{_BATCH}/jobs/count",
        {"active": 1, "succeeded": 1, "ready": 1, "startTime": _THEN, "uncountedTerminatedPods": {}},
    )
    yield _status(
        f"{_APPS}/statefulsets/db",
        {
            "replicas": 2,
            "readyReplicas": 1,
            "currentReplicas": 2,
            "updatedReplicas": 2,
            "availableReplicas": 1,
            "observedGeneration": 1,
            "currentRevision": "db-1",
            "updateRevision": "db-1",
        },
    )
    yield _status(
        f"{_APPS}/daemonsets/agent",
        {
            "currentNumberScheduled": 2,
            "desiredNumberScheduled": 3,
            "numberReady": 1,
            "numberAvailable": 1,
            "numberMisscheduled": 0,
            "updatedNumberScheduled": 2,
            "numberUnavailable": 2,
            "observedGeneration": 1,
        },
    )
    yield _status(
        f"{_POLICY}/poddisruptionbudgets/web",
        {
            "disruptionsAllowed": 1,
            "currentHealthy": 2,
            "desiredHealthy": 1,
            "expectedPods": 2,
            "observedGeneration": 1,
            "conditions": [_condition("DisruptionAllowed", "True", reason="SufficientPods", message="")],
        },
    )
    yield _status(f"{_CORE}/persistentvolumeclaims/data", {"phase": "Pending"})
    yield _status("/api/v1/persistentvolumes/pv0", {"phase": "Available"})
    yield _status(
        f"{_CORE}/resourcequotas/small",
        {
            "hard": {"count/configmaps": "20", "count/widgets.example.com": "4"},
            "used": {"count/configmaps": "1", "count/widgets.example.com": "0"},
        },
    )
    yield Write(
        "POST",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "n0"},
            "spec": {"holderIdentity": "n0", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"},
        },
    )


def _reads() -> Iterator[Step]:
    for line in (
        "get nodes",
        "get nodes -o wide",
        "get nodes -l topology.kubernetes.io/zone=b --show-labels",
        "get node n0 -o yaml",
        "get nodes -o custom-columns=NAME:.metadata.name,CPU:.status.capacity.cpu,TAINTS:.spec.taints",
        r"""get nodes -o 'jsonpath={range .items[*]}{.metadata.name}{"\t"}{.status.capacity.cpu}{"\n"}{end}'""",
        "get nodes --sort-by=.status.capacity.cpu -L topology.kubernetes.io/zone",
        "get nodes -o 'go-template={{range .items}}{{.metadata.name}}:{{len .metadata.labels}};{{end}}'",
        "get pods",
        "get pods -o wide",
        "get pods --field-selector=status.phase=Running,spec.nodeName=n0",
        "get pods --field-selector=spec.foo=bar",
        "get pods -l 'app in (web,big),tier!=back' --show-labels",
        "get pods -l 'a b'",
        "get pods --sort-by=.metadata.name -o name",
        "get pods -A --no-headers",
        "get pods --chunk-size=2",
        "get pod running -o yaml",
        "get pod running -o json --show-managed-fields=false",
        "get pods/pending nodes/n1",
        "get pods,deploy,rs,jobs",
        "get all",
        "get deployments,rs,sts,ds,jobs,cj -o wide",
        "get pdb,pvc,svc,sa,quota,limits",
        "get cm settings",
        "get pv,sc,runtimeclass,pc",
        "get leases -n kube-node-lease",
        "get namespaces",
        "get --raw /api/v1/nodes/n2",
        "get --raw /nosuch",
        "get --raw /healthz",
        "get pod nosuch",
        "get pods --ignore-not-found nosuch",
        "get nosuch",
        "get pods -n nosuch",
        "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}",
        "get deployment web --output=template --template={{.metadata.generation}}",
        "describe pod running",
        "describe pod pending",
        "describe pod preempted",
        "describe pod gated",
        "describe pod nosuch",
        "describe node n0",
        "describe node n1",
        "describe deployment web",
        "describe rs web-2",
        "describe job count",
        "describe cronjob nightly",
        "describe sts db",
        "describe ds agent",
        "describe pdb web",
        "describe pvc data",
        "describe pv pv0",
        "describe sc fast",
        "describe cm settings",
        "describe svc web",
        "describe quota small",
        "describe limits sizes",
        "describe pc high",
        "describe ns demo",
        "describe clusterrole demo-reader",
        "events",
        "events --for pod/pending",
        "events --types=Warning",
        "get events --sort-by=.metadata.name",
        "get events -o wide --field-selector involvedObject.name=running",
        "describe events pending.1",
    ):
        yield Command(line)
    yield Watch(
        "get pods -w -l app=gated",
        2,
        (
            _merge(f"{_PODS}/gated", {"metadata": {"labels": {"step": "1"}}}),
            _merge(f"{_PODS}/gated", {"spec": {"schedulingGates": None}}),
        ),
        4,
    )
    yield Watch("get nodes n2 -w -o name", 1, (_merge("/api/v1/nodes/n2", {"metadata": {"labels": {"step": "1"}}}),), 2)


def _patches() -> Iterator[Step]:
    for line in (
        """patch pod gated -p '{"metadata":{"labels":{"x":"strategic"}},"spec":{"containers":[{"name":"c","image":"nginx:9"}]}}'""",  # noqa: E501
        """patch pod gated --type=merge -p '{"metadata":{"labels":{"x":null,"y":"merge"}}}' -o jsonpath='{.metadata.labels}'""",  # noqa: E501
        """patch pod gated --type=json -p '[{"op":"replace","path":"/metadata/labels/y","value":"json"}]'""",
        """patch pod gated --type=json -p '[{"op":"test","path":"/metadata/labels/y","value":"nope"}]'""",
        """patch pod gated --type=json -p '[{"op":"remove","path":"/metadata/labels/none"}]'""",
        """patch pod gated --type=merge -p '{"metadata":{"labels":{"y":"json"}}}'""",
        """patch pod gated -p '{"spec":{"nodeSelector":{"a":"b"}}}'""",
        """patch pod gated -p '{"spec":'""",
        """patch node n2 --subresource=status --type=merge -p '{"status":{"capacity":{"example.com/foo":"3"}}}'""",
        "label pod gated z=1",
        "label pod gated z=2",
        "label pod gated z=2 --overwrite",
        "label pod gated z-",
        "label pod gated none-",
        "label pods --all seen=yes",
        "label pod gated 'bad key=1'",
        "annotate pod gated note=hello",
        "annotate pod gated note-",
        "set image pod/gated c=nginx:10",
        "set env deployment/web MODE=fast",
        "set resources deployment/web --limits=cpu=1",
        "get deployment web -o yaml",
        "taint node n2 dedicated=x:NoSchedule",
        "taint node n2 dedicated=x:NoSchedule",
        "taint node n2 dedicated:NoSchedule-",
        "taint node n2 dedicated:NoSchedule-",
        "taint node n2 dedicated=x:Nonsense",
    ):
        yield Command(line)
    yield Command("edit deployment web", editor="s/MODE/SPEED/")
    yield Command("edit deployment web", editor="s/nosuch/x/")
    yield Command("edit pod gated", editor="s/restartPolicy: Always/restartPolicy: Never/")
    yield Command("get deployment web -o jsonpath={.spec.template.spec.containers[0].env}")


def _applies() -> Iterator[Step]:
    for line in (
        "apply -f pod-simple.yaml",
        "apply -f pod-simple.yaml",
        "diff -f pod-simple2.yaml",
        "apply -f pod-simple2.yaml",
        "apply -f pod-simple2.yaml -o jsonpath='{.metadata.annotations}{.spec.containers[0].image}'",
        "apply view-last-applied pod simple",
        "apply -f pod-immutable.yaml",
        "apply --dry-run=server -f pod-simple.yaml -o yaml",
        "apply --dry-run=client -f pod-simple.yaml",
        "apply -f deployment2.yaml",
        "diff -f deployment.yaml",
        "diff --server-side -f settings-applied.yaml",
        "apply --server-side -f settings-applied.yaml",
        "apply --server-side -f settings-applied2.yaml --field-manager=other",
    ):
        yield Command(line)
    for line in (
        "apply --server-side -f settings-applied2.yaml --field-manager=other --force-conflicts",
        "apply --server-side -f settings-applied.yaml",
        "apply --server-side -f settings-applied2.yaml",
    ):
        yield Command(line, pause_s=1.1)
    for line in (
        "get cm applied -o yaml --show-managed-fields",
        "apply --server-side -f pod-simple.yaml",
        "apply --server-side -f pod-simple.yaml --force-conflicts",
        "get pod simple -o yaml --show-managed-fields",
        "replace -f settings-applied.yaml",
        "replace --force -f settings-applied.yaml",
        "create -f pod-simple.yaml",
        "create -f pod-simple.yaml --dry-run=server -o name",
        "create configmap made --from-literal=a=b --from-literal=c=d",
        "create configmap made --from-literal=a=b",
        "create deployment made --image=nginx --replicas=2",
        "create job made --image=busybox -- true",
        "create cronjob made --image=busybox --schedule='*/5 * * * *'",
        "create job from-cron --from=cronjob/nightly",
        "create quota made --hard=count/widgets.example.com=1",
        "create pdb made --selector=app=made --min-available=50%",
        "create priorityclass made --value=7",
        "create serviceaccount made",
        "create role made --verb=get --resource=pods",
        "create rolebinding made --role=made --serviceaccount=demo:made",
        "create secret generic made --from-literal=p=q",
        "create service clusterip made --clusterip=None",
        "create -f pod-generated.yaml -o jsonpath={.metadata.generateName}",
        "run made --image=nginx --labels=app=run",
        "run made --image=nginx --dry-run=client -o yaml",
        "expose deployment made --port=80 --cluster-ip=None --name=exposed",
        "autoscale deployment made --min=1 --max=3",
        "get cm,deploy,jobs,cj,quota,pdb,sa,roles,rolebindings,secrets,svc,hpa -l app=made",
        "get deploy,jobs,cj,pdb,hpa",
        "get svc exposed -o yaml",
        "get hpa made -o yaml",
        "get job made -o yaml",
        "describe hpa made",
        "describe secret made",
        "describe sa made",
        "describe rolebinding made",
    ):
        yield Command(line)
    yield Command(
        "apply -f -", stdin='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"piped"},"data":{"a":"b"}}'
    )
    yield Command("apply set-last-applied -f settings-applied.yaml --create-annotation")


def _rollouts() -> Iterator[Step]:
    yield Command("rollout status deployment web --timeout=1s")
    yield _rolled_out(3, 9)
    for line in (
        "rollout status deployment web --timeout=5s",
        "rollout history deployment web",
        "rollout history deployment web --revision=1",
        "rollout undo deployment web --to-revision=1",
        "rollout undo deployment web --to-revision=7",
        "rollout pause deployment web",
        "rollout pause deployment web",
        "rollout undo deployment web",
        "rollout resume deployment web",
        "rollout restart deployment web",
        "rollout status sts/db --timeout=1s",
        "rollout status ds/agent --timeout=1s",
        "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}",
        "scale deployment web --replicas=4",
        "scale deployment web --replicas=5 --current-replicas=3",
        "scale rs web-2 --replicas=1",
        "scale deployment nosuch --replicas=1",
        "get --raw /apis/apps/v1/namespaces/demo/deployments/web/scale",
        "wait --for=condition=Ready pod/running --timeout=1s",
        "wait --for=condition=Available deployment/web --timeout=2s",
        "wait --for=jsonpath={.status.phase}=Running pod/running --timeout=2s",
        "wait --for=condition=Nope pod/running --timeout=1s",
        "wait --for=delete pod/nosuch --timeout=1s",
        "wait --for=condition=Ready pod/nosuch --timeout=1s",
    ):
        yield Command(line)


def _nodes() -> Iterator[Step]:
    yield _pod("web-a", nodeName="n0")
    yield _merge(f"{_PODS}/web-a", {"metadata": {"labels": {"app": "web"}, "finalizers": None}})
    yield _pod("web-b", nodeName="n0", terminationGracePeriodSeconds=0)
    for line in (
        "cordon n0",
        "cordon n0",
        "get nodes",
        "drain n0",
        "drain n0 --dry-run=server --force --ignore-daemonsets --delete-emptydir-data",
        "uncordon n0",
        "uncordon n0",
        "cordon nosuch",
        "drain n2",
    ):
        yield Command(line)
    yield _status(f"{_POLICY}/poddisruptionbudgets/web", {"disruptionsAllowed": 0, "observedGeneration": 1})
    yield Command("drain n0 --force --ignore-daemonsets --delete-emptydir-data --timeout=2s --pod-selector=app=web")
    yield Command("get pods -o wide")
    yield Command("top nodes")
    yield Command("top pods")
    yield Command("logs nosuch")
    yield Command("logs running -c nosuch")
    yield Command("exec nosuch -- ls")


def _wrong_input() -> Iterator[Step]:
    for line in (
        "create -f not-yaml.yaml",
        "create -f unknown-field.yaml",
        "apply -f unknown-field.yaml",
        "create --validate=warn -f unknown-field.yaml --dry-run=server",
        "create --validate=ignore -f unknown-field.yaml --dry-run=server",
        "create -f unknown-kind.yaml",
        "create -f wrong-type.yaml",
        "create -f invalid.yaml",
        "apply -f invalid.yaml",
        "apply --server-side -f invalid.yaml",
        "create -f invalid-deployment.yaml",
        "create -f nosuch.yaml",
        "create -n nosuch -f pod-simple.yaml",
        "create namespace demo",
        "create namespace Not_A_Name",
        "replace -f pod-immutable.yaml",
        "scale deployment web --replicas=-3",
        "label node nosuch a=b",
        "get pods --field-selector='status.phase'",
        "get pods --sort-by=.nosuch",
    ):
        yield Command(line)
    yield Command("create -f -", stdin='{"kind":"Pod"')
    yield Command("create -f -", stdin="apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")


def _answers() -> Iterator[Step]:
    for line in (
        "auth can-i create pods",
        "auth can-i '*' '*'",
        "auth can-i create widgets",
        "auth can-i get pods --as=nobody",
        "auth can-i --list --as=nobody",
        "explain pod.spec.tolerations",
        "explain pod.spec.containers.resources --recursive",
        "explain nodes --recursive",
        "explain deployment.spec.strategy",
        "explain pod.spec.nosuch",
        "explain nosuch",
        "explain pdb.spec",
        "api-resources --api-group=apps",
        "api-resources --api-group=batch -o wide",
        "api-resources --api-group=policy -o name",
        "api-resources --api-group=scheduling.k8s.io --no-headers",
        "api-resources --api-group='' --namespaced=false",
        "cluster-info",
        "get pods --as=nobody",
        "get nodes --as=nobody --as-group=system:masters",
    ):
        yield Command(line)


def _deletions() -> Iterator[Step]:
    yield Command("delete pod nosuch")
    yield Command("delete pod nosuch --ignore-not-found")
    yield Command("delete cm made")
    yield Command("delete -f settings-applied.yaml --wait=false")
    yield Command("delete pods --all --dry-run=server")
    yield Command("delete pod pending gated --now")
    yield Command("delete pod simple --grace-period=0 --force")
    yield Command("delete pod running --wait=false --grace-period=7")
    yield Command("get pod running")
    yield Command("get pod running -o jsonpath={.metadata.deletionGracePeriodSeconds}")
    yield Command("describe pod running")
    yield Command("delete pod running --grace-period=0 --force")
    yield Command("delete deployment made --cascade=orphan --wait=false")
    yield Command("get deployment made -o jsonpath={.metadata.finalizers}")
    yield _merge(f"{_APPS}/deployments/made", {"metadata": {"finalizers": None}})
    yield Command("delete deployment web --cascade=foreground --wait=false")
    yield Command("get deployment web -o jsonpath={.metadata.finalizers}")
    yield _merge(f"{_APPS}/deployments/web", {"metadata": {"finalizers": None}})
    yield Command("get deployments")
    yield Command("delete rs web-1 web-2")
    yield Command("delete job,cj --all --wait=false --cascade=background")
    yield Command("delete pods -l app=gen --grace-period=0 --force")
    yield Command("delete pdb web made")
    yield Command("delete node n1 n2")
    yield Command("delete quota,limits,pvc --all --wait=false")
    yield Command("get pods")
    yield Command("delete nosuch x")
    yield Command("delete pods")
    yield Command(f"delete namespace {NAMESPACE} --wait=false")

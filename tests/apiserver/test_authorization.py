"""Who may do what: identities, the modes Node and RBAC, NodeRestriction, acting as somebody."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from kemu import errors
from kemu.emulated.apiserver import admission
from kemu.emulated.apiserver.authorization import attributes, authorizers, roles
from kemu.emulated.client.clients import Client
from kemu.emulated.objects import identities
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import coordination_v1_pb2, core_v1_pb2, rbac_v1_pb2
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from tests.apiserver.apiserver_cluster import SERVERS, Cluster, pod, run

ALICE = {"alice": {"groups": ["dev"], "roles": [{"role": "edit", "namespace": "default"}]}}
WITH_ALICE = ({"users": ALICE},)


def acting(cluster: Cluster, name: str, env: str = "user") -> Client:
    return Client(cluster.runtime.env(env), "apiserver/0", acts_as=name)


async def refused(request: Any) -> str:
    with pytest.raises(errors.Forbidden) as error:
        await request
    return str(error.value)


# Identities -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actor", "name", "group"),
    [
        ("kubelet/node-1", "system:node:node-1", "system:nodes"),
        ("scheduler/default-scheduler/1", "system:kube-scheduler", "system:authenticated"),
        ("scheduler/mine/0", "system:serviceaccount:kube-system:mine", "system:serviceaccounts"),
        ("controller/replicaset/1", "system:serviceaccount:kube-system:replicaset-controller", "system:authenticated"),
        ("controller/pod-gc", "system:serviceaccount:kube-system:pod-garbage-collector", "system:authenticated"),
        ("user", "kubernetes-admin", "system:masters"),
    ],
)
def test_every_actor_is_a_user_of_kubernetes(actor: str, name: str, group: str) -> None:
    found = identities.of_actor(actor)
    assert found.name == name
    assert group in found.groups
    assert found.node == ("node-1" if actor.startswith("kubelet/") else "")


def test_a_name_alone_makes_no_node() -> None:
    assert identities.User("system:node:node-1", ("system:authenticated",)).node == ""


# RBAC -----------------------------------------------------------------------------------------------------------------


DISRUPTION = identities.service_account("disruption-controller")


def asked(verb: str, what: str, namespace: str = "default", name: str = "", group: str = "") -> attributes.Attributes:
    resource, _, subresource = what.partition("/")
    return attributes.Attributes(verb, group, resource, subresource, namespace, name, "")


@pytest.mark.parametrize(
    ("user", "request_", "allowed"),
    [
        (identities.of_name(identities.KUBE_SCHEDULER), asked("create", "pods/binding"), True),
        (identities.of_name(identities.KUBE_SCHEDULER), asked("delete", "pods"), True),
        (identities.of_name(identities.KUBE_SCHEDULER), asked("create", "pods"), False),
        (identities.of_name(identities.KUBE_SCHEDULER), asked("patch", "nodes", ""), False),
        (DISRUPTION, asked("update", "poddisruptionbudgets/status", group="policy"), True),
        (DISRUPTION, asked("delete", "pods"), False),
        (identities.service_account("node-controller"), asked("delete", "pods"), True),
        (identities.of_name("alice"), asked("create", "pods"), True),
        (identities.of_name("alice"), asked("create", "pods", "other"), False),
        (identities.of_name("alice"), asked("update", "pods/status"), False),
        (identities.of_name("bob"), asked("get", "pods"), False),
    ],
)  # fmt: skip
def test_roles_of_a_new_cluster_are_those_of_kubernetes(
    user: identities.User, request_: attributes.Attributes, allowed: bool
) -> None:
    assert roles.allows(roles.lasting(user, ALICE), request_) is allowed


def test_a_user_is_refused_in_the_words_of_kubernetes() -> None:
    async def main(cluster: Cluster) -> None:
        alice, bob = acting(cluster, "alice"), acting(cluster, "bob")
        await alice.create(pod("a"))
        assert await refused(bob.create(pod("b"))) == (
            'pods is forbidden: User "bob" cannot create resource "pods" in API group "" in the namespace "default"'
        )
        assert await refused(bob.delete("pods", "a", "default")) == (
            'pods "a" is forbidden: User "bob" cannot delete resource "pods" in API group "" in the namespace "default"'
        )
        assert await refused(alice.get("nodes", "node-1")) == (
            'nodes "node-1" is forbidden: User "alice" cannot get resource "nodes" in API group "" at the cluster scope'
        )
        assert await refused(alice.list("leases")) == (
            'leases.coordination.k8s.io is forbidden: User "alice" cannot list resource "leases" in API group '
            '"coordination.k8s.io" at the cluster scope'
        )
        (one,) = [data for data in cluster.refused() if data["verb"] == "delete"]
        assert one["by"] == "user as bob"

    run(main, servers=WITH_ALICE)


def test_bindings_that_are_objects_give_rights_as_long_as_they_are_there() -> None:
    async def main(cluster: Cluster) -> None:
        role = {"metadata": {"name": "r", "namespace": "default"}}
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"]}]
        await cluster.client.create(convert.from_json(rbac_v1_pb2.Role, {**role, "rules": rules}))
        binding = {
            **role,
            "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
            "subjects": [{"kind": "Group", "name": "dev", "apiGroup": "rbac.authorization.k8s.io"}],
        }
        for name in ("a", "b"):
            await cluster.client.create(pod(name))
        carol = acting(cluster, "carol")
        assert "cannot get" in await refused(carol.get("pods", "a", "default"))
        await cluster.client.create(convert.from_json(rbac_v1_pb2.RoleBinding, binding))
        await cluster.clock.sleep(1)
        await carol.get("pods", "a", "default")
        assert "cannot get" in await refused(carol.get("pods", "b", "default"))
        await cluster.client.delete("rolebindings", "r", "default")
        await cluster.clock.sleep(1)
        assert "cannot get" in await refused(carol.get("pods", "a", "default"))

    run(main, servers=({"users": {"carol": {"groups": ["dev"], "roles": []}}},))


@pytest.mark.parametrize(("modes", "passes"), [(["Node", "RBAC"], False), (["AlwaysAllow"], True)])
def test_authorization_can_be_switched_off(modes: list[str], passes: bool) -> None:
    async def main(cluster: Cluster) -> None:
        creating = acting(cluster, "bob").create(pod("b"))
        if passes:
            await creating
        else:
            await refused(creating)

    run(main, servers=({"authorization": modes},))


# Acting as somebody ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("actor", ["kubelet/node-1", "scheduler/default-scheduler/0"])
def test_only_administrators_may_act_as_somebody(actor: str) -> None:
    async def main(cluster: Cluster) -> None:
        stub = cluster.stub(name=actor)
        request = api_pb2.GetRequest(name="a")
        request.resource.resource, request.resource.namespace = "pods", "default"
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.Get(request, metadata=(("kemu-as", "root"),))
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert "cannot impersonate resource" in str(error.value.details())

    run(main)


def test_a_second_caller_in_the_metadata_changes_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        request = api_pb2.DeleteRequest(name="a")
        request.resource.resource, request.resource.namespace = "pods", "default"
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await cluster.stub(name="kubelet/node-1").Delete(request, metadata=(("kemu-actor", "user"),))
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED

    run(main)


# Nodes ----------------------------------------------------------------------------------------------------------------


def node(name: str, **labels: str) -> core_v1_pb2.Node:
    made = core_v1_pb2.Node()
    made.metadata.name = name
    made.metadata.labels.update(labels)
    return made


def lease(name: str, namespace: str = "kube-node-lease") -> coordination_v1_pb2.Lease:
    made = coordination_v1_pb2.Lease()
    made.metadata.name, made.metadata.namespace = name, namespace
    made.spec.leaseDurationSeconds = 40
    return made


async def with_pods(cluster: Cluster) -> tuple[Client, Client]:
    """Two nodes with a pod each: the first one's kubelet, and a thief of its certificate."""
    for name in ("node-1", "node-2"):
        await cluster.client.create(node(name))
        await cluster.client.create(pod(f"on-{name}", nodeName=name))
    return cluster.client_of(0, "kubelet/node-1"), acting(cluster, "system:node:node-1")


def mirror(name: str, uid: str, owner: str = "node-1", **spec: Any) -> core_v1_pb2.Pod:
    made = pod(name, **{"nodeName": "node-1", **spec})
    made.metadata.annotations["kubernetes.io/config.mirror"] = "x"
    if uid:
        made.metadata.ownerReferences.add(apiVersion="v1", kind="Node", name=owner, uid=uid, controller=True)
    return made


def test_a_kubelet_does_its_work() -> None:
    async def main(cluster: Cluster) -> None:
        kubelet, _ = await with_pods(cluster)
        own = await kubelet.get("nodes", "node-1")
        await kubelet.list("pods", field_selector="spec.nodeName=node-1")
        status = {"status": {"message": "x"}}
        await kubelet.patch("pods", "on-node-1", "default", status, "status", "strategic")
        await kubelet.patch("nodes", "node-1", "", {"metadata": {"labels": {"mine": "x"}}})
        await kubelet.create(lease("node-1"))
        await kubelet.create(mirror("static", own.metadata.uid))
        await kubelet.delete("pods", "static", "default", grace_period_seconds=0)
        await kubelet.evict("default", "on-node-1")

    run(main)


NOT_ITS_POD = "with spec.nodeName set to itself"
LABEL = {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "x"}}}
OTHER_LABEL = {"metadata": {"labels": {"a.k8s.io/b": "x"}}}

REFUSED: list[tuple[str, Any]] = [
    (f'node "node-1" can only delete pods {NOT_ITS_POD}', lambda it, uid: it.delete("pods", "on-node-2", "default")),
    (f"node node-1 can only evict pods {NOT_ITS_POD}", lambda it, uid: it.evict("default", "on-node-2")),
    (
        f'node "node-1" can only update pod status for pods {NOT_ITS_POD}',
        lambda it, uid: it.patch("pods", "on-node-2", "default", {"status": {"message": "x"}}, "status"),
    ),
    (
        'node "node-1" cannot update labels through pod status',
        lambda it, uid: it.patch("pods", "on-node-1", "default", {"metadata": {"labels": {"a": "b"}}}, "status"),
    ),
    ('User "system:node:node-1" cannot patch resource "pods"', lambda it, uid: it.patch(
        "pods", "on-node-1", "default", {"metadata": {"labels": {"a": "b"}}}
    )),
    ("can only create mirror pods", lambda it, uid: it.create(pod("a", nodeName="node-1"))),
    (f'node "node-1" can only create pods {NOT_ITS_POD}', lambda it, uid: it.create(
        mirror("a", uid, nodeName="node-2")
    )),
    ("an owner reference set to itself", lambda it, uid: it.create(mirror("a", ""))),
    ("an owner reference set to itself", lambda it, uid: it.create(mirror("a", uid, "node-2"))),
    ("node node-1 UID mismatch: expected x got", lambda it, uid: it.create(mirror("a", "x"))),
    ("can not create pods that reference serviceaccounts", lambda it, uid: it.create(
        mirror("a", uid, serviceAccountName="default")
    )),
    ('node "node-1" is not allowed to modify node "node-2"', lambda it, uid: it.patch("nodes", "node-2", "", LABEL)),
    ("is not allowed to modify labels: node-restriction.kubernetes.io/a", lambda it, uid: it.patch(
        "nodes", "node-1", "", LABEL
    )),
    ("is not allowed to modify labels: a.k8s.io/b", lambda it, uid: it.patch("nodes", "node-1", "", OTHER_LABEL)),
    ('node "node-1" is not allowed to modify taints', lambda it, uid: it.patch(
        "nodes", "node-1", "", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    )),
    ("node 'node-1' cannot read 'node-2', only its own Node object", lambda it, uid: it.get("nodes", "node-2")),
    ("node 'node-1' cannot read all nodes, only its own Node object", lambda it, uid: it.list("nodes")),
    ("can only list/watch pods with spec.nodeName field selector", lambda it, uid: it.list("pods")),
    ("no relationship found between node 'node-1' and this object", lambda it, uid: it.get(
        "pods", "on-node-2", "default"
    )),
    ("can only access node lease with the same name", lambda it, uid: it.create(lease("node-2"))),
    ('can only access leases in the "kube-node-lease"', lambda it, uid: it.create(lease("node-1", "kube-system"))),
    ("no relationship found between node 'node-1' and this object", lambda it, uid: it.get(
        "secrets", "password", "default"
    )),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)), ids=lambda number: f"{number}")
@pytest.mark.parametrize("is_thief", [False, True])
def test_a_kubelet_is_refused_what_is_not_its_own(number: int, is_thief: bool) -> None:
    says, request = REFUSED[number]

    async def main(cluster: Cluster) -> None:
        kubelet, thief = await with_pods(cluster)
        uid = (await kubelet.get("nodes", "node-1")).metadata.uid
        assert says in await refused(request(thief if is_thief else kubelet, uid))

    run(main)


VOLUMES = [
    {"name": "a", "secret": {"secretName": "of-volume"}},
    {"name": "b", "configMap": {"name": "of-volume"}},
    {"name": "c", "projected": {"sources": [{"secret": {"name": "of-projection"}}]}},
    {"name": "d", "persistentVolumeClaim": {"claimName": "claim"}},
]
ENVIRONMENT = {
    "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "of-key", "key": "k"}}}],
    "envFrom": [{"configMapRef": {"name": "of-env"}}],
}


@pytest.mark.parametrize(
    ("plural", "name", "is_related"),
    [
        ("secrets", "of-volume", True),
        ("secrets", "of-projection", True),
        ("secrets", "of-key", True),
        ("secrets", "of-env", False),
        ("configmaps", "of-volume", True),
        ("configmaps", "of-env", True),
        ("persistentvolumeclaims", "claim", True),
        ("persistentvolumeclaims", "another", False),
    ],
)
def test_a_kubelet_reads_what_its_pods_name(plural: str, name: str, is_related: bool) -> None:
    """``NodeAuthorizer``: nothing else, and nothing of the pods of other nodes."""

    async def main(cluster: Cluster) -> None:
        container = {"name": "main", "image": "pause:1", **ENVIRONMENT}
        await cluster.client.create(pod("a", nodeName="node-1", volumes=VOLUMES, containers=[container]))
        await cluster.clock.sleep(1)
        for node_name in ("node-1", "node-2"):
            reading = cluster.client_of(0, f"kubelet/{node_name}").get(plural, name, "default")
            if is_related and node_name == "node-1":
                with pytest.raises(errors.NotFound):  # it may ask; there is none
                    await reading
            else:
                assert "no relationship found" in await refused(reading)

    run(main)


def test_the_labels_of_a_new_node_are_the_scenarios_but_a_thief_brings_none() -> None:
    async def main(cluster: Cluster) -> None:
        labels = {"node-restriction.kubernetes.io/a": "x", "kubernetes.io/os": "linux", "mine": "x"}
        thief = acting(cluster, "system:node:node-3")
        assert await refused(thief.create(node("node-3", **labels))) == (
            'nodes "node-3" is forbidden: node "node-3" is not allowed to set the following labels: '
            "node-restriction.kubernetes.io/a"
        )
        await cluster.client_of(0, "kubelet/node-3").create(node("node-3", **labels))

    run(main)


def test_without_the_plugin_a_kubelet_may_delete_any_pod() -> None:
    async def main(cluster: Cluster) -> None:
        _, thief = await with_pods(cluster)
        await thief.delete("pods", "on-node-2", "default")

    run(main, servers=({"admission": [one for one in admission.DEFAULT_ON if one != "NodeRestriction"]},))


def test_an_answer_that_is_remembered_is_of_one_namespace_and_no_name() -> None:
    """What is looked up instead of judged: the second request of its sort."""

    async def main(cluster: Cluster) -> None:
        made = authorizers.Authorizer(SERVERS[-1].cache, authorizers.DEFAULT_MODES, ALICE)
        request = api_pb2.DeleteRequest(name="a")
        request.resource.resource, request.resource.namespace = "pods", "default"
        for _ in range(2):
            made.check("user as alice", "delete", request)
        request.resource.namespace = "other"
        with pytest.raises(errors.Forbidden):
            made.check("user as alice", "delete", request)
        for namespace, is_right in (("default", True), ("other", False), ("default", True)):
            creating = api_pb2.CreateRequest(object=pod("a", namespace).SerializeToString())
            creating.resource.resource = "pods"
            as_text = api_pb2.CreateRequest(
                object=f"metadata: {{name: a, namespace: {namespace}}}".encode(), content_type="application/yaml"
            )
            as_text.resource.resource = "pods"
            for one in (creating, as_text):
                if is_right:
                    made.check("user as alice", "create", one)
                else:
                    with pytest.raises(errors.Forbidden):
                        made.check("user as alice", "create", one)

    run(main)


# Acting with groups, reviews ------------------------------------------------------------------------------------------


def acting_in(cluster: Cluster, name: str, *groups: str) -> tuple[api_pb2_grpc.ApiStub, dict[str, Any]]:
    metadata = [("kemu-as", name), *(("kemu-as-group", group) for group in groups)]
    return api_pb2_grpc.ApiStub(cluster.runtime.env("user").dial("apiserver/0")), {"metadata": metadata}


def asks(verb: str, resource: str, namespace: str = "", group: str = "", **more: Any) -> api_pb2.ReviewRequest:
    request = api_pb2.ReviewRequest(**more)
    request.resource.verb, request.resource.resource = verb, resource
    request.resource.namespace, request.resource.group = namespace, group
    return request


def test_the_groups_that_a_caller_states_count_alone() -> None:
    async def main(cluster: Cluster) -> None:
        request = api_pb2.ListRequest(resource=api_pb2.Resource(resource="nodes"))
        stub, master = acting_in(cluster, "root", "system:masters")
        await stub.List(request, **master)
        # A name that looks like another one with its groups is another one.
        for name, groups in (
            ("root", ["dev"]),
            ("'root' of 'system:masters'", []),
            ("root' of 'system:masters", ["dev"]),
        ):
            stub, other = acting_in(cluster, name, *groups)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await stub.List(request, **other)
            assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED

    run(main)


def test_a_node_in_more_groups_gives_others_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        usual = ("system:nodes", "system:authenticated")
        stub, strange = acting_in(cluster, "system:node:n1", *usual, "system:masters")
        assert (await stub.Review(asks("delete", "namespaces"), **strange)).allowed
        stub, plain = acting_in(cluster, "system:node:n2", *usual)
        assert not (await stub.Review(asks("delete", "namespaces"), **plain)).allowed

    run(main)


def test_a_review_says_what_the_request_would_meet() -> None:
    async def main(cluster: Cluster) -> None:
        stub, alice = acting_in(cluster, "alice", "dev", "system:authenticated")
        review = await stub.Review(asks("create", "pods", "default"), **alice)
        assert review.allowed
        assert not (await stub.Review(asks("create", "pods", "other"), **alice)).allowed
        assert not (await stub.Review(asks("create", "nodes"), **alice)).allowed
        path = api_pb2.ReviewRequest(non_resource={"verb": "get", "path": "/openapi/v3"})
        assert (await stub.Review(path, **alice)).allowed
        path.non_resource.path = "/metrics"
        assert not (await stub.Review(path, **alice)).allowed

    run(main, servers=WITH_ALICE)


def test_only_who_may_asks_about_others() -> None:
    async def main(cluster: Cluster) -> None:
        stub, alice = acting_in(cluster, "alice", "dev", "system:authenticated")
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub.Review(asks("get", "pods", user="bob"), **alice)
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
        stub, root = acting_in(cluster, "root", "system:masters")
        assert not (await stub.Review(asks("get", "pods", user="bob"), **root)).allowed
        assert (await stub.Review(asks("get", "pods", user="bob", groups=["system:masters"]), **root)).allowed

    run(main, servers=WITH_ALICE)


def test_the_rules_of_a_caller_are_those_of_its_roles() -> None:
    async def main(cluster: Cluster) -> None:
        stub, alice = acting_in(cluster, "alice", "dev", "system:authenticated")
        rules = (await stub.Rules(api_pb2.RulesRequest(namespace="default"), **alice)).rules
        assert any("pods" in rule.resources and "create" in rule.verbs for rule in rules)
        assert any("/openapi/*" in rule.paths for rule in rules)
        rules = (await stub.Rules(api_pb2.RulesRequest(namespace="other"), **alice)).rules
        assert not any("pods" in rule.resources for rule in rules)

    run(main, servers=WITH_ALICE)


# Roles give nothing that their writers do not have --------------------------------------------------------------------

ADMIN_OF_ONE = {"bob": {"groups": [], "roles": [{"role": "admin", "namespace": "default"}]}}


def role(name: str, verbs: list[str], plural: str, group: str = "") -> rbac_v1_pb2.Role:
    made = rbac_v1_pb2.Role()
    made.metadata.name, made.metadata.namespace = name, "default"
    made.rules.add(verbs=verbs, apiGroups=[group], resources=[plural])
    return made


def binding(name: str, kind: str, of: str) -> rbac_v1_pb2.RoleBinding:
    made = rbac_v1_pb2.RoleBinding()
    made.metadata.name, made.metadata.namespace = name, "default"
    made.roleRef.apiGroup, made.roleRef.kind, made.roleRef.name = "rbac.authorization.k8s.io", kind, of
    made.subjects.add(kind="User", name="mallory", apiGroup="rbac.authorization.k8s.io")
    return made


def test_who_administers_a_namespace_gives_no_more_than_he_has() -> None:
    async def main(cluster: Cluster) -> None:
        bob = acting(cluster, "bob")
        await bob.create(role("reader", ["get"], "pods"))
        await bob.create(binding("b1", "ClusterRole", "edit"))
        text = await refused(bob.create(role("nodes", ["get", "delete"], "nodes")))
        assert text.startswith('roles.rbac.authorization.k8s.io "nodes" is forbidden: user "bob" (groups=["system:auth')
        assert text.endswith('not currently held:\n{APIGroups:[""], Resources:["nodes"], Verbs:["get" "delete"]}')
        text = await refused(bob.create(binding("b2", "ClusterRole", "cluster-admin")))
        assert 'held:\n{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}' in text
        patch = {"rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}
        await refused(bob.patch("roles", "reader", "default", patch))
        await bob.patch("roles", "reader", "default", {"metadata": {"finalizers": ["a.b/c"]}})
        # An administrator may.
        await cluster.client.create(binding("b3", "ClusterRole", "cluster-admin"))

    run(main, servers=({"users": ADMIN_OF_ONE},))


def test_only_who_may_everything_gathers_rules() -> None:
    """What a rule gathers is not known when it is written."""

    async def main(cluster: Cluster) -> None:
        makes_roles = rbac_v1_pb2.ClusterRole()
        makes_roles.metadata.name = "makes-roles"
        makes_roles.rules.add(
            verbs=["create", "patch"], apiGroups=["rbac.authorization.k8s.io"], resources=["clusterroles"]
        )
        gathers = rbac_v1_pb2.ClusterRole()
        gathers.metadata.name = "gathers"
        gathers.aggregationRule.clusterRoleSelectors.add().matchLabels["to"] = "all"
        given = rbac_v1_pb2.ClusterRoleBinding()
        given.metadata.name, given.roleRef.kind, given.roleRef.name = "carol", "ClusterRole", "makes-roles"
        given.roleRef.apiGroup = "rbac.authorization.k8s.io"
        given.subjects.add(kind="User", name="carol", apiGroup="rbac.authorization.k8s.io")
        for one in (makes_roles, given, gathers):
            await cluster.client.create(one)
        carol = acting(cluster, "carol")
        text = await refused(carol.patch("clusterroles", "gathers", "", {"aggregationRule": None}))
        gathers.metadata.name = "gathers-too"
        for said in (text, await refused(carol.create(gathers))):
            assert said.endswith("must have cluster-admin privileges to use the aggregationRule")

    run(main, servers=({"users": {"carol": {"groups": []}}},))


def test_with_the_verb_bind_a_role_can_be_given_without_its_rights() -> None:
    async def main(cluster: Cluster) -> None:
        bob = acting(cluster, "bob")
        allowed = role("may-bind", ["bind"], "clusterroles", "rbac.authorization.k8s.io")
        await cluster.client.create(allowed)
        given = binding("bobs", "Role", "may-bind")
        given.subjects[0].name = "bob"
        await cluster.client.create(given)
        await bob.create(binding("b1", "ClusterRole", "cluster-admin"))

    run(main, servers=({"users": ADMIN_OF_ONE},))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\x02\xc0", "unrecognized"),
        (b"[]", "cannot unmarshal array into Go value"),
        (b"{}", "has no apiVersion and kind"),
        (b'{"apiVersion": "v1", "kind": 7}', "cannot unmarshal number into Go struct field .kind of type string"),
        (b'{"apiVersion": "v1", "kind": "TokenRequest"}', "spec of the TokenRequest cannot be read"),
        (b'{"apiVersion": "v1", "kind": "TokenRequest", "spec": {"audiences": [1]}}', "cannot be read"),
        (b'{"apiVersion": "v1", "kind": "TokenRequest", "spec": {"boundObjectRef": "p"}}', "cannot be read"),
        (b'{"apiVersion": "v1", "kind": "TokenRequest", "spec": {"boundObjectRef": {"uid": {}}}}', "cannot be read"),
    ],
)
def test_what_a_kubelet_asks_admission_about_may_be_anything(body: bytes, why: str) -> None:
    async def scenario(cluster: Cluster) -> str:
        stub = cluster.stub(name="kubelet/n1")
        request = api_pb2.AdmitRequest(object=body, resource="serviceaccounts", subresource="token", name="a")
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await stub.Admit(request)
        assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        return str(refusal.value.details())

    assert why in run(scenario)

"""Methods and paths that nobody serves, documents of discovery, and reviews."""

from __future__ import annotations

from tests.conformance.generators import request_parts as parts
from tests.conformance.generators.request_parts import Draw, Json

# Paths ----------------------------------------------------------------------------------------------------------------


def wrong_method(draw: Draw, subject: parts.Subject, count: int) -> Json:
    path = draw.choice(
        (
            subject.collection(),
            subject.collection(""),
            subject.one("a"),
            subject.one("a"),
            subject.root,
            f"{subject.root}/watch/{subject.plural}",
            f"{subject.one('a')}/status",
        )
    )
    method = draw.choice(("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECTED", "get"))
    if method in ("DELETE", "HEAD") and path in (subject.collection(), subject.collection("")):
        method = "OPTIONS"
    body = {} if method in ("POST", "PUT", "PATCH") else None
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return parts.request(method, path, [], body, content_type, accept=parts.accept(draw), **parts.user(draw))


def unknown_path(draw: Draw, subject: parts.Subject, count: int) -> Json:
    plural, root = subject.plural, subject.root
    version = root.rpartition("/")[0]
    path = draw.choice(
        (
            f"{root}/namespaces/{parts.HOME}/{plural}x",
            f"{root}/{plural}x",
            f"{root}/{plural}x/a",
            f"{version}/v9/{plural}",
            f"{version}/v9",
            f"{version}/v9/namespaces/{parts.HOME}/{plural}",
            "/apis/x.example.com",
            "/apis/x.example.com/v1",
            f"/apis/x.example.com/v1/{plural}",
            f"/apis/x.example.com/v1/namespaces/{parts.HOME}/{plural}/a",
            "/api/v2",
            "/api/v1/x",
            "/x",
            "/",
            "/apis/apps/v1/pods",
            f"/apis/apps/v1/namespaces/{parts.HOME}/pods",
            f"/api/v1/namespaces/{parts.HOME}/deployments",
            f"{subject.one('a')}/x",
            f"{subject.one('a')}/status/x",
            f"{subject.one('a')}/x/y",
            f"{root}/namespaces/{parts.HOME}/",
            f"{subject.collection()}/",
            f"{subject.one('a')}/",
            f"{root}/{plural}/a",
            f"{root}/{subject.kind}",
            f"{root}/namespaces/{parts.HOME}/{subject.kind.lower()}",
            "/api/v1/namespaces/here/nodes",
            "/api/v1/nodes/x/y/z",
            "/apis/",
            "/api/",
            "/api/v1/",
            f"{root}/",
            "/apis/apps",
            "/apis/apps/",
            "/apis/batch/v1beta1/cronjobs",
            "/apis/extensions/v1beta1/ingresses",
            "/apis/policy/v1beta1/podsecuritypolicies",
            "/healthz/x",
            "/livez/x",
            "/logs",
            "/api/v1/watch",
            "/api/v1/watch/",
            "/api/v1/namespaces//pods",
            "/ui",
            "/swagger.json",
            "/robots.txt",
            f"/api/v1/watch/namespaces/{parts.HOME}",
            "/.well-known/x",
            "/index.html",
            "/apis/v1/pods",
        )
    )
    if path == f"{subject.collection()}/" and subject.plural in parts.FURNISHED_ALONE:
        path = f"{subject.one('a')}/"  # the others are of the cluster
    method = "GET" if draw.random() < 0.7 else draw.choice(("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"))
    if method == "DELETE" and path.endswith(f"{subject.collection()}/"):
        method = "GET"
    body = {} if method in ("POST", "PUT", "PATCH") else None
    query = [("watch", "1"), ("timeoutSeconds", "1")] if draw.random() < 0.08 and method == "GET" else []
    if "/watch" in path:
        query = [("timeoutSeconds", "1")]
    return parts.request(method, path, query, body, accept=parts.accept(draw), **parts.user(draw))


_DOCUMENTS = (
    "/api",
    "/apis",
    "/api/v1",
    "/apis/apps",
    "/apis/apps/v1",
    "/apis/batch",
    "/apis/batch/v1",
    "/apis/policy/v1",
    "/apis/autoscaling",
    "/apis/autoscaling/v2",
    "/apis/events.k8s.io/v1",
    "/apis/coordination.k8s.io/v1",
    "/apis/storage.k8s.io/v1",
    "/apis/networking.k8s.io/v1",
    "/apis/rbac.authorization.k8s.io/v1",
    "/version",
    "/version/",
    "/apis/scheduling.k8s.io/v1",
    "/apis/node.k8s.io/v1",
    "/apis/discovery.k8s.io/v1",
    "/apis/authentication.k8s.io/v1",
    "/apis/authorization.k8s.io/v1",
    "/apis/certificates.k8s.io/v1",
    "/healthz",
    "/healthz/ping",
    "/healthz/etcd",
    "/livez",
    "/apis/apiextensions.k8s.io/v1",
    "/apis/admissionregistration.k8s.io/v1",
    "/apis/resource.k8s.io/v1",
    "/livez/ping",
    "/apis/resource.k8s.io",
    "/readyz",
    "/readyz/ping",
    "/readyz/informer-sync",
    "/readyz/shutdown",
    "/openapi/v3",
    "/openapi/v3/api/v1",
    "/openapi/v3/apis/apps/v1",
    "/openapi/v3/apis/x/v1",
    "/openapi/v2",
    "/healthz/log",
    "/apis/flowcontrol.apiserver.k8s.io/v1",
    "/apis/apiregistration.k8s.io/v1",
    "/apis/events.k8s.io",
    "/apis/policy",
    "/openid/v1/jwks",
    "/.well-known/openid-configuration",
)
_DISCOVERIES = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
    "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList",
)


def discovery(draw: Draw, subject: parts.Subject, count: int) -> Json:
    path = draw.choice((*_DOCUMENTS, subject.root, subject.root))
    method = "GET" if draw.random() < 0.85 else draw.choice(("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"))
    body = {} if method in ("POST", "PUT", "PATCH") else None
    accept = parts.accept(draw)
    if path in ("/api", "/apis") and draw.random() < 0.3:
        accept = draw.choice(_DISCOVERIES)
    query = [("pretty", draw.choice(parts.FLAGS))] if draw.random() < 0.1 else []
    if path.lstrip("/").startswith(("healthz", "livez", "readyz")) and draw.random() < 0.3:
        query.append(("exclude", draw.choice(("ping", "x"))))
    return parts.request(method, path, query, body, accept=accept, **parts.user(draw))


_REVIEWS = "/apis/authorization.k8s.io/v1"
_ATTRIBUTES: tuple[Json, ...] = (
    {"verb": "get", "resource": "pods", "namespace": parts.HOME},
    {"verb": "*", "resource": "*"},
    {"verb": "list"},
    {},
    {"verb": "create", "group": "apps", "resource": "deployments", "subresource": "scale"},
    {"verb": "list", "resource": "pods", "fieldSelector": {"rawSelector": "spec.nodeName=n"}},
    {
        "verb": "list",
        "resource": "pods",
        "labelSelector": {"requirements": [{"key": "a", "operator": "In", "values": []}]},
    },
)


def review(draw: Draw, subject: parts.Subject, count: int) -> Json:
    spec: Json = {}
    if draw.random() < 0.75:
        spec["resourceAttributes"] = draw.choice(_ATTRIBUTES)
    if draw.random() < 0.35:
        spec["nonResourceAttributes"] = draw.choice(
            ({"verb": "get", "path": "/healthz"}, {"verb": "post", "path": "/x"}, {})
        )
    kind = draw.randrange(6)
    where, name, version = _REVIEWS, "selfsubjectaccessreviews", "authorization.k8s.io/v1"
    review = "SelfSubjectAccessReview"
    if kind == 1:
        name, review = "subjectaccessreviews", "SubjectAccessReview"
        spec |= draw.choice(({"user": "viewer"}, {"user": "x", "groups": ["system:masters"]}, {}, {"groups": ["x"]}))
    if kind == 2:
        name, review = f"namespaces/{parts.HOME}/localsubjectaccessreviews", "LocalSubjectAccessReview"
        spec |= draw.choice(({"user": "viewer"}, {"user": "x", "groups": ["system:masters"]}, {}))
    if kind == 3:
        name, review = "selfsubjectrulesreviews", "SelfSubjectRulesReview"
        spec = draw.choice(({"namespace": parts.HOME}, {}, {"namespace": "x"}))
    if kind == 4:
        where, version = "/apis/authentication.k8s.io/v1", "authentication.k8s.io/v1"
        name, review, spec = "selfsubjectreviews", "SelfSubjectReview", {}
    if kind == 5:
        where, version = "/apis/authentication.k8s.io/v1", "authentication.k8s.io/v1"
        name, review = "tokenreviews", "TokenReview"
        spec = draw.choice(
            ({"token": "viewer-token"}, {"token": "x"}, {}, {"token": "viewer-token", "audiences": ["x"]})
        )
    body: Json = {"apiVersion": version, "kind": review, "spec": spec}
    if kind == 4:
        del body["spec"]
    if draw.random() < 0.1:
        body |= draw.choice(
            (
                {"kind": "Pod"},
                {"metadata": {"name": "a"}},
                {"metadata": {"namespace": parts.AWAY}},
                {"x": 1},
                {"apiVersion": ""},
                {"kind": ""},
            )
        )
    method = "POST" if draw.random() < 0.88 else draw.choice(("GET", "PUT", "DELETE", "PATCH"))
    user = {"user": draw.choice(("viewer", ""))} if draw.random() < 0.2 else {}
    query = parts.write_query(draw)
    return parts.request(
        method, f"{where}/{name}", query, body if method != "GET" else None, accept=parts.accept(draw), **user
    )

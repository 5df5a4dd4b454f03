"""Pods with and without what Pod Security Standards forbid, and labels of namespaces that say which standard counts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.conformance.generators.steps import (
    OTHER,
    SPACE,
    WORKLOADS,
    create,
    made,
    new_space,
    pod_step,
    step,
    workload,
)

Json = dict[str, Any]
Draw = random.Random

PREFIX = "pod-security.kubernetes.io/"
_LEVELS = ("privileged", "baseline", "baseline", "restricted", "restricted")
_VERSIONS = ("latest", "v1.0", "v1.7", "v1.8", "v1.18", "v1.19", "v1.21", "v1.22", "v1.24", "v1.25", "v1.26", "v1.27",
             "v1.30", "v1.31", "v1.33", "v1.34", "v1.35", "v1.36", "v1.99")  # fmt: skip
_ODD_LEVELS, _ODD_VERSIONS = ("Baseline", "", "strict"), ("1.25", "v1", "v2.0", "v1.025", "", "Latest")
_PROFILES = ("RuntimeDefault", "Unconfined", "Localhost")
_CAPABILITIES = ("NET_BIND_SERVICE", "NET_RAW", "SYS_ADMIN", "CHOWN", "ALL", "CAP_CHOWN")
_SYSCTLS = ("kernel.shm_rmid_forced", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time",
            "net.ipv4.tcp_rmem", "kernel.msgmax", "net.core.somaxconn")  # fmt: skip
_IMAGES = ("i", "j:1", "k:2")
_AMOUNTS = ("100m", "250m", "1", "1500m", "2")
_SE_TYPES = ("", "container_t", "container_engine_t", "spc_t", "other_t")


def labels(draw: Draw, mistakes: float = 0.03) -> Json:
    found: Json = {}
    for mode, often in (("enforce", 0.6), ("audit", 0.2), ("warn", 0.4)):
        if draw.random() < often:
            found[PREFIX + mode] = draw.choice(_ODD_LEVELS if draw.random() < mistakes else _LEVELS)
        if draw.random() < often * 0.6:
            found[f"{PREFIX}{mode}-version"] = draw.choice(_ODD_VERSIONS if draw.random() < mistakes else _VERSIONS)
    if draw.random() < 0.1:
        found["a"] = "b"
    return found


def pod(draw: Draw) -> tuple[Json, Json]:
    """A spec and annotations."""
    spec: Json = {"containers": [plain("c")]}
    if draw.random() < 0.6:
        spec["containers"][0]["securityContext"] = _good(draw)
    if draw.random() < 0.4:
        spec["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if draw.random() < 0.25:
        spec["containers"].append({**plain("d"), **({"securityContext": _good(draw)} if draw.random() < 0.5 else {})})
    if draw.random() < 0.2:
        spec["initContainers"] = [{**plain("a"), **({"securityContext": _good(draw)} if draw.random() < 0.5 else {})}]
    annotations: Json = {}
    for _ in range(draw.choice((0, 0, 1, 1, 2, 3))):
        draw.choice(_CHANGES)(draw, spec, annotations)
    if draw.random() < 0.06:
        spec["os"] = {"name": "windows"}
    return spec, annotations


def plain(name: str) -> Json:
    return {"name": name, "image": "i"}


def context(draw: Draw) -> Json:
    """Of one container."""
    found = _good(draw) if draw.random() < 0.6 else {}
    spec: Json = {"containers": [{**plain("c"), "securityContext": found}]}
    for _ in range(draw.choice((0, 1))):
        draw.choice(_OF_CONTAINERS)(draw, spec, {})
    return dict(spec["containers"][0]["securityContext"])


def _good(draw: Draw) -> Json:
    found: Json = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for name in list(found):
        if draw.random() < 0.1:
            del found[name]
    return found


def _one(draw: Draw, spec: Json) -> Json:
    return dict.setdefault(draw.choice([*spec["containers"], *spec.get("initContainers", ())]), "securityContext", {})


def _any(draw: Draw, spec: Json) -> Json:
    return spec.setdefault("securityContext", {}) if draw.random() < 0.4 else _one(draw, spec)


def _privileged(draw: Draw, spec: Json, _: Json) -> None:
    one = _one(draw, spec)
    one["privileged"] = draw.random() < 0.8
    if one["privileged"] and one.get("allowPrivilegeEscalation") is False:
        del one["allowPrivilegeEscalation"]


def _escalation(draw: Draw, spec: Json, _: Json) -> None:
    _one(draw, spec)["allowPrivilegeEscalation"] = True


def _capabilities(draw: Draw, spec: Json, _: Json) -> None:
    one = _one(draw, spec)
    one["capabilities"] = {"add": draw.sample(_CAPABILITIES, draw.randint(1, 2))}
    if draw.random() < 0.5:
        one["capabilities"]["drop"] = draw.choice((["ALL"], ["NET_RAW"]))


def _non_root(draw: Draw, spec: Json, _: Json) -> None:
    _any(draw, spec)["runAsNonRoot"] = draw.random() < 0.3


def _user(draw: Draw, spec: Json, _: Json) -> None:
    _any(draw, spec)["runAsUser"] = draw.choice((0, 0, 1000))


def _profile(field: str) -> Callable[[Draw, Json, Json], None]:
    def change(draw: Draw, spec: Json, _: Json) -> None:
        kind = draw.choice(_PROFILES)
        _any(draw, spec)[field] = {"type": kind, **({"localhostProfile": "p"} if kind == "Localhost" else {})}

    return change


def _se_linux(draw: Draw, spec: Json, _: Json) -> None:
    options: Json = {"type": draw.choice(_SE_TYPES)} if draw.random() < 0.8 else {"level": "s0"}
    for name in ("user", "role"):
        if draw.random() < 0.3:
            options[name] = "u"
    _any(draw, spec)["seLinuxOptions"] = options


def _proc(draw: Draw, spec: Json, _: Json) -> None:
    _one(draw, spec)["procMount"] = draw.choice(("Default", "Unmasked", "Unmasked"))
    if draw.random() < 0.6:
        spec["hostUsers"] = False


def _windows(draw: Draw, spec: Json, _: Json) -> None:
    _any(draw, spec)["windowsOptions"] = {"hostProcess": draw.random() < 0.7}
    if draw.random() < 0.7:
        spec["hostNetwork"] = True


def _namespaces(draw: Draw, spec: Json, _: Json) -> None:
    for name in draw.sample(("hostNetwork", "hostPID", "hostIPC"), draw.randint(1, 2)):
        spec[name] = True


def _users(draw: Draw, spec: Json, _: Json) -> None:
    spec["hostUsers"] = draw.random() < 0.3


def _ports(draw: Draw, spec: Json, _: Json) -> None:
    one = draw.choice(spec["containers"])
    ports = draw.sample((80, 443, 9000), draw.randint(1, 2))
    one["ports"] = [{"containerPort": port, **({"hostPort": port} if draw.random() < 0.7 else {})} for port in ports]


def _probes(draw: Draw, spec: Json, _: Json) -> None:
    one = draw.choice(spec["containers"])
    for name in draw.sample(("livenessProbe", "readinessProbe", "startupProbe"), draw.randint(1, 2)):
        kind = draw.choice(("httpGet", "tcpSocket"))
        one[name] = {kind: {"port": 80, **({"host": draw.choice(("a", "b"))} if draw.random() < 0.7 else {})}}
    if draw.random() < 0.3:
        one["lifecycle"] = {draw.choice(("postStart", "preStop")): {"httpGet": {"port": 80, "host": "l"}}}


def _volumes(draw: Draw, spec: Json, _: Json) -> None:
    sources: tuple[Json, ...] = (
        {"hostPath": {"path": "/a"}},
        {"hostPath": {"path": "/a"}},
        {"emptyDir": {}},
        {"nfs": {"server": "s", "path": "/a"}},
        {"configMap": {"name": "c"}},
        {"gcePersistentDisk": {"pdName": "d"}},
        {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:storage", "lun": 0}},
        {"csi": {"driver": "d.example.com"}},
        {"image": {"reference": "i"}},
        {"persistentVolumeClaim": {"claimName": "c"}},
        {"gitRepo": {"repository": "https://example.com/r"}},
    )
    chosen = draw.sample(sources, draw.randint(1, 3))
    spec["volumes"] = [{"name": f"v{number}", **one} for number, one in enumerate(chosen)]


def _sysctls(draw: Draw, spec: Json, _: Json) -> None:
    chosen = draw.sample(_SYSCTLS, draw.randint(1, 3))
    spec.setdefault("securityContext", {})["sysctls"] = [{"name": name, "value": "1"} for name in chosen]


def _annotations(draw: Draw, spec: Json, annotations: Json) -> None:
    values = ("runtime/default", "unconfined", "localhost/p", "docker/default")
    for key in draw.sample(
        (
            "container.apparmor.security.beta.kubernetes.io/c",
            "container.apparmor.security.beta.kubernetes.io/d",
            "seccomp.security.alpha.kubernetes.io/pod",
            "container.seccomp.security.alpha.kubernetes.io/c",
        ),
        draw.randint(1, 2),
    ):
        annotations[key] = draw.choice(values)


_OF_CONTAINERS: tuple[Callable[[Draw, Json, Json], None], ...] = (
    _privileged, _escalation, _capabilities, _proc,
)  # fmt: skip
_CHANGES: tuple[Callable[[Draw, Json, Json], None], ...] = (
    *_OF_CONTAINERS, _non_root, _user, _user, _profile("seccompProfile"), _profile("appArmorProfile"), _se_linux,
    _windows, _namespaces, _users, _ports, _probes, _volumes, _volumes, _sysctls, _annotations,
)  # fmt: skip


# Sequences ----------------------------------------------------------------------------------------------------------


def security(draw: Draw) -> Iterator[Json]:
    yield from new_space(draw, labels(draw))
    pods: list[str] = []
    for number in range(draw.randint(4, 7)):
        kind = draw.random()
        if kind < 0.4 or not pods:
            spec, annotations = pod(draw)
            name = f"p{number}"
            owner = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u", "controller": True}
            owned = {"ownerReferences": [owner]} if draw.random() < 0.2 else {}
            made_of = {"spec": spec, **({"annotations": annotations} if annotations else {}), **owned}
            if draw.random() < 0.1:
                body = made("pods", "", **made_of)
                body["metadata"] = {**body["metadata"], "generateName": "generated-"}
                del body["metadata"]["name"]
                yield step("create", "pods", "", body)
                continue
            pods.append(name)
            yield step(
                "apply" if draw.random() < 0.15 else "create",
                "pods",
                name,
                made("pods", name, **made_of),
                **({"dryRun": True} if draw.random() < 0.1 else {}),
            )
        elif kind < 0.6:
            spec, annotations = pod(draw)
            plural = draw.choice(WORKLOADS)
            template: Json = {"spec": spec, **({"metadata": {"annotations": annotations}} if annotations else {})}
            body = workload(draw, plural, f"w{number}", template)
            yield create(plural, body)
            if draw.random() < 0.4:
                yield step("merge", plural, f"w{number}", {"metadata": {"labels": {"a": draw.choice("bc")}}})
        elif kind < 0.8:
            wanted = labels(draw, mistakes=0.2)
            if draw.random() < 0.5:
                yield step("update", "namespaces", SPACE, made("namespaces", SPACE, labels=wanted))
            else:
                yield step("merge", "namespaces", SPACE, {"metadata": {"labels": wanted}})
        else:
            yield _change_of_pod(draw, draw.choice(pods))


def _change_of_pod(draw: Draw, name: str) -> Json:
    kind = draw.random()
    if kind < 0.35:
        changed = {"spec": {"containers": [{"name": "c", "image": draw.choice(_IMAGES)}]}}
        return step("strategic", "pods", name, changed)
    if kind < 0.6:
        one = {"name": draw.choice(("d1", "d2")), "image": draw.choice(_IMAGES)}
        if draw.random() < 0.6:
            one["securityContext"] = context(draw)
        return step(
            "strategic", "pods", name, {"spec": {"ephemeralContainers": [one]}}, subresource="ephemeralcontainers"
        )
    if kind < 0.75:
        return step("merge", "pods", name, {"metadata": {"labels": {"a": draw.choice("bc")}}})
    if kind < 0.85:
        return step("merge", "pods", name, {"status": {"message": draw.choice("bc")}}, subresource="status")
    changed = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": draw.choice(_AMOUNTS)}}}]}}
    return step("strategic", "pods", name, changed, subresource="resize")


def labelled(draw: Draw) -> Iterator[Json]:
    """A namespace gets stricter over several pods, some of which belong together."""
    yield from new_space(draw)
    for number in range(draw.randint(2, 5)):
        spec, annotations = pod(draw) if draw.random() < 0.5 else ({"containers": [plain("c")]}, {})
        yield pod_step(
            draw.choice("abcxyz") + str(number), spec, **({"annotations": annotations} if annotations else {})
        )
    for _ in range(draw.randint(2, 4)):
        wanted = labels(draw, mistakes=0.1)
        if draw.random() < 0.3:
            yield create("namespaces", made("namespaces", draw.choice((OTHER, "o")), labels=wanted), dryRun=True)
        else:
            more = {"dryRun": True} if draw.random() < 0.2 else {}
            yield step("update", "namespaces", SPACE, made("namespaces", SPACE, labels=wanted), **more)

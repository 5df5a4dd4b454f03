"""Reads, watches and deletions, right and wrong."""

from __future__ import annotations

from tests.conformance.generators import request_parts as parts
from tests.conformance.generators.request_parts import Draw, Json

# Reads ----------------------------------------------------------------------------------------------------------------


def get(draw: Draw, subject: parts.Subject, count: int) -> Json:
    query = [*parts.look(draw), *(parts.version(draw, count) if draw.random() < 0.3 else ())]
    method = "HEAD" if draw.random() < 0.07 else "GET"
    path = subject.one(parts.name(draw), parts.where(draw))
    return parts.request(method, path, query, accept=parts.accept(draw), **parts.user(draw))


def list_(draw: Draw, subject: parts.Subject, count: int) -> Json:
    query = [*parts.selectors(draw, subject), *parts.pages(draw, count), *parts.version(draw, count), *parts.look(draw)]
    if draw.random() < 0.06:
        query.append(
            (
                draw.choice(("timeoutSeconds", "timeout", "allowWatchBookmarks", "sendInitialEvents", "x")),
                draw.choice(("x", "", "1s", "10s", "1.5", "false", "0")),
            )
        )
    path = subject.collection(parts.where(draw))
    if parts.everywhere(subject) and draw.random() < 0.2:
        path = subject.collection("")
    if subject.plural in parts.FURNISHED_ALONE:
        query = parts.own(query)
    method = "HEAD" if draw.random() < 0.03 else "GET"
    return parts.request(method, path, query, accept=parts.accept(draw), **parts.user(draw))


def pages_of_list(draw: Draw, subject: parts.Subject, count: int) -> Json:
    """The first page of several, which later steps go on from."""
    query = [("limit", "1"), *(parts.selectors(draw, subject) if draw.random() < 0.2 else ())]
    if subject.plural in parts.FURNISHED_ALONE:
        return list_(draw, subject, count)
    return parts.request("GET", subject.collection(), query)


def watch(draw: Draw, subject: parts.Subject, count: int) -> Json:
    query = [("watch", draw.choice(("1", "1", "true", "true", "x")))]
    if draw.random() < 0.9:
        query.append(("timeoutSeconds", "1"))
    else:
        query.append(("timeoutSeconds", draw.choice(("x", "1.5"))))
    query += parts.selectors(draw, subject)
    if draw.random() < 0.6:
        version = draw.choice(("0", "", "x", "-1", *("{version:0}",) * 4)).replace(":0", f":{draw.randrange(count)}")
        query.append(("resourceVersion", version))
    if draw.random() < 0.35:
        query.append(("sendInitialEvents", draw.choice(("true", "true", "true", *parts.FLAGS))))
        if draw.random() < 0.7:
            query.append(("resourceVersionMatch", draw.choice(("NotOlderThan", "NotOlderThan", *parts.MATCHES))))
    elif draw.random() < 0.1:
        query.append(("resourceVersionMatch", draw.choice(parts.MATCHES)))
    if draw.random() < 0.4:
        query.append(("allowWatchBookmarks", draw.choice(("true", *parts.FLAGS))))
    if draw.random() < 0.1:
        query.append((draw.choice(("limit", "continue")), draw.choice(("1", "x"))))
    query += parts.look(draw)
    path = subject.collection(parts.where(draw))
    if draw.random() < 0.15:
        path = subject.one(parts.name(draw))
    elif draw.random() < 0.15:
        path = path.replace(subject.root, f"{subject.root}/watch", 1)
    if subject.plural in parts.FURNISHED_ALONE:
        query = parts.own(query)
    return parts.request("GET", path, query, accept=parts.accept(draw))


# Deletions ------------------------------------------------------------------------------------------------------------

_POLICIES = ("Background", "Foreground", "Orphan", "background", "", "x")


def _delete_options(draw: Draw, count: int) -> Json:
    options: Json = {}
    if draw.random() < 0.85:
        options |= {"kind": "DeleteOptions", "apiVersion": draw.choice(("v1", "v1", "v1", "meta.k8s.io/v1", "apps/v1"))}
    elif draw.random() < 0.5:
        options |= draw.choice(
            (
                {"kind": "Pod", "apiVersion": "v1"},
                {"kind": "DeleteOptions"},
                {"apiVersion": "v1"},
                {"kind": "DeleteOptions", "apiVersion": "v9"},
                {"kind": "X", "apiVersion": "a/b/c"},
            )
        )
    if draw.random() < 0.45:
        options["propagationPolicy"] = draw.choice(_POLICIES[:3] if draw.random() < 0.7 else _POLICIES)
    if draw.random() < 0.15:
        options["orphanDependents"] = draw.choice((True, False, False, "x"))
    if draw.random() < 0.3:
        options["gracePeriodSeconds"] = draw.choice((0, 0, 5, 30, -1, 1.5, "x", 2**40))
    if draw.random() < 0.25:
        own = {"uid": "{uid:0}", "resourceVersion": "{version:0}"}
        options["preconditions"] = draw.choice(
            (
                own,
                {"uid": own["uid"]},
                {"resourceVersion": own["resourceVersion"]},
                {"uid": "x"},
                {"resourceVersion": "1"},
                {},
                {"name": "x"},
            )
        )
    if draw.random() < 0.15:
        options["dryRun"] = draw.choice((["All"], ["All"], [], ["None"], "All", ["All", "All"]))
    if draw.random() < 0.08:
        options[draw.choice(("unknown", "gracePeriod"))] = 1
    if draw.random() < 0.06:
        options["ignoreStoreReadErrorWithClusterBreakingPotential"] = draw.choice((True, False))
    return options


def _delete_query(draw: Draw) -> list[tuple[str, str]]:
    query = []
    if draw.random() < 0.3:
        query.append(("propagationPolicy", draw.choice(_POLICIES)))
    if draw.random() < 0.12:
        query.append(("orphanDependents", draw.choice(parts.FLAGS)))
    if draw.random() < 0.3:
        query.append(("gracePeriodSeconds", draw.choice(("0", "0", "5", *parts.NOT_NUMBERS))))
    if draw.random() < 0.2:
        query.append(("dryRun", draw.choice(("All", "All", "", "None", "true"))))
    if draw.random() < 0.05:
        query.append(draw.choice((("dryRun", "All"), ("preconditions", "x"), ("kind", "x"), ("timeout", "x"))))
    return query


def delete(draw: Draw, subject: parts.Subject, count: int) -> Json:
    path, query = subject.one(parts.name(draw), parts.where(draw)), parts.look(draw)
    more: Json = {"accept": parts.accept(draw), **parts.user(draw)}
    kind = draw.random()
    if kind < 0.25:
        return parts.request("DELETE", path, [*query, *_delete_query(draw)], **more)
    if kind < 0.35:
        # What of it counts, where both say something?
        query += _delete_query(draw)
    if kind < 0.45:
        body = draw.choice(("{", "[]", "null", "1", '"x"', "kind: DeleteOptions\napiVersion: v1\n", "{}", " "))
        content_type = draw.choice(("application/json", "application/yaml", "", "text/plain", parts.PROTOBUF))
        return parts.request("DELETE", path, query, body, content_type, **more)
    return parts.request("DELETE", path, query, _delete_options(draw, count), **more)


def delete_collection(draw: Draw, subject: parts.Subject, count: int) -> Json:
    query = [*parts.selectors(draw, subject), *parts.look(draw)]
    if draw.random() < 0.3:
        query += parts.pages(draw, count)
    if draw.random() < 0.15:
        query += parts.version(draw, count)
    path = subject.collection(parts.where(draw))
    if subject.namespaced and draw.random() < 0.08:
        path = subject.collection("")
    if subject.plural in (*parts.FURNISHED_ALONE, "apiservices"):
        query = parts.own(query)
    more: Json = {"accept": parts.accept(draw), **parts.user(draw)}
    if draw.random() < 0.4:
        return parts.request("DELETE", path, [*query, *_delete_query(draw)], **more)
    return parts.request("DELETE", path, query, _delete_options(draw, count), **more)
